use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A moment of virtual time: microseconds since the run began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SimTime(pub u64);

/// A stretch of virtual time, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SimSpan(pub u64);

impl SimSpan {
    /// So many milliseconds.
    pub const fn from_ms(ms: u64) -> SimSpan {
        SimSpan(ms.saturating_mul(1_000))
    }

    /// So many seconds.
    pub const fn from_s(s: u64) -> SimSpan {
        SimSpan(s.saturating_mul(1_000_000))
    }

    /// The time that so many bits take, to the next whole microsecond.
    pub const fn of_bits(bits: u64, bits_per_second: u64) -> SimSpan {
        SimSpan((bits.saturating_mul(1_000_000)).div_ceil(bits_per_second))
    }

    /// In seconds.
    pub fn as_s(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl Add<SimSpan> for SimTime {
    type Output = SimTime;

    fn add(self, span: SimSpan) -> SimTime {
        SimTime(self.0.saturating_add(span.0))
    }
}

impl Sub for SimTime {
    type Output = SimSpan;

    /// Nothing, where the other is later.
    fn sub(self, earlier: SimTime) -> SimSpan {
        SimSpan(self.0.saturating_sub(earlier.0))
    }
}

impl Add for SimSpan {
    type Output = SimSpan;

    fn add(self, other: SimSpan) -> SimSpan {
        SimSpan(self.0.saturating_add(other.0))
    }
}

impl AddAssign for SimSpan {
    fn add_assign(&mut self, other: SimSpan) {
        *self = *self + other;
    }
}

impl fmt::Display for SimTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}
