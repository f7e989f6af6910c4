//! A question to the host outside of a try: whether it is ready after a restart, or as desired now.

use super::{Attempt, Cut, Outcome, What};
use crate::{
    local::WantedKind,
    platform::Usage,
    runner::{
        environment::Secrets,
        run::Error,
        shell::{Purpose, Source},
    },
};
use tokio::time::Instant;

impl Attempt<'_> {
    /// Runs a check of the step; the inner error says what it said instead of yes. `end` ends it, beside what ends the work.
    pub(in crate::runner) async fn ask(
        mut self,
        check: &str,
        end: Option<Instant>,
    ) -> Result<Result<(), String>, Error> {
        self.end = end;
        match self.question(check).await {
            Ok(Some(0)) => Ok(Ok(())),
            Ok(Some(code)) => Ok(Err(format!("the check ended with exit code {code}"))),
            Ok(None) => Ok(Err("the check did not end".to_owned())),
            Err(Cut::Outcome(outcome)) => Ok(Err(outcome.message)),
            Err(Cut::Error(error)) => Err(error),
        }
    }

    async fn question(&mut self, check: &str) -> Result<Option<u32>, Cut> {
        let mut log = self.make_folder()?;
        self.fetch(WantedKind::ConfigMap).await?;
        self.mount(WantedKind::ConfigMap)?;
        let what = What::Script(Source::Text(check), Purpose::Check);
        let prepared = self.launch(what, Secrets::Without)?;
        let ended = self
            .execute(prepared, None, self.shell(), &mut log, &mut Usage::default())
            .await?;
        log.finish();
        match ended.halt {
            Some(halt) => Err(Outcome::halted(halt).into()),
            None => Ok(ended.exit.map(|exit| exit.code)),
        }
    }
}
