//! A process by pid and start time, so that a number that was given to another process is never mistaken for it.

#[cfg(not(target_os = "linux"))]
use other as imp;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as imp;
#[cfg(not(target_os = "linux"))]
mod other;

pub use imp::Process;

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_process_is_known_again_until_it_ends() {
        let mut child = tokio::process::Command::new("sleep").arg("600").spawn().unwrap();
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
