//! Entries as tests make them up.

use proptest::prelude::*;
use sealane_document::{DocumentStamp, RegisterEntry, RegisterSet};
use sealane_message::DataType;
use sealane_seal::{Epoch, Slot};

pub(crate) const TYPES: [DataType; 5] = [
    DataType::COUNTER,
    DataType::LOCATION,
    DataType::CHAT,
    DataType::EMERGENCY,
    DataType::ACKNOWLEDGEMENT,
];

pub(crate) fn slot(number: u16) -> Slot {
    Slot::new(number).unwrap()
}

pub(crate) fn stamp(epoch: u64, counter: u64) -> DocumentStamp {
    DocumentStamp { epoch: Epoch(epoch), counter }
}

/// An entry whose frame says all of it, and which of several of that name it is.
pub(crate) fn entry(origin: u16, of: DataType, at: DocumentStamp, copy: u8) -> RegisterEntry {
    let frame = format!("{origin} {of} {at:?} {copy}").into_bytes();
    RegisterEntry::new(slot(origin), of, at, frame.into())
}

/// Entries of few names, so that they meet.
pub(crate) fn entries(most: usize) -> impl Strategy<Value = Vec<RegisterEntry>> {
    let one = (0..4_u16, prop::sample::select(TYPES.to_vec()), 0..3_u64, 0..60_u64, 0..2_u8);
    let one = one.prop_map(|(origin, of, epoch, counter, copy)| {
        entry(origin, of, stamp(epoch, counter), copy)
    });
    prop::collection::vec(one, 0..most)
}

pub(crate) fn holding(entries: &[RegisterEntry]) -> RegisterSet {
    let mut registers = RegisterSet::new();
    for entry in entries {
        registers.take(entry.clone());
    }
    registers
}

pub(crate) fn all(registers: &RegisterSet) -> Vec<RegisterEntry> {
    registers.iter().cloned().collect()
}
