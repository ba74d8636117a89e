//! Everybody who is at a node beside the plain writers, and the rules that hold for each.

use std::collections::{HashMap, HashSet};
use std::thread::Scope;
use std::time::Instant;

use super::consumer::Work;
use super::delays::Delays;
use super::ledger::{Ledger, Place, Reading};
use super::levels::Levels;
use super::load::{Habit, Pace};
use super::node::Node;
use super::random::Random;
use super::removals::Removals;
use super::resuming::Resuming;
use super::rules;
use super::survival::Survival;
use super::writer::Writer;

/// Members of each consumer.
const MEMBERS: usize = 2;

/// The actors of a run, and what they know. A clone is a future of its own.
#[derive(Clone)]
pub(crate) struct Cast {
    seed: u64,
    survival: Survival,
    /// Consumers of the plain streams, and of those whose messages may become dead letters.
    pub(crate) works: Vec<Work>,
    delays: Vec<Delays>,
    removals: Vec<Removals>,
    levels: Option<Levels>,
    resuming: Vec<Resuming>,
    /// The messages that each consumer may be given again although they were acknowledged.
    unsettled: HashMap<String, HashSet<Place>>,
}

impl Cast {
    /// Nobody yet.
    pub(crate) fn new(seed: u64, survival: Survival) -> Self {
        Self {
            seed,
            survival,
            works: Vec::new(),
            delays: Vec::new(),
            removals: Vec::new(),
            levels: None,
            resuming: Vec::new(),
            unsettled: HashMap::new(),
        }
    }

    /// With consumers of these streams.
    pub(crate) fn consumers(mut self, topics: &[&'static str]) -> Self {
        if rules::on("acks") {
            self.works.extend(topics.iter().map(|topic| Work::new(topic)));
        }
        self
    }

    /// With all others, among them readers of the `plain` streams, which are named by their levels.
    pub(crate) fn others(mut self, plain: &[&'static str]) -> Self {
        let (seed, kept) = (self.seed, self.survival.0);
        if rules::on("letters") {
            self.works.extend(kept.iter().map(|level| Work::strict(&format!("letters/{level}"))));
        }
        if rules::on("delays") {
            let delays = |level| Delays::new(&format!("delays/{level}"), seed);
            self.delays.extend(kept.iter().map(delays));
        }
        if rules::on("removal") {
            let removals = |level| Removals::new(&format!("removals/{level}"), level, seed);
            self.removals.extend(["memory", "os", "disk"].map(removals));
        }
        self.levels = rules::on("levels").then(Levels::default);
        if rules::on("recovered") {
            self.resuming.extend(plain.iter().map(|topic| Resuming::new(topic)));
            self.resuming.extend(self.levels.iter().map(|_| Resuming::new(Levels::TOPIC)));
        }
        self
    }

    /// Makes their streams.
    pub(crate) fn make(&self, node: &Node) {
        let made = |topic: &str| node.make(topic, level(topic));
        self.delays.iter().for_each(|delays| made(&delays.topic));
        self.removals.iter().for_each(|removals| made(&removals.topic));
        for letters in self.works.iter().filter_map(|work| work.letters.as_ref()) {
            made(letters.topic());
            made(letters.topic().trim_start_matches("dead/"));
        }
        self.levels.iter().for_each(|_| node.make(Levels::TOPIC, "disk"));
    }

    /// Starts them all; they go on until they are stopped, or until the node is killed.
    pub(crate) fn start<'s>(
        &'s self,
        scope: &'s Scope<'s, '_>,
        node: &Node,
        (ledger, random): (&'s Ledger, &mut Random),
        pace: &'s Pace,
    ) {
        let writer = || Writer::new(node.http(), ledger, self.seed);
        let mut random = || Random::new(random.next());
        let address = || node.address.clone();
        for work in &self.works {
            for _ in 0..MEMBERS {
                let (address, random) = (address(), random());
                scope.spawn(move || work.members(&address, ledger, random, pace));
            }
            if work.letters.is_some() {
                let (writer, random) = (writer(), random());
                scope.spawn(move || Habit::new(&work.topic, 3, 12).run(writer, random, pace));
            }
        }
        for delays in &self.delays {
            let (http, address, random) = (node.http(), address(), random());
            scope.spawn(move || delays.write(http, random, pace));
            scope.spawn(move || delays.read(&address, ledger, pace));
        }
        for removals in &self.removals {
            let (writer, http, [one, other]) = (writer(), node.http(), [random(), random()]);
            scope.spawn(move || removals.write(writer, one, pace));
            scope.spawn(move || removals.remove(http, other, pace));
        }
        if let Some(levels) = &self.levels {
            let (writer, http, [one, other]) = (writer(), node.http(), [random(), random()]);
            scope.spawn(move || levels.write(writer, one, pace));
            scope.spawn(move || Levels::change(http, other, pace));
        }
        for resuming in &self.resuming {
            let address = address();
            scope.spawn(move || resuming.read(&address, ledger, pace));
        }
    }

    /// The node ended at this moment.
    pub(crate) fn ended(&mut self, at: Instant) {
        let Self { works, unsettled, .. } = self;
        *unsettled = works.iter().map(|work| (work.topic.clone(), work.ended(at))).collect();
    }

    /// Holds a node that was started again to the rules, before anybody writes to it.
    pub(crate) fn check(&mut self, node: &Node, ledger: &Ledger) {
        let mut readings = HashMap::new();
        let streams = self.works.iter().map(|work| &work.topic);
        for topic in streams.chain(self.resuming.iter().map(|resuming| &resuming.topic)) {
            if !readings.contains_key(topic) {
                readings.insert(topic.clone(), self.read(node, ledger, topic));
            }
        }
        for resuming in &self.resuming {
            let whole = self.survival.keeps(&resuming.topic);
            resuming.check(&node.address, &readings[&resuming.topic], ledger, whole);
        }
        if let Some(levels) = &self.levels {
            let reading = self.read(node, ledger, Levels::TOPIC);
            levels.check(&reading, ledger, self.survival);
        }
        for removals in &self.removals {
            removals.check(node, ledger, self.survival);
        }
        for work in &self.works {
            let (topic, reading) = (&work.topic, &readings[&work.topic]);
            if self.survival.keeps(level(topic)) {
                let missing = reading.missing(&ledger.of(topic));
                assert_eq!(missing, [], "{topic}: acknowledged and gone");
            }
            let stored = reading.messages.keys().copied().collect();
            work.drain(node, ledger, &stored, &self.unsettled[&work.topic]);
        }
        self.delays.iter().for_each(|delays| delays.check(node, ledger));
    }

    /// Reads a stream whole, and notes what stands where.
    fn read(&self, node: &Node, ledger: &Ledger, topic: &str) -> Reading {
        let reading = Reading::of(&mut node.http(), topic, self.seed).unwrap();
        for (place, id) in &reading.messages {
            ledger.saw(topic, *place, &id.to_string());
        }
        reading
    }

    /// Prints what was done, all of which must have been.
    pub(crate) fn report(&self) {
        println!("\nconsumer       delivered   acked  nacked  deaths   again  unsettled  letters");
        for work in &self.works {
            let (topic, totals) = (work.topic.as_str(), work.totals());
            let letters = work.letters.as_ref().map(|letters| letters.count());
            println!(
                "{topic:<13} {:>10} {:>7} {:>7} {:>7} {:>7} {:>10} {:>8}",
                totals.deliveries,
                totals.acknowledged,
                totals.returned,
                totals.deaths,
                totals.again,
                totals.unsettled,
                letters.unwrap_or(0),
            );
            let worked = totals.acknowledged > 0 && totals.returned > 0;
            assert!(worked && letters != Some(0), "{topic}: nothing was shown");
        }
        for delays in &self.delays {
            println!("{}: {} promised", delays.topic, delays.promised());
            assert!(delays.promised() > 0);
        }
        for removals in &self.removals {
            println!("{}: {} messages removed for good", removals.topic, removals.gone());
            assert!(removals.gone() > 0);
        }
        if let Some(levels) = &self.levels {
            let [os, disk] = ["os", "disk"].map(|level| levels.kept(level));
            println!("levels: {os} kept that were acknowledged at `os`, {disk} at `disk`");
        }
    }
}

/// The level of a stream, which its name ends with.
fn level(topic: &str) -> &str {
    topic.rsplit('/').next().unwrap_or(topic)
}
