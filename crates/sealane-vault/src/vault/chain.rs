use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;

use super::{Vault, slots};
use crate::Error;
use crate::format::pack::Hash;
use crate::format::snapshot::{Body, Counts, Sealed, SignerId, snapshot_key, snapshot_number};
use crate::keys::SlotKind;
use crate::limits::MAX_SNAPSHOT_BYTES;
use crate::store::spool_name;
use crate::wire::{from_hex, hex};

/// The newest link: its number, and the hash of its object.
pub(crate) type Head = (u64, Hash);

/// What a snapshot says about itself.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Snapshot {
    /// Its number in the chain.
    pub number: u64,
    /// When it was made: nanoseconds since 1970-01-01 UTC.
    pub time_ns: i64,
    /// The host that made it.
    pub source: String,
    /// What the user said about it.
    pub note: String,
    /// What it keeps.
    pub counts: Counts,
    /// Whether a writer's key made it.
    pub by_writer: bool,
    /// The slot of the writer that signed it; none is the owner.
    pub signer: Option<String>,
    /// Where on its host the files were, sorted; empty if it does not say.
    pub paths: Vec<Vec<u8>>,
    /// Its tags, sorted.
    pub tags: Vec<String>,
    pub(crate) body: Body,
}

impl Vault {
    /// All snapshots, oldest first.
    ///
    /// # Errors
    /// [`Error::NotOwner`], [`Error::Signature`], [`Error::NotAuthentic`], and what the store
    /// fails for.
    pub fn snapshots(&self) -> Result<Vec<Snapshot>, Error> {
        self.owner("read snapshots")?;
        let signers = self.signers()?;
        let mut snapshots = Vec::new();
        for number in self.snapshot_numbers()? {
            let sealed = self.load(number, &signers)?;
            let body = sealed.open(self.sealing_of(&sealed.header)?.as_ref())?;
            if !body.prune {
                snapshots.push(snapshot(&sealed, body));
            }
        }
        Ok(snapshots)
    }

    /// Gives the snapshots, newest first, to `take` until that gives something back.
    pub(crate) fn search<T>(
        &self,
        take: &mut dyn FnMut(Snapshot) -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        self.owner("read snapshots")?;
        let signers = self.signers()?;
        for number in self.snapshot_numbers()?.into_iter().rev() {
            let sealed = self.load(number, &signers)?;
            let body = sealed.open(self.sealing_of(&sealed.header)?.as_ref())?;
            if !body.prune
                && let Some(taken) = take(snapshot(&sealed, body))?
            {
                return Ok(Some(taken));
            }
        }
        Ok(None)
    }

    /// One snapshot; without a number the newest, whoever made it. [`Vault::newest`] asks whose.
    ///
    /// # Errors
    /// [`Error::NoSnapshot`], and as [`Vault::snapshots`].
    pub fn snapshot(&self, number: Option<u64>) -> Result<Snapshot, Error> {
        self.owner("read snapshots")?;
        let signers = self.signers()?;
        let there = self.snapshot_numbers()?;
        let wanted = there.iter().rev().filter(|there| number.is_none_or(|n| n == **there));
        for &number in wanted {
            let sealed = self.load(number, &signers)?;
            let body = sealed.open(self.sealing_of(&sealed.header)?.as_ref())?;
            if !body.prune {
                return Ok(snapshot(&sealed, body));
            }
        }
        Err(Error::NoSnapshot(number.map_or_else(|| "latest".to_owned(), |n| n.to_string())))
    }

    pub(crate) fn snapshot_numbers(&self) -> Result<Vec<u64>, Error> {
        let objects = self.store.list("snapshots/")?;
        Ok(objects.iter().filter_map(|object| snapshot_number(&object.key)).collect())
    }

    /// The keys that may sign snapshots.
    pub(crate) fn signers(&self) -> Result<HashMap<SignerId, [u8; 32]>, Error> {
        let mut signers = HashMap::from([(SignerId::default(), self.config.owner)]);
        for slot in slots(&self.store, &self.config.vault)? {
            if slot.kind == SlotKind::Writer {
                signers.insert(slot.id, slot.writer(&self.config.owner)?);
            }
        }
        Ok(signers)
    }

    /// A link whose signature verifies.
    pub(crate) fn load(
        &self,
        number: u64,
        signers: &HashMap<SignerId, [u8; 32]>,
    ) -> Result<Sealed, Error> {
        let key = snapshot_key(number);
        let bytes = self.store.get(&key, MAX_SNAPSHOT_BYTES)?;
        let sealed = Sealed::read(number, bytes, &self.config.vault)?;
        let signer = signers.get(&sealed.link.signer).ok_or(Error::Signature(key))?;
        sealed.check_signature(signer)?;
        Ok(sealed)
    }

    /// The newest link, after checking the chain back to `from`, or to its beginning.
    pub(crate) fn check_chain(&self, from: Option<Head>) -> Result<Option<Head>, Error> {
        let there = self.snapshot_numbers()?;
        let newest = there.last().copied().unwrap_or(0);
        let first = from.map_or(1, |(number, _)| number);
        if from.is_some() && newest < first {
            return Err(Error::RolledBack { seen: first, found: newest });
        }
        let signers = self.signers()?;
        let mut links = HashMap::new();
        for &number in there.iter().filter(|&&number| number >= first) {
            links.insert(number, self.load(number, &signers)?);
        }
        // Each prune repeats what those before it removed, so that the newest names all.
        let removed = links.values().filter(|sealed| !sealed.link.removed.is_empty());
        let removed = removed.max_by_key(|sealed| sealed.link.number);
        let removed: HashMap<u64, Hash> =
            removed.map(|sealed| sealed.link.removed.iter().copied().collect()).unwrap_or_default();
        let mut expected = from.map(|(_, hash)| hash);
        for number in first..=newest {
            let hash = match links.get(&number) {
                Some(sealed) => {
                    if number > first || from.is_none() {
                        let previous = if number == 1 { Some([0; 32]) } else { expected };
                        if previous != Some(sealed.link.previous) {
                            return Err(Error::Chain(number));
                        }
                    }
                    sealed.hash
                }
                None => *removed.get(&number).ok_or(Error::Chain(number))?,
            };
            if number == first && from.is_some_and(|(_, seen)| seen != hash) {
                return Err(Error::Forked(number));
            }
            expected = Some(hash);
        }
        Ok(expected.filter(|_| newest > 0).map(|hash| (newest, hash)))
    }

    /// Checks the store against the head that was seen here, and one that the user names.
    pub(super) fn check_head(&self, named: Option<&str>) -> Result<(), Error> {
        if let Some(named) = named {
            let head = parse_head(named).ok_or_else(|| Error::NoSnapshot(named.to_owned()))?;
            self.check_chain(Some(head))?;
        }
        // Without a state folder there is nothing to compare with.
        if self.state.is_some() { self.head().map(|_| ()) } else { Ok(()) }
    }

    /// The newest link, checked back to what was seen here, which it then is.
    pub(crate) fn head(&self) -> Result<Option<Head>, Error> {
        let seen = self.seen_head()?;
        let head = self.check_chain(seen)?;
        match head {
            Some(head) if Some(head) != seen => self.remember_head(head)?,
            _ => {}
        }
        Ok(head)
    }

    /// The head as people write it down: `number:hash`.
    ///
    /// # Errors
    /// As [`Vault::open`].
    pub fn head_text(&self) -> Result<String, Error> {
        Ok(head_text(self.head()?.unwrap_or_default()))
    }

    fn seen_head(&self) -> Result<Option<Head>, Error> {
        let Some(state) = &self.state else { return Ok(None) };
        let path = state.join("head");
        match fs::read_to_string(&path) {
            Ok(text) => {
                let malformed = Error::Malformed { what: "the head in the state folder" };
                parse_head(text.trim()).map(Some).ok_or(malformed)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(Error::file(&path, cause)),
        }
    }

    pub(crate) fn remember_head(&self, head: Head) -> Result<(), Error> {
        let Some(state) = &self.state else { return Ok(()) };
        let path = state.join("head");
        let draft = state.join(spool_name("head"));
        let written = File::create(&draft).and_then(|mut file| {
            writeln!(file, "{}", head_text(head))?;
            file.sync_all()?;
            fs::rename(&draft, &path)?;
            File::open(state)?.sync_all()
        });
        written.map_err(|cause| Error::file(&path, cause))
    }
}

pub(super) fn head_text((number, hash): Head) -> String {
    format!("{number}:{}", hex(&hash))
}

fn parse_head(text: &str) -> Option<Head> {
    let (number, hash) = text.split_once(':')?;
    Some((number.parse().ok()?, from_hex(hash)?))
}

fn snapshot(sealed: &Sealed, body: Body) -> Snapshot {
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
