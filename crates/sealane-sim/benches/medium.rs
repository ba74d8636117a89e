//! The cost of a delivery through the medium at 16 receivers, beside the origin's way. The origin
//! copies a packet of 9,000 bytes by value into the queue of each receiver, and out of it.
//!
//! Rounds are interleaved, so that a disturbance hits both alike; the first are warm-up. `cargo
//! bench -p sealane-sim`.

use std::collections::VecDeque;
use std::hint::black_box;
use std::time::Instant;

use sealane_sim::{Scenario, SimRun, SimWatch};

const RECEIVERS: usize = 16;
const UNIT_BYTES: usize = 1400;
const ROUNDS: usize = 25;
const WARM_UP_ROUNDS: usize = 4;
/// How many times less than the origin's a delivery is to cost.
const DEMANDED: f64 = 20.0;
/// Virtual seconds of a round, with 400 units each.
const SECONDS: u64 = 20;

/// The packet of the origin's simulator, however much of it is used.
#[derive(Clone, Copy)]
struct Packet {
    bytes: [u8; 9000],
    length: usize,
}

fn scenario(fading: u32) -> Scenario {
    let text = format!(
        "version = 1\nduration_s = {SECONDS}\n\
         [[medium]]\nname = \"m\"\nprofile = \"11p\"\nfading = {fading}\n\
         [[node]]\nname = \"sender\"\nkind = \"beacon\"\nmedia = [\"m\"]\n\
         beacon_ms = 3\nbeacon_bytes = {UNIT_BYTES}\n\
         [[node]]\nname = \"receiver\"\ncount = {RECEIVERS}\nkind = \"beacon\"\nmedia = [\"m\"]\n\
         ring_m = 20\nbeacon_ms = 3600000\n"
    );
    Scenario::parse(&text).expect("a scenario")
}

/// Nanoseconds of a delivery: a whole run, with its agenda, its chance and its counts. Receivers do
/// nothing with what they get, as those beside.
fn ours(scenario: &Scenario) -> f64 {
    let run = SimRun::new(scenario.clone(), 1, &[], SimWatch::new()).expect("a run");
    let started = Instant::now();
    let summary = run.finish().expect("it ends").summary;
    started.elapsed().as_nanos() as f64 / black_box(&summary).arrived() as f64
}

/// The same for packets that are copied.
fn origins(queues: &mut [VecDeque<Packet>]) -> f64 {
    let packet = black_box(Packet { bytes: [7; 9000], length: UNIT_BYTES });
    let packets = 2000;
    let mut sum = 0;
    let started = Instant::now();
    for _ in 0..packets {
        for queue in queues.iter_mut() {
            queue.push_back(black_box(packet));
        }
        for queue in queues.iter_mut() {
            let taken = black_box(queue.pop_front().expect("it was put there"));
            sum += usize::from(taken.bytes[taken.length - 1]);
        }
    }
    black_box(sum);
    started.elapsed().as_nanos() as f64 / (packets * queues.len()) as f64
}

/// The tenth, fiftieth and ninetieth of a hundred.
fn percentiles(mut rounds: Vec<f64>) -> [f64; 3] {
    rounds.drain(..WARM_UP_ROUNDS);
    rounds.sort_by(f64::total_cmp);
    [10, 50, 90].map(|percent| rounds[(rounds.len() - 1) * percent / 100])
}

fn main() {
    let (plain, faded) = (scenario(0), scenario(3));
    let mut queues: Vec<VecDeque<Packet>> =
        (0..RECEIVERS).map(|_| VecDeque::with_capacity(32)).collect();
    let [mut a, mut b, mut c] = [vec![], vec![], vec![]];
    for _ in 0..ROUNDS {
        a.push(ours(&plain));
        b.push(ours(&faded));
        c.push(origins(&mut queues));
    }
    println!(
        "ns for each delivery at {RECEIVERS} receivers: the tenth, half, nine tenths of rounds"
    );
    let rows = [
        ("a unit in one place, an edge", percentiles(a)),
        ("the same with fading", percentiles(b)),
        ("9,000 bytes by value, in and out of a queue", percentiles(c)),
    ];
    for (name, [low, half, high]) in rows {
        println!("  {name:<44} {low:8.1} {half:8.1} {high:8.1}");
    }
    let [(_, [_, ours, _]), (_, [_, faded, _]), (_, [_, origins, _])] = rows;
    for (name, ours) in [("an edge", ours), ("fading", faded)] {
        let times = origins / ours;
        let said = if times >= DEMANDED { "met" } else { "MISSED" };
        println!("  with {name}: {times:.1} times less; demanded {DEMANDED} times: {said}");
    }
}
