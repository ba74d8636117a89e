//! The hub beside a plain model of it, on a store that fails at any statement.
//!
//! A seed makes batches of requests and of numbered messages, which share commits. It also makes
//! the steps of consumer members between them, trouble of the store, and kills. After a kill the
//! hub is opened again. The hub must answer as the model does, or say that the store failed. A
//! failed request then changes nothing.
//!
//! The requests are of several owners, of which one has small shares. The clock steps, and now and
//! then another process fills the disk.

mod consumers;
mod requests;
mod sessions;
mod shares;
mod world;

use std::path::Path;
use std::time::{Duration, Instant};

use crate::clock::HubClock;
use crate::store::StoreFault;
use crate::{HubConfig, Level, Retention, StreamHub};
use consumers::ModelMembers;
use sessions::ModelPublishers;
use world::ModelWorld;

/// Seeds that have found something, each with what it was.
const KEPT: &[u64] = &[];

/// Numbers that a seed gives.
pub(super) struct ModelRandom(u64);

impl ModelRandom {
    pub(super) fn next(&mut self) -> u64 {
        // SplitMix64, by Guy Steele, Doug Lea and Christine Flood (OOPSLA 2014).
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// Whether one of `n` times.
    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(super) fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// Opens a hub whose messages stay for an hour. No hub of the model runs for ten minutes, so that
/// none may go for its age, whatever the clock does.
fn open(folder: &Path, clock: &HubClock) -> StreamHub {
    let level = Level::Os;
    let retention = Retention { max_age_ms: HOUR_MS as u64, ..Retention::default() };
    let config = HubConfig { folder: folder.to_owned(), level, retention };
    let hub = StreamHub::open_by(config, clock.clone()).unwrap();
    hub.set_shares(shares::rules());
    hub
}

const HOUR_MS: i64 = 3_600_000;

/// Sets the clock by an hour or by forty days, to 1970, to 2053, or right.
fn set_clock(clock: &HubClock, random: &mut ModelRandom) {
    const DAY_MS: i64 = 24 * HOUR_MS;
    const YEAR_1970_MS: i64 = 100_000;
    const YEAR_2053_MS: i64 = 83 * 365 * DAY_MS + 21 * DAY_MS;
    let to = |time_ms: i64| time_ms - clock.day_ms() as i64;
    clock.step(match random.below(8) {
        0 => HOUR_MS,
        1 => -HOUR_MS,
        2 => 40 * DAY_MS,
        3 => -40 * DAY_MS,
        4 => to(YEAR_1970_MS),
        5 => to(YEAR_2053_MS),
        _ => to(clock.steady_ms() as i64),
    });
}

/// Lets the store fail somewhere in the next commits; returns whether another process has filled
/// the disk, and nothing else is wrong.
fn trouble(hub: &StreamHub, random: &mut ModelRandom) -> bool {
    let trouble = &hub.store_trouble;
    let fault = match random.below(3) {
        0 => StoreFault::Full,
        1 => StoreFault::Busy,
        _ => StoreFault::Failed("a test says so".into()),
    };
    let kind = random.below(10);
    match kind {
        0..3 => trouble.set_full(true),
        3 => trouble.set_pages(1),
        4 => trouble.refuse_blocks(true),
        5 => trouble.fail_at(1 + random.below(12), fault, true),
        _ => trouble.fail_at(1 + random.below(40), fault, false),
    }
    kind < 3
}

/// Ends the hub as a kill does: from some statement on nothing is stored any more.
fn kill(hub: StreamHub, random: &mut ModelRandom) {
    let dead = StoreFault::Failed("the process is dead".into());
    hub.store_trouble.fail_at(1 + random.below(20), dead, true);
    // Whether it closes well depends on how many statements that takes.
    let _ = hub.close();
}

/// Runs a seed; returns how many steps it took and how many statements failed.
fn run(seed: u64, steps: u64) -> (u64, u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut random = ModelRandom(seed);
    let mut world = ModelWorld::new(seed);
    let clock = HubClock::system();
    let mut hub = open(folder.path(), &clock);
    let (mut done, mut failed) = (0, 0);
    while done < steps {
        let (mut members, mut publishers) = (ModelMembers::default(), ModelPublishers::default());
        for _ in 0..8 + random.below(12) {
            runtime.block_on(publishers.step(&hub, &mut random));
            let troubled = random.one_in(3);
            world.is_filled = troubled && trouble(&hub, &mut random);
            if random.one_in(8) {
                set_clock(&clock, &mut random);
            }
            let batch = requests::batch(&hub, &publishers, &mut world, &mut random);
            done += runtime.block_on(batch);
            done += runtime.block_on(members.step(&hub, &mut world, &mut random));
            if world.is_filled && random.one_in(4) {
                runtime.block_on(world.flush_acks(&hub));
            }
            if troubled {
                runtime.block_on(world.meet(&hub));
                hub.store_trouble.end();
                world.is_filled = false;
            }
            runtime.block_on(world.check(&hub, &mut random));
        }
        failed += hub.store_trouble.failed();
        if random.one_in(2) {
            runtime.block_on(world.flush(&hub));
        }
        drop((members, publishers));
        if random.one_in(4) {
            world.left(&hub);
            hub.close().unwrap();
        } else {
            world.killed();
            kill(hub, &mut random);
        }
        hub = open(folder.path(), &clock);
        runtime.block_on(world.opened(&hub));
    }
    // A message that is held back until a time ahead comes when that is there.
    clock.step(200 * 365 * 24 * HOUR_MS);
    runtime.block_on(world.end(&hub));
    // Each takes a quarter of a second.
    if seed.is_multiple_of(16) {
        runtime.block_on(world.retain_on_a_filled_disk(&hub));
    }
    hub.close().unwrap();
    (done, failed)
}

/// Waits until `is_so`, but not for ever.
async fn until(what: &str, seed: u64, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(20), "seed {seed}: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// `SEALANE_STEPS` in all, over `SEALANE_SEEDS` seeds from `SEALANE_SEED` on.
#[test]
fn the_hub_does_what_its_model_does_whatever_the_store_does() {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().unwrap())
    };
    let (first, seeds) = (number("SEALANE_SEED", 1), number("SEALANE_SEEDS", 100));
    let steps = number("SEALANE_STEPS", 100_000) / seeds;
    let (mut done, mut failed) = (0, 0);
    let start = Instant::now();
    for seed in KEPT.iter().copied().chain(first..first + seeds) {
        let (more, faults) = run(seed, steps);
        done += more;
        failed += faults;
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("{done} steps over {seeds} seeds, {failed} statements failed, {seconds:.0} s");
    assert!(failed > seeds, "the store hardly failed");
}
