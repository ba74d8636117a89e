use std::collections::BTreeMap;

use crate::Error;
use crate::vault::{Snapshot, Vault, host};

/// Others whose snapshots an error names.
const NAMED: usize = 8;

/// Selects snapshots by host and signer, where no number names one.
///
/// A host's name is only a claim of its snapshots; their signer is certain. So both count: files of
/// another signer are not taken for the owner's because they name the owner's host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SnapshotSelector {
    /// The host; none is this machine.
    pub host: Option<String>,
    /// The slot of the writer that signed; none is the owner.
    pub signer: Option<String>,
    /// Those of all hosts and signers, or of the ones that are named.
    pub anyone: bool,
    /// Whether an older one will do where a newer one, whosever it is, cannot be read.
    pub allow_older: bool,
}

impl SnapshotSelector {
    pub(crate) fn has(&self, snapshot: &Snapshot) -> bool {
        let host = match &self.host {
            Some(named) => snapshot.source == *named,
            None => self.anyone || snapshot.source == host(),
        };
        let signer = snapshot.signer == self.signer || (self.anyone && self.signer.is_none());
        host && signer
    }

    /// For people.
    pub(crate) fn shown(&self) -> String {
        let host = match &self.host {
            Some(named) => format!("host `{named}`"),
            None if self.anyone => "any host".to_owned(),
            None => format!("this host, `{}`", host()),
        };
        match &self.signer {
            Some(writer) => format!("{host}, by writer {writer}"),
            None if self.anyone => host,
            None => format!("{host}, by the owner"),
        }
    }
}

impl Vault {
    /// The newest snapshot of these that has something at each of `paths`.
    ///
    /// # Errors
    /// [`Error::NoOwnSnapshot`], [`Error::NoSnapshot`] in an empty vault, [`Error::NoEntry`],
    /// [`Error::OlderOnly`] where a newer one cannot be read, and as [`Vault::snapshots`].
    pub fn newest(&self, whose: &SnapshotSelector, paths: &[Vec<u8>]) -> Result<Snapshot, Error> {
        let mut lacking = None;
        let found = self.search(whose.allow_older, &mut |snapshot| {
            if !whose.has(&snapshot) {
                return Ok(None);
            }
            match self.check_paths(&snapshot, paths) {
                Ok(()) => Ok(Some(snapshot)),
                Err(error @ Error::NoEntry(_)) => {
                    lacking.get_or_insert(error);
                    Ok(None)
                }
                // A prune has removed it since.
                Err(Error::Removed(_)) => Ok(None),
                Err(error) => Err(error),
            }
        })?;
        match (found, lacking) {
            (Some(snapshot), _) => Ok(snapshot),
            (None, Some(lacking)) => Err(lacking),
            (None, None) => Err(self.none_of(whose)?),
        }
    }

    /// All snapshots of these, oldest first.
    ///
    /// # Errors
    /// As [`Vault::newest`].
    pub fn snapshots_of(&self, whose: &SnapshotSelector) -> Result<Vec<Snapshot>, Error> {
        let mut snapshots = self.snapshots()?;
        snapshots.retain(|snapshot| whose.has(snapshot));
        if snapshots.is_empty() { Err(self.none_of(whose)?) } else { Ok(snapshots) }
    }

    /// Why there is none, with the newest that each of the others has.
    fn none_of(&self, whose: &SnapshotSelector) -> Result<Error, Error> {
        let mut newest = BTreeMap::new();
        for snapshot in self.snapshots()? {
            newest.insert((snapshot.source, snapshot.signer), snapshot.number);
        }
        if newest.is_empty() {
            return Ok(Error::NoSnapshot("latest".to_owned()));
        }
        let more = newest.len().saturating_sub(NAMED);
        let named = newest.into_iter().take(NAMED).map(|((host, signer), number)| match signer {
            Some(writer) => format!("{number} of `{}` by writer {writer}", host.escape_debug()),
            None => format!("{number} of `{}`", host.escape_debug()),
        });
        let mut there = named.collect::<Vec<_>>().join(", ");
        if more > 0 {
            there.push_str(&format!(" and {more} more"));
        }
        Ok(Error::NoOwnSnapshot { asked: whose.shown(), there })
    }
}
