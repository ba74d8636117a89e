//! The width of the wire to a neighbour, where that was found to be less than its link says.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::limits::{MAX_NARROW_MS, MIN_UNIT_BYTES};

/// The width that was found of one neighbour's wire.
#[derive(Debug, Default)]
pub(crate) struct WireWidth {
    /// 0 for as much as the link says.
    unit_bytes: AtomicUsize,
    found: Mutex<Option<Instant>>,
}

impl WireWidth {
    /// The bytes that go at once over a link that says so many bytes.
    #[inline]
    pub(crate) fn of(&self, link_bytes: usize) -> usize {
        match self.unit_bytes.load(Ordering::Relaxed) {
            0 => link_bytes,
            narrow => self.narrow_of(narrow, link_bytes),
        }
    }

    /// A wire may be as wide as its link again after a while (RFC 1191 §6.3).
    #[cold]
    fn narrow_of(&self, narrow: usize, link_bytes: usize) -> usize {
        let mut found = self.found.lock();
        let is_old = |since: &Instant| since.elapsed() >= Duration::from_millis(MAX_NARROW_MS);
        // The old width is forgotten, not raised in steps. One refusal finds a wire that is still
        // narrow.
        if found.as_ref().is_none_or(is_old) {
            *found = None;
            self.unit_bytes.store(0, Ordering::Relaxed);
            return link_bytes;
        }
        narrow.min(link_bytes)
    }

    /// Notes that a unit of so many bytes was too long; gives whether shorter ones can be tried.
    #[cold]
    pub(crate) fn narrow(&self, unit_bytes: usize) -> bool {
        // ICMP can be forged. The width goes down in steps, and no lie makes it smaller than
        // `MIN_UNIT_BYTES`: a lie costs fragments and nothing else.
        if unit_bytes <= MIN_UNIT_BYTES {
            return false;
        }
        let mut found = self.found.lock();
        let before = self.unit_bytes.load(Ordering::Relaxed);
        let next = (unit_bytes - unit_bytes / 8).max(MIN_UNIT_BYTES);
        // Another thread may have found less meanwhile.
        let next = if found.is_some() && before > 0 { before.min(next) } else { next };
        // The width is written under the lock that holds its time. Readers need only some value, so
        // relaxed is enough.
        self.unit_bytes.store(next, Ordering::Relaxed);
        *found = Some(Instant::now());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wire_is_as_wide_as_its_link_until_it_is_found_narrower() {
        let width = WireWidth::default();
        assert_eq!((width.of(1472), width.of(65_507)), (1472, 65_507));
        assert!(width.narrow(1472));
        assert_eq!((width.of(1472), width.of(1000)), (1288, 1000));
        assert!(width.narrow(1472), "another thread had not seen it");
        assert_eq!(width.of(1472), 1288);
        let mut unit_bytes = 1288;
        while width.narrow(unit_bytes) {
            assert!(width.of(1472) < unit_bytes, "{unit_bytes}");
            unit_bytes = width.of(1472);
        }
        assert_eq!(unit_bytes, MIN_UNIT_BYTES);
    }

    #[test]
    fn what_was_found_is_forgotten_after_a_while() {
        let width = WireWidth::default();
        assert!(width.narrow(1472));
        let long_ago = Instant::now().checked_sub(Duration::from_millis(MAX_NARROW_MS));
        *width.found.lock() = Some(long_ago.expect("the machine runs for longer"));
        assert_eq!(width.of(1472), 1472);
        assert!(width.narrow(1472));
        assert_eq!(width.of(1472), 1288);
    }
}
