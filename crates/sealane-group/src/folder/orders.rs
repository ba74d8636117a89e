//! The notices of a group that a folder keeps: those that an authority has given, and those of a
//! member whose turn has not come.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use super::files::{self, FileWriteMode};
use super::{IdentityKeys, KeyFolderLock};
use crate::limits::MAX_ORDERS_HELD;
use crate::{Error, GroupNotice};

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

    fn notice_path(&self, name: &str, number: u64) -> Result<PathBuf, Error> {
        Ok(self.group_folder(name)?.join("orders").join(format!("{number:08}")))
    }
}
