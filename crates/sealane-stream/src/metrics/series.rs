//! Which streams and consumers have series of their own, and what is counted of each.
//!
//! There are so many places. A stream takes one when it comes, those that are there when the hub is
//! opened by their age, and keeps it until it is removed. A consumer does the same, whether its
//! stream has one or not. Who has none is counted with all others that have none, and is so from
//! its first message to its last: no counter ever falls because somebody comes or goes.
//!
//! Of the consumers without a place those with most unfinished messages have gauges all the same:
//! an alert must see the one that stands, however many came before it. Gauges may come and go.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crate::limits::{MAX_METRIC_BEHIND, MAX_METRIC_CONSUMERS, MAX_METRIC_STREAMS};
use crate::registry::StreamRegistry;
use crate::stream::{ConsumerEntry, StreamEntry};

/// The counts of a stream.
#[derive(Debug, Default)]
pub(crate) struct StreamCounts {
    pub(crate) stored: AtomicU64,
    pub(crate) delivered: AtomicU64,
}

/// The counts of a consumer.
#[derive(Debug, Default)]
pub(crate) struct ConsumerCounts {
    pub(crate) redelivered: AtomicU64,
    pub(crate) acked: AtomicU64,
    pub(crate) dead_lettered: AtomicU64,
}

/// Counts that have a series of their own, once it was asked for and there was a place.
#[derive(Debug, Default)]
pub(crate) struct OwnSeries<C> {
    counts: C,
    place: OnceLock<Option<SeriesPlace>>,
}

impl<C> OwnSeries<C> {
    fn is_shown(&self) -> bool {
        matches!(self.place.get(), Some(Some(_)))
    }

    /// Gives the place back. What still happens is counted where it was, and shown no more.
    fn leave(&self) {
        if let Some(Some(place)) = self.place.get() {
            place.leave();
        }
    }

    fn or<'a>(&'a self, others: &'a C) -> &'a C {
        if self.is_shown() { &self.counts } else { others }
    }
}

/// One of a bounded number, given back once: when it is left, at the latest when it is dropped.
#[derive(Debug)]
struct SeriesPlace {
    taken: Arc<AtomicUsize>,
    is_left: AtomicBool,
}

impl SeriesPlace {
    fn take(taken: &Arc<AtomicUsize>, limit: usize) -> Option<SeriesPlace> {
        let more = |taken: usize| (taken < limit).then_some(taken + 1);
        let is_taken = taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        let place = || SeriesPlace { taken: taken.clone(), is_left: AtomicBool::new(false) };
        is_taken.is_ok().then(place)
    }

    fn leave(&self) {
        if !self.is_left.swap(true, Ordering::Relaxed) {
            self.taken.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for SeriesPlace {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The places, and the counts of those who have none.
#[derive(Debug, Default)]
pub(crate) struct SeriesPlaces {
    streams: Arc<AtomicUsize>,
    consumers: Arc<AtomicUsize>,
    other_streams: StreamCounts,
    other_consumers: ConsumerCounts,
}

impl SeriesPlaces {
    /// Gives a stream that is new here a place, if there is one, and so its consumers.
    pub(crate) fn admit(&self, stream: &StreamEntry) {
        let place = || SeriesPlace::take(&self.streams, MAX_METRIC_STREAMS);
        stream.counts.place.get_or_init(place);
        let consumers: Vec<_> = stream.state.lock().consumers.values().cloned().collect();
        consumers.iter().for_each(|entry| self.admit_consumer(entry));
    }

    /// The same of a consumer. To ask again changes nothing.
    pub(crate) fn admit_consumer(&self, entry: &ConsumerEntry) {
        let take = || SeriesPlace::take(&self.consumers, MAX_METRIC_CONSUMERS);
        entry.counts.place.get_or_init(take);
    }

    /// Takes the places of a stream that was removed and of its consumers. Its readers may hold the
    /// stream for long after, and whoever comes next finds the places free.
    pub(crate) fn dismiss(&self, stream: &StreamEntry) {
        stream.counts.leave();
        stream.state.lock().consumers.values().for_each(|entry| entry.counts.leave());
    }

    /// The same of a consumer that was removed alone.
    pub(crate) fn dismiss_consumer(&self, entry: &ConsumerEntry) {
        entry.counts.leave();
    }

    /// Where to count what a stream does.
    pub(crate) fn of<'a>(&'a self, stream: &'a StreamEntry) -> &'a StreamCounts {
        stream.counts.or(&self.other_streams)
    }

    /// Where to count what a consumer does.
    pub(crate) fn of_consumer<'a>(&'a self, entry: &'a ConsumerEntry) -> &'a ConsumerCounts {
        entry.counts.or(&self.other_consumers)
    }
}

/// The figures of a stream, or of all streams together that have no series of their own.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct StreamFigures {
    /// The topic; of others none.
    pub stream: Option<String>,
    /// Messages that can be read.
    pub messages: u64,
    /// Their bytes at rest.
    pub bytes: u64,
    /// Connections that read for themselves.
    pub readers: u64,
    /// Messages stored since the hub was opened.
    pub stored: u64,
    /// Deliveries since then.
    pub delivered: u64,
}

/// The figures of a consumer, or of all consumers together that have no series of their own.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ConsumerFigures {
    /// The topic of its stream; of others none.
    pub stream: Option<String>,
    /// Its name.
    pub consumer: String,
    /// Messages that it was not given yet.
    pub lag: u64,
    /// Messages that it was given and is not done with.
    pub in_flight: u64,
    /// For how long the oldest message that is not done has been stored, in milliseconds; of others
    /// it is not looked for.
    pub oldest_ms: u64,
    /// Whether its counters are its own. Those of a consumer without a place count as others'.
    pub is_counted: bool,
    /// Connections that share it.
    pub members: u64,
    /// Redeliveries since the hub was opened.
    pub redelivered: u64,
    /// Acknowledgements since then.
    pub acked: u64,
    /// Dead letters since then.
    pub dead_lettered: u64,
}

/// Figures by stream and by consumer; the last of each are of all others.
#[derive(Debug, Default)]
pub struct SeriesFigures {
    /// At most [`MAX_METRIC_STREAMS`] and one.
    pub streams: Vec<StreamFigures>,
    /// At most [`MAX_METRIC_CONSUMERS`], [`MAX_METRIC_BEHIND`] and one.
    pub consumers: Vec<ConsumerFigures>,
}

/// The figures now. This call looks at every stream.
pub(crate) fn figures(registry: &StreamRegistry) -> SeriesFigures {
    let series = &registry.series;
    let mut other = StreamFigures::counted(&series.other_streams);
    let mut others = ConsumerFigures::counted(&series.other_consumers);
    others.is_counted = true;
    let mut figures = SeriesFigures::default();
    let mut placeless = Vec::new();
    for stream in registry.streams() {
        let mut own = StreamFigures::counted(&stream.counts.counts);
        let is_shown = stream.counts.is_shown();
        let consumers = if is_shown { own.look(&stream) } else { other.look(&stream) };
        for entry in consumers {
            if entry.counts.is_shown() {
                let mut own = ConsumerFigures::counted(&entry.counts.counts);
                own.is_counted = true;
                own.tell(registry, &stream, &entry);
                figures.consumers.push(own);
            } else {
                placeless.push((stream.clone(), entry));
            }
        }
        if is_shown {
            own.stream = Some(stream.topic.to_string());
            figures.streams.push(own);
        }
    }
    figures.streams.push(other);
    // Those left with messages and no member come first, and then the furthest behind: a busy
    // consumer's backlog must not hide a dead one's. The others are summed.
    placeless.sort_by_cached_key(|(stream, entry)| {
        let unfinished = unfinished(stream, entry);
        let is_left = unfinished > 0 && entry.members.lock().is_empty();
        Reverse((is_left, unfinished))
    });
    for (at, (stream, entry)) in placeless.iter().enumerate() {
        if at < MAX_METRIC_BEHIND && unfinished(stream, entry) > 0 {
            let mut own = ConsumerFigures::default();
            own.tell(registry, stream, entry);
            figures.consumers.push(own);
        } else {
            others.look(stream, entry);
        }
    }
    figures.consumers.push(others);
    figures
}

impl StreamFigures {
    fn counted(counts: &StreamCounts) -> Self {
        Self {
            stored: counts.stored.load(Ordering::Relaxed),
            delivered: counts.delivered.load(Ordering::Relaxed),
            ..Self::default()
        }
    }

    /// Adds what a stream is now; returns its consumers.
    fn look(&mut self, stream: &StreamEntry) -> Vec<Arc<ConsumerEntry>> {
        self.readers += stream.readers.load(Ordering::Relaxed) as u64;
        let state = stream.state.lock();
        self.messages += state.next - state.first;
        self.bytes += state.bytes;
        state.consumers.values().cloned().collect()
    }
}

impl ConsumerFigures {
    fn counted(counts: &ConsumerCounts) -> Self {
        Self {
            redelivered: counts.redelivered.load(Ordering::Relaxed),
            acked: counts.acked.load(Ordering::Relaxed),
            dead_lettered: counts.dead_lettered.load(Ordering::Relaxed),
            ..Self::default()
        }
    }

    /// Messages that are not done for it.
    pub fn unfinished(&self) -> u64 {
        self.lag + self.in_flight
    }

    /// Takes a consumer's name and figures. Blocks where its oldest message is on disk alone, so
    /// that it is asked of a bounded number.
    fn tell(&mut self, registry: &StreamRegistry, stream: &StreamEntry, entry: &ConsumerEntry) {
        self.stream = Some(stream.topic.to_string());
        self.consumer = entry.name.to_string();
        let oldest = self.look(stream, entry);
        let stored_ms = oldest.and_then(|offset| stored_ms(registry, stream, offset));
        let stored_ms = stored_ms.filter(|time_ms| *time_ms > 0);
        self.oldest_ms =
            stored_ms.map_or(0, |time_ms| registry.clock.day_ms().saturating_sub(time_ms));
    }

    /// Adds what a consumer is now; returns the offset of its oldest message that is not done.
    fn look(&mut self, stream: &StreamEntry, entry: &ConsumerEntry) -> Option<u64> {
        let visible = stream.state.lock().visible();
        self.members += entry.members.lock().len() as u64;
        let consumer = entry.state.lock();
        self.lag += visible.end.saturating_sub(consumer.cursor().max(visible.start));
        self.in_flight += consumer.in_flight() as u64;
        consumer.oldest(&visible)
    }
}

/// Messages that are not done for a consumer.
fn unfinished(stream: &StreamEntry, entry: &ConsumerEntry) -> u64 {
    let visible = stream.state.lock().visible();
    let consumer = entry.state.lock();
    let lag = visible.end.saturating_sub(consumer.cursor().max(visible.start));
    lag + consumer.in_flight() as u64
}

/// When a message was stored. Blocks where it is not among the recent ones.
fn stored_ms(registry: &StreamRegistry, stream: &StreamEntry, offset: u64) -> Option<u64> {
    let recent = stream.state.lock().time_of(offset);
    // A store that cannot be read is told of elsewhere; the other figures are whole.
    recent.or_else(|| registry.reads.times_of(stream.number, &[offset]).ok()?.first().copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{OwnBounds, StreamRow, StreamSettings};
    use crate::{Level, Retention};

    #[test]
    fn places_are_bounded_and_come_back() {
        let taken = Arc::new(AtomicUsize::new(0));
        let mut places: Vec<_> = (0..3).filter_map(|_| SeriesPlace::take(&taken, 2)).collect();
        assert_eq!(places.len(), 2);
        places.pop();
        assert!(SeriesPlace::take(&taken, 2).is_some(), "and this one goes at once");
        assert_eq!(taken.load(Ordering::Relaxed), 1);
        places.iter().chain(&places).for_each(SeriesPlace::leave);
        drop(places);
        assert_eq!(taken.load(Ordering::Relaxed), 0, "each comes back once");
    }

    #[test]
    fn what_is_removed_gives_its_places_back_though_somebody_holds_it() {
        let stream = StreamEntry::new(StreamRow {
            number: 1,
            topic: "a".parse().unwrap(),
            owner: String::new(),
            settings: StreamSettings {
                level: Level::Os,
                retention: Retention::default(),
                own_bounds: OwnBounds::default(),
            },
            created_ms: 0,
            sealed: None,
            first: 0,
            next: 0,
            last_ms: 0,
            bytes: 0,
            generations: vec![(0, 1)],
            damaged: Vec::new(),
            has_purged: false,
            consumers: Vec::new(),
        });
        let series = SeriesPlaces::default();
        let taken = || [&series.streams, &series.consumers].map(|all| all.load(Ordering::Relaxed));
        let held = ["b", "c"].map(|name| {
            stream.consumer(name, "", 0, &crate::shares::ShareBook::default()).unwrap()
        });
        series.admit(&stream);
        assert_eq!(taken(), [1, 2]);
        series.dismiss_consumer(&held[0]);
        assert_eq!(taken(), [1, 1]);
        series.dismiss(&stream);
        assert_eq!(taken(), [0, 0]);
        drop((stream, held));
        assert_eq!(taken(), [0, 0], "each comes back once");
    }
}
