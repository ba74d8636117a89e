use crate::limits::{MAX_EXPANDED_BYTES, MAX_RECORDS, MAX_STRUCTURE_BYTES};

use crate::CodecError;
use crate::tape::{Tape, TapeSpan};

/// The structures that the peer has defined. Changes count from [`RecordDictionary::commit`] on.
#[derive(Debug)]
pub(super) struct RecordDictionary {
    structures: Vec<PeerStructure>,
    /// The structure of each record byte, as an index. A peer may define a byte again, even
    /// while a record of the old structure is open, so structures outlive their byte.
    by_byte: ByByte,
    /// The number of structures that [`RecordDictionary::begin`] found, and the table before the
    /// first change since then.
    committed: usize,
    committed_by_byte: ByByte,
    /// Key bytes that the present datum expands to.
    expanded: usize,
    datum: u64,
}

type ByByte = [Option<u32>; MAX_RECORDS];

#[derive(Debug, Default)]
struct PeerStructure {
    /// All keys, one behind the other, and where each ends.
    text: Vec<u8>,
    ends: Vec<u32>,
    /// Where the keys stand on the tape, if the datum of this number has used them.
    copied: (u64, u32),
}

impl Default for RecordDictionary {
    fn default() -> Self {
        RecordDictionary {
            structures: Vec::new(),
            by_byte: [None; MAX_RECORDS],
            committed: 0,
            committed_by_byte: [None; MAX_RECORDS],
            expanded: 0,
            datum: 0,
        }
    }
}

impl RecordDictionary {
    pub(super) fn begin(&mut self) {
        self.committed = self.structures.len();
        self.expanded = 0;
        self.datum += 1;
    }

    pub(super) fn roll_back(&mut self) {
        if self.structures.len() > self.committed {
            self.structures.truncate(self.committed);
            self.by_byte = self.committed_by_byte;
        }
    }

    /// Keeps what the datum defined and drops structures whose byte now means another.
    pub(super) fn commit(&mut self) {
        if self.structures.len() == self.committed {
            return;
        }
        let mut kept = Vec::with_capacity(MAX_RECORDS);
        for slot in &mut self.by_byte {
            let structure = slot.and_then(|index| self.structures.get_mut(index as usize));
            *slot = structure.map(|structure| {
                kept.push(std::mem::take(structure));
                (kept.len() - 1) as u32
            });
        }
        self.structures = kept;
    }

    /// The structure of the record byte `slot`.
    #[inline]
    pub(super) fn at_slot(&self, slot: usize) -> Option<usize> {
        self.by_byte.get(slot).copied().flatten().map(|index| index as usize)
    }

    /// Begins a structure without keys.
    pub(super) fn define(&mut self, slot: usize) {
        if self.structures.len() == self.committed {
            self.committed_by_byte = self.by_byte;
        }
        let index = self.structures.len() as u32;
        self.structures.push(PeerStructure::default());
        if let Some(slot) = self.by_byte.get_mut(slot) {
            *slot = Some(index);
        }
    }

    /// Adds a key to the structure defined last.
    pub(super) fn add_key(&mut self, key: &[u8]) -> Result<(), ()> {
        let structure = self.structures.last_mut().ok_or(())?;
        if structure.text.len() + key.len() > MAX_STRUCTURE_BYTES {
            return Err(());
        }
        structure.text.extend_from_slice(key);
        structure.ends.push(structure.text.len() as u32);
        Ok(())
    }

    /// The structure defined last.
    pub(super) fn last(&self) -> usize {
        self.structures.len().saturating_sub(1)
    }

    /// Puts the keys on the tape, once per datum, and tells how many there are. One byte of input
    /// stands for all of them, so the bytes that they expand to are bounded.
    pub(super) fn use_structure(
        &mut self,
        index: usize,
        tape: &mut Tape,
        at: usize,
    ) -> Result<usize, CodecError> {
        let unknown = CodecError::UnknownRecord { at };
        let structure = self.structures.get_mut(index).ok_or(unknown)?;
        self.expanded += structure.text.len();
        if self.expanded > MAX_EXPANDED_BYTES {
            return Err(CodecError::TooLarge { at });
        }
        if structure.copied.0 != self.datum {
            structure.copied = (self.datum, tape.own_len() as u32);
            tape.own(&structure.text, at)?;
        }
        Ok(structure.ends.len())
    }

    #[inline]
    pub(super) fn key(&self, index: usize, nth: usize) -> Option<TapeSpan> {
        let structure = self.structures.get(index)?;
        let end = *structure.ends.get(nth)?;
        let start = nth.checked_sub(1).and_then(|before| structure.ends.get(before));
        let start = start.copied().unwrap_or(0);
        let base = structure.copied.1;
        Some(Tape::own_span(base + start..base + end))
    }
}
