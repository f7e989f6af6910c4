//! Reading `/proc` (proc(5)).

use std::collections::BTreeMap;

/// What `/proc/<pid>/stat` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    pub pid: u32,
    /// The program's name, cut at 15 bytes.
    pub name: String,
    pub state: char,
    pub parent: u32,
    pub session: u32,
    pub threads: u32,
    /// Clock ticks since boot.
    pub created: u64,
}

impl Stat {
    /// Whether it has ended and only waits to be reaped. A process whose first thread ended looks the same while others run on.
    pub fn is_zombie(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x') && self.threads <= 1
    }
}

/// One process, if it is there.
pub fn stat(pid: u32) -> Option<Stat> {
    parse(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// All processes by pid.
pub fn all() -> BTreeMap<u32, Stat> {
    let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    pids.filter_map(|e| e.file_name().to_str()?.parse().ok())
        .filter_map(stat)
        .map(|s| (s.pid, s))
        .collect()
}

/// Whether the environment a process was started with has this `NAME=value`.
pub fn has_variable(pid: u32, variable: &str) -> bool {
    std::fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|env| env.split(|b| *b == 0).any(|v| v == variable.as_bytes()))
}

fn parse(bytes: &[u8]) -> Option<Stat> {
    let text = String::from_utf8_lossy(bytes);
    // the name stands in brackets and may itself hold brackets and spaces
    let (open, close) = (text.find('(')?, text.rfind(')')?);
    let fields: Vec<&str> = text[close + 1..].split_ascii_whitespace().collect();
    Some(Stat {
        pid: text[..open].trim().parse().ok()?,
        name: text[open + 1..close].to_owned(),
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        threads: fields.get(17)?.parse().ok()?,
        created: fields.get(19)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        let line = b"42 (a) b (c)) S 7 42 41 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 9876 0 0";
        let stat = parse(line).unwrap();
        assert_eq!((stat.pid, stat.name.as_str(), stat.state), (42, "a) b (c)", 'S'));
        assert_eq!(
            (stat.parent, stat.session, stat.threads, stat.created),
            (7, 41, 1, 9876)
        );
    }

    #[test]
    fn this_process_is_found() {
        let me = std::process::id();
        assert_eq!(stat(me).unwrap(), all()[&me]);
    }
}
