//! The notices of removal that a folder keeps: those that an authority gives ahead of its orders,
//! and those that were heard.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use sealane_seal::Slot;

use super::files::{self, FileWriteMode};
use super::{IdentityKeys, KeyFolderLock, make_folder};
use crate::limits::MAX_ROSTER_MEMBERS;
use crate::{Error, GroupNotice, RemovalNotice};

/// The folder of a group in which an authority keeps its notices.
const GIVEN: &str = "orders";
/// The folder of a group in which removals are kept that were heard.
const HEARD: &str = "removals";

/// The number of the order, and the slot: the name of a kept notice of removal.
type RemovalPlace = (u64, Slot);

impl IdentityKeys {
    /// Keeps what goes ahead of an order, under its number and the slot that is removed.
    pub(crate) fn save_removal(
        &self,
        _: &KeyFolderLock,
        name: &str,
        removal: RemovalNotice,
        notice: &GroupNotice,
    ) -> Result<(), Error> {
        let path = self.removal_path(name, GIVEN, removal)?;
        files::write_raw(&path, notice.as_bytes(), FileWriteMode::Replace)
    }

    /// The notices of removal that go ahead of the orders of those numbers. What cannot be read is
    /// left out: the orders themselves say as much, and a bad disk must stop no removal.
    pub(crate) fn removals(
        &self,
        name: &str,
        which: Range<u64>,
    ) -> Result<Vec<GroupNotice>, Error> {
        let mut places = self.removal_places(name, GIVEN)?;
        places.retain(|((order, _), _)| which.contains(order));
        Ok(places.into_iter().filter_map(|(place, path)| read(place, &path).ok()).collect())
    }

    /// The notices of removal that were heard, in the order of orders and slots: what a member can
    /// show to an authority that has forgotten a removal. If one of them cannot be read, none is
    /// given: a slot would live again for want of it.
    pub(crate) fn heard_removals(&self, name: &str) -> Result<Vec<GroupNotice>, Error> {
        let places = self.removal_places(name, HEARD)?.into_iter();
        places.map(|(place, path)| read(place, &path)).collect()
    }

    /// Keeps a notice of removal that was heard and verified, for good.
    pub(crate) fn hear_removal(
        &self,
        _: &KeyFolderLock,
        name: &str,
        removal: RemovalNotice,
        notice: &GroupNotice,
    ) -> Result<(), Error> {
        let path = self.removal_path(name, HEARD, removal)?;
        let is_kept = read((removal.order, removal.slot), &path).is_ok();
        let is_full = self.removal_places(name, HEARD)?.len() >= MAX_ROSTER_MEMBERS;
        // One that was damaged is written anew.
        if is_kept || (is_full && !path.exists()) {
            return Ok(());
        }
        make_folder(path.parent().unwrap_or(&path))?;
        files::write_raw(&path, notice.as_bytes(), FileWriteMode::Replace)
    }

    /// Forgets one that its order has not made true.
    pub(crate) fn unhear_removal(
        &self,
        _: &KeyFolderLock,
        name: &str,
        removal: RemovalNotice,
    ) -> Result<(), Error> {
        let path = self.removal_path(name, HEARD, removal)?;
        if path.exists() { fs::remove_file(&path).map_err(Error::io(&path)) } else { Ok(()) }
    }

    fn removal_path(
        &self,
        name: &str,
        folder: &str,
        removal: RemovalNotice,
    ) -> Result<PathBuf, Error> {
        let file = format!("{:08}.{}", removal.order, removal.slot.number());
        Ok(self.group_folder(name)?.join(folder).join(file))
    }

    /// The notices of removal that stand in a folder, in the order of orders and slots.
    fn removal_places(
        &self,
        name: &str,
        folder: &str,
    ) -> Result<Vec<(RemovalPlace, PathBuf)>, Error> {
        let folder = self.group_folder(name)?.join(folder);
        if !folder.is_dir() {
            return Ok(Vec::new());
        }
        let mut places = Vec::new();
        for entry in fs::read_dir(&folder).map_err(Error::io(&folder))? {
            let entry = entry.map_err(Error::io(&folder))?;
            let place = entry.file_name().to_str().and_then(place_of);
            places.extend(place.map(|place| (place, entry.path())));
        }
        places.sort_unstable();
        Ok(places)
    }
}

fn place_of(name: &str) -> Option<RemovalPlace> {
    let (order, slot) = name.split_once('.')?;
    Some((order.parse().ok()?, Slot::new(slot.parse().ok()?)?))
}

fn read(place: RemovalPlace, path: &Path) -> Result<GroupNotice, Error> {
    let damaged = || Error::Damaged(path.to_owned());
    let (bytes, _) = files::read_private(path)?.ok_or_else(damaged)?;
    let notice = GroupNotice::from_bytes(&bytes).map_err(|_| damaged())?;
    let is_that = notice.removes().is_some_and(|one| (one.order, one.slot) == place);
    if is_that { Ok(notice) } else { Err(damaged()) }
}
