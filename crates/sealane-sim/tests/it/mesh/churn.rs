//! Machines that come and go: whoever has had a path is reached, and no route leads in a circle.

use std::fmt::Write as _;

use sealane_sim::SimRandom;

use super::{row, seconds, size, wish};
use crate::story::{Line, story};

/// Two machines at most this far apart hear each other.
const RANGE_M: f64 = 300.0;
/// How often the routes of all are followed.
const STEP_US: u64 = 100_000;
/// Until then all find each other, and nobody comes or goes.
const BEGINS_S: u64 = 30;
/// A pair that has had a path for so long is to be connected.
const CONNECTED_US: u64 = 3_000_000;
/// Runs of ten minutes at most, of each loss.
const SEEDS_MAX: u64 = 5;

/// Machines on a square, of which one leaves or joins each second.
fn scenario(seed: u64, machines: u64, lasts_s: u64, loss: f64, is_churning: bool) -> String {
    let side = (machines as f64 * 28_800.0).sqrt().round();
    let mut text = format!(
        "version = 1\nduration_s = {lasts_s}\n\
         [[medium]]\nname = \"field\"\nprofile = \"11p\"\nrange_m = {RANGE_M}\nfading = 0\n\
         loss = {loss}\n\
         [[node]]\nname = \"one\"\ncount = {machines}\nkind = \"mesh\"\nmedia = [\"field\"]\n\
         area = [{side}, {side}]\n"
    );
    let mut random = SimRandom::new(seed, "churn", 0);
    let (mut there, mut gone): (Vec<u64>, Vec<u64>) = ((1..=machines).collect(), vec![]);
    for at in BEGINS_S..lasts_s {
        if !is_churning {
            break;
        }
        let joins = at % 2 == 0 && gone.len() > 2;
        let (from, to) = if joins { (&mut gone, &mut there) } else { (&mut there, &mut gone) };
        let one = from.swap_remove(random.below(from.len() as u64) as usize);
        to.push(one);
        let what = if joins { "join" } else { "leave" };
        let _ = write!(text, "[[event]]\nat_s = {at}\ndo = \"{what}\"\nwho = [\"one-{one}\"]\n");
    }
    text
}

/// The machines as the log has told of them so far.
struct Field {
    places: Vec<Option<(f64, f64)>>,
    near: Vec<Vec<bool>>,
    /// Of each machine, the next hop to each other one.
    hops: Vec<Vec<Option<usize>>>,
    /// Since when each pair has had a path, and when it was connected last.
    path: Vec<Vec<Option<u64>>>,
    reached: Vec<Vec<u64>>,
    /// It is told once for each time.
    is_missed: Vec<Vec<bool>>,
    samples: u64,
    connected: u64,
    missed: u64,
    longest: u64,
}

impl Field {
    fn new(machines: usize) -> Self {
        Self {
            places: vec![None; machines],
            near: vec![vec![false; machines]; machines],
            hops: vec![vec![None; machines]; machines],
            path: vec![vec![None; machines]; machines],
            reached: vec![vec![0; machines]; machines],
            is_missed: vec![vec![false; machines]; machines],
            samples: 0,
            connected: 0,
            missed: 0,
            longest: 0,
        }
    }

    fn take(&mut self, line: &Line) {
        let node = line.node;
        match line.kind.as_str() {
            "join" => self.place(node, Some((line.x, line.y))),
            "leave" => {
                self.place(node, None);
                self.hops[node].fill(None);
            }
            "mesh" => match (line.what.as_str(), line.of) {
                ("route", Some(of)) => self.hops[node][of] = line.via,
                ("route-lost", Some(of)) => self.hops[node][of] = None,
                _ => {}
            },
            _ => {}
        }
    }

    fn place(&mut self, node: usize, place: Option<(f64, f64)>) {
        self.places[node] = place;
        for (other, at) in self.places.iter().enumerate() {
            let is_near = match (place, at) {
                (Some(here), Some(there)) => {
                    (here.0 - there.0).hypot(here.1 - there.1) <= RANGE_M && other != node
                }
                _ => false,
            };
            self.near[node][other] = is_near;
            self.near[other][node] = is_near;
        }
    }

    /// The number of each machine's island. Machines of an island are connected by machines that
    /// hear each other.
    fn islands(&self) -> Vec<usize> {
        let count = self.places.len();
        let mut islands = vec![usize::MAX; count];
        for first in 0..count {
            if islands[first] != usize::MAX || self.places[first].is_none() {
                continue;
            }
            let mut next = vec![first];
            islands[first] = first;
            while let Some(at) = next.pop() {
                for other in (0..count).filter(|other| self.near[at][*other]) {
                    if islands[other] == usize::MAX {
                        islands[other] = first;
                        next.push(other);
                    }
                }
            }
        }
        islands
    }

    /// Whether what one sends comes to another by the routes of all.
    fn reaches(&self, from: usize, to: usize) -> bool {
        let mut at = from;
        for _ in 0..=self.places.len() {
            if at == to {
                return true;
            }
            match self.hops[at][to] {
                Some(next) if self.near[at][next] => at = next,
                _ => return false,
            }
        }
        false
    }

    /// Looks at each pair.
    fn look(&mut self, now: u64) {
        let islands = self.islands();
        for from in 0..islands.len() {
            for to in (0..islands.len()).filter(|to| *to != from) {
                let has_path = islands[from] != usize::MAX && islands[from] == islands[to];
                if !has_path {
                    self.path[from][to] = None;
                    continue;
                }
                let since = *self.path[from][to].get_or_insert(now);
                if self.reaches(from, to) {
                    self.reached[from][to] = now;
                    self.is_missed[from][to] = false;
                    self.connected += u64::from(now - since >= CONNECTED_US);
                }
                self.samples += u64::from(now - since >= CONNECTED_US);
                let without = now - self.reached[from][to].max(since);
                self.longest = self.longest.max(without);
                if without > CONNECTED_US && !self.is_missed[from][to] {
                    self.is_missed[from][to] = true;
                    self.missed += 1;
                }
            }
        }
    }
}

/// Follows a run, from `begins` on.
fn follow(lines: &[Line], machines: usize, begins: u64) -> Field {
    let mut field = Field::new(machines);
    let mut next = begins;
    for line in lines {
        while line.at > next {
            field.look(next);
            next += STEP_US;
        }
        field.take(line);
    }
    field
}

#[test]
fn who_has_had_a_path_for_three_seconds_is_reached_while_one_comes_or_goes_each_second() {
    let (machines, lasts) = (size("SEALANE_MACHINES", 8), size("SEALANE_MINUTES", 1) * 60);
    let seeds = 1..=size("SEALANE_SEEDS", 1).min(SEEDS_MAX);
    for (loss, seed) in
        [0.0, 0.2].into_iter().flat_map(|loss| seeds.clone().map(move |s| (loss, s)))
    {
        let text = scenario(seed, machines, BEGINS_S + lasts, loss, true);
        let lines = story(&text, seed);
        let field = follow(&lines, machines as usize, 20_000_000);
        let end = lines.last().unwrap();
        let name = format!("churn {machines}, loss {loss}, seed {seed}");
        assert!(end.is("summary") && field.samples > 1000);
        assert_eq!(end.loops, 0, "{name}");
        let demanded = "0 in 100,000 events";
        let is_met = end.events >= 100_000 || machines < 50;
        row(&format!("{name}: loops"), demanded, format!("0 in {}", end.events), is_met);
        let share = 100.0 * field.connected as f64 / field.samples as f64;
        let worst = seconds(field.longest);
        let measured =
            format!("{} times longer, worst {worst:.1} s; {share:.2} % of the time", field.missed);
        let is_met = field.missed == 0;
        wish(&format!("{name}: connected"), "within 3 s of a path", measured, is_met);
    }
}

#[test]
fn routes_stay_where_they_are_though_a_fifth_is_lost() {
    let machines = size("SEALANE_MACHINES", 8);
    let (begins, lasts) = (60, size("SEALANE_MINUTES", 1) * 60);
    let lines = story(&scenario(2, machines, begins + lasts, 0.2, false), 2);
    let mut hops = vec![vec![None; machines as usize]; machines as usize];
    let (mut changes, mut moments) = (0, std::collections::BTreeSet::new());
    for line in lines.iter().filter(|line| line.is("mesh")) {
        let Some(of) = line.of else { continue };
        if line.tells("route-lost") {
            hops[line.node][of] = None;
        } else if line.tells("route") {
            let before: Option<usize> = std::mem::replace(&mut hops[line.node][of], line.via);
            if before.is_some() && before != line.via && line.at >= begins * 1_000_000 {
                changes += 1;
                moments.insert((line.node, line.at));
            }
        }
    }
    let silent = lines.iter().filter(|line| line.tells("next-hop-silent"));
    let silent = silent.filter(|line| line.at >= begins * 1_000_000).count();
    let each = (machines * lasts) as f64 / 60.0;
    let of = |count: usize| count as f64 / each;
    let measured = format!(
        "{:.2}; {:.2} destinations, {:.2} silent",
        of(moments.len()),
        of(changes),
        of(silent)
    );
    let name = format!("{machines} machines that lose 20 %: flaps");
    row(&name, "1 for each and minute", measured, of(moments.len()) <= 1.0);
    assert_eq!(lines.last().unwrap().loops, 0);
}
