//! Whether a shell began its script: one that a policy stops, or that hangs, must not look like a script that failed, still less like one
//! that succeeded.

use super::{Attempt, Outcome};
use crate::{
    platform,
    runner::{
        exec::Ended,
        shell::{Marks, Purpose},
        step::End,
    },
};
use api::exit_code;

/// How a script's start went, as it is known when nothing of it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Begun,
    /// It began between the decision that it never would and its end.
    Late,
    Stuck,
    Blocked,
}

impl Start {
    fn of(stuck: bool, begun: bool) -> Self {
        match (stuck, begun) {
            (false, true) => Start::Begun,
            (true, true) => Start::Late,
            (true, false) => Start::Stuck,
            (false, false) => Start::Blocked,
        }
    }

    /// Only what cannot have run may be tried again unasked.
    fn may_be_repeated(self) -> bool {
        self == Start::Stuck
    }
}

impl Attempt<'_> {
    /// The outcome of a script that was not begun. Looked at when nothing of it lives, so that it cannot begin any more.
    pub(super) fn never_began(&self, ended: &Ended, marks: &Marks, shell: Option<&str>) -> Option<Outcome> {
        if ended.halt.is_some() {
            return None;
        }
        let start = Start::of(ended.stuck, marks.has_begun());
        let shell = shell.unwrap_or_default();
        let limit = self.run.options.shell_start_seconds;
        let how = self.how_it_runs(marks, shell);
        let mut outcome = match start {
            Start::Begun => return None,
            Start::Late => Outcome::failed(
                "ShellStuck",
                format!("{shell} began the script only after {limit} s, when it was being ended"),
            ),
            Start::Stuck => Outcome::failed(
                "ShellStuck",
                format!("{shell} did not begin the script within {limit} s ({how})"),
            ),
            Start::Blocked => {
                let code = match &ended.exit {
                    Some(exit) => format!("exit code {}", exit_code::describe(exit.code)),
                    None => "no code".to_owned(),
                };
                let message = format!(
                    "{shell} ended with {code} and did not begin the script ({how}): allow the script and prow-step.ps1 in that policy, or sign them"
                );
                Outcome::failed("ScriptBlocked", message)
            }
        };
        if let End::Failed(failure) = &mut outcome.end {
            failure.never_began = start.may_be_repeated();
        }
        Some(outcome)
    }

    /// What holds scripts back.
    fn how_it_runs(&self, marks: &Marks, shell: &str) -> String {
        let mode = marks.language_mode();
        let mode = mode.as_deref().unwrap_or("not known");
        let asked = self.step.execution_policy.unwrap_or_default();
        let policy = match platform::script_policy(shell) {
            Some(policy) => format!("{policy}, by group policy"),
            None => format!("{asked:?}"),
        };
        format!("execution policy: {policy}; language mode: {mode}")
    }

    /// Whether a program's exit code ended the step's script before its end.
    pub(super) fn was_stopped(&self) -> bool {
        Marks::of(&self.folder, Purpose::Script).was_stopped()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mark that comes while the shell is being ended says that the script may have run.
    #[test]
    fn what_may_have_run_is_not_repeated() {
        let all = [(true, true), (true, false), (false, true), (false, false)];
        let repeated = all.map(|(stuck, begun)| Start::of(stuck, begun).may_be_repeated());
        assert_eq!(repeated, [false, true, false, false]);
        assert_eq!(Start::of(true, true), Start::Late);
        assert_eq!(Start::of(false, false), Start::Blocked, "whatever its code");
    }
}
