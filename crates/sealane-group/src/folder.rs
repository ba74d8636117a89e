//! The key folder: an identity, the cards that it handed out, and its groups.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealane_seal::{Epoch, History, SessionState};
use zeroize::Zeroizing;

mod backup;
mod files;
mod passphrase;

use crate::card::PendingCard;
use crate::limits::MAX_CARDS_WAITING;
use crate::removal::RemovalNotice;
use crate::sender::SenderCounters;
use crate::state::GroupState;
use crate::wire::{GroupFieldReader, put_name};
use crate::{Error, GroupDocument, GroupMember, GroupNotice, Identity, IdentityCard, NewGroup};
use files::{FileWriteMode, FolderKey};

/// The part that the folder's handles share.
pub(crate) struct IdentityKeys {
    root: PathBuf,
    identity: Arc<Identity>,
    key: Option<FolderKey>,
}

/// Nobody else changes the folder while it is held, in this process or another.
pub(crate) struct KeyFolderLock(#[expect(dead_code, reason = "the lock ends with it")] File);

/// A folder of keys, which only its owner may read.
///
/// It may be used by several processes at once, and a copy of it seals under keys of its own. But
/// two copies are one member: people see two under one name.
pub struct KeyFolder {
    keys: Arc<IdentityKeys>,
}

impl KeyFolder {
    /// Makes a folder with a new identity. With a passphrase, all secrets in it are encrypted.
    ///
    /// # Errors
    ///
    /// [`Error::IdentityExists`], [`Error::Name`], [`Error::Io`].
    pub fn create(root: &Path, name: &str, passphrase: Option<&[u8]>) -> Result<KeyFolder, Error> {
        KeyFolder::with(root, Identity::generate(name)?, passphrase)
    }

    /// Puts an identity into a folder that has none.
    fn with(
        root: &Path,
        identity: Identity,
        passphrase: Option<&[u8]>,
    ) -> Result<KeyFolder, Error> {
        let root = root.to_owned();
        make_folder(&root.join("groups"))?;
        let path = root.join("identity");
        let payload = identity_payload(&identity);
        let (bytes, key) = passphrase::seal(GroupDocument::IdentityFile, passphrase, &payload)?;
        files::write_raw(&path, &bytes, FileWriteMode::Create).map_err(|error| match error {
            Error::Io { cause, .. } if cause.kind() == std::io::ErrorKind::AlreadyExists => {
                Error::IdentityExists(root.clone())
            }
            other => other,
        })?;
        Ok(KeyFolder { keys: Arc::new(IdentityKeys { root, identity: Arc::new(identity), key }) })
    }

    /// Opens a folder.
    ///
    /// # Errors
    ///
    /// [`Error::NoIdentity`], [`Error::Exposed`], [`Error::PassphraseMissing`],
    /// [`Error::PassphraseWrong`], [`Error::Damaged`], [`Error::NewerVersion`].
    pub fn open(root: &Path, passphrase: Option<&[u8]>) -> Result<KeyFolder, Error> {
        let bytes = identity_file(root)?;
        let damaged = |error| match error {
            Error::Malformed(_) | Error::Name(_) => Error::Damaged(root.join("identity")),
            other => other,
        };
        let opened = passphrase::open(GroupDocument::IdentityFile, &bytes, passphrase);
        let (payload, key) = opened.map_err(damaged)?;
        let identity = read_identity(&payload).map_err(damaged)?;
        Ok(KeyFolder {
            keys: Arc::new(IdentityKeys {
                root: root.to_owned(),
                identity: Arc::new(identity),
                key,
            }),
        })
    }

    /// Whether [`KeyFolder::open`] needs a passphrase.
    ///
    /// # Errors
    ///
    /// [`Error::NoIdentity`], [`Error::Exposed`], [`Error::Damaged`].
    pub fn is_protected(root: &Path) -> Result<bool, Error> {
        passphrase::is_protected(GroupDocument::IdentityFile, &identity_file(root)?)
    }

    /// Protects the folder by another passphrase than before. The keys in it stay what they are,
    /// and one file is written.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if it has none; [`Error::Io`].
    pub fn change_passphrase(&self, passphrase: &[u8]) -> Result<(), Error> {
        let key = self.keys.key.as_ref().ok_or(Error::Refused(
            "the keys have no passphrase: make a backup, and restore it into a folder with one",
        ))?;
        let _lock = self.keys.lock()?;
        let payload = identity_payload(&self.keys.identity);
        let bytes = passphrase::seal_with(GroupDocument::IdentityFile, passphrase, key, &payload)?;
        files::write_raw(&self.keys.root.join("identity"), &bytes, FileWriteMode::Replace)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.keys.root
    }

    /// The identity of the folder.
    pub fn identity(&self) -> &Identity {
        &self.keys.identity
    }

    /// The identity alone, for a machine that is in no group.
    pub fn into_identity(self) -> Arc<Identity> {
        Arc::clone(&self.keys.identity)
    }

    /// Makes a card for an authority to invite: good for one join, in this folder only.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Cipher`].
    pub fn card(&self) -> Result<Vec<u8>, Error> {
        self.card_as(None)
    }

    /// The same, under another name than the identity's.
    ///
    /// # Errors
    ///
    /// As [`KeyFolder::card`]; [`Error::Name`].
    pub fn card_as(&self, name: Option<&str>) -> Result<Vec<u8>, Error> {
        let lock = self.keys.lock()?;
        // Cards that were made elsewhere are good for nothing here.
        let mut cards = self.keys.cards(&lock)?.unwrap_or_default();
        let (bytes, waiting) = IdentityCard::make(&self.keys.identity, name)?;
        cards.push(waiting);
        let old = cards.len().saturating_sub(MAX_CARDS_WAITING);
        cards.drain(..old);
        self.keys.save_cards(&lock, &cards)?;
        Ok(bytes)
    }

    /// Makes a group whose authority is this identity.
    ///
    /// # Errors
    ///
    /// [`Error::Name`], [`Error::GroupExists`], [`Error::Io`].
    pub fn new_group(&self, name: &str, options: NewGroup) -> Result<GroupMember, Error> {
        GroupMember::found(&self.keys, name, options)
    }

    /// Joins the group of an invitation. If `authority` is given, it must be that one's; `name` is
    /// what the group is called here, if not as its authority calls it.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownCard`] unless the card was made in this folder, in this place, and has not
    /// been used; [`Error::Elsewhere`], [`Error::NotForUs`], [`Error::Signature`],
    /// [`Error::OtherAuthority`], [`Error::GroupExists`].
    pub fn join(
        &self,
        invitation: &[u8],
        authority: Option<crate::Fingerprint>,
        name: Option<&str>,
    ) -> Result<GroupMember, Error> {
        GroupMember::join(&self.keys, invitation, authority, name)
    }

    /// The names of the groups.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn groups(&self) -> Result<Vec<String>, Error> {
        self.keys.groups()
    }

    /// A group.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownGroup`], [`Error::Damaged`].
    pub fn group(&self, name: &str) -> Result<GroupMember, Error> {
        GroupMember::open(&self.keys, name)
    }

    /// Forgets a group and its secrets in this folder, also one that this version cannot read.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownGroup`], [`Error::Io`].
    pub fn leave(&self, name: &str) -> Result<(), Error> {
        let _lock = self.keys.lock()?;
        let folder = self.keys.group_folder(name)?;
        if !folder.join("group").exists() {
            return Err(Error::UnknownGroup(name.to_owned()));
        }
        fs::remove_dir_all(&folder).map_err(Error::io(&folder))?;
        files::sync_folder(&folder)
    }
}

impl std::fmt::Debug for KeyFolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("KeyFolder");
        out.field("root", &self.keys.root).field("identity", &self.keys.identity);
        out.finish_non_exhaustive()
    }
}

fn identity_file(root: &Path) -> Result<Zeroizing<Vec<u8>>, Error> {
    let read = files::read_private(&root.join("identity"))?;
    read.map(|(bytes, _)| bytes).ok_or_else(|| Error::NoIdentity(root.to_owned()))
}

fn identity_payload(identity: &Identity) -> Zeroizing<Vec<u8>> {
    let mut payload = Zeroizing::new(Vec::with_capacity(128));
    payload.extend_from_slice(identity.expose_seed());
    put_name(&mut payload, identity.name());
    payload
}

fn read_identity(payload: &[u8]) -> Result<Identity, Error> {
    let mut reader = GroupFieldReader::new(GroupDocument::IdentityFile, payload);
    let seed = Zeroizing::new(reader.array()?);
    let name = reader.name()?;
    reader.end()?;
    Identity::from_seed(&name, seed)
}

fn make_folder(path: &Path) -> Result<(), Error> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(Error::io(path))
}

/// Whether a text may be a group's name in a folder, which is a folder of that name.
pub(crate) fn check_group_name(name: &str) -> Result<(), Error> {
    let is_first = name.starts_with(|first: char| first.is_ascii_lowercase());
    let is_plain =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
    let is_name = is_first && name.chars().all(is_plain) && crate::wire::is_name(name);
    if is_name { Ok(()) } else { Err(Error::Name(name.to_owned())) }
}

impl IdentityKeys {
    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(crate) fn path(&self) -> &Path {
        &self.root
    }

    pub(crate) fn lock(&self) -> Result<KeyFolderLock, Error> {
        let path = self.root.join("lock");
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
        let file = file.map_err(Error::io(&path))?;
        file.lock().map_err(Error::io(&path))?;
        Ok(KeyFolderLock(file))
    }

    pub(crate) fn group_folder(&self, name: &str) -> Result<PathBuf, Error> {
        check_group_name(name)?;
        Ok(self.root.join("groups").join(name))
    }

    pub(crate) fn groups(&self) -> Result<Vec<String>, Error> {
        let path = self.root.join("groups");
        let mut names = Vec::new();
        for entry in fs::read_dir(&path).map_err(Error::io(&path))? {
            let entry = entry.map_err(Error::io(&path))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if check_group_name(&name).is_ok() && entry.path().join("group").is_file() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// A group's state. Whether it was copied or restored is told, once and for all, by the witness
    /// of its file.
    pub(crate) fn load(&self, _: &KeyFolderLock, name: &str) -> Result<GroupState, Error> {
        let path = self.group_folder(name)?.join("group");
        let kept = files::read(&path, GroupDocument::GroupFile, self.key.as_ref())?;
        let kept = kept.ok_or_else(|| Error::UnknownGroup(name.to_owned()))?;
        let mut state = GroupState::from_bytes(&kept.payload).map_err(|error| match error {
            Error::Malformed(_) => Error::Damaged(path),
            other => other,
        })?;
        state.is_copied |= !kept.is_here;
        Ok(state)
    }

    pub(crate) fn save(
        &self,
        _: &KeyFolderLock,
        name: &str,
        state: &GroupState,
    ) -> Result<(), Error> {
        let path = self.group_folder(name)?.join("group");
        let payload = state.to_bytes();
        files::write(
            &path,
            GroupDocument::GroupFile,
            self.key.as_ref(),
            &payload,
            FileWriteMode::Replace,
        )
    }

    /// Makes the folder of a group that is not there yet.
    pub(crate) fn make_group(&self, _: &KeyFolderLock, name: &str) -> Result<(), Error> {
        let folder = self.group_folder(name)?;
        if folder.join("group").exists() {
            return Err(Error::GroupExists(name.to_owned()));
        }
        make_folder(&folder.join("orders"))?;
        files::sync_folder(&folder)
    }

    /// The counters of a group's senders. Where they are missing or cannot be read the order of
    /// messages begins anew, and nothing else.
    pub(crate) fn counters(&self, _: &KeyFolderLock, name: &str) -> Result<SenderCounters, Error> {
        let payload = self.read_plain(name, "counters", GroupDocument::CountersFile)?;
        let mut reader = GroupFieldReader::new(GroupDocument::CountersFile, &payload);
        let mut read = || {
            let (slot, epoch) = (reader.u16()?, Epoch(reader.u64()?));
            let (bound, start) = (reader.u64()?, reader.u64()?);
            Ok::<_, Error>(SenderCounters { slot, epoch, bound, start })
        };
        Ok(read().unwrap_or_default())
    }

    pub(crate) fn save_counters(
        &self,
        _: &KeyFolderLock,
        name: &str,
        counters: &SenderCounters,
    ) -> Result<(), Error> {
        let mut payload = counters.slot.to_be_bytes().to_vec();
        let words = [counters.epoch.0, counters.bound, counters.start];
        payload.extend(words.into_iter().flat_map(u64::to_be_bytes));
        self.write_plain(name, "counters", GroupDocument::CountersFile, &payload)
    }

    /// The sessions of live senders; none where they were lost. In a folder that was copied or
    /// restored each of them is closed: what it has accepted since is not known.
    pub(crate) fn sessions(
        &self,
        _: &KeyFolderLock,
        name: &str,
    ) -> Result<Option<Vec<SessionState>>, Error> {
        let path = self.group_folder(name)?.join("sessions");
        let kept = match files::read(&path, GroupDocument::SessionsFile, None) {
            Ok(Some(kept)) => kept,
            Ok(None) => return Ok(Some(Vec::new())),
            Err(Error::Io { path, cause }) => return Err(Error::Io { path, cause }),
            Err(_) => return Ok(None),
        };
        let (states, rest) = kept.payload.as_chunks::<{ SessionState::BYTES }>();
        let states: Result<Vec<SessionState>, _> =
            states.iter().map(|state| SessionState::from_bytes(state)).collect();
        let states = states.ok().filter(|_| rest.is_empty());
        let close = |state: SessionState| if kept.is_here { state } else { state.closed() };
        Ok(states.map(|states| states.into_iter().map(close).collect()))
    }

    pub(crate) fn save_sessions(
        &self,
        _: &KeyFolderLock,
        name: &str,
        sessions: &[SessionState],
    ) -> Result<(), Error> {
        let payload: Vec<u8> = sessions.iter().flat_map(SessionState::to_bytes).collect();
        self.write_plain(name, "sessions", GroupDocument::SessionsFile, &payload)
    }

    /// A file of a group that holds no secrets; empty where it is missing or cannot be read, since
    /// nothing that it says is needed to be safe.
    pub(crate) fn read_plain(
        &self,
        name: &str,
        file: &str,
        document: GroupDocument,
    ) -> Result<Zeroizing<Vec<u8>>, Error> {
        let path = self.group_folder(name)?.join(file);
        let kept = files::read(&path, document, None).ok().flatten();
        Ok(kept.map(|kept| kept.payload).unwrap_or_default())
    }

    pub(crate) fn write_plain(
        &self,
        name: &str,
        file: &str,
        document: GroupDocument,
        payload: &[u8],
    ) -> Result<(), Error> {
        let path = self.group_folder(name)?.join(file);
        files::write(&path, document, None, payload, FileWriteMode::Replace)
    }

    /// The cards that wait; none if the file was written elsewhere.
    pub(crate) fn cards(&self, _: &KeyFolderLock) -> Result<Option<Vec<PendingCard>>, Error> {
        let path = self.root.join("cards");
        let kept = files::read(&path, GroupDocument::CardsFile, self.key.as_ref())?;
        let Some(kept) = kept else { return Ok(Some(Vec::new())) };
        if !kept.is_here {
            return Ok(None);
        }
        let (cards, rest) = kept.payload.as_chunks::<64>();
        if !rest.is_empty() {
            return Err(Error::Damaged(path));
        }
        let read = |card: &[u8; 64]| {
            let mut reader = GroupFieldReader::new(GroupDocument::CardsFile, card);
            Ok(PendingCard { nonce: reader.array()?, seed: Zeroizing::new(reader.array()?) })
        };
        cards.iter().map(read).collect::<Result<_, Error>>().map(Some)
    }

    /// Forgets a card, which was used.
    pub(crate) fn use_card(&self, lock: &KeyFolderLock, nonce: &[u8; 32]) -> Result<(), Error> {
        let mut cards = self.cards(lock)?.unwrap_or_default();
        let before = cards.len();
        cards.retain(|waiting| waiting.nonce != *nonce);
        if cards.len() == before { Ok(()) } else { self.save_cards(lock, &cards) }
    }

    pub(crate) fn save_cards(&self, _: &KeyFolderLock, cards: &[PendingCard]) -> Result<(), Error> {
        let mut payload = Zeroizing::new(Vec::with_capacity(cards.len() * 64));
        for card in cards {
            payload.extend_from_slice(&card.nonce);
            payload.extend_from_slice(card.seed.as_slice());
        }
        let path = self.root.join("cards");
        files::write(
            &path,
            GroupDocument::CardsFile,
            self.key.as_ref(),
            &payload,
            FileWriteMode::Replace,
        )
    }

    /// Keeps a notice that the authority gives, before it is published.
    pub(crate) fn save_notice(
        &self,
        _: &KeyFolderLock,
        name: &str,
        number: u64,
        notice: &GroupNotice,
    ) -> Result<(), Error> {
        let path = self.notice_path(name, number)?;
        files::write_raw(&path, notice.as_bytes(), FileWriteMode::Replace)
    }

    /// The notices of those numbers that are kept here, in their order.
    pub(crate) fn notices(&self, name: &str, which: Range<u64>) -> Result<Vec<GroupNotice>, Error> {
        let folder = self.group_folder(name)?.join("orders");
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&folder).map_err(Error::io(&folder))? {
            let entry = entry.map_err(Error::io(&folder))?;
            let number = entry.file_name().to_str().and_then(|name| name.parse::<u64>().ok());
            numbers.extend(number.filter(|number| which.contains(number)));
        }
        numbers.sort_unstable();
        let missing = |number| Error::Damaged(folder.join(format!("{number:08}")));
        let read = |number| self.notice(name, number)?.ok_or_else(|| missing(number));
        numbers.into_iter().map(read).collect()
    }

    /// The notice that was given under a number, if it is kept here.
    pub(crate) fn notice(&self, name: &str, number: u64) -> Result<Option<GroupNotice>, Error> {
        let path = self.notice_path(name, number)?;
        let Some((bytes, _)) = files::read_private(&path)? else { return Ok(None) };
        GroupNotice::from_bytes(&bytes).map(Some).map_err(|_| Error::Damaged(path))
    }

    /// Keeps what goes ahead of an order, under its number and the slot that is removed.
    pub(crate) fn save_removal(
        &self,
        _: &KeyFolderLock,
        name: &str,
        removal: RemovalNotice,
        notice: &GroupNotice,
    ) -> Result<(), Error> {
        let file = format!("{:08}.{}", removal.order, removal.slot.number());
        let path = self.group_folder(name)?.join("orders").join(file);
        files::write_raw(&path, notice.as_bytes(), FileWriteMode::Replace)
    }

    /// The notices of removal that go ahead of the orders of those numbers. What cannot be read is
    /// left out: the orders themselves say as much.
    pub(crate) fn removals(
        &self,
        name: &str,
        which: Range<u64>,
    ) -> Result<Vec<GroupNotice>, Error> {
        let folder = self.group_folder(name)?.join("orders");
        let mut found = Vec::new();
        for entry in fs::read_dir(&folder).map_err(Error::io(&folder))? {
            let entry = entry.map_err(Error::io(&folder))?;
            let is_one = entry.file_name().to_str().is_some_and(|name| name.contains('.'));
            let read = if is_one { files::read_private(&entry.path())? } else { None };
            let notice = read.and_then(|(bytes, _)| GroupNotice::from_bytes(&bytes).ok());
            let removal = notice.as_ref().and_then(GroupNotice::removes);
            found.extend(removal.map(|one| (one.order, one.slot)).zip(notice));
        }
        found.retain(|((order, _), _)| which.contains(order));
        found.sort_unstable_by_key(|(which, _)| *which);
        Ok(found.into_iter().map(|(_, notice)| notice).collect())
    }

    fn notice_path(&self, name: &str, number: u64) -> Result<PathBuf, Error> {
        Ok(self.group_folder(name)?.join("orders").join(format!("{number:08}")))
    }

    /// The groups whose secrets a backup may hold: those that keep their history.
    pub(crate) fn kept_groups(
        &self,
        lock: &KeyFolderLock,
    ) -> Result<Vec<(String, GroupState)>, Error> {
        let mut kept = Vec::new();
        for name in self.groups()? {
            let state = self.load(lock, &name)?;
            if state.charter.history == History::Kept {
                kept.push((name, state));
            }
        }
        Ok(kept)
    }
}
