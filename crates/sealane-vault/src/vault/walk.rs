//! How the chain of a store is read: each link once, several at a time.

use std::collections::{BTreeSet, HashMap};

use super::Vault;
use super::chain::ChainHead;
use super::ledger::{ChainLedger, ChainStanding, LedgerTrust, SnapshotChain};
use super::succession::TakenOver;
use super::trust::SignerKey;
use crate::Error;
use crate::format::pack::ObjectHash;
use crate::format::snapshot::{SealedSnapshotLink, SignerId, snapshot_key, snapshot_number};
use crate::limits::{MAX_LINK_LISTINGS, MAX_SNAPSHOT_BYTES};
use crate::wire::hex;

impl Vault {
    /// Reads the chain from its beginning, or from a head that was seen.
    pub(crate) fn walk(&self, from: Option<ChainHead>) -> Result<SnapshotChain, Error> {
        let read = self.walk_once(from);
        let is_doubtful = match &read {
            // A list of many objects may show what a prune removes, and not what it wrote before.
            Err(Error::RolledBack { .. }) => true,
            Ok(chain) => !chain.unread.is_empty() || !chain.loose.is_empty(),
            Err(_) => false,
        };
        if !is_doubtful {
            return read;
        }
        self.store.look_anew();
        self.walk_once(from)
    }

    fn walk_once(&self, from: Option<ChainHead>) -> Result<SnapshotChain, Error> {
        let _look = self.store.look();
        let signers = self.signers()?;
        let first = from.map_or(1, |(number, _)| number);
        let taken_over = self.taken_over(first)?;
        let mut ledger = ChainLedger::new(self.trust(&signers), taken_over, from);
        self.read_links(&mut ledger)?;
        ledger.chain()
    }

    fn trust<'a>(&'a self, signers: &'a HashMap<SignerId, SignerKey>) -> LedgerTrust<'a> {
        LedgerTrust { vault: &self.config.vault, succession: &self.succession, signers }
    }

    /// Gives the ledger every object that it judges.
    ///
    /// A prune may remove some between the list and the look: then the links are listed again,
    /// since the one that says so has come as well.
    fn read_links(&self, ledger: &mut ChainLedger<'_>) -> Result<(), Error> {
        let mut strange = Vec::new();
        for _ in 0..MAX_LINK_LISTINGS {
            strange.clear();
            let (mut listed, mut unread) = (BTreeSet::new(), Vec::new());
            for object in self.store.list("snapshots/")? {
                match snapshot_number(&object.key) {
                    Some(number) if number >= ledger.first() => {
                        listed.insert(number);
                        if !ledger.has(number) {
                            unread.push(object);
                        }
                    }
                    Some(_) => {}
                    None => strange.push(object.key),
                }
            }
            ledger.retain(&listed);
            let mut has_vanished = false;
            self.store.get_each(&unread, MAX_SNAPSHOT_BYTES, &mut |object, bytes| {
                match (snapshot_number(&object.key), bytes) {
                    (_, Err(Error::Missing(_))) => has_vanished = true,
                    (_, Err(error)) if !error.is_damage() => return Err(error),
                    (Some(number), bytes) => {
                        if !ledger.add(number, bytes) {
                            self.store.doubt(&object.key);
                        }
                    }
                    (None, _) => {}
                }
                Ok(())
            })?;
            if !has_vanished {
                break;
            }
            self.store.look_anew();
        }
        strange.iter().for_each(|key| ledger.strange(key));
        Ok(())
    }

    fn read_link(
        &self,
        number: u64,
        signers: &HashMap<SignerId, SignerKey>,
    ) -> Result<(SealedSnapshotLink, ChainStanding), Error> {
        let bytes = self.store.get_seen(&snapshot_key(number), MAX_SNAPSHOT_BYTES)?;
        self.trust(signers).judge(number, bytes)
    }

    /// The links that the newest hand-over names, where a walk from `first` on needs them.
    fn taken_over(&self, first: u64) -> Result<Option<TakenOver>, Error> {
        let newest = self.succession.handovers().last().copied();
        match newest.filter(|(number, _)| first <= *number) {
            Some(head) => TakenOver::read(&self.store, &self.config.vault, head),
            None => Ok(None),
        }
    }

    /// The hash of the whole link under a number, if nobody of the vault has signed it.
    pub(super) fn hash_of_strangers(
        &self,
        number: u64,
        signers: &HashMap<SignerId, SignerKey>,
    ) -> Result<Option<ObjectHash>, Error> {
        match self.read_link(number, signers) {
            Ok((sealed, ChainStanding::Nobody)) => Ok(Some(sealed.hash)),
            Err(error) if !error.is_damage() => Err(error),
            _ => Ok(None),
        }
    }

    /// A link that is believed.
    pub(crate) fn load(
        &self,
        number: u64,
        signers: &HashMap<SignerId, SignerKey>,
    ) -> Result<SealedSnapshotLink, Error> {
        match self.read_link(number, signers)? {
            (_, ChainStanding::Nobody) => Err(Error::Signature(snapshot_key(number))),
            (sealed, ChainStanding::Ended) => {
                let until = signers.get(&sealed.link.signer).map_or(0, |signer| signer.until);
                Err(Error::WriterEnded { slot: hex(&sealed.link.signer), until })
            }
            (sealed, _) => Ok(sealed),
        }
    }
}
