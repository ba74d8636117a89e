use std::sync::Arc;

use sealane_message::Pattern;
use tokio::sync::watch;

use super::{AccessTokens, RequestPass};
use crate::refusal::HttpRefusal;

/// The grant of a connection, for as long as it holds.
pub(crate) struct ConnectionGrant {
    access: Arc<AccessTokens>,
    pass: RequestPass,
    need: GrantNeed,
    changes: watch::Receiver<u64>,
}

/// The right that a connection needs to stay.
enum GrantNeed {
    /// To read all of this.
    Read(Pattern),
    /// To enqueue somewhere; where, each message asks.
    Enqueue,
}

impl ConnectionGrant {
    /// The grant to read, of a pass which was admitted a while ago.
    pub(crate) fn reading(
        access: Arc<AccessTokens>,
        pass: RequestPass,
        pattern: Pattern,
    ) -> Result<Self, HttpRefusal> {
        Self::new(access, pass, GrantNeed::Read(pattern))
    }

    /// The grant to publish, of a pass which was admitted a while ago.
    pub(crate) fn publishing(
        access: Arc<AccessTokens>,
        pass: RequestPass,
    ) -> Result<Self, HttpRefusal> {
        Self::new(access, pass, GrantNeed::Enqueue)
    }

    fn new(
        access: Arc<AccessTokens>,
        pass: RequestPass,
        need: GrantNeed,
    ) -> Result<Self, HttpRefusal> {
        // In this order no change is missed: those until here are asked for, the others wake.
        let changes = access.changes();
        let mut grant = Self { access, pass, need, changes };
        grant.ask()?;
        Ok(grant)
    }

    /// The pass as of the last change.
    pub(crate) fn pass(&self) -> &RequestPass {
        &self.pass
    }

    /// Waits for a change of the tokens, and says whether it is still granted.
    pub(crate) async fn changed(&mut self) -> Result<(), HttpRefusal> {
        // The sender lives as long as the access that is held here.
        drop(self.changes.changed().await);
        self.ask()
    }

    /// Waits until it is not granted any more, and says why.
    pub(crate) async fn refused(mut self) -> HttpRefusal {
        loop {
            if let Err(refusal) = self.changed().await {
                return refusal;
            }
        }
    }

    fn ask(&mut self) -> Result<(), HttpRefusal> {
        self.pass = self.access.renew(self.pass.clone())?;
        match &self.need {
            GrantNeed::Read(pattern) => self.pass.need_to_read_all(pattern),
            GrantNeed::Enqueue => self.pass.need_to_enqueue(),
        }
    }
}
