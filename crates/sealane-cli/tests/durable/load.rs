//! Writers that do not rest.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::random::Random;
use crate::writer::Writer;

/// What a writer does again and again.
pub(crate) struct Habit {
    pub(crate) topic: String,
    /// Messages of one request, at most.
    pub(crate) batch_max: u64,
    /// The pause after a request, at most, in milliseconds.
    pub(crate) pause_ms_max: u64,
}

impl Habit {
    pub(crate) fn new(topic: &str, batch_max: u64, pause_ms_max: u64) -> Self {
        Self { topic: topic.to_owned(), batch_max, pause_ms_max }
    }

    /// Enqueues until `stop`, or until the connection ends, as it does when the node is killed.
    pub(crate) fn run(&self, mut writer: Writer<'_>, mut random: Random, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            let count = random.within(1..self.batch_max + 1);
            let Ok(reply) = writer.enqueue(&self.topic, count) else { break };
            assert_eq!(reply.status, 200, "{}", reply.body);
            let pause_ms = random.within(0..self.pause_ms_max + 1);
            std::thread::sleep(Duration::from_millis(pause_ms));
        }
    }
}

/// How often something is done: the number in the environment, or `default`.
pub(crate) fn count(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect(variable))
}
