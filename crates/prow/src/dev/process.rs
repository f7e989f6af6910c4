//! A process by pid and start time, so that a number that was given to another process is never mistaken for it.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as imp;
#[cfg(windows)]
mod windows;
#[cfg(windows)]
use windows as imp;
#[cfg(not(any(target_os = "linux", windows)))]
mod other;
#[cfg(not(any(target_os = "linux", windows)))]
use other as imp;

pub use imp::Process;

#[cfg(all(test, any(target_os = "linux", windows)))]
mod tests {
    use super::*;

    /// A program that goes on until it is ended.
    fn endless() -> tokio::process::Command {
        let (program, argument) = if cfg!(windows) {
            ("ping", ["-t", "127.0.0.1"].as_slice())
        } else {
            ("sleep", ["600"].as_slice())
        };
        let mut command = tokio::process::Command::new(program);
        command.args(argument).stdout(std::process::Stdio::null());
        command
    }

    #[tokio::test]
    async fn a_process_is_known_again_until_it_ends() {
        let mut child = endless().spawn().unwrap();
        let process = Process::of(child.id().unwrap()).unwrap();
        let again = Process::recall(&process.remember()).unwrap();
        again.terminate();
        again.ended().await;
        assert!(
            Process::recall(&process.remember()).is_none(),
            "a process that ended, reaped or not, is gone"
        );
        child.wait().await.unwrap();
        assert!(Process::recall(&process.remember()).is_none());
    }

    #[tokio::test]
    async fn another_process_of_the_same_number_is_not_taken_for_it() {
        let own = Process::of(std::process::id()).unwrap();
        let forged = own
            .remember()
            .replace(&own.remember().split(' ').nth(1).unwrap().to_owned(), "1");
        assert!(Process::recall(&forged).is_none());
        assert!(Process::recall("nonsense").is_none());
    }
}
