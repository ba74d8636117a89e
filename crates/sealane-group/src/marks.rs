//! Where a removal begins to hold in each stream.

use sealane_seal::{Binding, Epoch};

use crate::limits::MAX_MARKS_HELD;
use crate::wire::GroupFieldReader;
use crate::{Error, GroupDocument};

/// How far a stream had come when somebody was removed: at or behind it, nothing of the epochs
/// before the removal is read any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RemovalMark {
    /// The stream, as messages are bound to it.
    pub stream: Binding,
    /// The stream's generation.
    pub generation: u64,
    /// The offset that its next message got.
    pub next: u64,
}

/// Bytes of a mark.
pub(crate) const MARK_BYTES: usize = Binding::BYTES + 8 + 8;

impl RemovalMark {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.stream.as_bytes());
        out.extend(self.generation.to_be_bytes());
        out.extend(self.next.to_be_bytes());
    }

    pub(crate) fn read(reader: &mut GroupFieldReader<'_>) -> Result<RemovalMark, Error> {
        let stream = Binding::from_bytes(reader.array()?);
        Ok(RemovalMark { stream, generation: reader.u64()?, next: reader.u64()? })
    }
}

/// A mark, and the first epoch that is read behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct HeldRemovalMark {
    mark: RemovalMark,
    epoch: Epoch,
}

/// The marks that a member holds, in the order of streams and places.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RemovalMarks(Vec<HeldRemovalMark>);

impl RemovalMarks {
    /// Takes marks of the removal that began `epoch`, in place of others of the same streams.
    /// Beyond the bound those of the oldest epochs leave.
    pub(crate) fn add(&mut self, epoch: Epoch, marks: &[RemovalMark]) {
        let is_new =
            |kept: &HeldRemovalMark| marks.iter().any(|mark| mark.stream == kept.mark.stream);
        self.0.retain(|kept| kept.epoch != epoch || !is_new(kept));
        self.0.extend(marks.iter().map(|mark| HeldRemovalMark { mark: *mark, epoch }));
        self.0.sort_unstable();
        self.0.dedup();
        while self.0.len() > MAX_MARKS_HELD {
            let Some(oldest) = self.0.iter().map(|kept| kept.epoch).min() else { return };
            let most = self.0.len() - MAX_MARKS_HELD;
            let mut gone = 0;
            self.0.retain(|kept| {
                let is_gone = kept.epoch == oldest && gone < most;
                gone += usize::from(is_gone);
                !is_gone
            });
        }
        debug_assert!(self.0.is_sorted_by(|a, b| a < b), "places are looked up by halves");
    }

    /// The first epoch that may be read at a place.
    pub(crate) fn first_epoch(&self, stream: &Binding, generation: u64, offset: u64) -> Epoch {
        let start = self.0.partition_point(|kept| kept.mark.stream < *stream);
        let of_stream = self.0.iter().skip(start).take_while(|kept| kept.mark.stream == *stream);
        let place = (generation, offset);
        let behind = of_stream.take_while(|kept| (kept.mark.generation, kept.mark.next) <= place);
        behind.map(|kept| kept.epoch).max().unwrap_or_default()
    }

    /// Whether a removal has left its mark in a stream.
    pub(crate) fn has(&self, stream: &Binding, epoch: Epoch) -> bool {
        self.0.iter().any(|kept| kept.mark.stream == *stream && kept.epoch == epoch)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.extend((self.0.len() as u16).to_be_bytes());
        for kept in &self.0 {
            kept.mark.put(out);
            out.extend(kept.epoch.0.to_be_bytes());
        }
    }

    pub(crate) fn read(reader: &mut GroupFieldReader<'_>) -> Result<RemovalMarks, Error> {
        let count = reader.count(MAX_MARKS_HELD, MARK_BYTES + 8)?;
        let mut marks = Vec::with_capacity(count);
        for _ in 0..count {
            let mark = RemovalMark::read(reader)?;
            marks.push(HeldRemovalMark { mark, epoch: Epoch(reader.u64()?) });
        }
        let is_sorted = marks.is_sorted_by(|a, b| a < b);
        if is_sorted {
            Ok(RemovalMarks(marks))
        } else {
            Err(Error::Malformed(GroupDocument::GroupFile))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(stream: &str, generation: u64, next: u64) -> RemovalMark {
        RemovalMark { stream: Binding::stream(stream), generation, next }
    }

    #[test]
    fn the_newest_removal_before_a_place_decides() {
        let mut marks = RemovalMarks::default();
        marks.add(Epoch(3), &[mark("a", 1, 10), mark("b", 1, 0)]);
        marks.add(Epoch(7), &[mark("a", 1, 20)]);
        let first = |stream: &str, generation, offset| {
            marks.first_epoch(&Binding::stream(stream), generation, offset).0
        };
        assert_eq!([first("a", 1, 9), first("a", 1, 10), first("a", 1, 19)], [0, 3, 3]);
        assert_eq!([first("a", 1, 20), first("a", 1, u64::MAX)], [7, 7]);
        assert_eq!([first("a", 0, 99), first("a", 2, 0)], [0, 7], "of another generation");
        assert_eq!([first("b", 1, 0), first("c", 9, 9)], [3, 0]);
    }

    #[test]
    fn beyond_the_bound_the_oldest_removal_leaves_first() {
        let mut marks = RemovalMarks::default();
        for epoch in 0..MAX_MARKS_HELD as u64 {
            marks.add(Epoch(epoch), &[mark("a", 1, epoch)]);
        }
        marks.add(Epoch(1 << 20), &[mark("b", 1, 4)]);
        assert_eq!(marks.len(), MAX_MARKS_HELD);
        assert_eq!(marks.first_epoch(&Binding::stream("b"), 1, 4), Epoch(1 << 20));
        assert_eq!(marks.first_epoch(&Binding::stream("a"), 1, 1), Epoch(1));
        marks.add(Epoch(1 << 20), &[mark("b", 1, 9)]);
        assert_eq!(marks.first_epoch(&Binding::stream("b"), 1, 4), Epoch(0), "told anew");
        let mut bytes = Vec::new();
        marks.put(&mut bytes);
        let mut reader = GroupFieldReader::new(GroupDocument::GroupFile, &bytes);
        assert_eq!(RemovalMarks::read(&mut reader).unwrap(), marks);
    }
}
