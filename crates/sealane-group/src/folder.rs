//! The key folder: an identity, the cards that it handed out, and its groups.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealane_seal::{CounterState, History, Slot, Witness};
use zeroize::Zeroizing;

mod backup;
mod files;
mod passphrase;

use crate::card::Waiting;
use crate::limits::MAX_CARDS_WAITING;
use crate::state::GroupState;
use crate::wire::{Reader, put_name};
use crate::{Card, Document, Error, Identity, Member, NewGroup, Notice};
use files::{FolderKey, How, machine};

/// What the folder's handles share.
pub(crate) struct IdentityKeys {
    root: PathBuf,
    identity: Identity,
    key: Option<FolderKey>,
}

/// Nobody else changes the folder while it is held, in this process or another.
pub(crate) struct Lock(#[expect(dead_code, reason = "the lock ends with it")] File);

/// A folder of keys, which only its owner may read.
///
/// It may be used by several processes at once. It must not be copied to be used in two places:
/// copies are recognised and seal nothing.
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
        let mut payload = Zeroizing::new(Vec::with_capacity(128));
        payload.extend_from_slice(identity.expose_seed());
        put_name(&mut payload, identity.name());
        let (bytes, key) = passphrase::seal(Document::IdentityFile, passphrase, &payload)?;
        files::write_raw(&path, &bytes, How::Create).map_err(|error| match error {
            Error::Io { cause, .. } if cause.kind() == std::io::ErrorKind::AlreadyExists => {
                Error::IdentityExists(root.clone())
            }
            other => other,
        })?;
        Ok(KeyFolder { keys: Arc::new(IdentityKeys { root, identity, key }) })
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
        let opened = passphrase::open(Document::IdentityFile, &bytes, passphrase);
        let (payload, key) = opened.map_err(damaged)?;
        let identity = read_identity(&payload).map_err(damaged)?;
        Ok(KeyFolder { keys: Arc::new(IdentityKeys { root: root.to_owned(), identity, key }) })
    }

    /// Whether [`KeyFolder::open`] needs a passphrase.
    ///
    /// # Errors
    ///
    /// [`Error::NoIdentity`], [`Error::Exposed`], [`Error::Damaged`].
    pub fn is_protected(root: &Path) -> Result<bool, Error> {
        passphrase::is_protected(Document::IdentityFile, &identity_file(root)?)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.keys.root
    }

    /// Whose it is.
    pub fn identity(&self) -> &Identity {
        &self.keys.identity
    }

    /// Makes a card for an authority to invite: good for one join, in this folder only.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Cipher`].
    pub fn card(&self) -> Result<Vec<u8>, Error> {
        let lock = self.keys.lock()?;
        // Cards that were made elsewhere are good for nothing here.
        let mut cards = self.keys.cards(&lock)?.unwrap_or_default();
        let (bytes, waiting) = Card::make(&self.keys.identity)?;
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
    pub fn new_group(&self, name: &str, options: NewGroup) -> Result<Member, Error> {
        Member::found(&self.keys, name, options)
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
    ) -> Result<Member, Error> {
        Member::join(&self.keys, invitation, authority, name)
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
    pub fn group(&self, name: &str) -> Result<Member, Error> {
        Member::open(&self.keys, name)
    }

    /// Forgets a group and its secrets in this folder.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownGroup`], [`Error::Io`].
    pub fn leave(&self, name: &str) -> Result<(), Error> {
        let lock = self.keys.lock()?;
        self.keys.load(&lock, name)?;
        let folder = self.keys.group_folder(name)?;
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

fn read_identity(payload: &[u8]) -> Result<Identity, Error> {
    let mut reader = Reader::new(Document::IdentityFile, payload);
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

    /// What the counters of this folder are bound to, beside the witness of their file.
    pub(crate) fn witness(&self) -> Witness {
        Witness(machine())
    }

    pub(crate) fn lock(&self) -> Result<Lock, Error> {
        let path = self.root.join("lock");
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
        let file = file.map_err(Error::io(&path))?;
        file.lock().map_err(Error::io(&path))?;
        Ok(Lock(file))
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
    pub(crate) fn load(&self, _: &Lock, name: &str) -> Result<GroupState, Error> {
        let path = self.group_folder(name)?.join("group");
        let kept = files::read(&path, Document::GroupFile, self.key.as_ref())?;
        let kept = kept.ok_or_else(|| Error::UnknownGroup(name.to_owned()))?;
        let mut state = GroupState::from_bytes(&kept.payload).map_err(|error| match error {
            Error::Malformed(_) => Error::Damaged(path),
            other => other,
        })?;
        state.is_copied |= !kept.is_here;
        Ok(state)
    }

    pub(crate) fn save(&self, _: &Lock, name: &str, state: &GroupState) -> Result<(), Error> {
        let path = self.group_folder(name)?.join("group");
        let payload = state.to_bytes();
        files::write(&path, Document::GroupFile, self.key.as_ref(), &payload, How::Replace)
    }

    /// Makes the folder of a group that is not there yet.
    pub(crate) fn make_group(&self, _: &Lock, name: &str) -> Result<(), Error> {
        let folder = self.group_folder(name)?;
        if folder.join("group").exists() {
            return Err(Error::GroupExists(name.to_owned()));
        }
        make_folder(&folder.join("orders"))?;
        files::sync_folder(&folder)
    }

    fn counters_path(&self, name: &str, slot: Slot) -> Result<PathBuf, Error> {
        Ok(self.group_folder(name)?.join(format!("counters-{}", slot.number())))
    }

    /// The counters of a slot, if they are the ones that were written here last.
    pub(crate) fn counters(&self, _: &Lock, name: &str, slot: Slot) -> Result<CounterState, Error> {
        let path = self.counters_path(name, slot)?;
        let kept = files::read(&path, Document::CountersFile, None)?;
        let kept = kept.filter(|kept| kept.is_here && !kept.payload.is_empty());
        let kept = kept.ok_or_else(|| Error::Elsewhere(self.root.clone()))?;
        CounterState::from_bytes(&kept.payload).map_err(|_| Error::Damaged(path))
    }

    pub(crate) fn save_counters(
        &self,
        _: &Lock,
        name: &str,
        slot: Slot,
        state: &CounterState,
        is_first: bool,
    ) -> Result<(), Error> {
        let path = self.counters_path(name, slot)?;
        let how = if is_first { How::Create } else { How::Replace };
        files::write(&path, Document::CountersFile, None, &state.to_bytes(), how)
    }

    /// Seals nothing in this slot any more: somebody else does.
    pub(crate) fn give_up_counters(&self, _: &Lock, name: &str, slot: Slot) -> Result<(), Error> {
        let path = self.counters_path(name, slot)?;
        files::write(&path, Document::CountersFile, None, &[], How::Replace)
    }

    /// The cards that wait; none if the file was written elsewhere.
    pub(crate) fn cards(&self, _: &Lock) -> Result<Option<Vec<Waiting>>, Error> {
        let path = self.root.join("cards");
        let kept = files::read(&path, Document::CardsFile, self.key.as_ref())?;
        let Some(kept) = kept else { return Ok(Some(Vec::new())) };
        if !kept.is_here {
            return Ok(None);
        }
        let (cards, rest) = kept.payload.as_chunks::<64>();
        if !rest.is_empty() {
            return Err(Error::Damaged(path));
        }
        let read = |card: &[u8; 64]| {
            let mut reader = Reader::new(Document::CardsFile, card);
            Ok(Waiting { nonce: reader.array()?, seed: Zeroizing::new(reader.array()?) })
        };
        cards.iter().map(read).collect::<Result<_, Error>>().map(Some)
    }

    pub(crate) fn save_cards(&self, _: &Lock, cards: &[Waiting]) -> Result<(), Error> {
        let mut payload = Zeroizing::new(Vec::with_capacity(cards.len() * 64));
        for card in cards {
            payload.extend_from_slice(&card.nonce);
            payload.extend_from_slice(card.seed.as_slice());
        }
        let path = self.root.join("cards");
        files::write(&path, Document::CardsFile, self.key.as_ref(), &payload, How::Replace)
    }

    /// Keeps a notice that the authority gives, before it is published.
    pub(crate) fn save_notice(
        &self,
        _: &Lock,
        name: &str,
        number: u64,
        notice: &Notice,
    ) -> Result<(), Error> {
        let path = self.notice_path(name, number)?;
        files::write_raw(&path, notice.as_bytes(), How::Replace)
    }

    pub(crate) fn notice(&self, name: &str, number: u64) -> Result<Notice, Error> {
        let path = self.notice_path(name, number)?;
        let read = files::read_private(&path)?;
        let (bytes, _) = read.ok_or_else(|| Error::Damaged(path.clone()))?;
        Notice::from_bytes(&bytes).map_err(|_| Error::Damaged(path))
    }

    fn notice_path(&self, name: &str, number: u64) -> Result<PathBuf, Error> {
        Ok(self.group_folder(name)?.join("orders").join(format!("{number:08}")))
    }

    /// The groups whose secrets a backup may hold: those that keep their history.
    pub(crate) fn kept_groups(&self, lock: &Lock) -> Result<Vec<(String, GroupState)>, Error> {
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
