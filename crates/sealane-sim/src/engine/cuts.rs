//! The pairs of machines that do not hear each other, though they are near: as if a wall stood
//! between them.

use std::collections::BTreeSet;

/// Pairs of machines that are kept apart.
#[derive(Debug, Default)]
pub(super) struct SimLinkCuts {
    pairs: BTreeSet<MachinePair>,
}

/// Two machines, the lower number first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct MachinePair {
    low: u32,
    high: u32,
}

impl MachinePair {
    fn of(one: u32, other: u32) -> Self {
        Self { low: one.min(other), high: one.max(other) }
    }
}

impl SimLinkCuts {
    /// Keeps each of some apart from each of others.
    pub(super) fn add(&mut self, one: &[u32], other: &[u32]) {
        self.pairs.extend(pairs(one, other));
    }

    /// Lets them hear each other again.
    pub(super) fn remove(&mut self, one: &[u32], other: &[u32]) {
        for pair in pairs(one, other) {
            self.pairs.remove(&pair);
        }
    }

    /// Whether two are kept apart.
    pub(super) fn part(&self, one: u32, other: u32) -> bool {
        !self.pairs.is_empty() && self.pairs.contains(&MachinePair::of(one, other))
    }
}

fn pairs(one: &[u32], other: &[u32]) -> impl Iterator<Item = MachinePair> {
    let all = one.iter().flat_map(move |one| other.iter().map(move |other| (*one, *other)));
    all.filter(|(one, other)| one != other).map(|(one, other)| MachinePair::of(one, other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_parts_both_ways_until_it_is_mended() {
        let mut cuts = SimLinkCuts::default();
        cuts.add(&[1, 2], &[2, 3]);
        let parted =
            |cuts: &SimLinkCuts, one, other| cuts.part(one, other) && cuts.part(other, one);
        for (one, other, apart) in [(1, 2, true), (1, 3, true), (2, 3, true), (1, 4, false)] {
            assert_eq!(parted(&cuts, one, other), apart, "{one} {other}");
        }
        assert!(!cuts.part(2, 2));
        cuts.remove(&[3], &[1]);
        assert!(!cuts.part(1, 3) && cuts.part(1, 2));
    }
}
