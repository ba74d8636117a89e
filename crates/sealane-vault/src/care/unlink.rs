//! How a prune removes links of the chain, beside others that remove and put.

use std::collections::HashSet;

use crate::Error;
use crate::format::header::VaultId;
use crate::format::pack::ObjectHash;
use crate::format::snapshot::{SealedSnapshotLink, snapshot_key};
use crate::limits::MAX_SNAPSHOT_BYTES;
use crate::listing::listing_key;
use crate::store::VaultStore;
use crate::vault::{ChainHead, LedgerLink, Snapshot, SnapshotChain, SnapshotLedger, VaultOwner};

impl VaultOwner {
    /// Names the removed in the chain first, and removes them then. Gives the link that names them.
    pub(super) fn remove_snapshots(
        &self,
        ledger: &SnapshotLedger,
        keep: &HashSet<u64>,
    ) -> Result<Option<ChainHead>, Error> {
        let newest = ledger.snapshots().last().map_or(0, |snapshot| snapshot.number);
        let goes = |link: &&LedgerLink| match &link.snapshot {
            _ if link.is_handover => false,
            Some(_) => !keep.contains(&link.number),
            // An older prune, or what nobody can read.
            None => link.number <= newest,
        };
        let gone: Vec<&LedgerLink> = ledger.links.iter().filter(goes).collect();
        let mut going = gone.iter().map(|link| (link.number, link.hash)).collect::<Vec<_>>();
        // Behind the next number a name would only keep the chain from going on.
        let next = self.next_number()?;
        let others = ledger.lost.iter().chain(&ledger.chain.ended).copied();
        let others = self.as_judged(&ledger.chain, others.collect())?;
        let (lost, beyond): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|(number, _)| *number < next);
        going.extend(lost);
        let mut named = going.clone();
        going.extend(beyond);
        // A lost link in whose place a whole one stands is named, and nothing goes with it.
        named.extend(&ledger.replaced);
        if named.is_empty() && going.is_empty() {
            return Ok(None);
        }
        // The prunes before it are named again by the one that is being written.
        let mut removed = ledger.chain.removed.clone();
        let before: HashSet<u64> = removed.iter().map(|(number, _)| *number).collect();
        removed.extend(named.iter().filter(|(number, _)| !before.contains(number)));
        let own = self.append(&self.remark(), removed)?;
        self.remove_links(&ledger.chain, &going)?;
        let gone = gone.iter().filter_map(|link| link.snapshot.as_ref());
        self.remove_listings(gone, ledger, keep)?;
        Ok(Some(own))
    }

    /// Those links in whose places no others stand than the ones that were judged.
    ///
    /// A put may have taken a number that lies behind the chain, once another prune had freed it.
    fn as_judged(
        &self,
        chain: &SnapshotChain,
        links: Vec<ChainHead>,
    ) -> Result<Vec<ChainHead>, Error> {
        let (store, vault) = (self.store(), self.vault_id());
        let looks = store.for_each(&links, |link| look_again(store, vault, chain, *link));
        let mut stand = Vec::new();
        for (link, look) in links.into_iter().zip(looks) {
            if look? != LinkLook::Another {
                stand.push(link);
            }
        }
        Ok(stand)
    }

    /// Removes links, each if its object is still the one that was judged.
    fn remove_links(&self, chain: &SnapshotChain, links: &[ChainHead]) -> Result<(), Error> {
        let (store, vault) = (self.store(), self.vault_id());
        let removed = store.for_each(links, |link| {
            // Nothing lies between the look and the removal but one request.
            match look_again(store, vault, chain, *link)? {
                LinkLook::AsJudged => store.delete(&snapshot_key(link.0)),
                LinkLook::Gone | LinkLook::Another => Ok(()),
            }
        });
        removed.into_iter().collect()
    }

    /// Removes the listings of snapshots that went, unless another snapshot has the same.
    fn remove_listings<'s>(
        &self,
        gone: impl Iterator<Item = &'s Snapshot>,
        ledger: &SnapshotLedger,
        keep: &HashSet<u64>,
    ) -> Result<(), Error> {
        let listing = |snapshot: &Snapshot| snapshot.body.listing;
        let mut listings: HashSet<ObjectHash> = gone.filter_map(listing).collect();
        let staying = ledger.snapshots().filter(|snapshot| keep.contains(&snapshot.number));
        for hash in staying.filter_map(listing) {
            listings.remove(&hash);
        }
        if listings.is_empty() {
            return Ok(());
        }
        // A put of the same files that came since has the same listing.
        self.store().look_anew();
        let known: HashSet<u64> = ledger.links.iter().map(|link| link.number).collect();
        for snapshot in self.snapshots()?.iter().filter(|one| !known.contains(&one.number)) {
            snapshot.body.listing.iter().for_each(|hash| {
                listings.remove(hash);
            });
        }
        listings.iter().try_for_each(|hash| self.store().delete(&listing_key(hash)))
    }
}

/// The object under the number of a link that was judged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LinkLook {
    /// The object that was judged, or one that is no link.
    AsJudged,
    /// Nothing.
    Gone,
    /// Another link, which a put has written since.
    Another,
}

/// Looks once more at the object of a link that was judged.
fn look_again(
    store: &VaultStore,
    vault: &VaultId,
    chain: &SnapshotChain,
    (number, hash): ChainHead,
) -> Result<LinkLook, Error> {
    let read = store.get(&snapshot_key(number), MAX_SNAPSHOT_BYTES);
    let is_it = match read.and_then(|bytes| SealedSnapshotLink::read(number, bytes, vault)) {
        // One that could not be read may be whole by now, or damaged in a way that only its
        // signature tells. No put takes a number that the chain had passed.
        Ok(sealed) => match chain.whole_at(number) {
            Some(judged) => sealed.hash == judged,
            None => sealed.hash == hash || number < chain.next,
        },
        Err(Error::Missing(_)) => return Ok(LinkLook::Gone),
        Err(error) if error.is_damage() => true,
        Err(error) => return Err(error),
    };
    Ok(if is_it { LinkLook::AsJudged } else { LinkLook::Another })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::hostile::{FalseLink, plant_link};
    use crate::wire::hex;
    use crate::{
        Argon2Cost, OpenOptions, PruneOptions, PutAccess, PutOptions, RetentionRules, SlotSecret,
        VaultMetadata, VaultWriter,
    };

    const COST: Argon2Cost = Argon2Cost { memory_kib: 64, passes: 1, lanes: 1 };

    /// A place for a vault, and a state folder for each of its users.
    struct PrunePlace(tempfile::TempDir);

    impl PrunePlace {
        fn store(&self) -> VaultStore {
            VaultStore::open(self.0.path().join("vault").to_str().unwrap()).unwrap()
        }

        fn options(&self, state: &str) -> OpenOptions {
            OpenOptions { state: Some(self.0.path().join(state)), ..OpenOptions::default() }
        }

        fn init(&self, metadata: VaultMetadata) -> VaultOwner {
            VaultOwner::init(self.store(), b"secret", COST, metadata, &self.options("one")).unwrap()
        }

        fn owner(&self, state: &str) -> VaultOwner {
            let secret = SlotSecret::Passphrase(b"secret");
            VaultOwner::open(self.store(), &secret, &self.options(state)).unwrap()
        }
    }

    fn put(vault: &VaultOwner, content: &[u8]) -> u64 {
        vault.put_reader("file", &mut &*content, &PutOptions::default()).unwrap().snapshot
    }

    fn holds(vault: &VaultOwner, number: u64, content: &[u8]) {
        let mut out = Vec::new();
        let snapshot = vault.snapshot(Some(number)).unwrap();
        vault.file(&snapshot, b"file").unwrap().read_range(0, 99, &mut out).unwrap();
        assert_eq!(out, content, "snapshot {number}");
    }

    /// Two prunes judge a link of a removed writer that lies behind the chain. The first removes
    /// it, and a put takes its number before the second gets to it.
    #[test]
    fn a_number_that_a_put_took_since_the_judgement_stays() {
        let place = PrunePlace(tempfile::tempdir().unwrap());
        let one = place.init(VaultMetadata::Sealed);
        let key = one.add_writer("writer").unwrap();
        let writer = VaultWriter::open(place.store(), &key, &place.options("writer")).unwrap();
        assert_eq!(put(&one, b"first"), 1);
        one.remove_slot(&hex(&key.slot)).unwrap();
        let number = one.next_number().unwrap() + 1;
        let link = FalseLink { number, previous: [9; 32], ..FalseLink::default() };
        plant_link(&writer, link).unwrap();
        let other = place.owner("other");
        let ledger = other.ledger(&BTreeSet::new()).unwrap();
        assert_eq!(ledger.chain.ended, [(number, [0; 32])]);
        let keep = RetentionRules { last: 9, ..RetentionRules::default() };
        one.prune(&PruneOptions { keep, ..PruneOptions::default() }).unwrap();
        assert_eq!(put(&one, b"second"), number);
        other.remove_snapshots(&ledger, &HashSet::from([1])).unwrap();
        // The put may also come between the two looks.
        other.remove_links(&ledger.chain, &ledger.chain.ended).unwrap();
        let fresh = place.owner("fresh");
        holds(&fresh, 1, b"first");
        holds(&fresh, number, b"second");
        assert_eq!(fresh.verify(true).unwrap().problems, []);
        // A name in the chain would hide that it is lost one day.
        let removed = fresh.walk(None).unwrap().removed;
        assert!(removed.iter().all(|(removed, _)| *removed != number), "{removed:?}");
    }

    /// A link that was given up because it could not be read goes, also when it is whole again by
    /// then: its name in the chain says so already.
    #[test]
    fn a_link_that_was_given_up_goes_although_it_is_whole_again() {
        let place = PrunePlace(tempfile::tempdir().unwrap());
        let one = place.init(VaultMetadata::Sealed);
        for content in 0_u8..3 {
            put(&one, &[content]);
        }
        let at = place.0.path().join("vault").join(snapshot_key(2));
        let whole = std::fs::read(&at).unwrap();
        std::fs::write(&at, b"<html>one moment</html>").unwrap();
        let ledger = one.ledger(&BTreeSet::from([2])).unwrap();
        std::fs::write(&at, &whole).unwrap();
        one.remove_snapshots(&ledger, &HashSet::from([1, 3])).unwrap();
        assert!(!at.exists());
        let fresh = place.owner("fresh");
        let numbers = fresh.snapshots().unwrap().into_iter().map(|one| one.number);
        assert_eq!(numbers.collect::<Vec<_>>(), [1, 3]);
        assert_eq!(fresh.verify(true).unwrap().problems, []);
    }

    /// The listing of equal files is one object, whichever snapshot names it.
    #[test]
    fn a_listing_of_a_put_since_the_judgement_stays() {
        let place = PrunePlace(tempfile::tempdir().unwrap());
        let one = place.init(VaultMetadata::Plain);
        let source = place.0.path().join("files");
        std::fs::create_dir(&source).unwrap();
        let put = || one.put_paths(std::slice::from_ref(&source), &PutOptions::default()).unwrap();
        put();
        std::fs::write(source.join("file"), b"another").unwrap();
        put();
        std::fs::remove_file(source.join("file")).unwrap();
        let other = place.owner("other");
        let ledger = other.ledger(&BTreeSet::new()).unwrap();
        let time = std::fs::File::open(&source).unwrap();
        let first = other.snapshot(Some(1)).unwrap();
        let entry = other.entries(&first).unwrap().next().unwrap().unwrap();
        let ns = std::time::Duration::from_nanos(entry.mtime_ns.unsigned_abs());
        time.set_modified(std::time::UNIX_EPOCH + ns).unwrap();
        put();
        other.remove_snapshots(&ledger, &HashSet::from([2])).unwrap();
        let fresh = place.owner("fresh");
        assert_eq!(fresh.snapshots().unwrap().len(), 2);
        assert_eq!(fresh.verify(false).unwrap().problems, []);
    }
}
