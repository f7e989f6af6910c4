//! Systems on which a process is known only while it is our child: nothing is taken over there.

/// See the module above.
pub struct Process {
    pid: u32,
}

impl Process {
    /// A child of ours.
    pub fn of(pid: u32) -> Option<Self> {
        Some(Self { pid })
    }

    /// Nothing that could be recalled.
    pub fn remember(&self) -> String {
        String::new()
    }

    /// Never.
    pub fn recall(_text: &str) -> Option<Self> {
        None
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Only the child's own handle tells.
    pub async fn ended(&self) {
        std::future::pending().await
    }

    /// Asks it to end.
    pub fn terminate(&self) {
        self.signal("-TERM");
    }

    /// Ends it.
    pub fn kill(&self) {
        self.signal("-KILL");
    }

    fn signal(&self, signal: &str) {
        let pid = self.pid.to_string();
        let _ = std::process::Command::new("kill").args([signal, &pid]).status(); // gone already is as good
    }
}
