//! The frames that an inventory shows, beside those that its sender lacks.

use sealane_message::DataType;
use sealane_seal::Slot;

use super::{marks, read_inventory};
use crate::ExchangeError;
use crate::entry::{DocumentStamp, RegisterEntry};
use crate::limits::kept;
use crate::registers::RegisterSet;

/// A register that an inventory shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShownRegister {
    pub(crate) origin: Slot,
    pub(crate) data_type: DataType,
    /// The newest first.
    pub(crate) stamps: Vec<DocumentStamp>,
    marks: [u8; super::MARKS_BYTES],
}

/// A frame that a neighbour has and this machine would keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WantedFrame {
    pub(crate) origin: Slot,
    pub(crate) data_type: DataType,
    pub(crate) stamp: DocumentStamp,
}

/// The registers that a neighbour shows. If it holds nothing of an origin, the origin has no
/// stamps.
pub(crate) fn shown(inventory: &[u8]) -> Result<Vec<ShownRegister>, ExchangeError> {
    let mut all = vec![];
    for (origin, registers) in read_inventory(inventory)? {
        if registers.is_empty() {
            let data_type = DataType::UNKNOWN;
            all.push(ShownRegister {
                origin,
                data_type,
                stamps: vec![],
                marks: Default::default(),
            });
        }
        for (data_type, held) in registers {
            all.push(ShownRegister { origin, data_type, stamps: held.stamps, marks: held.marks });
        }
    }
    Ok(all)
}

/// The origins that an inventory is about, in their order.
pub(crate) fn origins_of(all: &[ShownRegister]) -> Vec<Slot> {
    let mut origins: Vec<Slot> = all.iter().map(|one| one.origin).collect();
    origins.dedup();
    origins
}

/// Whether a frame is one of those that are shown.
pub(crate) fn is_shown(all: &[ShownRegister], entry: &RegisterEntry) -> bool {
    let mut same =
        all.iter().filter(|one| (one.origin, one.data_type) == (entry.origin, entry.data_type));
    same.any(|one| one.stamps.contains(&entry.stamp))
}

/// The frames that a neighbour shows and this machine would keep.
pub(crate) fn wanted(registers: &RegisterSet, all: &[ShownRegister]) -> Vec<WantedFrame> {
    let mut wanted = vec![];
    for one in all {
        let most = kept(one.data_type);
        let ours = registers.origin(one.origin).and_then(|of| of.get(&one.data_type));
        let oldest = ours.filter(|of| of.len() >= most).and_then(|of| of.keys().next().copied());
        let is_held = |stamp: &DocumentStamp| ours.is_some_and(|of| of.contains_key(stamp));
        let is_same =
            ours.is_some_and(|of| of.keys().rev().eq(one.stamps.iter()) && marks(of) != one.marks);
        let lacking = one.stamps.iter().filter(|stamp| {
            most > 0 && (is_same || !is_held(stamp) && oldest.is_none_or(|oldest| **stamp > oldest))
        });
        let (origin, data_type) = (one.origin, one.data_type);
        wanted.extend(lacking.map(|stamp| WantedFrame { origin, data_type, stamp: *stamp }));
    }
    wanted
}
