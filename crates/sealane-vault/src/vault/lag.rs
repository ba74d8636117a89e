//! Whether a store is behind what this machine has seen of its vault: a copy may lag, and a store
//! that was rolled back looks the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use super::chain::{ChainHead, head_text, parse_head};
use super::ledger::SnapshotChain;
use super::pin::{self, place_name};
use super::{OpenOptions, Vault};
use crate::Error;
use crate::put::SkippedItem;
use crate::wire::hex;

/// How a store stands to what this machine has seen.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StoreLag {
    /// The newest link that was seen, in this place or another, if the store lacks it.
    behind: Option<ChainHead>,
    /// The head from which on the user takes the store as it is.
    accepted: Option<ChainHead>,
}

impl Vault {
    fn lag(&self) -> StoreLag {
        *self.lag.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_lag(&self, lag: StoreLag) {
        *self.lag.lock().unwrap_or_else(PoisonError::into_inner) = lag;
    }

    /// Whether the store lacks links that this machine has seen.
    pub(super) fn lags(&self) -> bool {
        self.lag().behind.is_some()
    }

    /// Checks the store against the heads that were seen here, and one that the user names.
    pub(super) fn check_head(&self, options: &OpenOptions) -> Result<(), Error> {
        let parse = |text: &str| parse_head(text).ok_or_else(|| Error::NoSnapshot(text.to_owned()));
        if let Some(named) = &options.expect_head {
            self.walk_from(parse(named)?)?;
        }
        // Without a state folder there is nothing to compare with.
        if self.state.is_none() {
            return Ok(());
        }
        let accepted = options.accept_rollback.as_deref().map(parse).transpose()?;
        match (self.behind(), accepted) {
            (Err(Error::RolledBack { .. }), Some(accepted)) => self.accept(accepted),
            // A copy that was read before is known to lag. The user can still give up the rest.
            (Ok(_), Some(accepted)) if self.lags() => self.accept(accepted),
            (behind, _) => behind.map(|_| ()),
        }
    }

    /// Takes a store as it is from a head on, which it must have.
    fn accept(&self, accepted: ChainHead) -> Result<(), Error> {
        let chain = self.walk_from(accepted)?;
        let seen = self.seen_head()?;
        self.set_lag(StoreLag { behind: seen, accepted: Some(accepted) });
        self.warn_of_lag(seen.unwrap_or_default());
        // Another place is a copy from now on. This one has shown more than it has.
        match (self.place_head()?, chain.standing) {
            (None, Some(head)) => self.remember_place(head),
            _ => Ok(()),
        }
    }

    fn warn_of_lag(&self, seen: ChainHead) {
        let reason = format!("it lacks links up to {} that were seen here: a copy lags", seen.0);
        self.warn([SkippedItem { path: self.store.location(), reason }]);
    }

    /// The chain from the head that was seen here. Where that was seen in another place, this one
    /// is a copy that lags, and has to have what it had itself.
    pub(super) fn behind(&self) -> Result<SnapshotChain, Error> {
        if let Some(accepted) = self.lag().accepted {
            let mut chain = self.walk_from(accepted)?;
            self.warn(chain.problems.drain(..));
            return Ok(chain);
        }
        let seen = self.seen_head()?;
        let here = self.place_head()?;
        let mut chain = match (self.walk(seen), seen, here) {
            (Err(Error::RolledBack { .. }), Some(seen), Some(here)) if here.0 < seen.0 => {
                let chain = self.walk_from(here)?;
                self.set_lag(StoreLag { behind: Some(seen), accepted: None });
                self.warn_of_lag(seen);
                chain
            }
            (Err(Error::RolledBack { .. }), Some(seen), _) => return Err(self.rolled_back(seen)?),
            (chain, ..) => {
                self.set_lag(StoreLag::default());
                chain?
            }
        };
        self.warn(chain.problems.drain(..));
        match chain.standing {
            Some(head) if self.lags() && Some(head) != here => self.remember_place(head)?,
            Some(_) if self.lags() => {}
            Some(head) if Some(head) != seen || Some(head) != here => self.remember_head(head)?,
            _ => {}
        }
        Ok(chain)
    }

    fn walk_from(&self, head: ChainHead) -> Result<SnapshotChain, Error> {
        match self.walk(Some(head)) {
            Err(Error::RolledBack { .. }) => Err(self.rolled_back(head)?),
            other => other,
        }
    }

    /// The error that names the store's head instead of `seen`.
    fn rolled_back(&self, seen: ChainHead) -> Result<Error, Error> {
        let there = self.walk(None)?.head.unwrap_or_default();
        Ok(Error::RolledBack { seen: seen.0, found: there.0, head: head_text(there) })
    }

    /// Refuses to write to a store that lacks what was seen: what is written there would make
    /// another history of the vault. Where the user has accepted that, what is missing is given up.
    pub(crate) fn check_writable(&self) -> Result<(), Error> {
        let StoreLag { behind, accepted } = self.lag();
        match (behind, accepted) {
            (None, _) => Ok(()),
            (Some(seen), None) => Err(self.rolled_back(seen)?),
            (Some(_), Some(accepted)) => {
                let head = self.walk_from(accepted)?.standing.unwrap_or(accepted);
                self.set_lag(StoreLag::default());
                self.remember_head(head)
            }
        }
    }

    /// The newest link that was seen anywhere.
    pub(super) fn seen_head(&self) -> Result<Option<ChainHead>, Error> {
        match &self.state {
            Some(state) => read_head(&state.join("head")),
            None => Ok(None),
        }
    }

    /// The newest link that this machine knows the store to have to have.
    pub(super) fn known_head(&self) -> Result<Option<ChainHead>, Error> {
        match self.lag() {
            StoreLag { accepted: Some(accepted), .. } => Ok(Some(accepted)),
            StoreLag { behind: Some(_), .. } => self.place_head(),
            StoreLag { .. } => self.seen_head(),
        }
    }

    /// The newest link that was seen in this place.
    fn place_head(&self) -> Result<Option<ChainHead>, Error> {
        self.place_file().map_or(Ok(None), |file| read_head(&file))
    }

    fn place_file(&self) -> Option<PathBuf> {
        Some(self.state.as_ref()?.join("heads").join(hex(&place_name(&self.store))))
    }

    fn remember_place(&self, head: ChainHead) -> Result<(), Error> {
        let text = format!("{}\n", head_text(head));
        self.place_file().map_or(Ok(()), |file| pin::write(&file, text))
    }

    pub(crate) fn remember_head(&self, head: ChainHead) -> Result<(), Error> {
        let Some(state) = &self.state else { return Ok(()) };
        self.remember_place(head)?;
        pin::write(&state.join("head"), format!("{}\n", head_text(head)))
    }
}

fn read_head(path: &Path) -> Result<Option<ChainHead>, Error> {
    match fs::read_to_string(path) {
        Ok(text) => {
            let malformed = Error::Malformed { what: "the head in the state folder" };
            parse_head(text.trim()).map(Some).ok_or(malformed)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(Error::file(path, cause)),
    }
}
