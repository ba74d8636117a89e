//! Time as its driver counts it.

use std::ops::{Add, Sub};

/// Microseconds since a start of the driver's own. It never goes back.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// A length of time in microseconds.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub u64);

impl Time {
    /// How long ago `earlier` was; nothing if it lies ahead.
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// The whole milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1000
    }
}

impl Span {
    /// So many milliseconds.
    pub const fn millis(millis: u64) -> Span {
        Span(millis.saturating_mul(1000))
    }

    /// So many seconds.
    pub const fn seconds(seconds: u64) -> Span {
        Span::millis(seconds.saturating_mul(1000))
    }

    /// The whole milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1000
    }

    /// So many times as long.
    #[must_use]
    pub const fn times(self, count: u64) -> Span {
        Span(self.0.saturating_mul(count))
    }

    /// That part of it.
    #[must_use]
    pub const fn part(self, of: u64) -> Span {
        match self.0.checked_div(of) {
            Some(part) => Span(part),
            None => self,
        }
    }
}

impl Add<Span> for Time {
    type Output = Time;

    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Add for Span {
    type Output = Span;

    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl Sub for Time {
    type Output = Span;

    fn sub(self, earlier: Time) -> Span {
        self.since(earlier)
    }
}
