//! Where machines are, and which of them are near.

use std::collections::BTreeMap;

/// A place, in metres from a corner of the scenario's own.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Place {
    /// To the east.
    pub x: f64,
    /// To the north.
    pub y: f64,
}

impl Place {
    /// The distance to another, in metres.
    pub fn metres_to(self, other: Place) -> f64 {
        (self.x - other.x).hypot(self.y - other.y)
    }

    /// The same, to the centimetre.
    pub(crate) fn to_centimetres(self) -> Place {
        Place { x: (self.x * 100.0).round() / 100.0, y: (self.y * 100.0).round() / 100.0 }
    }

    /// The place that is this part of the way to another, from 0 to 1.
    pub fn toward(self, other: Place, part: f64) -> Place {
        Place { x: self.x + (other.x - self.x) * part, y: self.y + (other.y - self.y) * part }
    }
}

/// A row and column of cells.
type Cell = (i64, i64);

/// Machines by the cell that they are in, so that a transmission looks at its surroundings only.
///
/// Everything in it is in the order of the machines' numbers, so that runs repeat.
#[derive(Debug, Default)]
pub(crate) struct Cells {
    side_m: f64,
    nodes: BTreeMap<Cell, Vec<u32>>,
}

impl Cells {
    /// Cells as wide as a transmission reaches.
    pub(crate) fn new(side_m: f64) -> Self {
        Self { side_m: side_m.max(1.0), nodes: BTreeMap::new() }
    }

    /// Forgets all and takes these.
    pub(crate) fn fill(&mut self, nodes: impl Iterator<Item = (u32, Place)>) {
        self.nodes.values_mut().for_each(Vec::clear);
        for (node, place) in nodes {
            self.nodes.entry(self.cell(place)).or_default().push(node);
        }
        self.nodes.retain(|_, nodes| !nodes.is_empty());
    }

    /// All that may be within a side's length of a place, and some that are not.
    pub(crate) fn around(&self, place: Place) -> impl Iterator<Item = u32> {
        let (column, row) = self.cell(place);
        let cells =
            (column - 1..=column + 1).flat_map(move |c| (row - 1..=row + 1).map(move |r| (c, r)));
        cells.filter_map(|cell| self.nodes.get(&cell)).flatten().copied()
    }

    fn cell(&self, place: Place) -> Cell {
        ((place.x / self.side_m).floor() as i64, (place.y / self.side_m).floor() as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn nobody_within_reach_is_missed() {
        let mut random = Random::new(1, "test", 0);
        let mut any = || (random.part() - 0.5) * 2000.0;
        let places: Vec<_> = (0..300).map(|_| Place { x: any(), y: any() }).collect();
        let mut cells = Cells::new(150.0);
        let all = || (0..).zip(places.iter().copied());
        cells.fill(all());
        cells.fill(all());
        for from in &places {
            let around: Vec<_> = cells.around(*from).collect();
            for (node, place) in all().filter(|(_, place)| from.metres_to(*place) <= 150.0) {
                assert_eq!(around.iter().filter(|one| **one == node).count(), 1, "{place:?}");
            }
        }
        let mean = places.iter().map(|from| cells.around(*from).count()).sum::<usize>() / 300;
        assert!(mean < 60, "{mean} of 300 are looked at");
    }
}
