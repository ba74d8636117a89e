//! Key folders and groups for tests, on the real disk.
#![allow(dead_code, unreachable_pub)]

use std::path::{Path, PathBuf};

use sealane_frame::{FrameBuf, FrameError, open_stored};
use sealane_group::{
    Card, Change, EpochSource, Error, Invited, KeyFolder, Member, NewGroup, Notice, Past, Sender,
};
use sealane_seal::{Class, History, Opener};
use tempfile::TempDir;

pub struct Place {
    pub folder: TempDir,
}

impl Place {
    pub fn new() -> Place {
        Place { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn keys(&self, name: &str) -> KeyFolder {
        KeyFolder::create(&self.path(name), name, None).unwrap()
    }
}

pub fn forward_secret() -> NewGroup {
    NewGroup { history: History::ForwardSecret, ..NewGroup::default() }
}

pub fn invite(authority: &mut Member, keys: &KeyFolder) -> Invited {
    invite_with(authority, keys, Past::All)
}

pub fn invite_with(authority: &mut Member, keys: &KeyFolder, past: Past) -> Invited {
    let card = Card::from_bytes(&keys.card().unwrap()).unwrap();
    authority.invite(&card, past).unwrap()
}

/// Joins; the others are told by the notices that are given back.
pub fn join(authority: &mut Member, keys: &KeyFolder) -> (Member, Vec<Notice>) {
    let invited = invite(authority, keys);
    let pin = Some(authority.authority());
    (keys.join(&invited.invitation, pin, None).unwrap(), invited.notices)
}

pub fn apply(member: &mut Member, notices: &[Notice]) -> Result<Vec<Change>, Error> {
    notices.iter().map(|notice| member.apply(notice)).collect()
}

pub fn seal(sender: &mut Sender, class: Class, body: &[u8]) -> Vec<u8> {
    let fields = sender.fields(class, 1);
    sender.seal(&fields, body, &mut FrameBuf::new()).unwrap().to_vec()
}

/// The body of a frame from a store, in an epoch near the newest.
pub fn open(opener: &mut Opener, frame: &[u8]) -> Result<Vec<u8>, FrameError> {
    let near = opener.epochs().newest();
    let mut frame = frame.to_vec();
    Ok(open_stored(opener, near, &mut frame)?.body.to_vec())
}

/// `cp -a`.
pub fn copy(from: &Path, to: &Path) {
    let status = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(status.success());
}
