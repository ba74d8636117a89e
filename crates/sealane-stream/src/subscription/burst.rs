//! The bytes that many readers are sent alike.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use sealane_codec::Codec;
use sealane_protocol::ServerFrame;

use super::{StreamDelivery, SubscriptionOutput};
use crate::block::{BlockRecord, DeliverLayout, StreamBlock};

/// Deliveries that follow each other in their stream, each for the first time: how often a message
/// was delivered stands in its frame, which after that is no other reader's.
#[derive(Debug)]
pub struct DeliveryBurst {
    block: Arc<StreamBlock>,
    indexes: Range<usize>,
}

impl DeliveryBurst {
    /// The records of a block at these indexes, where it has them.
    pub(super) fn new(block: Arc<StreamBlock>, indexes: Range<usize>) -> Self {
        Self { block, indexes }
    }

    /// Adds a delivery; returns whether it follows the others.
    pub(super) fn add(&mut self, delivery: &StreamDelivery) -> bool {
        let StreamDelivery { block, index, attempt } = delivery;
        // A burst is one slice of one block's bytes, so that only neighbours of the same block join
        // it.
        let follows =
            *attempt == 1 && *index == self.indexes.end && Arc::ptr_eq(block, &self.block);
        self.indexes.end += usize::from(follows);
        follows
    }

    /// How many messages these are.
    pub fn count(&self) -> usize {
        self.indexes.len()
    }

    /// The deliver frames as messages of a transport, in one piece that all its readers share.
    pub fn messages<L: DeliverLayout>(&self, codec: Codec) -> Bytes {
        self.block.messages::<L>(self.indexes.clone(), codec)
    }

    /// The same as single deliveries.
    pub fn deliveries(&self) -> impl Iterator<Item = StreamDelivery> {
        let delivery = |index| StreamDelivery { block: self.block.clone(), index, attempt: 1 };
        self.indexes.clone().map(delivery)
    }

    pub(super) fn records(&self) -> &[BlockRecord] {
        self.block.records.get(self.indexes.clone()).unwrap_or_default()
    }
}

/// The output of a subscription to its connection. Messages that all readers are sent alike stand
/// together.
#[derive(Debug)]
pub enum DeliveryPiece {
    /// Messages, each for the first time.
    Burst(DeliveryBurst),
    /// A message that was delivered before.
    Again(StreamDelivery),
    /// Something to know: `joined` or `gap`.
    Status(ServerFrame),
}

impl DeliveryPiece {
    /// Messages among it.
    pub fn messages(&self) -> usize {
        match self {
            DeliveryPiece::Again(_) => 1,
            DeliveryPiece::Burst(burst) => burst.count(),
            DeliveryPiece::Status(_) => 0,
        }
    }

    /// The records of its messages.
    pub(super) fn records(&self) -> &[BlockRecord] {
        match self {
            DeliveryPiece::Again(StreamDelivery { block, index, .. }) => {
                block.records.get(*index).map_or(&[], std::slice::from_ref)
            }
            DeliveryPiece::Burst(burst) => burst.records(),
            DeliveryPiece::Status(_) => &[],
        }
    }

    /// Bytes of its envelopes.
    pub(super) fn bytes(&self) -> usize {
        self.records().iter().map(|record| record.body.len()).sum()
    }
}

/// Adds a delivery, to the burst before it where it follows that. Pieces before `start` have been
/// counted, and stay as they are.
pub(super) fn push(pieces: &mut Vec<DeliveryPiece>, start: usize, delivery: StreamDelivery) {
    // A slice of the block serves a whole burst; one message by itself is one more piece to write.
    if let Some(DeliveryPiece::Burst(burst)) =
        pieces.get_mut(start..).and_then(<[DeliveryPiece]>::last_mut)
        && burst.add(&delivery)
    {
        return;
    }
    let StreamDelivery { index, attempt, .. } = delivery;
    pieces.push(match attempt {
        1 => DeliveryPiece::Burst(DeliveryBurst::new(delivery.block, index..index + 1)),
        _ => DeliveryPiece::Again(delivery),
    });
}

/// Adds the messages of pieces one by one.
pub(crate) fn part(pieces: Vec<DeliveryPiece>, out: &mut Vec<SubscriptionOutput>) {
    for piece in pieces {
        match piece {
            DeliveryPiece::Burst(burst) => {
                out.extend(burst.deliveries().map(SubscriptionOutput::Deliver))
            }
            DeliveryPiece::Again(delivery) => out.push(SubscriptionOutput::Deliver(delivery)),
            DeliveryPiece::Status(frame) => out.push(SubscriptionOutput::Status(frame)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::EnvelopeContent;

    #[test]
    fn only_what_follows_in_one_block_for_the_first_time_is_together() {
        let record = |offset| BlockRecord {
            offset,
            time_ms: 0,
            content: EnvelopeContent::Open(Codec::Json),
            id: Bytes::new(),
            body: Bytes::from_static(b"{}"),
        };
        let records = || (0..9).map(record).collect();
        let block = || Arc::new(StreamBlock::new("a".parse().unwrap(), 1, 0, records()));
        let (one, other) = (block(), block());
        let came = [(&one, 3, 1), (&one, 4, 1), (&one, 5, 1), (&one, 5, 1), (&one, 7, 1)];
        let came = came.into_iter().chain([(&one, 8, 2), (&other, 8, 1), (&other, 9, 1)]);
        let mut pieces = vec![DeliveryPiece::Status(ServerFrame::Heartbeat(1))];
        for (block, index, attempt) in came {
            push(&mut pieces, 0, StreamDelivery { block: block.clone(), index, attempt });
        }
        push(&mut pieces, 6, StreamDelivery { block: other.clone(), index: 10, attempt: 1 });
        let counts: Vec<_> = pieces.iter().map(DeliveryPiece::messages).collect();
        assert_eq!(counts, [0, 3, 1, 1, 1, 2, 1]);
        let records: Vec<_> = pieces.iter().map(|piece| piece.records().len()).collect();
        assert_eq!(records, [0, 3, 1, 1, 1, 0, 0], "what a block does not have is nothing");
        let mut out = Vec::new();
        part(pieces, &mut out);
        let places = out.iter().filter_map(|output| match output {
            SubscriptionOutput::Deliver(delivery) => Some((delivery.index, delivery.attempt)),
            SubscriptionOutput::Status(_) => None,
        });
        let expected = [(3, 1), (4, 1), (5, 1), (5, 1), (7, 1), (8, 2), (8, 1), (9, 1), (10, 1)];
        assert_eq!(places.collect::<Vec<_>>(), expected);
    }
}
