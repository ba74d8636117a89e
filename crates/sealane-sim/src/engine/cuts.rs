//! The pairs of machines that do not hear each other, though they are near: as if a wall stood
//! between them.

use std::collections::BTreeSet;

/// Pairs of machines that are kept apart.
#[derive(Debug, Default)]
pub(super) struct Cuts {
    pairs: BTreeSet<Pair>,
}

/// Two machines, the lower number first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    low: u32,
    high: u32,
}

impl Pair {
    fn of(one: u32, other: u32) -> Self {
        Self { low: one.min(other), high: one.max(other) }
    }
}

impl Cuts {
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
        !self.pairs.is_empty() && self.pairs.contains(&Pair::of(one, other))
    }
}

fn pairs(one: &[u32], other: &[u32]) -> impl Iterator<Item = Pair> {
    let all = one.iter().flat_map(move |one| other.iter().map(move |other| (*one, *other)));
    all.filter(|(one, other)| one != other).map(|(one, other)| Pair::of(one, other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_parts_both_ways_until_it_is_mended() {
        let mut cuts = Cuts::default();
        cuts.add(&[1, 2], &[2, 3]);
        let parted = |cuts: &Cuts, one, other| cuts.part(one, other) && cuts.part(other, one);
        for (one, other, apart) in [(1, 2, true), (1, 3, true), (2, 3, true), (1, 4, false)] {
            assert_eq!(parted(&cuts, one, other), apart, "{one} {other}");
        }
        assert!(!cuts.part(2, 2));
        cuts.remove(&[3], &[1]);
        assert!(!cuts.part(1, 3) && cuts.part(1, 2));
    }
}
