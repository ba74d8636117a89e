use std::collections::BTreeMap;

use sealane_message::DataType;
use sealane_seal::Slot;

use crate::entry::{DocumentStamp, RegisterEntry};
use crate::limits::{MAX_DOCUMENT_BYTES, kept};

/// Of each origin and data type the newest frames.
///
/// Which are kept follows from the set of frames that were taken alone: neither their order nor
/// who brought them matters, and to take one again changes nothing. Memory is bounded by the
/// members of the group: what one origin has kept is at most
/// [`MAX_DOCUMENT_BYTES`] times the numbers of [`kept`].
#[derive(Debug, Clone, Default)]
pub struct RegisterSet {
    held: BTreeMap<Slot, BTreeMap<DataType, RegisterEntries>>,
    frames: usize,
    /// Of each register in which frames met that had one stamp: how many came to one that was here.
    conflicts: BTreeMap<(Slot, DataType), u64>,
}

/// The frames of one origin and type, by their stamps.
pub(crate) type RegisterEntries = BTreeMap<DocumentStamp, RegisterEntry>;

/// The outcome for a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakeOutcome {
    /// It is kept, and is news.
    New,
    /// It is kept already.
    Known,
    /// There are enough newer ones.
    Older,
    /// Another frame had its stamp. The one with the greater mark is kept, which is this one or
    /// not.
    Conflict {
        /// Whether it is this one.
        is_kept: bool,
    },
    /// A newer frame is kept, or another one with its stamp; whoever cannot tell which is true
    /// keeps this one too.
    Beside,
    /// It is no document, or too long for one.
    Refused,
    /// It had no room in its quota, and nothing less urgent of its origin was there to leave.
    Full,
}

impl TakeOutcome {
    /// Whether the frame is kept and was not before.
    pub fn is_news(self) -> bool {
        matches!(
            self,
            TakeOutcome::New | TakeOutcome::Beside | TakeOutcome::Conflict { is_kept: true }
        )
    }
}

/// The outcome for a frame, and the frame that is not kept for it.
pub(crate) struct RegisterInsertion {
    pub(crate) taken: TakeOutcome,
    /// The frame that had to leave; the one that came, if it did not get in.
    pub(crate) out: Option<RegisterEntry>,
}

impl RegisterInsertion {
    fn of(taken: TakeOutcome) -> Self {
        Self { taken, out: None }
    }
}

impl RegisterSet {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a frame that has opened.
    pub fn take(&mut self, entry: RegisterEntry) -> TakeOutcome {
        self.put(entry).taken
    }

    /// Takes a frame, and gives the one that is not kept for it.
    pub(crate) fn put(&mut self, entry: RegisterEntry) -> RegisterInsertion {
        let most = kept(entry.data_type);
        if most == 0 || entry.frame().len() > MAX_DOCUMENT_BYTES {
            return RegisterInsertion::of(TakeOutcome::Refused);
        }
        let register = self.held.entry(entry.origin).or_default();
        let register = register.entry(entry.data_type).or_default();
        if let Some(other) = register.get_mut(&entry.stamp) {
            if other.mark() == entry.mark() {
                return RegisterInsertion::of(TakeOutcome::Known);
            }
            *self.conflicts.entry((entry.origin, entry.data_type)).or_default() += 1;
            let is_kept = entry.mark() > other.mark();
            let out = if is_kept { std::mem::replace(other, entry) } else { entry };
            return RegisterInsertion { taken: TakeOutcome::Conflict { is_kept }, out: Some(out) };
        }
        let is_full = register.len() >= most;
        if is_full && register.keys().next().is_some_and(|oldest| entry.stamp < *oldest) {
            return RegisterInsertion { taken: TakeOutcome::Older, out: Some(entry) };
        }
        register.insert(entry.stamp, entry);
        let out = if is_full { register.pop_first().map(|(_, out)| out) } else { None };
        self.frames += usize::from(out.is_none());
        RegisterInsertion { taken: TakeOutcome::New, out }
    }

    /// Takes a frame out, for want of room.
    pub(crate) fn remove(&mut self, entry: &RegisterEntry) {
        let Some(of_origin) = self.held.get_mut(&entry.origin) else { return };
        let Some(register) = of_origin.get_mut(&entry.data_type) else { return };
        if register.get(&entry.stamp).is_none_or(|held| held.mark() != entry.mark()) {
            return;
        }
        register.remove(&entry.stamp);
        self.frames -= 1;
        if register.is_empty() {
            of_origin.remove(&entry.data_type);
        }
        if of_origin.is_empty() {
            self.held.remove(&entry.origin);
        }
    }

    /// Forgets what a member has sealed, as of one that left.
    pub fn forget(&mut self, origin: Slot) {
        let registers = self.held.remove(&origin).unwrap_or_default();
        self.frames -= registers.values().map(BTreeMap::len).sum::<usize>();
    }

    /// The frames of one origin and type, oldest first.
    pub fn of(&self, origin: Slot, data_type: DataType) -> impl Iterator<Item = &RegisterEntry> {
        self.held
            .get(&origin)
            .and_then(|of| of.get(&data_type))
            .into_iter()
            .flat_map(|r| r.values())
    }

    /// All frames: by origin, data type and stamp.
    pub fn iter(&self) -> impl Iterator<Item = &RegisterEntry> {
        self.held.values().flat_map(BTreeMap::values).flat_map(BTreeMap::values)
    }

    /// All frames of one origin.
    pub(crate) fn all_of(&self, origin: Slot) -> impl Iterator<Item = &RegisterEntry> {
        self.held.get(&origin).into_iter().flat_map(BTreeMap::values).flat_map(BTreeMap::values)
    }

    /// The origins of which there is any, and their registers.
    pub(crate) fn origins(
        &self,
    ) -> impl Iterator<Item = (Slot, &BTreeMap<DataType, RegisterEntries>)> {
        self.held.iter().map(|(origin, registers)| (*origin, registers))
    }

    /// The registers of one origin.
    pub(crate) fn origin(&self, origin: Slot) -> Option<&BTreeMap<DataType, RegisterEntries>> {
        self.held.get(&origin)
    }

    /// How many frames are held.
    pub fn len(&self) -> usize {
        self.frames
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.frames == 0
    }

    /// How many frames had the stamp of another one.
    pub fn conflicts(&self) -> u64 {
        self.conflicts.values().sum()
    }

    /// The same of one register: of an origin, and of what it says.
    pub fn conflicts_of(&self, origin: Slot, data_type: DataType) -> u64 {
        self.conflicts.get(&(origin, data_type)).copied().unwrap_or(0)
    }

    /// The registers in which there were conflicts, each with how many.
    pub fn conflicting(&self) -> impl Iterator<Item = (Slot, DataType, u64)> {
        self.conflicts.iter().map(|((origin, of), frames)| (*origin, *of, *frames))
    }
}
