//! The messages that a client has sealed, and the streams that it has met, of late. They serve the
//! case that a member is removed.

use std::collections::{HashSet, VecDeque};
use std::time::{Duration, Instant};

use bytes::Bytes;
use sealane_codec::Codec;
use sealane_group::GroupMembership;
use sealane_message::{DataType, Topic};
use sealane_seal::{Binding, Epoch};

use crate::limits::{MAX_SENT_HELD, MAX_SENT_HELD_BYTES, MAX_STREAMS_MET, MIN_ORDERS_LOOK_MS};

/// Envelopes as they were before they were sealed, all of one request.
#[derive(Debug, Clone)]
pub(crate) struct SentEnvelopes {
    pub(crate) epoch: Epoch,
    pub(crate) data_type: DataType,
    pub(crate) codec: Codec,
    pub(crate) envelopes: Vec<Bytes>,
}

/// A message that no reader takes where it stands.
#[derive(Debug)]
pub(super) struct StaleEpochMessage {
    pub(super) stream: Topic,
    pub(super) offset: u64,
    pub(super) data_type: DataType,
    pub(super) codec: Codec,
    pub(super) envelope: Bytes,
}

/// The newest messages that this client has had stored.
#[derive(Debug, Default)]
pub(super) struct SentMessages {
    messages: VecDeque<StoredSealedMessage>,
    bytes: usize,
}

#[derive(Debug)]
struct StoredSealedMessage {
    late: StaleEpochMessage,
    generation: u64,
    epoch: Epoch,
}

impl SentMessages {
    pub(super) fn add(&mut self, sent: SentEnvelopes, stream: &Topic, generation: u64, first: u64) {
        let SentEnvelopes { epoch, data_type, codec, envelopes } = sent;
        for (offset, envelope) in (first..).zip(envelopes) {
            self.bytes += envelope.len();
            let late =
                StaleEpochMessage { stream: stream.clone(), offset, data_type, codec, envelope };
            self.messages.push_back(StoredSealedMessage { late, generation, epoch });
        }
        while self.messages.len() > MAX_SENT_HELD || self.bytes > MAX_SENT_HELD_BYTES {
            let Some(oldest) = self.messages.pop_front() else { return };
            self.bytes -= oldest.late.envelope.len();
        }
    }

    /// Takes out those whose epoch is not read any more where they stand.
    pub(super) fn take_late(
        &mut self,
        first_epoch: impl Fn(&Topic, u64, u64) -> Epoch,
    ) -> Vec<StaleEpochMessage> {
        let mut late = Vec::new();
        for stored in std::mem::take(&mut self.messages) {
            let place = &stored.late;
            if stored.epoch < first_epoch(&place.stream, stored.generation, place.offset) {
                self.bytes -= place.envelope.len();
                late.push(stored.late);
            } else {
                self.messages.push_back(stored);
            }
        }
        late
    }
}

/// The streams of a group that this client has met.
#[derive(Debug, Default)]
pub(super) struct GroupStreamSet {
    met: HashSet<Topic>,
    looked: Option<Instant>,
}

impl GroupStreamSet {
    pub(super) fn add(&mut self, stream: &Topic) {
        if self.met.len() < MAX_STREAMS_MET && !self.met.contains(stream) {
            self.met.insert(stream.clone());
        }
    }

    /// Those in which nobody has marked where the last removal began.
    pub(super) fn unmarked(&self, member: &GroupMembership) -> Vec<Topic> {
        if !member.has_removed() {
            return Vec::new();
        }
        let is_marked = |stream: &&Topic| !member.is_marked(&Binding::stream(stream.as_str()));
        self.met.iter().filter(is_marked).cloned().collect()
    }

    /// Whether the control stream may be looked at again.
    pub(super) fn may_look(&mut self) -> bool {
        let least = Duration::from_millis(MIN_ORDERS_LOOK_MS);
        let is_due = self.looked.is_none_or(|looked| looked.elapsed() >= least);
        if is_due {
            self.looked = Some(Instant::now());
        }
        is_due
    }
}
