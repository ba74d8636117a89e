//! A power cut at random moments under load: what was acknowledged at `disk` is there. The data
//! is on a file system in a file, and a copy of that file is what a power cut leaves behind: what
//! the node wrote and did not sync is not in it.
//!
//! Beside the writers there are consumers of the level `disk`, dead letters, delayed messages,
//! streams that are removed and made again, one whose level changes, and readers that resume, as in
//! survives_kill.rs. Each copy is a future of its own, with what was known when it was made. All of
//! them sync the disk again and again, so that other file systems have the writers alone, or little
//! more than a consumer.
//!
//! The same look at streams of the level `os` must find a loss: otherwise the test would show
//! nothing. `SEALANE_CUTS` says how often, `SEALANE_SEED` repeats the moments.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::durable::cast::Cast;
use crate::durable::disk::{self, Mounted};
use crate::durable::ledger::{Id, Ledger, Place, Reading};
use crate::durable::load::{self, Habit, Pace};
use crate::durable::node::Node;
use crate::durable::random::{self, Random};
use crate::durable::survival::Survival;
use crate::durable::writer::Writer;

const LEVELS: [&str; 2] = ["os", "disk"];
/// So long nobody writes before the power of a quiet node is cut.
const REST: Duration = Duration::from_millis(600);
const POWER_CUT: Survival = Survival(&["disk"]);
const IMAGE_BYTES: u64 = 512 << 20;
/// After so many cuts a fresh file system is taken, so that looking at the copies stays quick.
const CUTS_OF_IMAGE: u64 = 4;

#[test]
#[ignore = "lab: needs root (mounted file systems)"]
fn what_was_acknowledged_at_disk_survives_a_power_cut() {
    let _turn = crate::TURN.blocking_lock();
    disk::require();
    let (cuts, seed) = (load::count("SEALANE_CUTS", 9), random::seed());
    let mut random = Random::new(seed);
    let mut totals = [Totals::default(); 2];
    let mut done = 0;
    for load in LOADS.into_iter().cycle() {
        let count = CUTS_OF_IMAGE.min(cuts.div_ceil(3)).min(cuts - done);
        if count == 0 {
            break;
        }
        let folder = tempfile::tempdir().unwrap();
        let seed = random.next();
        let known = Known { ledger: Ledger::default(), cast: load.cast(seed) };
        let proof = Proof { seed, load, folder: folder.path(), known };
        proof.cut(count, &mut random, &mut totals);
        done += count;
    }
    report(cuts, &totals);
    let [os, disk] = totals;
    assert_eq!(disk.missing, 0);
    assert!(os.missing > 0, "nothing was lost at `os`: these cuts show nothing");
}

#[derive(Debug, Default, Clone, Copy)]
struct Totals {
    acknowledged: u64,
    stored: u64,
    missing: u64,
    /// Cuts after which something was missing.
    lossy: u64,
}

/// The load on a file system.
#[derive(Clone, Copy, PartialEq)]
enum Load {
    /// Everybody at once, which syncs the disk all the time.
    Busy,
    /// Writers alone: the `disk` streams' messages take those of `os` along to the disk, so they
    /// come in bursts, and most cuts lose something.
    Plain,
    /// A consumer and few messages, none at the end: what it acknowledges is not synced by chance
    /// along with messages or with the whole log.
    Quiet,
}

const LOADS: [Load; 3] = [Load::Busy, Load::Plain, Load::Quiet];

impl Load {
    fn cast(self, seed: u64) -> Cast {
        let nobody = Cast::new(seed, POWER_CUT);
        match self {
            Self::Busy => nobody.consumers(&["disk"]).others(&LEVELS),
            Self::Plain => nobody,
            Self::Quiet => nobody.consumers(&["disk"]),
        }
    }

    fn habits(self) -> Vec<Habit> {
        let [os, disk] = LEVELS;
        let pause_ms_max = match self {
            Self::Busy => 60,
            Self::Plain => 240,
            Self::Quiet => return vec![Habit::new(disk, 1, 20)],
        };
        let disk = |batch_max| Habit::new(disk, batch_max, pause_ms_max);
        vec![Habit::new(os, 1, 2), Habit::new(os, 40, 8), disk(1), disk(40)]
    }
}

struct Proof<'a> {
    seed: u64,
    load: Load,
    folder: &'a Path,
    known: Known,
}

/// The facts that are known outside of the node.
#[derive(Clone)]
struct Known {
    // In this order: of whatever the actors know the ledger has known before.
    cast: Cast,
    ledger: Ledger,
}

impl Proof<'_> {
    /// Cuts the power of one node again and again: each copy is a machine that lost it.
    fn cut(&self, cuts: u64, random: &mut Random, totals: &mut [Totals; 2]) {
        let image = self.path("image");
        disk::make(&image, IMAGE_BYTES);
        let mounted = Mounted::new(&image, self.path("mounted"));
        let node = Node::start(&mounted.folder.join("data"), "disk", &self.path("node.log"));
        LEVELS.iter().for_each(|level| node.make(level, level));
        let Known { cast, ledger } = &self.known;
        cast.make(&node);
        let pace = &Pace::default();
        std::thread::scope(|scope| {
            // However this ends, the writers are told, or the scope would wait for them.
            let _told = StopsWriters(pace);
            for habit in self.load.habits() {
                let writer = Writer::new(node.http(), ledger, self.seed);
                let random = Random::new(random.next());
                scope.spawn(move || habit.run(writer, random, pace));
            }
            cast.start(scope, &node, (ledger, random), pace);
            for cut in 1..=cuts {
                std::thread::sleep(Duration::from_millis(random.within(50..700)));
                let _rest = (self.load == Load::Quiet).then(|| pace.rest(REST));
                let at = Instant::now();
                let frozen = Frozen::new(&node);
                let mut known = self.known.clone();
                known.cast.ended(at);
                let copy = self.copy(&image, &mounted);
                self.look(&copy, &mut known, totals);
                if cut == cuts && self.load == Load::Busy {
                    known.cast.report();
                }
                drop(frozen);
            }
        });
        drop(node);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Copies the image as it is at one moment: nothing may be written to it meanwhile.
    fn copy(&self, image: &Path, mounted: &Mounted) -> PathBuf {
        let copy = self.path("copy");
        for _ in 0..10 {
            let before = writes(mounted);
            let (from, to) = (image.to_str().unwrap(), copy.to_str().unwrap());
            disk::run("cp", &["--sparse=always", from, to]);
            if writes(mounted) == before {
                return copy;
            }
        }
        panic!("the image does not come to rest while the node stands still");
    }

    /// Starts a node on the copy, and compares.
    fn look(&self, copy: &Path, known: &mut Known, totals: &mut [Totals; 2]) {
        let mounted = Mounted::new(copy, self.path("restarted"));
        let data = mounted.folder.join("data");
        let node = Node::start(&data, "disk", &self.path("restarted.log"));
        let mut readings = Vec::new();
        for (level, totals) in LEVELS.iter().zip(totals) {
            let acknowledged = &known.ledger.of(level);
            let reading = Reading::of(&mut node.http(), level, self.seed).unwrap();
            let conflict = reading.conflict(acknowledged);
            assert_eq!(conflict, None, "{level}: a place names two messages");
            let missing = reading.missing(acknowledged);
            let old = acknowledged.keys().map(|(generation, _)| *generation).max().unwrap_or(0);
            if *level == "disk" {
                assert_eq!(missing, [], "disk: acknowledged and gone");
                assert_eq!(reading.generation, old, "disk: a new generation without a loss");
            } else {
                assert!(reading.generation > old, "{level}: the generation stayed");
            }
            totals.acknowledged += acknowledged.len() as u64;
            totals.stored += reading.messages.len() as u64;
            totals.missing += missing.len() as u64;
            totals.lossy += u64::from(!missing.is_empty());
            readings.push(reading);
        }
        known.cast.check(&node, &known.ledger);
        for (level, reading) in LEVELS.iter().zip(&readings) {
            self.go_on(&node, level, &known.ledger.of(level), reading);
        }
        drop(node);
        drop(mounted);
        std::fs::remove_file(copy).unwrap();
    }

    /// The restarted node gives places that nobody has seen.
    fn go_on(&self, node: &Node, level: &str, seen: &HashMap<Place, Id>, reading: &Reading) {
        let ledger = Ledger::default();
        let reply = Writer::new(node.http(), &ledger, self.seed).enqueue(level, 5).unwrap();
        assert_eq!(reply.status, 200, "{}", reply.body);
        let places = ledger.of(level);
        assert!(places.keys().all(|place| !seen.contains_key(place)), "{level}: {places:?}");
        let first = places.keys().min();
        assert_eq!(first, Some(&(reading.generation, reading.next)), "{level}: offsets go on");
    }
}

/// How many writes the device of a file system has seen.
fn writes(mounted: &Mounted) -> u64 {
    let device = disk::run("findmnt", &["-n", "-o", "SOURCE", mounted.folder.to_str().unwrap()]);
    let name = device.trim().rsplit('/').next().unwrap_or_default();
    let stat = std::fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
    stat.split_whitespace().nth(4).unwrap().parse().unwrap()
}

fn report(cuts: u64, totals: &[Totals; 2]) {
    println!("\n{cuts} cuts\n");
    println!("level  acknowledged    stored  missing  cuts with a loss");
    for (level, totals) in LEVELS.iter().zip(totals) {
        let Totals { acknowledged, stored, missing, lossy } = totals;
        println!("{level:<6} {acknowledged:>12} {stored:>9} {missing:>8} {lossy:>17}");
    }
}

/// A node that stands still: it issues no writes until this is dropped.
struct Frozen(String);

impl Frozen {
    /// Stops the node. Replies that it has sent are with their writers when this returns.
    fn new(node: &Node) -> Self {
        let frozen = Self(node.process.id().to_string());
        disk::run("kill", &["-STOP", &frozen.0]);
        while !frozen.stands() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(20));
        frozen
    }

    /// Whether every thread has stopped, also those that were within a system call.
    fn stands(&self) -> bool {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.0)).unwrap();
        threads.flatten().all(|thread| {
            let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
        })
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        disk::run("kill", &["-CONT", &self.0]);
    }
}

/// Tells the writers to stop.
struct StopsWriters<'a>(&'a Pace);

impl Drop for StopsWriters<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}
