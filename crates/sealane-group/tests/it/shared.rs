//! Key folders and groups for tests.
#![allow(dead_code, unreachable_pub)]

use std::fs;
use std::path::{Path, PathBuf};

use sealane_frame::{FrameBuf, FrameError, open_stored};
use sealane_group::{
    EpochSource, Error, GroupChange, GroupMember, GroupNotice, GroupSender, IdentityCard,
    IssuedInvitation, KeyFolder, NewGroup, PastSecrets,
};
use sealane_seal::{Binding, Class, History, Opener};
pub use sealane_testing::{copy_folder as copy, files_below as files};
use tempfile::TempDir;

pub struct Place {
    pub folder: TempDir,
}

impl Place {
    /// On the disk.
    pub fn new() -> Place {
        Place { folder: tempfile::tempdir().unwrap() }
    }

    /// In memory where the system has a place for that: for tests that write very often.
    pub fn quick() -> Place {
        let memory = Path::new("/dev/shm");
        let folder =
            if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        Place { folder: folder.unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn keys(&self, name: &str) -> KeyFolder {
        KeyFolder::create(&self.path(name), name, None).unwrap()
    }

    /// A group of that many members, of whom each knows all others: the authority `base`, and
    /// `car1` and those that follow in their slots.
    pub fn fleet(&self, count: usize, options: NewGroup) -> (GroupMember, Vec<GroupMember>) {
        let mut base = self.keys("base").new_group("fleet", options).unwrap();
        let mut members: Vec<GroupMember> =
            (1..count).map(|at| join(&mut base, &self.keys(&format!("car{at}"))).0).collect();
        let notices = base.notices(0).unwrap();
        members.iter_mut().for_each(|member| drop(apply(member, &notices).unwrap()));
        (base, members)
    }
}

pub fn forward_secret() -> NewGroup {
    NewGroup { history: History::ForwardSecret, ..NewGroup::default() }
}

pub fn card(keys: &KeyFolder) -> IdentityCard {
    IdentityCard::from_bytes(&keys.card().unwrap()).unwrap()
}

pub fn invite(authority: &mut GroupMember, keys: &KeyFolder) -> IssuedInvitation {
    invite_with(authority, keys, PastSecrets::All)
}

pub fn invite_with(
    authority: &mut GroupMember,
    keys: &KeyFolder,
    past: PastSecrets,
) -> IssuedInvitation {
    authority.invite(&card(keys), past).unwrap()
}

/// Joins; the others are told by the notices that are given back.
pub fn join(authority: &mut GroupMember, keys: &KeyFolder) -> (GroupMember, Vec<GroupNotice>) {
    let invited = invite(authority, keys);
    let pin = Some(authority.authority());
    (keys.join(&invited.invitation, pin, None).unwrap(), invited.notices)
}

pub fn apply(member: &mut GroupMember, notices: &[GroupNotice]) -> Result<Vec<GroupChange>, Error> {
    let mut changes = Vec::new();
    for notice in notices {
        changes.extend(member.apply(notice)?);
    }
    Ok(changes)
}

pub fn reopen(path: &Path) -> GroupMember {
    KeyFolder::open(path, None).unwrap().group("fleet").unwrap()
}

/// The stream that the messages of these tests are bound to.
pub fn log() -> Binding {
    Binding::stream("log")
}

pub fn seal(sender: &mut GroupSender, class: Class, body: &[u8]) -> Vec<u8> {
    let fields = sender.fields(class, 1);
    sender.seal(&fields, &log(), body, &mut FrameBuf::new()).unwrap().to_vec()
}

/// The body of a frame from a store, in an epoch near the newest.
pub fn open(opener: &mut Opener, frame: &[u8]) -> Result<Vec<u8>, FrameError> {
    let near = opener.epochs().newest();
    let mut frame = frame.to_vec();
    Ok(open_stored(opener, near, &log(), &mut frame)?.body.to_vec())
}

/// The code's name, of a call that must be refused.
pub fn named<T>(outcome: Result<T, Error>) -> &'static str {
    let error = outcome.err().expect("it was not refused");
    assert!(!error.to_string().is_empty() && error.info().code.starts_with("SL-"), "{error}");
    error.info().name
}

/// A copy that no witness tells from the folder, as that of a whole machine: of the same files, by
/// other names. What either writes the other does not see.
pub fn clone(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            clone(&entry.path(), &target);
        } else if entry.file_name() != "lock" {
            fs::hard_link(entry.path(), target).unwrap();
        }
    }
}

/// The state that a folder keeps of its group, without what the file says of itself.
pub fn state(folder: &Path) -> Vec<u8> {
    let bytes = fs::read(folder.join("groups/fleet/group")).unwrap();
    bytes[38..bytes.len() - 16].to_vec()
}
