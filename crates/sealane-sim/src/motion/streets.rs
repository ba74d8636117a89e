//! Vehicles on a grid of streets, each behind the other: the Intelligent Driver Model (Treiber,
//! Hennecke, Helbing 2000, Physical Review E 62, equations 2 and 3).

use std::collections::BTreeMap;

use crate::place::SimPlace;
use crate::scenario::StreetPlan;
use crate::{SimError, SimRandom};

/// The model's constants, as in its authors' table for cities: acceleration and comfortable braking
/// in m/s², time gap in s, and gap at rest in m.
const ACCELERATION: f64 = 1.5;
const BRAKING: f64 = 2.0;
const TIME_GAP_S: f64 = 1.0;
const REST_GAP_M: f64 = 2.0;
/// A car's length.
const LENGTH_M: f64 = 4.5;
/// A step of the model. Longer ones overshoot.
const MAX_STEP_S: f64 = 0.25;

/// The streets with their vehicles, in the order of their seats.
#[derive(Debug)]
pub(super) struct StreetMotion {
    plan: StreetPlan,
    vehicles: Vec<StreetVehicle>,
    /// The vehicles on each lane, the first ahead. The map is kept to be filled again.
    lanes: BTreeMap<StreetLane, Vec<usize>>,
}

/// One direction of a street between two crossings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct StreetLane {
    from: StreetCrossing,
    to: StreetCrossing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct StreetCrossing {
    column: u32,
    row: u32,
}

#[derive(Debug)]
struct StreetVehicle {
    lane: StreetLane,
    next: StreetLane,
    /// Its front, in metres from where the lane begins.
    along_m: f64,
    speed_mps: f64,
    /// Drivers differ: within a tenth of the speed that the streets have.
    wished_mps: f64,
    turns: SimRandom,
}

/// The vehicle ahead.
#[derive(Debug, Clone, Copy)]
struct LeadVehicle {
    gap_m: f64,
    speed_mps: f64,
}

impl StreetMotion {
    /// Vehicles at even distances over all lanes.
    pub(super) fn new(
        plan: StreetPlan,
        seed: u64,
        number: u64,
        seats: usize,
    ) -> Result<Self, SimError> {
        let mut random = SimRandom::new(seed, "streets", number);
        let lanes = all_lanes(&plan);
        let of_each = (plan.block_m / (LENGTH_M + REST_GAP_M)).floor().max(1.0) as usize;
        if seats > lanes.len() * of_each / 2 {
            let most = lanes.len() * of_each / 2;
            return Err(SimError::Value(format!("streets: {seats} vehicles, room for {most}")));
        }
        // A lane is chosen and gone on from, so that no lane is given more than it has room for.
        let mut taken = vec![0_usize; lanes.len()];
        let vehicles = (0..seats).map(|seat| {
            let mut at = random.below(lanes.len() as u64) as usize;
            while taken.get(at).is_some_and(|taken| *taken >= of_each) {
                at = (at + 1) % lanes.len().max(1);
            }
            let place = taken.get_mut(at).map_or(0, |taken| {
                *taken += 1;
                *taken
            });
            let mut turns = SimRandom::new(seed, "turns", number << 32 | seat as u64);
            let lane = lanes.get(at).copied().unwrap_or_else(first_lane);
            let next = turned(&plan, lane, &mut turns);
            let along_m = plan.block_m - (LENGTH_M + REST_GAP_M) * (place - 1) as f64;
            let wished_mps = plan.speed_mps * (0.9 + 0.2 * random.part());
            StreetVehicle { lane, next, along_m, speed_mps: 0.0, wished_mps, turns }
        });
        let vehicles = vehicles.collect();
        Ok(Self { plan, vehicles, lanes: BTreeMap::new() })
    }

    /// Where a vehicle is.
    pub(super) fn place(&self, seat: usize) -> Option<SimPlace> {
        let vehicle = self.vehicles.get(seat)?;
        let [from, to] = [vehicle.lane.from, vehicle.lane.to].map(|crossing| SimPlace {
            x: self.plan.at.x + self.plan.block_m * f64::from(crossing.column),
            y: self.plan.at.y + self.plan.block_m * f64::from(crossing.row),
        });
        Some(from.toward(to, vehicle.along_m / self.plan.block_m))
    }

    pub(super) fn step(&mut self, step_s: f64) {
        let steps = (step_s / MAX_STEP_S).ceil().max(1.0);
        (0..steps as usize).for_each(|_| self.short_step(step_s / steps));
    }

    fn short_step(&mut self, step_s: f64) {
        self.fill_lanes();
        let speeds: Vec<f64> = (0..self.vehicles.len())
            .map(|seat| self.vehicles.get(seat).map_or(0.0, |one| self.speed(seat, one, step_s)))
            .collect();
        for (vehicle, speed_mps) in self.vehicles.iter_mut().zip(speeds) {
            vehicle.along_m += f64::midpoint(vehicle.speed_mps, speed_mps) * step_s;
            vehicle.speed_mps = speed_mps;
        }
        self.cross();
        self.keep_apart();
    }

    /// Sorts the vehicles into lanes, the first ahead. Of two vehicles at one place, that of the
    /// lower seat comes first.
    fn fill_lanes(&mut self) {
        self.lanes.values_mut().for_each(Vec::clear);
        for (seat, vehicle) in self.vehicles.iter().enumerate() {
            self.lanes.entry(vehicle.lane).or_default().push(seat);
        }
        let along = |seat: &usize| self.vehicles.get(*seat).map_or(0.0, |one| one.along_m);
        for lane in self.lanes.values_mut() {
            lane.sort_by(|one, other| along(other).total_cmp(&along(one)).then(one.cmp(other)));
        }
    }

    /// The speed after a step: equation 2, without ever going back.
    fn speed(&self, seat: usize, vehicle: &StreetVehicle, step_s: f64) -> f64 {
        let free = 1.0 - (vehicle.speed_mps / vehicle.wished_mps).powi(4);
        let held = self.ahead(seat, vehicle).map_or(0.0, |ahead| {
            let closing = vehicle.speed_mps * (vehicle.speed_mps - ahead.speed_mps);
            let wished =
                vehicle.speed_mps * TIME_GAP_S + closing / (2.0 * (ACCELERATION * BRAKING).sqrt());
            let wished_m = REST_GAP_M + wished.max(0.0);
            (wished_m / ahead.gap_m.max(0.1)).powi(2)
        });
        (vehicle.speed_mps + ACCELERATION * (free - held) * step_s).max(0.0)
    }

    /// The next one on the lane, or the last on the lane that follows.
    fn ahead(&self, seat: usize, vehicle: &StreetVehicle) -> Option<LeadVehicle> {
        let lane = self.lanes.get(&vehicle.lane)?;
        let position = lane.iter().position(|other| *other == seat)?;
        let gap = |other: &StreetVehicle, before_m: f64| LeadVehicle {
            gap_m: before_m + other.along_m - LENGTH_M - vehicle.along_m,
            speed_mps: other.speed_mps,
        };
        if let Some(before) = position.checked_sub(1).and_then(|at| lane.get(at)) {
            return self.vehicles.get(*before).map(|other| gap(other, 0.0));
        }
        let last = self.lanes.get(&vehicle.next)?.last()?;
        self.vehicles.get(*last).map(|other| gap(other, self.plan.block_m))
    }

    /// Those at the end of their lane go over to the next, if its last has left room: otherwise
    /// they wait at the crossing.
    fn cross(&mut self) {
        for seat in 0..self.vehicles.len() {
            let Some(vehicle) = self.vehicles.get(seat) else { continue };
            let over_m = vehicle.along_m - self.plan.block_m;
            if over_m < 0.0 {
                continue;
            }
            let next = vehicle.next;
            let last_m = (self.vehicles.iter().filter(|other| other.lane == next))
                .map(|other| other.along_m)
                .fold(f64::INFINITY, f64::min);
            let Some(vehicle) = self.vehicles.get_mut(seat) else { continue };
            if over_m + LENGTH_M > last_m {
                vehicle.along_m = self.plan.block_m;
                vehicle.speed_mps = 0.0;
                continue;
            }
            vehicle.along_m = over_m.min(self.plan.block_m);
            vehicle.lane = next;
            vehicle.next = turned(&self.plan, next, &mut vehicle.turns);
        }
    }

    /// No two of one lane are in one place, whatever the model came to.
    fn keep_apart(&mut self) {
        self.fill_lanes();
        for lane in self.lanes.values() {
            let mut room_m = f64::INFINITY;
            for seat in lane {
                let Some(vehicle) = self.vehicles.get_mut(*seat) else { continue };
                if vehicle.along_m > room_m {
                    vehicle.along_m = room_m.max(0.0);
                    vehicle.speed_mps = 0.0;
                }
                room_m = vehicle.along_m - LENGTH_M;
            }
        }
    }
}

fn first_lane() -> StreetLane {
    let (from, to) = (StreetCrossing { column: 0, row: 0 }, StreetCrossing { column: 1, row: 0 });
    StreetLane { from, to }
}

fn all_lanes(plan: &StreetPlan) -> Vec<StreetLane> {
    let crossings = (0..plan.columns)
        .flat_map(|column| (0..plan.rows).map(move |row| StreetCrossing { column, row }));
    crossings.flat_map(|from| beside(plan, from).map(move |to| StreetLane { from, to })).collect()
}

/// The crossings next to one.
fn beside(plan: &StreetPlan, at: StreetCrossing) -> impl Iterator<Item = StreetCrossing> {
    let StreetPlan { columns, rows, .. } = *plan;
    let StreetCrossing { column, row } = at;
    let east = (column + 1 < columns).then_some(StreetCrossing { column: column + 1, row });
    let north = (row + 1 < rows).then_some(StreetCrossing { column, row: row + 1 });
    let west = column.checked_sub(1).map(|column| StreetCrossing { column, row });
    let south = row.checked_sub(1).map(|row| StreetCrossing { column, row });
    [east, north, west, south].into_iter().flatten()
}

/// Where a vehicle goes at the end of a lane: anywhere but back, each way as likely.
fn turned(plan: &StreetPlan, lane: StreetLane, turns: &mut SimRandom) -> StreetLane {
    let ways = || beside(plan, lane.to).filter(|to| *to != lane.from);
    let chosen = turns.below(ways().count() as u64) as usize;
    // No grid has a dead end: each crossing has two streets or more.
    let to = ways().nth(chosen).unwrap_or(lane.from);
    StreetLane { from: lane.to, to }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(columns: u32, rows: u32) -> StreetPlan {
        let at = SimPlace { x: 10.0, y: 20.0 };
        StreetPlan { at, columns, rows, block_m: 100.0, speed_mps: 13.9 }
    }

    /// Every vehicle, and who drives behind whom on the same lane.
    fn assert_apart(streets: &mut StreetMotion) {
        streets.fill_lanes();
        for lane in streets.lanes.values() {
            for pair in lane.windows(2) {
                let [ahead, behind] = [pair[0], pair[1]].map(|seat| &streets.vehicles[seat]);
                let gap = ahead.along_m - LENGTH_M - behind.along_m;
                assert!(gap > -1e-9 || behind.along_m == 0.0, "{ahead:?} {behind:?}");
            }
        }
    }

    #[test]
    fn vehicles_stay_on_the_streets_behind_each_other_and_below_their_speed() {
        let mut streets = StreetMotion::new(plan(6, 5), 1, 0, 100).unwrap();
        let mut driven = 0.0;
        for _ in 0..6000 {
            let before: Vec<_> = (0..100).map(|seat| streets.place(seat).unwrap()).collect();
            streets.step(0.1);
            assert_apart(&mut streets);
            for (seat, before) in before.iter().enumerate() {
                let place = streets.place(seat).unwrap();
                let [x, y] = [place.x - 10.0, place.y - 20.0];
                assert!((0.0..=500.0).contains(&x) && (0.0..=400.0).contains(&y), "{place:?}");
                let off = [x, y].map(|m| (m / 100.0 - (m / 100.0).round()).abs());
                assert!(off.iter().any(|off| *off < 1e-9), "off the street: {place:?}");
                driven += before.metres_to(place);
            }
        }
        let mean_mps = driven / 100.0 / 600.0;
        assert!((3.0..14.0).contains(&mean_mps), "{mean_mps} m/s");
    }

    #[test]
    fn one_alone_comes_to_its_speed_and_one_behind_keeps_its_distance() {
        let mut streets = StreetMotion::new(plan(2, 2), 2, 0, 2).unwrap();
        let lane = first_lane();
        streets.plan.block_m = 1e6;
        for (vehicle, along_m) in streets.vehicles.iter_mut().zip([50.0, 20.0]) {
            *vehicle = StreetVehicle {
                lane,
                along_m,
                wished_mps: 20.0,
                turns: SimRandom::new(0, "", 0),
                ..*vehicle
            };
        }
        streets.vehicles[0].wished_mps = 10.0;
        (0..3000).for_each(|_| streets.step(0.1));
        let [ahead, behind] = [&streets.vehicles[0], &streets.vehicles[1]];
        assert!((ahead.speed_mps - 10.0).abs() < 0.01 && (behind.speed_mps - 10.0).abs() < 0.01);
        // The gap of equilibrium: (s0 + v T) / sqrt(1 - (v / v0)^4).
        let gap = ahead.along_m - LENGTH_M - behind.along_m;
        let known = (REST_GAP_M + 10.0 * TIME_GAP_S) / (1.0 - 0.5_f64.powi(4)).sqrt();
        assert!((gap - known).abs() < 0.05, "{gap} {known}");
    }

    #[test]
    fn a_grid_has_room_for_so_many() {
        assert!(StreetMotion::new(plan(2, 2), 1, 0, 60).is_ok());
        assert!(StreetMotion::new(plan(2, 2), 1, 0, 61).is_err());
    }
}
