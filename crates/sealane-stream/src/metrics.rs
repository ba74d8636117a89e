//! The hub's counters and timings, of all streams together and of those that have series of their
//! own.

mod histogram;
mod series;

use std::sync::atomic::{AtomicU64, Ordering};

pub use histogram::{HistogramBucket, HistogramSpread, TimingHistogram};
pub(crate) use series::{ConsumerCounts, OwnSeries, SeriesPlaces, StreamCounts, figures};
pub use series::{ConsumerFigures, SeriesFigures, StreamFigures};

/// A counter that has no labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HubCounter {
    /// The metric's name.
    pub name: &'static str,
    /// The text that describes the counter.
    pub help: &'static str,
    /// How many there were.
    pub value: u64,
}

/// How long something took, each time.
#[derive(Debug, Clone, PartialEq)]
pub struct HubTiming {
    /// The metric's name.
    pub name: &'static str,
    /// The text that describes the timing.
    pub help: &'static str,
    /// How long it took.
    pub spread: HistogramSpread,
}

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident = $metric:literal;)+) => {
        /// The hub's counters; all of them only grow.
        #[derive(Debug, Default)]
        pub struct Metrics {
            $($(#[doc = $doc])+ pub $name: AtomicU64,)+
        }

        impl Metrics {
            /// Each counter.
            pub fn all(&self) -> Vec<HubCounter> {
                vec![$(HubCounter {
                    name: $metric,
                    help: concat!($($doc),+).trim_ascii_start(),
                    value: self.$name.load(Ordering::Relaxed),
                },)+]
            }
        }
    };
}

macro_rules! timings {
    ($($(#[doc = $doc:literal])+ $name:ident = $metric:literal;)+) => {
        /// How long the hub takes, and how long others take for what it gives them.
        #[derive(Debug, Default)]
        pub struct Timings {
            $($(#[doc = $doc])+ pub $name: TimingHistogram,)+
        }

        impl Timings {
            /// Each of them.
            pub fn all(&self) -> Vec<HubTiming> {
                vec![$(HubTiming {
                    name: $metric,
                    help: concat!($($doc),+).trim_ascii_start(),
                    spread: self.$name.read(),
                },)+]
            }
        }
    };
}

counters! {
    /// Messages stored.
    stored = "sealane_stream_stored_total";
    /// Messages of sealed streams stored.
    stored_sealed = "sealane_stream_stored_sealed_total";
    /// Commits of the store.
    commits = "sealane_stream_commits_total";
    /// Commits that failed; nothing of them was acknowledged.
    failed_commits = "sealane_stream_failed_commits_total";
    /// Deliveries handed to connections, redeliveries included.
    delivered = "sealane_stream_delivered_total";
    /// Deliveries that were not the first of their message to their consumer.
    redelivered = "sealane_stream_redelivered_total";
    /// Acknowledgements that ended a delivery.
    acked = "sealane_stream_acked_total";
    /// Acknowledgements of what was not in flight to their connection.
    acked_in_vain = "sealane_stream_acked_in_vain_total";
    /// Messages set back by nack.
    nacked = "sealane_stream_nacked_total";
    /// Messages put into deliver frames; once per codec that is read, however many read it.
    encoded = "sealane_codec_encoded_total";
    /// Messages removed by retention and purges.
    retired = "sealane_stream_retired_total";
    /// Messages removed by retention and purges before a consumer was done with them.
    expired = "sealane_stream_expired_total";
    /// Dead letters stored.
    dead_lettered = "sealane_stream_dead_lettered_total";
    /// Messages out of attempts for which there can be no dead letter.
    dead_dropped = "sealane_stream_dead_dropped_total";
    /// Messages found damaged.
    damaged = "sealane_stream_damaged_total";
    /// Blocks read from disk for readers who catch up.
    blocks_read = "sealane_stream_blocks_read_total";
}

timings! {
    /// Commits, from what is planned to what is settled, the fsync included.
    commit = "sealane_stream_commit_seconds";
    /// Messages, from their storing to their first delivery to a consumer.
    consumer_delivery = "sealane_stream_consumer_delivery_seconds";
    /// Messages, from their storing to their delivery to a reader.
    reader_delivery = "sealane_stream_reader_delivery_seconds";
    /// Deliveries to consumers, from there to their acknowledgement; those of a range count as its
    /// first.
    acknowledgement = "sealane_stream_acknowledgement_seconds";
}
