use std::sync::Arc;

use sealane_message::Pattern;
use tokio::sync::watch;

use super::{Access, Pass};
use crate::refusal::Refusal;

/// The grant of a connection, for as long as it holds.
pub(crate) struct Grant {
    access: Arc<Access>,
    pass: Pass,
    need: Need,
    changes: watch::Receiver<u64>,
}

/// The right that a connection needs to stay.
enum Need {
    /// To read all of this.
    Read(Pattern),
    /// To enqueue somewhere; where, each message asks.
    Enqueue,
}

impl Grant {
    /// The grant to read, of a pass which was admitted a while ago.
    pub(crate) fn reading(
        access: Arc<Access>,
        pass: Pass,
        pattern: Pattern,
    ) -> Result<Self, Refusal> {
        Self::new(access, pass, Need::Read(pattern))
    }

    /// The grant to publish, of a pass which was admitted a while ago.
    pub(crate) fn publishing(access: Arc<Access>, pass: Pass) -> Result<Self, Refusal> {
        Self::new(access, pass, Need::Enqueue)
    }

    fn new(access: Arc<Access>, pass: Pass, need: Need) -> Result<Self, Refusal> {
        // In this order no change is missed: those until here are asked for, the others wake.
        let changes = access.changes();
        let mut grant = Self { access, pass, need, changes };
        grant.ask()?;
        Ok(grant)
    }

    /// The pass as of the last change.
    pub(crate) fn pass(&self) -> &Pass {
        &self.pass
    }

    /// Waits for a change of the tokens, and says whether it is still granted.
    pub(crate) async fn changed(&mut self) -> Result<(), Refusal> {
        // The sender lives as long as the access that is held here.
        drop(self.changes.changed().await);
        self.ask()
    }

    /// Waits until it is not granted any more, and says why.
    pub(crate) async fn refused(mut self) -> Refusal {
        loop {
            if let Err(refusal) = self.changed().await {
                return refusal;
            }
        }
    }

    fn ask(&mut self) -> Result<(), Refusal> {
        self.pass = self.access.renew(self.pass.clone())?;
        match &self.need {
            Need::Read(pattern) => self.pass.need_to_read_all(pattern),
            Need::Enqueue => self.pass.need_to_enqueue(),
        }
    }
}
