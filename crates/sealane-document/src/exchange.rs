//! The exchange of two neighbours until both hold the same: `spec/document.md`, *Exchange*.
//!
//! A [`digest`] of 8 bytes travels with every hello. If two differ, one neighbour sends
//! [`overview`]s: a check of each origin. The other neighbour answers with [`inventory`]s of the
//! origins whose checks differ, and gets the frames that it [`lacks`].

mod brief;
mod bytes;
mod frames;
mod shown;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use sealane_message::DataType;
use sealane_message::bytes::put_leb128;
use sealane_seal::limits::MAX_SLOT;
use sealane_seal::{Epoch, Slot};

use crate::entry::{DocumentStamp, RegisterEntry};
use crate::limits::{MAX_ANSWERS_KEPT, kept};
use crate::registers::{RegisterEntries, RegisterSet};
use crate::{DocumentStore, ExchangeError};
use bytes::ExchangeFieldReader;

/// The sorts of messages.
mod sort {
    pub(super) const OVERVIEW: u8 = 1;
    pub(super) const INVENTORY: u8 = 2;
    /// The inventory of one who has not opened what it holds.
    pub(super) const UNOPENED: u8 = 3;
    pub(super) const FRAMES: u8 = 4;
}

pub use frames::read_frames;
pub(crate) use frames::{FRAMES_HEAD_BYTES, KEPT_HOPS, frames_message, put_frame};
pub(crate) use shown::{WantedFrame, is_shown, origins_of, shown, wanted};

/// The kind of a message, by its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExchangeKind {
    Overview,
    Inventory {
        /// Whether the sender has opened what it holds.
        is_opened: bool,
    },
    Frames,
}

pub(crate) fn sort_of(message: &[u8]) -> Option<ExchangeKind> {
    match *message.first()? {
        sort::OVERVIEW => Some(ExchangeKind::Overview),
        sort::INVENTORY => Some(ExchangeKind::Inventory { is_opened: true }),
        sort::UNOPENED => Some(ExchangeKind::Inventory { is_opened: false }),
        sort::FRAMES => Some(ExchangeKind::Frames),
        _ => None,
    }
}

/// An inventory that says whether its sender has opened what it holds.
pub(crate) fn as_seen(mut inventory: Vec<u8>, is_opened: bool) -> Vec<u8> {
    if let Some(first) = inventory.first_mut().filter(|_| !is_opened) {
        *first = sort::UNOPENED;
    }
    inventory
}

/// A hash of all that a store holds, of all groups.
pub(crate) fn digest_of(store: &DocumentStore) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    for group in store.groups() {
        let Some(registers) = store.registers(group) else { continue };
        hasher.update(&group.to_bytes()).update(&digest(registers));
    }
    first_bytes(&hasher)
}

const CHECK_BYTES: usize = 3;
const MARKS_BYTES: usize = 2;
/// A hash of all that is held: where two are the same, nothing is exchanged.
pub fn digest(registers: &RegisterSet) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    for (origin, of_origin) in registers.origins() {
        hasher.update(&origin.number().to_le_bytes());
        put_registers(&mut hasher, of_origin);
    }
    first_bytes(&hasher)
}

/// Checks of all origins, as messages of at most so many bytes each. Each message covers a range of
/// slots, all of them together cover all. Checks are short: the salt is another one each time, so
/// that two that are the same by chance are not so again.
pub fn overview(registers: &RegisterSet, salt: u8, max_bytes: usize) -> Vec<Vec<u8>> {
    let mut messages = vec![];
    let (mut first, mut next, mut part) = (0_u16, 0_u16, vec![]);
    for (slot, held) in registers.origins() {
        let mut checked = vec![];
        put_leb128(slot.number().saturating_sub(next).into(), &mut checked);
        checked.extend(check(salt, held));
        if !part.is_empty() && OVERVIEW_HEAD_BYTES + part.len() + checked.len() > max_bytes {
            messages.push(overview_of(salt, first..=next.saturating_sub(1), &part));
            (first, part) = (next, vec![]);
        }
        part.extend(checked);
        next = slot.number().saturating_add(1);
    }
    messages.push(overview_of(salt, first..=MAX_SLOT, &part));
    messages
}

/// Sort, salt, first and last origin of an overview.
const OVERVIEW_HEAD_BYTES: usize = 6;

fn overview_of(salt: u8, range: RangeInclusive<u16>, checks: &[u8]) -> Vec<u8> {
    let mut message = vec![sort::OVERVIEW, salt];
    message.extend(range.start().to_le_bytes());
    message.extend(range.end().to_le_bytes());
    message.extend(checks);
    message
}

/// Origins of which a neighbour holds something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OverviewDiff {
    /// Of these it holds nothing.
    pub(crate) lacked: Vec<Slot>,
    /// Of these it holds something.
    pub(crate) others: Vec<Slot>,
}

/// The differences from the neighbour that sent this overview.
pub(crate) fn compare(
    registers: &RegisterSet,
    overview: &[u8],
) -> Result<OverviewDiff, ExchangeError> {
    let theirs = ExchangeOverview::read(overview)?;
    let held = registers.origins().filter(|(slot, _)| theirs.range.contains(slot));
    let (mut lacked, mut others) = (vec![], vec![]);
    for (slot, of_origin) in held {
        match theirs.checks.get(&slot) {
            None => lacked.push(slot),
            Some(other) if *other != check(theirs.salt, of_origin) => others.push(slot),
            Some(_) => {}
        }
    }
    others.extend(theirs.checks.keys().filter(|slot| registers.origin(**slot).is_none()));
    others.sort_unstable();
    Ok(OverviewDiff { lacked, others })
}

/// The origins of which a neighbour that sent this overview holds something else, or nothing.
///
/// # Errors
/// [`ExchangeError`] where it is no overview.
pub fn differing(registers: &RegisterSet, overview: &[u8]) -> Result<Vec<Slot>, ExchangeError> {
    let OverviewDiff { lacked, others } = compare(registers, overview)?;
    let mut all = [lacked, others].concat();
    all.sort_unstable();
    Ok(all)
}

/// The frames held of these origins, as messages of at most so many bytes each. An origin that does
/// not fit is alone in a longer message.
pub fn inventory(registers: &RegisterSet, origins: &[Slot], max_bytes: usize) -> Vec<Vec<u8>> {
    let mut messages: Vec<Vec<u8>> = vec![];
    for origin in origins {
        let mut part = origin.number().to_le_bytes().to_vec();
        let none = BTreeMap::new();
        let held = registers.origin(*origin).unwrap_or(&none);
        put_leb128(held.len() as u64, &mut part);
        held.iter().for_each(|(data_type, register)| put_stamps(*data_type, register, &mut part));
        match messages.last_mut().filter(|last| last.len() + part.len() <= max_bytes) {
            Some(last) => last.extend(part),
            None => messages.push([vec![sort::INVENTORY], part].concat()),
        }
    }
    messages
}

/// The frames that a neighbour that sent this inventory lacks: urgent ones first, and then the
/// newest of each register before older ones.
///
/// # Errors
/// [`ExchangeError`] where it is no inventory.
pub fn lacks<'r>(
    registers: &'r RegisterSet,
    inventory: &[u8],
) -> Result<Vec<&'r RegisterEntry>, ExchangeError> {
    let mut lacking = vec![];
    for (origin, theirs) in read_inventory(inventory)? {
        let Some(ours) = registers.origin(origin) else { continue };
        for (data_type, register) in ours {
            match theirs.get(data_type) {
                Some(held) => lacking.extend(beyond(register, held, kept(*data_type))),
                None => lacking.extend(register.values()),
            }
        }
    }
    sort_to_give(&mut lacking);
    Ok(lacking)
}

/// Urgent frames first, and then the newest.
pub(crate) fn sort_to_give(lacking: &mut [&RegisterEntry]) {
    lacking.sort_by_key(|entry| (!entry.data_type.is_urgent(), std::cmp::Reverse(entry.stamp)));
}

/// The frames of one register that a neighbour holds.
struct InventoryRegister {
    stamps: Vec<DocumentStamp>,
    marks: [u8; MARKS_BYTES],
}

/// The frames of a register that a neighbour lacks and would keep.
fn beyond<'r>(
    register: &'r RegisterEntries,
    held: &InventoryRegister,
    most: usize,
) -> impl Iterator<Item = &'r RegisterEntry> {
    // Where all stamps are the same and the marks are not, there is a conflict to settle.
    let same = register.len() == held.stamps.len() && register.keys().rev().eq(held.stamps.iter());
    let all = same && marks(register) != held.marks;
    let oldest = held.stamps.last().filter(|_| held.stamps.len() >= most).copied();
    let missing: Vec<&RegisterEntry> = register
        .values()
        .filter(|entry| {
            let is_wanted = oldest.is_none_or(|oldest| entry.stamp > oldest);
            all || is_wanted && !held.stamps.contains(&entry.stamp)
        })
        .collect();
    missing.into_iter()
}

fn check(salt: u8, of_origin: &BTreeMap<DataType, RegisterEntries>) -> [u8; CHECK_BYTES] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[salt]);
    put_registers(&mut hasher, of_origin);
    first_bytes(&hasher)
}

fn put_registers(hasher: &mut blake3::Hasher, of_origin: &BTreeMap<DataType, RegisterEntries>) {
    for entry in of_origin.values().flat_map(BTreeMap::values) {
        hasher.update(&entry.data_type.number().to_le_bytes());
        hasher.update(&entry.stamp.epoch.0.to_le_bytes());
        hasher.update(&entry.stamp.counter.to_le_bytes());
        hasher.update(&entry.mark().0);
    }
}

fn marks(register: &RegisterEntries) -> [u8; MARKS_BYTES] {
    let mut hasher = blake3::Hasher::new();
    for entry in register.values() {
        hasher.update(&entry.mark().0);
    }
    first_bytes(&hasher)
}

fn first_bytes<const N: usize>(hasher: &blake3::Hasher) -> [u8; N] {
    let mut bytes = [0; N];
    hasher.finalize_xof().fill(&mut bytes);
    bytes
}

/// Writes the stamps of a register, the newest first, each later one as its distance from it.
fn put_stamps(data_type: DataType, register: &RegisterEntries, out: &mut Vec<u8>) {
    put_leb128(data_type.number().into(), out);
    put_leb128(register.len() as u64, out);
    out.extend(marks(register));
    let mut above: Option<DocumentStamp> = None;
    for stamp in register.keys().rev() {
        match above {
            Some(above) if above.epoch == stamp.epoch => {
                put_leb128(0, out);
                put_leb128(above.counter - stamp.counter, out);
            }
            above => {
                let epochs = above.map_or(stamp.epoch.0, |above| above.epoch.0 - stamp.epoch.0);
                put_leb128(epochs, out);
                put_leb128(stamp.counter, out);
            }
        }
        above = Some(*stamp);
    }
}

fn read_stamps(
    input: &mut ExchangeFieldReader<'_>,
) -> Result<(DataType, InventoryRegister), ExchangeError> {
    let number = u16::try_from(input.leb128()?).map_err(|_| ExchangeError::Order)?;
    let count = input.leb128()?;
    if count == 0 || count > MAX_ANSWERS_KEPT as u64 {
        return Err(ExchangeError::Order);
    }
    let marks = input.array()?;
    let mut stamps: Vec<DocumentStamp> = vec![];
    for _ in 0..count {
        let (epochs, counter) = (input.leb128()?, input.leb128()?);
        stamps.push(match stamps.last() {
            None => DocumentStamp { epoch: Epoch(epochs), counter },
            Some(above) => below(*above, epochs, counter).ok_or(ExchangeError::Order)?,
        });
    }
    Ok((DataType::from_number(number), InventoryRegister { stamps, marks }))
}

/// The stamp that stands so far below another one.
fn below(above: DocumentStamp, epochs: u64, counter: u64) -> Option<DocumentStamp> {
    let epoch = Epoch(above.epoch.0.checked_sub(epochs)?);
    let counter = match epochs {
        0 => above.counter.checked_sub(counter).filter(|_| counter > 0)?,
        _ => counter,
    };
    Some(DocumentStamp { epoch, counter })
}

struct ExchangeOverview {
    salt: u8,
    range: RangeInclusive<Slot>,
    checks: BTreeMap<Slot, [u8; CHECK_BYTES]>,
}

impl ExchangeOverview {
    fn read(bytes: &[u8]) -> Result<Self, ExchangeError> {
        let mut input = ExchangeFieldReader::of(bytes, sort::OVERVIEW)?;
        let [salt] = input.array()?;
        let range = input.slot()?..=input.slot()?;
        let (mut checks, mut next) = (BTreeMap::new(), u64::from(range.start().number()));
        while !input.is_empty() {
            let slot = next.saturating_add(input.leb128()?);
            let slot = u16::try_from(slot).ok().and_then(Slot::new);
            let slot = slot.filter(|slot| range.contains(slot)).ok_or(ExchangeError::Order)?;
            checks.insert(slot, input.array()?);
            next = u64::from(slot.number()) + 1;
        }
        Ok(Self { salt, range, checks })
    }
}

type ExchangeInventory = Vec<(Slot, BTreeMap<DataType, InventoryRegister>)>;

fn read_inventory(bytes: &[u8]) -> Result<ExchangeInventory, ExchangeError> {
    let is_unopened = bytes.first() == Some(&sort::UNOPENED);
    let mut input =
        ExchangeFieldReader::of(bytes, if is_unopened { sort::UNOPENED } else { sort::INVENTORY })?;
    let mut all = ExchangeInventory::new();
    while !input.is_empty() {
        let origin = input.slot()?;
        if all.last().is_some_and(|(before, _)| origin <= *before) {
            return Err(ExchangeError::Order);
        }
        let mut held: BTreeMap<DataType, InventoryRegister> = BTreeMap::new();
        for _ in 0..input.leb128()? {
            let (data_type, register) = read_stamps(&mut input)?;
            if held.last_key_value().is_some_and(|(before, _)| data_type <= *before) {
                return Err(ExchangeError::Order);
            }
            held.insert(data_type, register);
        }
        all.push((origin, held));
    }
    Ok(all)
}
