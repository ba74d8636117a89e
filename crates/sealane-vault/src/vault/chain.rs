use std::collections::HashMap;

use super::Vault;
use super::trust::SignerKey;
use super::unread::UnreadLink;
use crate::Error;
use crate::format::pack::ObjectHash;
use crate::format::roster::roster_key;
use crate::format::snapshot::{
    SealedSnapshotLink, SignerId, SnapshotBody, SnapshotCounts, snapshot_number,
};
use crate::limits::MAX_HEARSAY_AHEAD;
use crate::put::SkippedItem;
use crate::wire::{from_hex, hex};

/// The newest link: its number, and the hash of its object.
pub(crate) type ChainHead = (u64, ObjectHash);

/// A number of the chain that is looked up, and the newest link that was seen here.
#[derive(Clone, Copy)]
struct ChainReading {
    number: u64,
    seen: Option<ChainHead>,
}

/// The properties of a snapshot, as it states them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Snapshot {
    /// Its number in the chain.
    pub number: u64,
    /// When it was made: nanoseconds since 1970-01-01 UTC.
    pub time_ns: i64,
    /// The host that made it.
    pub source: String,
    /// The note of the user.
    pub note: String,
    /// The counts of its content.
    pub counts: SnapshotCounts,
    /// Whether a writer's key made it.
    pub by_writer: bool,
    /// The slot of the writer that signed it; none is the owner.
    pub signer: Option<String>,
    /// Where on its host the files were, sorted; empty if it does not say.
    pub paths: Vec<Vec<u8>>,
    /// Its tags, sorted.
    pub tags: Vec<String>,
    pub(crate) body: SnapshotBody,
}

impl Vault {
    /// All snapshots of the chain, oldest first.
    ///
    /// # Errors
    /// [`Error::NotOwner`], and what the store fails for. What is not believed or does not connect
    /// is skipped and named by [`Vault::warnings`].
    pub fn snapshots(&self) -> Result<Vec<Snapshot>, Error> {
        self.owner("read snapshots")?;
        let _look = self.store.look();
        let chain = self.walk(None)?;
        self.warn(chain.problems);
        self.read_snapshots(&chain.links)
    }

    /// How many links of removed writers the store has that nobody believes.
    ///
    /// # Errors
    /// The store's failures.
    pub fn unbelieved(&self) -> Result<u64, Error> {
        Ok(self.walk(None)?.ended.len() as u64)
    }

    fn read_snapshots(&self, numbers: &[u64]) -> Result<Vec<Snapshot>, Error> {
        let signers = self.signers()?;
        let mut snapshots = Vec::new();
        for &number in numbers {
            snapshots.extend(self.readable(number, &signers)?);
        }
        Ok(snapshots)
    }

    /// A snapshot if it is one and can be read; damage is named as a warning.
    fn readable(
        &self,
        number: u64,
        signers: &HashMap<SignerId, SignerKey>,
    ) -> Result<Option<Snapshot>, Error> {
        match self.read_snapshot(number, signers) {
            // A prune has removed it since. If it was somebody else, the next walk says so.
            Err(Error::Missing(_)) => Ok(None),
            Err(error) if error.is_damage() => {
                let path = format!("snapshot {number}");
                self.warn([SkippedItem { path, reason: error.named() }]);
                Ok(None)
            }
            other => other,
        }
    }

    fn read_snapshot(
        &self,
        number: u64,
        signers: &HashMap<SignerId, SignerKey>,
    ) -> Result<Option<Snapshot>, Error> {
        self.read_body(&self.load(number, signers)?)
    }

    /// The snapshot that a believed link keeps; none for a prune.
    pub(super) fn read_body(&self, sealed: &SealedSnapshotLink) -> Result<Option<Snapshot>, Error> {
        let body = self.open_body(sealed)?;
        Ok((!body.prune).then(|| snapshot_of(sealed, body)))
    }

    /// The body of a believed link, opened with the vault's keys.
    pub(super) fn open_body(&self, sealed: &SealedSnapshotLink) -> Result<SnapshotBody, Error> {
        let body = sealed.open(self.sealing_of(&sealed.header)?.as_ref())?;
        if sealed.link.signer == SignerId::default() && body.roster > self.roster().number {
            self.warn([SkippedItem {
                path: roster_key(body.roster),
                reason: "the owner's list of slots was rolled back: a writer that was removed may \
                         be believed"
                    .to_owned(),
            }]);
        }
        Ok(body)
    }

    /// The highest number of a list of slots that the owner's links name.
    pub(crate) fn named_roster(&self) -> Result<u64, Error> {
        let _look = self.store.look();
        let signers = self.signers()?;
        let mut named = 0;
        for number in self.walk(None)?.links {
            let sealed = match self.load(number, &signers) {
                Ok(sealed) => sealed,
                // A prune has removed it since.
                Err(Error::Missing(_)) => continue,
                Err(error) => return Err(error),
            };
            if !sealed.link.is_owners() {
                continue;
            }
            match sealed.open(self.sealing_of(&sealed.header)?.as_ref()) {
                Ok(body) => named = named.max(body.roster),
                Err(error) if error.is_damage() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(named)
    }

    /// Gives the snapshots of the chain, newest first, to `take` until that gives something back.
    /// The head needs no walk through the rest, and is what most ask for.
    ///
    /// Behind a snapshot that cannot be read an older one is taken only if `allow_older` says so.
    pub(crate) fn search<T>(
        &self,
        allow_older: bool,
        take: &mut dyn FnMut(Snapshot) -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        self.owner("read snapshots")?;
        let _look = self.store.look();
        let signers = self.signers()?;
        let behind = self.behind()?;
        let seen = self.known_head()?;
        // A writer can tell of a link that never was, but not from so far away.
        let far = behind.next.saturating_add(MAX_HEARSAY_AHEAD);
        let mut unread = behind.unread;
        let head = behind.head.map(|(number, _)| number);
        let mut try_one = |number: u64, unread: &mut Vec<UnreadLink>| {
            let found = self.newest_at(ChainReading { number, seen }, &signers, unread)?;
            let Some(snapshot) = found else { return Ok(None) };
            let Some(taken) = take(snapshot)? else { return Ok(None) };
            let newer =
                unread.iter().filter(|one| one.to > number && (!one.is_hearsay || one.to <= far));
            let newer = newer.map(UnreadLink::shown);
            let newer: Vec<String> = newer.collect();
            match newer.is_empty() || allow_older {
                true => Ok(Some(taken)),
                false => Err(Error::OlderOnly { number, unread: newer.join(", ") }),
            }
        };
        if let Some(head) = head
            && let Some(taken) = try_one(head, &mut unread)?
        {
            return Ok(Some(taken));
        }
        let mut chain = self.walk(None)?;
        seen.into_iter().for_each(|seen| chain.name_seen(seen));
        self.warn(chain.problems);
        for one in chain.unread {
            if !unread.iter().any(|known| (known.from, known.to) == (one.from, one.to)) {
                unread.push(one);
            }
        }
        for number in chain.links.into_iter().rev().filter(|number| Some(*number) != head) {
            if let Some(taken) = try_one(number, &mut unread)? {
                return Ok(Some(taken));
            }
        }
        Ok(None)
    }

    /// A snapshot of the chain, unless it cannot be read, which is noted. A link that nobody of the
    /// vault has signed is no snapshot, and hides none: anybody may lay it there.
    fn newest_at(
        &self,
        reading: ChainReading,
        signers: &HashMap<SignerId, SignerKey>,
        unread: &mut Vec<UnreadLink>,
    ) -> Result<Option<Snapshot>, Error> {
        let number = reading.number;
        let sealed = match self.load(number, signers) {
            Ok(sealed) => sealed,
            // A prune has removed it since. If it was somebody else, the next walk says so.
            Err(Error::Missing(_) | Error::WriterEnded { .. }) => return Ok(None),
            Err(Error::Signature(_)) if self.is_strangers(reading, signers)? => return Ok(None),
            Err(error) if error.is_damage() => {
                let reason = error.named();
                self.warn([SkippedItem {
                    path: format!("snapshot {number}"),
                    reason: reason.clone(),
                }]);
                if !unread.iter().any(|one| (one.from..=one.to).contains(&number)) {
                    unread.push(UnreadLink::at(number, reason));
                }
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        match self.read_body(&sealed) {
            Err(error) if error.is_damage() => {
                let reason = error.named();
                self.warn([SkippedItem {
                    path: format!("snapshot {number}"),
                    reason: reason.clone(),
                }]);
                // A writer that signs what nobody can open hides no snapshot.
                if sealed.link.is_owners() {
                    unread.push(UnreadLink::at(number, reason));
                }
                Ok(None)
            }
            other => other,
        }
    }

    /// Whether the object under a number is a whole link that nobody of the vault has signed, and
    /// took the place of none that was seen here.
    fn is_strangers(
        &self,
        ChainReading { number, seen }: ChainReading,
        signers: &HashMap<SignerId, SignerKey>,
    ) -> Result<bool, Error> {
        let hash = self.hash_of_strangers(number, signers)?;
        Ok(hash.is_some_and(|hash| seen.is_none_or(|seen| seen.0 != number || seen.1 == hash)))
    }

    /// One snapshot; without a number the newest of the chain, whoever made it. One that is named
    /// may be loose. [`Vault::newest`] asks whose.
    ///
    /// # Errors
    /// [`Error::NoSnapshot`], [`Error::OlderOnly`] where the newest cannot be read, and as
    /// [`Vault::snapshots`].
    pub fn snapshot(&self, number: Option<u64>) -> Result<Snapshot, Error> {
        self.owner("read snapshots")?;
        let signers = self.signers()?;
        let none = |name: String| Error::NoSnapshot(name);
        if let Some(number) = number {
            if !self.snapshot_numbers()?.contains(&number) {
                return Err(none(number.to_string()));
            }
            return match self.read_snapshot(number, &signers) {
                Ok(Some(snapshot)) => Ok(snapshot),
                // A prune, or one that a prune has removed since.
                Ok(None) | Err(Error::Missing(_)) => Err(none(number.to_string())),
                Err(error) => Err(error),
            };
        }
        self.newest_of_all(false)
    }

    /// The newest of the chain, whoever made it.
    pub(crate) fn newest_of_all(&self, allow_older: bool) -> Result<Snapshot, Error> {
        let newest = self.search(allow_older, &mut |snapshot| Ok(Some(snapshot)))?;
        newest.ok_or_else(|| Error::NoSnapshot("latest".to_owned()))
    }

    pub(crate) fn snapshot_numbers(&self) -> Result<Vec<u64>, Error> {
        let objects = self.store.list("snapshots/")?;
        Ok(objects.iter().filter_map(|object| snapshot_number(&object.key)).collect())
    }

    /// The newest link, checked back to what was seen here, which it then is.
    pub(crate) fn head(&self) -> Result<Option<ChainHead>, Error> {
        Ok(self.behind()?.head)
    }

    /// The head as people write it down: `number:hash`.
    ///
    /// # Errors
    /// As [`Vault::open`].
    pub fn head_text(&self) -> Result<String, Error> {
        Ok(head_text(self.head()?.unwrap_or_default()))
    }
}

pub(super) fn head_text((number, hash): ChainHead) -> String {
    format!("{number}:{}", hex(&hash))
}

pub(super) fn parse_head(text: &str) -> Option<ChainHead> {
    let (number, hash) = text.split_once(':')?;
    Some((number.parse().ok()?, from_hex(hash)?))
}

pub(super) fn snapshot_of(sealed: &SealedSnapshotLink, body: SnapshotBody) -> Snapshot {
    let signer = sealed.link.signer;
    let signer = (signer != SignerId::default()).then(|| hex(&signer));
    Snapshot {
        number: sealed.link.number,
        time_ns: body.time_ns,
        source: body.source.clone(),
        note: body.note.clone(),
        counts: body.counts,
        by_writer: signer.is_some(),
        signer,
        paths: body.paths.clone(),
        tags: body.tags.clone(),
        body,
    }
}
