use std::sync::Arc;

use sealane_message::Pattern;
use tokio::sync::watch;

use super::{Access, Pass};
use crate::refusal::Refusal;

/// What somebody reads by, for as long as it is granted.
pub(crate) struct Grant {
    access: Arc<Access>,
    pass: Pass,
    pattern: Pattern,
    changes: watch::Receiver<u64>,
}

impl Grant {
    /// The grant of a pass, which was admitted a while ago.
    pub(crate) fn new(access: Arc<Access>, pass: Pass, pattern: Pattern) -> Result<Self, Refusal> {
        // In this order no change is missed: those until here are asked for, the others wake.
        let changes = access.changes();
        let mut grant = Self { access, pass, pattern, changes };
        grant.ask()?;
        Ok(grant)
    }

    /// Waits for a change of the tokens, and says whether it is still granted.
    pub(crate) async fn changed(&mut self) -> Result<(), Refusal> {
        // The sender lives as long as the access that is held here.
        drop(self.changes.changed().await);
        self.ask()
    }

    fn ask(&mut self) -> Result<(), Refusal> {
        self.pass = self.access.renew(self.pass.clone())?;
        self.pass.need_to_read_all(&self.pattern)
    }
}
