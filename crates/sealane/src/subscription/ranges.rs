use std::collections::{BTreeMap, HashMap};

use sealane_message::Topic;

/// Offsets of several streams, kept as few ranges.
#[derive(Debug, Default)]
pub(super) struct OffsetRanges {
    streams: HashMap<Topic, BTreeMap<u64, u64>>,
    offsets: usize,
}

impl OffsetRanges {
    /// How many offsets were added since they were last taken.
    pub(super) fn len(&self) -> usize {
        self.offsets
    }

    pub(super) fn add(&mut self, stream: &Topic, offset: u64) {
        self.offsets += 1;
        // Not `entry`: it would clone the topic for each of a run of offsets.
        if let Some(ranges) = self.streams.get_mut(stream) {
            insert(ranges, offset);
        } else {
            self.streams.insert(stream.clone(), BTreeMap::from([(offset, offset)]));
        }
    }

    /// All ranges, both ends included; nothing is left.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (Topic, u64, u64)> {
        self.offsets = 0;
        std::mem::take(&mut self.streams).into_iter().flat_map(|(stream, ranges)| {
            ranges.into_iter().map(move |(from, to)| (stream.clone(), from, to))
        })
    }

    pub(super) fn clear(&mut self) {
        self.take().for_each(drop);
    }
}

fn insert(ranges: &mut BTreeMap<u64, u64>, offset: u64) {
    let below = ranges.range(..=offset).next_back().map(|(&from, &to)| (from, to));
    if below.is_some_and(|(_, to)| to >= offset) {
        return;
    }
    let from = below.filter(|&(_, to)| to + 1 == offset).map_or(offset, |(from, _)| from);
    let to = ranges.remove(&(offset + 1)).unwrap_or(offset);
    ranges.insert(from, to);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(offsets: &[u64]) -> Vec<(u64, u64)> {
        let mut ranges = OffsetRanges::default();
        let stream: Topic = "a".parse().unwrap();
        offsets.iter().for_each(|&offset| ranges.add(&stream, offset));
        assert_eq!(ranges.len(), offsets.len());
        let taken = ranges.take().map(|(_, from, to)| (from, to)).collect();
        assert_eq!(ranges.take().count(), 0);
        taken
    }

    #[test]
    fn neighbours_join_in_any_order() {
        assert_eq!(ranges(&[1, 2, 3]), [(1, 3)]);
        assert_eq!(ranges(&[3, 1, 2]), [(1, 3)]);
        assert_eq!(ranges(&[5, 1, 2, 2, 6, 9]), [(1, 2), (5, 6), (9, 9)]);
        assert_eq!(ranges(&[0, u64::MAX - 1]), [(0, 0), (u64::MAX - 1, u64::MAX - 1)]);
    }
}
