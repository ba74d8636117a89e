use std::time::{Duration, Instant};

use crate::Error;
use crate::limits::MAX_CHAIN_LOOK_MS;
use crate::vault::{ChainHead, SnapshotLedger, Vault};

/// Whether others have added links to the chain since a prune has read it.
///
/// A prune knows what is needed as of its reading. What came later may need anything that is there,
/// so that nothing is removed any more.
pub(super) struct ChainWatch<'a> {
    vault: &'a Vault,
    ledger: &'a SnapshotLedger,
    /// The link that the prune itself has added.
    own: Option<ChainHead>,
    looked: Option<Instant>,
    moved: bool,
}

impl<'a> ChainWatch<'a> {
    pub(super) fn new(
        vault: &'a Vault,
        ledger: &'a SnapshotLedger,
        own: Option<ChainHead>,
    ) -> ChainWatch<'a> {
        ChainWatch { vault, ledger, own, looked: None, moved: false }
    }

    /// Looks at the chain before the first removal, and again where that is a while ago.
    pub(super) fn has_moved(&mut self) -> Result<bool, Error> {
        let age = Duration::from_millis(MAX_CHAIN_LOOK_MS);
        if !self.moved && self.looked.is_none_or(|at| at.elapsed() >= age) {
            self.moved = self.look()?;
            self.looked = Some(Instant::now());
        }
        Ok(self.moved)
    }

    fn look(&self) -> Result<bool, Error> {
        self.vault.store().look_anew();
        let known = &self.ledger.chain;
        let chain = match self.vault.walk(known.head) {
            Ok(chain) => chain,
            // The head itself went, and not by this prune.
            Err(Error::RolledBack { .. } | Error::Forked(_)) => return Ok(true),
            Err(error) => return Err(error),
        };
        let own = self.own.map(|(number, _)| number);
        let is_known = |number: &u64| {
            Some(*number) == own || known.links.contains(number) || known.loose.contains(number)
        };
        Ok(chain.links.iter().chain(&chain.loose).any(|number| !is_known(number)))
    }
}
