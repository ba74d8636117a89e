//! Machines that are carried: along given points, or to and fro.

use crate::SimRandom;
use crate::place::SimPlace;

/// A path along points, as offsets from where a machine begins.
#[derive(Debug)]
pub(super) struct MotionPath {
    legs: Vec<PathLeg>,
    /// All legs together, in seconds.
    lasts_s: f64,
    repeats: bool,
}

/// From one point to the next, and the pause there.
#[derive(Debug)]
struct PathLeg {
    from: SimPlace,
    to: SimPlace,
    starts_s: f64,
    arrives_s: f64,
}

impl MotionPath {
    pub(super) fn new(points: &[SimPlace], speed_mps: f64, pause_s: f64, repeats: bool) -> Self {
        let back = points.first().filter(|_| repeats);
        let next = points.iter().skip(1).chain(back);
        let mut lasts_s = 0.0;
        let legs = points.iter().zip(next).map(|(from, to)| {
            let starts_s = lasts_s;
            let arrives_s = starts_s + from.metres_to(*to) / speed_mps;
            lasts_s = arrives_s + pause_s;
            PathLeg { from: *from, to: *to, starts_s, arrives_s }
        });
        let legs = legs.collect();
        Self { legs, lasts_s, repeats }
    }

    /// The offset after so many seconds.
    pub(super) fn at(&self, now_s: f64) -> SimPlace {
        let at_s = if self.repeats { now_s % self.lasts_s } else { now_s };
        let index = self.legs.partition_point(|leg| leg.starts_s <= at_s);
        let Some(leg) = self.legs.get(index.saturating_sub(1)) else { return SimPlace::default() };
        let whole = leg.arrives_s - leg.starts_s;
        let part = if whole > 0.0 { (at_s - leg.starts_s) / whole } else { 1.0 };
        leg.from.toward(leg.to, part.clamp(0.0, 1.0))
    }
}

/// Somebody who goes to a place of chance in a rectangle, waits, and goes to the next.
#[derive(Debug)]
pub(super) struct RandomWalker {
    corner: SimPlace,
    area: SimPlace,
    place: SimPlace,
    target: SimPlace,
    speed_mps: f64,
    pause_s: f64,
    /// How long it still waits.
    waits_s: f64,
    random: SimRandom,
}

impl RandomWalker {
    /// At a place of chance.
    pub(super) fn new(
        seed: u64,
        motion: usize,
        seat: usize,
        corner: SimPlace,
        area: SimPlace,
    ) -> Self {
        let random = SimRandom::new(seed, "wander", (motion as u64) << 32 | seat as u64);
        let mut one = Self {
            corner,
            area,
            place: corner,
            target: corner,
            speed_mps: 1.0,
            pause_s: 0.0,
            waits_s: 0.0,
            random,
        };
        one.place = one.anywhere();
        one.target = one.anywhere();
        one
    }

    pub(super) fn at_speed(self, speed_mps: f64, pause_s: f64) -> Self {
        Self { speed_mps, pause_s, ..self }
    }

    pub(super) fn place(&self) -> SimPlace {
        self.place
    }

    pub(super) fn step(&mut self, mut left_s: f64) {
        while left_s > 0.0 {
            let waited = self.waits_s.min(left_s);
            self.waits_s -= waited;
            left_s -= waited;
            let way_s = self.place.metres_to(self.target) / self.speed_mps;
            if way_s > left_s {
                self.place = self.place.toward(self.target, left_s / way_s);
                return;
            }
            // A place that is the next one again takes a little time too.
            left_s -= way_s.max(1e-3);
            self.place = self.target;
            self.target = self.anywhere();
            self.waits_s = self.pause_s;
        }
    }

    fn anywhere(&mut self) -> SimPlace {
        SimPlace {
            x: self.corner.x + self.random.part() * self.area.x,
            y: self.corner.y + self.random.part() * self.area.y,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_walked_at_its_speed_with_its_pauses() {
        let points = [(0.0, 0.0), (100.0, 0.0), (100.0, 50.0)].map(|(x, y)| SimPlace { x, y });
        let once = MotionPath::new(&points, 10.0, 5.0, false);
        for (at_s, x, y) in [
            (0.0, 0.0, 0.0),
            (4.0, 40.0, 0.0),
            (12.0, 100.0, 0.0),
            (17.5, 100.0, 25.0),
            (1e6, 100.0, 50.0),
        ] {
            let place = once.at(at_s);
            assert!(place.metres_to(SimPlace { x, y }) < 1e-9, "{at_s}: {place:?}");
        }
        let ring = MotionPath::new(&points, 10.0, 0.0, true);
        let whole = (150.0 + 100_f64.hypot(50.0)) / 10.0;
        assert!(ring.at(whole * 7.0 + 3.0).metres_to(SimPlace { x: 30.0, y: 0.0 }) < 1e-6);
    }

    #[test]
    fn a_walker_stays_in_its_area_and_keeps_to_its_speed() {
        let area = SimPlace { x: 200.0, y: 100.0 };
        let mut one =
            RandomWalker::new(3, 0, 0, SimPlace { x: -50.0, y: 10.0 }, area).at_speed(2.0, 1.0);
        for _ in 0..20_000 {
            let before = one.place();
            one.step(0.1);
            let SimPlace { x, y } = one.place();
            assert!((-50.0..=150.0).contains(&x) && (10.0..=110.0).contains(&y));
            assert!(before.metres_to(one.place()) <= 0.2 + 1e-9);
        }
    }
}
