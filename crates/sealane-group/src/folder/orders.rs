//! The notices of a group that a folder keeps: those that an authority has given, those of a member
//! whose turn has not come, and the removals that were heard.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use super::files::{self, FileWriteMode};
use super::{IdentityKeys, KeyFolderLock, make_folder};
use crate::limits::{MAX_ORDERS_HELD, MAX_ROSTER_MEMBERS};
use crate::{Error, GroupNotice, RemovalNotice};

/// The folder of a group in which removals are kept that were heard.
const HEARD_REMOVALS: &str = "removals";

impl IdentityKeys {
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
        let read = |number| -> Result<GroupNotice, Error> {
            let missing = Error::Damaged(self.notice_path(name, number)?);
            self.notice(name, number)?.ok_or(missing)
        };
        let mut numbers = self.numbers(name)?;
        numbers.retain(|number| which.contains(number));
        numbers.into_iter().map(read).collect()
    }

    /// The numbers of the notices that are kept here, in their order.
    fn numbers(&self, name: &str) -> Result<Vec<u64>, Error> {
        let folder = self.group_folder(name)?.join("orders");
        let mut numbers = Vec::new();
        for entry in fs::read_dir(&folder).map_err(Error::io(&folder))? {
            let entry = entry.map_err(Error::io(&folder))?;
            numbers.extend(entry.file_name().to_str().and_then(|name| name.parse::<u64>().ok()));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Holds an order of a member whose turn has not come. Those that are farthest ahead leave
    /// first: they are needed last.
    pub(crate) fn hold_order(
        &self,
        lock: &KeyFolderLock,
        name: &str,
        number: u64,
        notice: &GroupNotice,
    ) -> Result<(), Error> {
        let numbers = self.numbers(name)?;
        if numbers.contains(&number) {
            return Ok(());
        }
        if numbers.len() >= MAX_ORDERS_HELD {
            let Some(last) = numbers.last().filter(|last| **last > number) else { return Ok(()) };
            let path = self.notice_path(name, *last)?;
            fs::remove_file(&path).map_err(Error::io(&path))?;
        }
        self.save_notice(lock, name, number, notice)
    }

    /// Forgets what was held of orders before that one: they were obeyed, or stepped over.
    pub(crate) fn drop_orders(
        &self,
        _: &KeyFolderLock,
        name: &str,
        before: u64,
    ) -> Result<(), Error> {
        for number in self.numbers(name)?.into_iter().filter(|number| *number < before) {
            let path = self.notice_path(name, number)?;
            fs::remove_file(&path).map_err(Error::io(&path))?;
        }
        Ok(())
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
        let mut found = self.removals_in(name, "orders")?;
        found.retain(|notice| notice.removes().is_some_and(|one| which.contains(&one.order)));
        Ok(found)
    }

    /// The notices of removal that were heard, in the order of orders and slots: what a member can
    /// show to an authority that has forgotten a removal.
    pub(crate) fn heard_removals(&self, name: &str) -> Result<Vec<GroupNotice>, Error> {
        let folder = self.group_folder(name)?.join(HEARD_REMOVALS);
        if folder.is_dir() { self.removals_in(name, HEARD_REMOVALS) } else { Ok(Vec::new()) }
    }

    /// Keeps a notice of removal that was heard and verified, for good.
    pub(crate) fn hear_removal(
        &self,
        _: &KeyFolderLock,
        name: &str,
        removal: RemovalNotice,
        notice: &GroupNotice,
    ) -> Result<(), Error> {
        let path = self.heard_removal_path(name, removal)?;
        if path.exists() || self.heard_removals(name)?.len() >= MAX_ROSTER_MEMBERS {
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
        let path = self.heard_removal_path(name, removal)?;
        if path.exists() { fs::remove_file(&path).map_err(Error::io(&path)) } else { Ok(()) }
    }

    fn heard_removal_path(&self, name: &str, removal: RemovalNotice) -> Result<PathBuf, Error> {
        let file = format!("{:08}.{}", removal.order, removal.slot.number());
        Ok(self.group_folder(name)?.join(HEARD_REMOVALS).join(file))
    }

    fn removals_in(&self, name: &str, folder: &str) -> Result<Vec<GroupNotice>, Error> {
        let folder = self.group_folder(name)?.join(folder);
        let mut found = Vec::new();
        for entry in fs::read_dir(&folder).map_err(Error::io(&folder))? {
            let entry = entry.map_err(Error::io(&folder))?;
            let is_one = entry.file_name().to_str().is_some_and(|name| name.contains('.'));
            let read = if is_one { files::read_private(&entry.path())? } else { None };
            let notice = read.and_then(|(bytes, _)| GroupNotice::from_bytes(&bytes).ok());
            let removal = notice.as_ref().and_then(GroupNotice::removes);
            found.extend(removal.map(|one| (one.order, one.slot)).zip(notice));
        }
        found.sort_unstable_by_key(|(which, _)| *which);
        Ok(found.into_iter().map(|(_, notice)| notice).collect())
    }

    fn notice_path(&self, name: &str, number: u64) -> Result<PathBuf, Error> {
        Ok(self.group_folder(name)?.join("orders").join(format!("{number:08}")))
    }
}
