//! Time as its driver counts it.

use std::ops::{Add, Sub};

/// Microseconds since a start of the driver's own. It never goes back.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MeshTime(pub u64);

/// A length of time in microseconds.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MeshSpan(pub u64);

impl MeshTime {
    /// How long ago `earlier` was; nothing if it lies ahead.
    pub const fn since(self, earlier: MeshTime) -> MeshSpan {
        MeshSpan(self.0.saturating_sub(earlier.0))
    }

    /// The whole milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1000
    }
}

impl MeshSpan {
    /// So many milliseconds.
    pub const fn millis(millis: u64) -> MeshSpan {
        MeshSpan(millis.saturating_mul(1000))
    }

    /// So many seconds.
    pub const fn seconds(seconds: u64) -> MeshSpan {
        MeshSpan::millis(seconds.saturating_mul(1000))
    }

    /// The whole milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1000
    }

    /// So many times as long.
    #[must_use]
    pub const fn times(self, count: u64) -> MeshSpan {
        MeshSpan(self.0.saturating_mul(count))
    }

    /// That part of it.
    #[must_use]
    pub const fn part(self, of: u64) -> MeshSpan {
        match self.0.checked_div(of) {
            Some(part) => MeshSpan(part),
            None => self,
        }
    }
}

impl Add<MeshSpan> for MeshTime {
    type Output = MeshTime;

    fn add(self, span: MeshSpan) -> MeshTime {
        MeshTime(self.0.saturating_add(span.0))
    }
}

impl Add for MeshSpan {
    type Output = MeshSpan;

    fn add(self, other: MeshSpan) -> MeshSpan {
        MeshSpan(self.0.saturating_add(other.0))
    }
}

impl Sub for MeshTime {
    type Output = MeshSpan;

    fn sub(self, earlier: MeshTime) -> MeshSpan {
        self.since(earlier)
    }
}
