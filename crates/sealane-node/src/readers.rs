//! The connections that read now, and the streams they read, for the state of a stream.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::limits::MAX_SHOWN_CONNECTIONS;
use parking_lot::{Mutex, MutexGuard};
use sealane_message::{Pattern, Topic};
use sealane_protocol::ConnectionState;
use sealane_stream::{StreamSubscription, SubscriptionReader};

use crate::clock::now_ms;

/// The connections that read, by the number that the hub knows them by.
#[derive(Default)]
pub(crate) struct ConnectedReaders(Mutex<HashMap<u64, Arc<ConnectedReader>>>);

/// One connection that reads.
pub(crate) struct ConnectedReader {
    pattern: Pattern,
    /// None: it reads for itself.
    consumer: Option<String>,
    codec: &'static str,
    since_ms: u64,
    credit: AtomicU64,
    delivered: AtomicU64,
}

impl ConnectedReaders {
    /// Shows a connection until what is given is dropped.
    pub(crate) fn enter(
        self: &Arc<Self>,
        subscription: &StreamSubscription,
        pattern: Pattern,
        who: &SubscriptionReader,
        codec: &'static str,
    ) -> EnteredReader {
        let consumer = match who {
            SubscriptionReader::Reader { .. } => None,
            SubscriptionReader::Member { name, .. } => Some(name.clone()),
        };
        let (credit, delivered) = (AtomicU64::new(0), AtomicU64::new(0));
        let since_ms = now_ms();
        let reader =
            Arc::new(ConnectedReader { pattern, consumer, codec, since_ms, credit, delivered });
        let member = subscription.member();
        self.all().insert(member, reader.clone());
        EnteredReader { readers: self.clone(), member, reader }
    }

    /// Those who read a stream, or who share a consumer of it, the longest first, each with what it
    /// has in flight.
    pub(crate) fn of(
        &self,
        topic: &Topic,
        consumer: Option<&str>,
        in_flight: &HashMap<u64, usize>,
    ) -> Vec<ConnectionState> {
        let all = self.all();
        let is_meant = |reader: &ConnectedReader| {
            let is_member = consumer.is_none() || reader.consumer.as_deref() == consumer;
            is_member && reader.pattern.matches(topic)
        };
        let mut found: Vec<_> = all.iter().filter(|(_, reader)| is_meant(reader)).collect();
        // Numbers rise with each connection, so that the order is that of coming.
        found.sort_by_key(|(member, _)| **member);
        let shown = |(member, reader): (&u64, &Arc<ConnectedReader>)| {
            reader.state(*member, in_flight.get(member).copied().unwrap_or_default())
        };
        found.into_iter().take(MAX_SHOWN_CONNECTIONS).map(shown).collect()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<u64, Arc<ConnectedReader>>> {
        self.0.lock()
    }
}

/// A connection that is shown.
pub(crate) struct EnteredReader {
    readers: Arc<ConnectedReaders>,
    member: u64,
    reader: Arc<ConnectedReader>,
}

impl EnteredReader {
    /// Notes what was sent, and what more may be.
    pub(crate) fn note(&self, sent: usize, credit: u64) {
        self.reader.delivered.fetch_add(sent as u64, Ordering::Relaxed);
        self.reader.credit.store(credit, Ordering::Relaxed);
    }
}

impl Drop for EnteredReader {
    fn drop(&mut self) {
        self.readers.all().remove(&self.member);
    }
}

impl ConnectedReader {
    fn state(&self, connection: u64, in_flight: usize) -> ConnectionState {
        ConnectionState {
            connection,
            consumer: self.consumer.clone(),
            pattern: self.pattern.clone(),
            codec: self.codec.to_owned(),
            credit: self.credit.load(Ordering::Relaxed),
            in_flight: in_flight as u64,
            delivered: self.delivered.load(Ordering::Relaxed),
            since_ms: self.since_ms,
        }
    }
}
