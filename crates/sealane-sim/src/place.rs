//! Where machines are, and which of them are near.

/// A place, in metres from a corner of the scenario's own.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SimPlace {
    /// To the east.
    pub x: f64,
    /// To the north.
    pub y: f64,
}

impl SimPlace {
    /// The distance to another, in metres.
    pub fn metres_to(self, other: SimPlace) -> f64 {
        let (x, y) = (self.x - other.x, self.y - other.y);
        (x * x + y * y).sqrt()
    }

    /// The same, to the centimetre.
    pub(crate) fn to_centimetres(self) -> SimPlace {
        SimPlace { x: (self.x * 100.0).round() / 100.0, y: (self.y * 100.0).round() / 100.0 }
    }

    /// The place that is this part of the way to another, from 0 to 1.
    pub fn toward(self, other: SimPlace, part: f64) -> SimPlace {
        SimPlace { x: self.x + (other.x - self.x) * part, y: self.y + (other.y - self.y) * part }
    }
}

/// Machines by the cell that they are in, so that a transmission looks at its surroundings only.
///
/// The cells lie in rows, one behind the other, and their machines in one list, in the order of the
/// cells and then of the machines' numbers, so that runs repeat.
#[derive(Debug, Default)]
pub(crate) struct PlaceGrid {
    /// A cell is at least so wide.
    least_m: f64,
    side_m: f64,
    /// The corner of the first cell.
    corner: SimPlace,
    columns: usize,
    rows: usize,
    /// Where the machines of each cell begin in the list, and behind the last one where it ends.
    starts: Vec<usize>,
    nodes: Vec<u32>,
    /// The cell of each machine while the list is made; kept for its room.
    cells: Vec<InCell>,
}

#[derive(Debug, Clone, Copy)]
struct InCell {
    node: u32,
    place: SimPlace,
    cell: usize,
}

/// Cells for each machine, at most: few machines far apart have larger cells.
const CELLS_PER_NODE: usize = 4;

impl PlaceGrid {
    /// Cells as wide as a transmission reaches.
    pub(crate) fn new(side_m: f64) -> Self {
        Self { least_m: side_m.max(1.0), ..Self::default() }
    }

    /// Forgets all and takes these.
    pub(crate) fn fill(&mut self, nodes: impl Iterator<Item = (u32, SimPlace)>) {
        self.cells.clear();
        self.cells.extend(nodes.map(|(node, place)| InCell { node, place, cell: 0 }));
        self.span();
        self.starts.clear();
        self.starts.resize(self.columns * self.rows + 1, 0);
        for at in 0..self.cells.len() {
            let Some(place) = self.cells.get(at).map(|one| one.place) else { continue };
            let cell = self.row(place.y) as usize * self.columns + self.column(place.x) as usize;
            if let (Some(one), Some(count)) = (self.cells.get_mut(at), self.starts.get_mut(cell)) {
                one.cell = cell;
                *count += 1;
            }
        }
        // Each count becomes the end of its cell, and each machine that is put there moves it to
        // the beginning: from the last machine to the first.
        let mut end = 0;
        for count in &mut self.starts {
            end += *count;
            *count = end;
        }
        self.nodes.clear();
        self.nodes.resize(self.cells.len(), 0);
        for one in self.cells.iter().rev() {
            let Some(start) = self.starts.get_mut(one.cell) else { continue };
            *start -= 1;
            if let Some(place) = self.nodes.get_mut(*start) {
                *place = one.node;
            }
        }
    }

    /// Lays the cells over all machines.
    fn span(&mut self) {
        let places = || self.cells.iter().map(|one| one.place);
        let least = |all: f64, one: f64| all.min(one);
        let most = |all: f64, one: f64| all.max(one);
        let (first, none) = (f64::INFINITY, f64::NEG_INFINITY);
        let corner = SimPlace {
            x: places().map(|place| place.x).fold(first, least),
            y: places().map(|place| place.y).fold(first, least),
        };
        let width = places().map(|place| place.x).fold(none, most) - corner.x;
        let height = places().map(|place| place.y).fold(none, most) - corner.y;
        let mut side_m = self.least_m;
        let count = |length: f64, side_m: f64| (length / side_m).max(0.0) as usize + 1;
        let room = CELLS_PER_NODE * self.cells.len() + 16;
        while count(width, side_m).saturating_mul(count(height, side_m)) > room {
            side_m *= 2.0;
        }
        (self.corner, self.side_m) = (corner, side_m);
        (self.columns, self.rows) = (count(width, side_m), count(height, side_m));
        if self.cells.is_empty() {
            (self.corner, self.columns, self.rows) = (SimPlace::default(), 0, 0);
        }
    }

    /// All that may be within a side's length of a place, and some that are not.
    pub(crate) fn around(&self, place: SimPlace) -> impl Iterator<Item = u32> {
        let beside = |at: i64, count: usize| {
            let last = count as i64 - 1;
            (at - 1).clamp(0, last + 1)..=(at + 1).clamp(-1, last)
        };
        let columns = beside(self.column(place.x), self.columns);
        let rows = beside(self.row(place.y), self.rows);
        let is_any = !columns.is_empty();
        let (first, last) = (*columns.start() as usize, *columns.end());
        // The cells of a row lie one behind the other, and so do their machines.
        let of_row = move |row: i64| {
            let row = row as usize * self.columns;
            let from = *self.starts.get(row + first)?;
            let to = *self.starts.get(row + last as usize + 1)?;
            self.nodes.get(from..to)
        };
        rows.filter(move |_| is_any).filter_map(of_row).flatten().copied()
    }

    fn column(&self, x: f64) -> i64 {
        cell(x - self.corner.x, self.side_m)
    }

    fn row(&self, y: f64) -> i64 {
        cell(y - self.corner.y, self.side_m)
    }
}

/// The how manieth cell a length from the first corner leads to.
fn cell(metres: f64, side_m: f64) -> i64 {
    // Far outside of all cells it does not matter how far.
    (metres / side_m).floor().clamp(-1e9, 1e9) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SimRandom;

    #[test]
    fn few_machines_far_apart_take_few_cells() {
        let mut cells = PlaceGrid::new(1.0);
        let places = [(0.0, 0.0), (1e5, 1e5), (1e5, 1e5 - 0.5)].map(|(x, y)| SimPlace { x, y });
        cells.fill((0..).zip(places));
        assert!(cells.columns * cells.rows <= 28, "{cells:?}");
        assert_eq!(cells.around(places[1]).collect::<Vec<_>>(), [1, 2]);
        cells.fill([].into_iter());
        assert_eq!(cells.around(places[1]).count(), 0);
    }

    #[test]
    fn nobody_within_reach_is_missed() {
        let mut random = SimRandom::new(1, "test", 0);
        let mut any = || (random.part() - 0.5) * 2000.0;
        let places: Vec<_> = (0..300).map(|_| SimPlace { x: any(), y: any() }).collect();
        let mut cells = PlaceGrid::new(150.0);
        let all = || (0..).zip(places.iter().copied());
        cells.fill(all());
        cells.fill(all());
        for from in &places {
            let around: Vec<_> = cells.around(*from).collect();
            for (node, place) in all().filter(|(_, place)| from.metres_to(*place) <= 150.0) {
                assert_eq!(around.iter().filter(|one| **one == node).count(), 1, "{place:?}");
            }
        }
        // A machine outside of all cells is near to the machines at their edge.
        let outside = SimPlace { x: 1100.0, y: 0.0 };
        let near = all().filter(|(_, place)| outside.metres_to(*place) <= 150.0);
        let around: Vec<_> = cells.around(outside).collect();
        assert!(near.map(|(node, _)| node).all(|node| around.contains(&node)));
        assert_eq!(cells.around(SimPlace { x: 1e5, y: -1e5 }).count(), 0);
        assert_eq!(PlaceGrid::new(150.0).around(*places.first().unwrap()).count(), 0);
        let mean = places.iter().map(|from| cells.around(*from).count()).sum::<usize>() / 300;
        assert!(mean < 60, "{mean} of 300 are looked at");
    }
}
