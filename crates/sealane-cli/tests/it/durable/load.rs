//! Writers that do not rest.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::random::Random;
use super::writer::Writer;

/// Tells everybody at a node to go on, to rest or to stop.
#[derive(Default)]
pub(crate) struct Pace {
    stopped: AtomicBool,
    resting: AtomicBool,
}

impl Pace {
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Whether a writer writes on; it waits here while writers rest.
    pub(crate) fn writes(&self) -> bool {
        while self.resting.load(Ordering::Relaxed) && !self.is_stopped() {
            std::thread::sleep(Duration::from_millis(2));
        }
        !self.is_stopped()
    }

    /// Lets nobody write for a while, and further on until the guard is dropped: what consumers do
    /// in the meantime is not stored along with messages.
    pub(crate) fn rest(&self, time: Duration) -> Rest<'_> {
        self.resting.store(true, Ordering::Relaxed);
        std::thread::sleep(time);
        Rest(self)
    }
}

pub(crate) struct Rest<'a>(&'a Pace);

impl Drop for Rest<'_> {
    fn drop(&mut self) {
        self.0.resting.store(false, Ordering::Relaxed);
    }
}

/// The habit of a writer.
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

    /// Enqueues until it is stopped, or until the connection ends, as it does when the node is
    /// killed.
    pub(crate) fn run(&self, mut writer: Writer<'_>, mut random: Random, pace: &Pace) {
        while pace.writes() {
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
