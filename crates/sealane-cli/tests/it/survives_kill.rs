//! `kill -9` at random moments under load: what was acknowledged at `os` and `disk` is there, at
//! its offset, and what a consumer has not acknowledged comes again. `memory` says by a new
//! generation that it may have lost something.
//!
//! Beside the writers there are consumers whose members give back and die, dead letters, delayed
//! messages, a stream that is removed and made again, one whose level changes, and readers that
//! resume: durable/cast.rs. Over all lives of the node no place may name two messages.
//!
//! `SEALANE_KILLS` says how often, `SEALANE_SEED` repeats the moments of a run as far as the
//! scheduler allows.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use crate::durable::cast::Cast;
use crate::durable::ledger::{Id, Ledger, Place, Reading};
use crate::durable::load::{self, Habit, Pace};
use crate::durable::node::Node;
use crate::durable::random::{self, Random};
use crate::durable::survival::Survival;
use crate::durable::writer::Writer;

const LEVELS: [&str; 3] = ["memory", "os", "disk"];
/// The level that is acknowledged at the moment of a kill, if any. Mostly it is the level whose
/// messages are committed next and are not synced. Only the moment of the kill tells whether the
/// node answered them too early.
const LAST: [Option<&str>; 5] = [None, Some("memory"), Some("os"), Some("os"), Some("disk")];
/// Before some kills nobody writes for so long: what consumers do is to be stored all the same.
const REST: Duration = Duration::from_millis(700);
const KILL: Survival = Survival(&["os", "disk"]);

#[test]
fn what_was_acknowledged_survives_kill() {
    let _turn = crate::TURN.blocking_lock();
    let (kills, seed) = (load::count("SEALANE_KILLS", 8), random::seed());
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random::new(seed);
    let mut proof = Proof::new(seed);
    let mut node = proof.start(folder.path());
    LEVELS.iter().for_each(|level| node.make(level, level));
    proof.cast.make(&node);
    for _ in 0..kills {
        let load = Duration::from_millis(random.within(50..700));
        let killed = proof.load(node, load, &mut random);
        node = proof.start(folder.path());
        proof.revisit(&node);
        proof.cast.ended(killed);
        proof.check(&node);
    }
    proof.report(kills);
}

/// The facts that are known outside of the node.
struct Proof {
    seed: u64,
    ledger: Ledger,
    cast: Cast,
    /// The messages of each stream when it was last read.
    readings: HashMap<String, Reading>,
    /// Acknowledged in memory, and lost by a kill.
    lost: HashMap<String, HashSet<Place>>,
    /// Streams that were made by a message at `memory` since the last kill.
    fleeting: std::ops::Range<u64>,
    slowest_start: Duration,
}

impl Proof {
    fn new(seed: u64) -> Self {
        Self {
            seed,
            ledger: Ledger::default(),
            cast: Cast::new(seed, KILL).consumers(&LEVELS).others(&LEVELS),
            readings: HashMap::new(),
            lost: HashMap::new(),
            fleeting: 0..0,
            slowest_start: Duration::ZERO,
        }
    }

    fn start(&mut self, folder: &std::path::Path) -> Node {
        let began = Instant::now();
        let node = Node::start(&folder.join("data"), "memory", &folder.join("node.log"));
        self.slowest_start = self.slowest_start.max(began.elapsed());
        node
    }

    /// Loads the node for a while and kills it; returns when. Mostly that is the moment at which
    /// something has been acknowledged, when the node has had least time to keep it.
    fn load(&mut self, node: Node, load: Duration, random: &mut Random) -> Instant {
        let last = LAST[random.within(0..LAST.len() as u64) as usize];
        let mut last_writer = Writer::new(node.http(), &self.ledger, self.seed);
        let pace = &Pace::default();
        let made = &mut self.fleeting.end;
        let (ledger, cast) = (&self.ledger, &self.cast);
        std::thread::scope(|scope| {
            for (level, batch_max, pause_ms_max) in
                LEVELS.iter().flat_map(|level| [(level, 1, 4), (level, 120, 40)])
            {
                let writer = Writer::new(node.http(), ledger, self.seed);
                let random = Random::new(random.next());
                scope.spawn(move || {
                    Habit::new(level, batch_max, pause_ms_max).run(writer, random, pace)
                });
            }
            let mut maker = Writer::new(node.http(), ledger, self.seed);
            scope.spawn(move || {
                while maker.enqueue(&format!("fleeting/{made}"), 1).is_ok() {
                    *made += 1;
                    std::thread::sleep(Duration::from_millis(3));
                }
            });
            cast.start(scope, &node, (ledger, random), pace);
            std::thread::sleep(load);
            let rest = random.within(0..3) == 0;
            let _rest = rest.then(|| pace.rest(REST));
            let mut killed = None;
            let kill = || {
                killed = Some(Instant::now());
                drop(node);
            };
            match last {
                Some(level) => drop(last_writer.enqueue_then(level, 1, kill).unwrap()),
                None => kill(),
            }
            pace.stop();
            killed.unwrap()
        })
    }

    /// A stream that was made just before the kill may be unknown to the store. Its next message
    /// must not get the place of a lost one: the ledger refuses it.
    fn revisit(&mut self, node: &Node) {
        let mut writer = Writer::new(node.http(), &self.ledger, self.seed);
        for number in self.fleeting.clone() {
            let reply = writer.enqueue(&format!("fleeting/{number}"), 1).unwrap();
            assert_eq!(reply.status, 200, "{}", reply.body);
        }
        self.fleeting.start = self.fleeting.end;
    }

    /// Reads everything that the restarted node has.
    fn check(&mut self, node: &Node) {
        for topic in LEVELS {
            let reading = Reading::of(&mut node.http(), topic, self.seed).unwrap();
            self.compare(topic, &reading);
            self.readings.insert(topic.to_owned(), reading);
        }
        self.cast.check(node, &self.ledger);
    }

    fn compare(&mut self, topic: &str, reading: &Reading) {
        let acknowledged = self.ledger.of(topic);
        assert_eq!(reading.conflict(&acknowledged), None, "{topic}: a place names two messages");
        let lost = self.lost.entry(topic.to_owned()).or_default();
        let missing: Vec<(Place, Id)> = reading.missing(&acknowledged);
        let before = self.readings.remove(topic).unwrap_or_default();
        assert_eq!(reading.missing(&before.messages), [], "{topic}: read before, now gone");
        if topic == "memory" {
            assert!(reading.generation > before.generation, "memory: the generation stayed");
            lost.extend(missing.into_iter().map(|(place, _)| place));
        } else {
            assert_eq!(missing, [], "{topic}: acknowledged and gone");
            let same = before.generation == 0 || before.generation == reading.generation;
            assert!(same, "{topic}: a new generation without a loss");
        }
    }

    fn report(&self, kills: u64) {
        println!("\n{kills} kills, the slowest restart took {:?}\n", self.slowest_start);
        println!("level   acknowledged    stored   lost");
        for topic in LEVELS {
            let acknowledged = self.ledger.of(topic).len();
            let (stored, lost) = (self.readings[topic].messages.len(), self.lost[topic].len());
            println!("{topic:<7} {acknowledged:>12} {stored:>9} {lost:>6}");
        }
        self.cast.report();
        let again = self.cast.works.iter().all(|work| work.totals().again > 0);
        assert!(again, "nothing that was not acknowledged came again");
        println!("\n{} streams were made by their first message", self.fleeting.end);
    }
}

#[test]
fn a_lost_changed_or_doubled_message_is_found() {
    let id = |index| Id { writer: 1, request: 2, index, of: 3 };
    let acknowledged: HashMap<Place, Id> = (0..3).map(|n| ((7, n), id(n))).collect();
    let whole = Reading { generation: 7, next: 3, messages: acknowledged.clone() };
    assert_eq!(whole.missing(&acknowledged), []);
    let mut lossy = whole.clone();
    lossy.messages.remove(&(7, 1));
    assert_eq!(lossy.missing(&acknowledged), [((7, 1), id(1))]);
    let mut swapped = whole.clone();
    swapped.messages.insert((7, 2), id(0));
    assert_eq!(swapped.missing(&acknowledged), [((7, 2), id(2))]);
    assert_eq!(swapped.conflict(&acknowledged), Some(((7, 2), id(0), id(2))));
}

#[test]
#[should_panic(expected = "named another message before")]
fn a_place_that_is_seen_with_two_messages_is_found() {
    let ledger = Ledger::default();
    ledger.saw("a", (7, 1), "one");
    ledger.saw("a", (7, 1), "one");
    ledger.saw("b", (7, 1), "two");
    ledger.saw("a", (8, 1), "two");
    ledger.clone().saw("a", (7, 1), "two");
}
