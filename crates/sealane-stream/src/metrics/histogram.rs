//! How long things took, by buckets: taken down without a lock, many at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds of the buckets but the last, which has none, in microseconds.
const BOUNDS_US: [u64; 17] = [
    100,
    200,
    500,
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    30_000_000,
    300_000_000,
];

/// The durations that were recorded so far. The library that writes metrics has histograms as well.
/// They lock for each value and take one value at a time.
#[derive(Debug, Default)]
pub struct TimingHistogram {
    bounded: [AtomicU64; BOUNDS_US.len()],
    beyond: AtomicU64,
    sum_us: AtomicU64,
}

/// How often something took up to so long, and longer than the bucket before says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HistogramBucket {
    /// In seconds; infinite in the last one.
    pub upper: f64,
    /// How often.
    pub count: u64,
}

/// The values of a histogram at one time.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramSpread {
    /// By ascending bounds.
    pub buckets: Vec<HistogramBucket>,
    /// All times together, in seconds.
    pub sum: f64,
}

impl TimingHistogram {
    /// Takes down that something took so long.
    pub fn note(&self, took: Duration) {
        self.note_many(took, 1);
    }

    /// Takes down that something took so long, so many times.
    pub fn note_many(&self, took: Duration, count: u64) {
        let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let index = BOUNDS_US.partition_point(|bound| *bound < took_us);
        let bucket = self.bounded.get(index).unwrap_or(&self.beyond);
        // Two relaxed additions take no lock. A reader may see a count without its sum, which a
        // metric can bear.
        bucket.fetch_add(count, Ordering::Relaxed);
        self.sum_us.fetch_add(took_us.saturating_mul(count), Ordering::Relaxed);
    }

    /// The durations that were recorded so far.
    pub fn read(&self) -> HistogramSpread {
        let uppers = BOUNDS_US.iter().map(|bound| *bound as f64 / 1e6).chain([f64::INFINITY]);
        let counts = self.bounded.iter().chain([&self.beyond]);
        let bucket = |(upper, count): (f64, &AtomicU64)| {
            let count = count.load(Ordering::Relaxed);
            HistogramBucket { upper, count }
        };
        let sum = self.sum_us.load(Ordering::Relaxed) as f64 / 1e6;
        HistogramSpread { buckets: uppers.zip(counts).map(bucket).collect(), sum }
    }
}

impl HistogramSpread {
    /// How many times were taken down.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_is_in_the_first_bucket_that_holds_it() {
        let histogram = TimingHistogram::default();
        let at = |us| Duration::from_micros(us);
        for us in [0, 100, 101, 1_000, 300_000_000, 300_000_001] {
            histogram.note(at(us));
        }
        histogram.note_many(at(1_500), 10);
        let spread = histogram.read();
        let counted = |upper: f64| {
            spread.buckets.iter().find(|bucket| bucket.upper == upper).map(|bucket| bucket.count)
        };
        assert_eq!(counted(0.0001), Some(2));
        assert_eq!(counted(0.0002), Some(1));
        assert_eq!(counted(0.001), Some(1));
        assert_eq!(counted(0.002), Some(10));
        assert_eq!(counted(300.0), Some(1));
        assert_eq!(counted(f64::INFINITY), Some(1));
        assert_eq!(spread.count(), 16);
        assert!((spread.sum - 600.016_202).abs() < 1e-6, "{}", spread.sum);
        assert!(spread.buckets.is_sorted_by(|a, b| a.upper < b.upper));
    }

    #[test]
    fn a_time_that_is_longer_than_time_breaks_nothing() {
        let histogram = TimingHistogram::default();
        histogram.note_many(Duration::MAX, u64::MAX);
        assert_eq!(histogram.read().count(), u64::MAX);
    }
}
