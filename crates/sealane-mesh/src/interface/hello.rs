//! The pace of hellos on an interface, and what they say beside the neighbours.

use std::collections::VecDeque;

use crate::budget::ChannelPressure;
use crate::hello::{DIGEST_BYTES, INTERVAL_STEP};
use crate::{MeshSpan, MeshTime};

/// When hellos go, and which were sent.
#[derive(Debug)]
pub(crate) struct HelloClock {
    /// How often hellos are sent, and how often where few are in reach.
    pub(crate) interval: MeshSpan,
    least_interval: MeshSpan,
    /// How often on a free channel.
    free_interval: MeshSpan,
    /// When the next one goes.
    pub(crate) at: MeshTime,
    told: MeshTime,
    /// Hellos that were sent since the interface came up.
    sent: u64,
    /// The time stamps of the last hellos, and when they were sent.
    stamps: VecDeque<(u32, MeshTime)>,
    /// The digest of documents that hellos have, and how many hellos have come with it or without.
    digest: (Option<[u8; DIGEST_BYTES]>, u64),
}

impl HelloClock {
    pub(super) fn new(interval: MeshSpan, now: MeshTime) -> Self {
        Self {
            interval,
            least_interval: interval,
            free_interval: interval,
            at: now,
            told: now,
            sent: 0,
            stamps: VecDeque::new(),
            digest: (None, 0),
        }
    }

    /// Takes how often hellos would go on a free channel that takes `pause` for them.
    pub(super) fn pace(&mut self, pause: MeshSpan, press: ChannelPressure) {
        self.free_interval = pause.max(self.least_interval);
        self.press(press);
    }

    /// Has hellos come less often where the channel is busy. They give way to what people send, and
    /// not the other way round.
    pub(super) fn press(&mut self, press: ChannelPressure) {
        self.interval = press.stretch(self.free_interval).min(INTERVAL_MAX);
    }

    #[cfg(test)]
    pub(super) fn is_stretched(&self) -> bool {
        self.interval > self.free_interval
    }

    /// Has the next hello come sooner, but `rest` after the last one at the earliest.
    pub(super) fn hasten(&mut self, at: MeshTime, rest: MeshSpan) {
        // Before the first hello nobody knows this machine, and there is no last one to keep away
        // from.
        let is_first = self.sent == 0;
        self.at = self.at.min(if is_first { at } else { at.max(self.told + rest) });
    }

    /// Counts a hello that goes now, and gives how many there were.
    pub(super) fn count(&mut self, now: MeshTime, next: MeshTime) -> u64 {
        self.sent += 1;
        (self.told, self.at) = (now, next);
        self.sent
    }

    /// Remembers the time stamp of a hello.
    pub(crate) fn stamped(&mut self, stamp: u32, now: MeshTime) {
        if self.stamps.len() == STAMPS {
            self.stamps.pop_front();
        }
        self.stamps.push_back((stamp, now));
    }

    /// When the hello with that time stamp was sent.
    pub(crate) fn stamp(&self, stamp: u32) -> Option<MeshTime> {
        self.stamps.iter().find(|(one, _)| *one == stamp).map(|(_, at)| *at)
    }

    /// The digest of documents in the next hello. Where air time is scarce, the same digest stands
    /// in three hellos, and then now and then.
    pub(super) fn digest_to_tell(
        &mut self,
        digest: Option<[u8; DIGEST_BYTES]>,
        is_scarce: bool,
    ) -> Option<[u8; DIGEST_BYTES]> {
        if self.digest.0 != digest {
            self.digest = (digest, 0);
        }
        let hellos = self.digest.1;
        self.digest.1 += 1;
        let is_told = hellos < DIGESTS_FIRST || hellos.is_multiple_of(DIGEST_HELLOS);
        digest.filter(|_| is_told || !is_scarce)
    }
}

/// When the machine announces itself on an interface.
#[derive(Debug)]
pub(crate) struct AnnouncementClock {
    pub(crate) at: Option<MeshTime>,
    told: Option<MeshTime>,
    /// The announcement that went in parts last, and when it did so first.
    pub(crate) in_parts: Option<(u16, MeshTime)>,
}

impl AnnouncementClock {
    pub(super) fn new(now: MeshTime) -> Self {
        Self { at: Some(now), told: None, in_parts: None }
    }

    pub(super) fn hasten(&mut self, at: MeshTime, rest: MeshSpan) {
        let least = self.told.map_or(at, |told| told + rest);
        let at = at.max(least);
        self.at = Some(self.at.map_or(at, |known| known.min(at)));
    }

    /// Notes that the machine has announced itself.
    pub(crate) fn told(&mut self, now: MeshTime) {
        (self.told, self.at) = (Some(now), None);
    }
}

/// The longest hello interval that a hello can say.
pub(super) const INTERVAL_MAX: MeshSpan = INTERVAL_STEP.times(u16::MAX as u64);
/// Where air time is scarce, so many hellos have a digest that is new, and then one of so many.
const DIGESTS_FIRST: u64 = 3;
const DIGEST_HELLOS: u64 = 2;
/// Time stamps that are remembered.
const STAMPS: usize = 64;
