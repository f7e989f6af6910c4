//! Lines of many steps on one screen: each behind the name of its step, and of its node where there are several.

use crate::{
    log_lines::Line,
    terminal::{self, Tone, paint, paint_by},
};
use api::Task;
use std::{collections::BTreeMap, io};

/// Prints lines.
pub struct Printer {
    timestamps: bool,
    /// Task name → node and attempt.
    tasks: BTreeMap<String, (String, i32)>,
}

impl Printer {
    /// A printer that knows no Task yet.
    pub fn new(timestamps: bool) -> Self {
        Self {
            timestamps,
            tasks: BTreeMap::new(),
        }
    }

    /// Remembers where a Task runs; with several Tasks their nodes get into the prefix.
    pub fn know(&mut self, task: &Task) {
        let name = task.metadata.name.clone().unwrap_or_default();
        self.tasks
            .entry(name)
            .or_insert_with(|| (task.spec.node_name.clone(), task.spec.attempt));
    }

    /// Prints a line behind its prefix.
    pub fn print(&self, task: &str, step: &str, line: &Line) -> io::Result<()> {
        let prefix = self.prefix(task, step);
        let text = if line.is_error {
            paint(Tone::Wait, &line.text)
        } else {
            line.text.clone()
        };
        let time = if self.timestamps {
            format!("{} ", line.time)
        } else {
            String::new()
        };
        terminal::line(format!(
            "{} {time}{text}",
            paint_by(&prefix, &format!("[{prefix}]"))
        ))
    }

    fn prefix(&self, task: &str, step: &str) -> String {
        let Some((node, attempt)) = self.tasks.get(task).filter(|_| self.tasks.len() > 1) else {
            return step.to_owned();
        };
        match attempt {
            0 => format!("{node} {step}"),
            attempt => format!("{node} {step} #{}", attempt + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(name: &str, node: &str, attempt: i32) -> Task {
        let mut task = Task::new(name, Default::default());
        task.spec.node_name = node.into();
        task.spec.attempt = attempt;
        task
    }

    #[test]
    fn the_prefix_names_what_tells_lines_apart() {
        let mut printer = Printer::new(false);
        printer.know(&task("a", "web01", 0));
        assert_eq!(printer.prefix("a", "install"), "install");
        printer.know(&task("b", "web02", 0));
        printer.know(&task("c", "web02", 1));
        assert_eq!(printer.prefix("a", "install"), "web01 install");
        assert_eq!(printer.prefix("c", "install"), "web02 install #2");
    }
}
