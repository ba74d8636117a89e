//! The bytes that many readers are sent alike.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use sealane_codec::Codec;
use sealane_protocol::ServerFrame;

use super::{Delivery, Output};
use crate::block::{Block, FrameLayout, Record};

/// Deliveries that follow each other in their stream, each for the first time: how often a message
/// was delivered stands in its frame, which after that is no other reader's.
#[derive(Debug)]
pub struct Burst {
    block: Arc<Block>,
    indexes: Range<usize>,
}

impl Burst {
    /// The records of a block at these indexes, where it has them.
    pub(super) fn new(block: Arc<Block>, indexes: Range<usize>) -> Self {
        Self { block, indexes }
    }

    /// Adds a delivery; returns whether it follows the others.
    pub(super) fn add(&mut self, delivery: &Delivery) -> bool {
        let Delivery { block, index, attempt } = delivery;
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
    pub fn messages<L: FrameLayout>(&self, codec: Codec) -> Bytes {
        self.block.messages::<L>(self.indexes.clone(), codec)
    }

    /// The same as single deliveries.
    pub fn deliveries(&self) -> impl Iterator<Item = Delivery> {
        let delivery = |index| Delivery { block: self.block.clone(), index, attempt: 1 };
        self.indexes.clone().map(delivery)
    }

    pub(super) fn records(&self) -> &[Record] {
        self.block.records.get(self.indexes.clone()).unwrap_or_default()
    }
}

/// The output of a subscription to its connection. Messages that all readers are sent alike stand
/// together.
#[derive(Debug)]
pub enum Piece {
    /// Messages, each for the first time.
    Burst(Burst),
    /// A message that was delivered before.
    Again(Delivery),
    /// Something to know: `joined` or `gap`.
    Status(ServerFrame),
}

impl Piece {
    /// Messages among it.
    pub fn messages(&self) -> usize {
        match self {
            Piece::Again(_) => 1,
            Piece::Burst(burst) => burst.count(),
            Piece::Status(_) => 0,
        }
    }

    /// The records of its messages.
    pub(super) fn records(&self) -> &[Record] {
        match self {
            Piece::Again(Delivery { block, index, .. }) => {
                block.records.get(*index).map_or(&[], std::slice::from_ref)
            }
            Piece::Burst(burst) => burst.records(),
            Piece::Status(_) => &[],
        }
    }

    /// Bytes of its envelopes.
    pub(super) fn bytes(&self) -> usize {
        self.records().iter().map(|record| record.body.len()).sum()
    }
}

/// Adds a delivery, to the burst before it where it follows that. Pieces before `start` have been
/// counted, and stay as they are.
pub(super) fn push(pieces: &mut Vec<Piece>, start: usize, delivery: Delivery) {
    // A slice of the block serves a whole burst; one message by itself is one more piece to write.
    if let Some(Piece::Burst(burst)) = pieces.get_mut(start..).and_then(<[Piece]>::last_mut)
        && burst.add(&delivery)
    {
        return;
    }
    let Delivery { index, attempt, .. } = delivery;
    pieces.push(match attempt {
        1 => Piece::Burst(Burst::new(delivery.block, index..index + 1)),
        _ => Piece::Again(delivery),
    });
}

/// Adds the messages of pieces one by one.
pub(crate) fn part(pieces: Vec<Piece>, out: &mut Vec<Output>) {
    for piece in pieces {
        match piece {
            Piece::Burst(burst) => out.extend(burst.deliveries().map(Output::Deliver)),
            Piece::Again(delivery) => out.push(Output::Deliver(delivery)),
            Piece::Status(frame) => out.push(Output::Status(frame)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::envelope::Content;

    #[test]
    fn only_what_follows_in_one_block_for_the_first_time_is_together() {
        let record = |offset| Record {
            offset,
            time_ms: 0,
            content: Content::Open(Codec::Json),
            id: Bytes::new(),
            body: Bytes::from_static(b"{}"),
        };
        let records = || (0..9).map(record).collect();
        let block = || Arc::new(Block::new("a".parse().unwrap(), 1, 0, records()));
        let (one, other) = (block(), block());
        let came = [(&one, 3, 1), (&one, 4, 1), (&one, 5, 1), (&one, 5, 1), (&one, 7, 1)];
        let came = came.into_iter().chain([(&one, 8, 2), (&other, 8, 1), (&other, 9, 1)]);
        let mut pieces = vec![Piece::Status(ServerFrame::Heartbeat(1))];
        for (block, index, attempt) in came {
            push(&mut pieces, 0, Delivery { block: block.clone(), index, attempt });
        }
        push(&mut pieces, 6, Delivery { block: other.clone(), index: 10, attempt: 1 });
        let counts: Vec<_> = pieces.iter().map(Piece::messages).collect();
        assert_eq!(counts, [0, 3, 1, 1, 1, 2, 1]);
        let records: Vec<_> = pieces.iter().map(|piece| piece.records().len()).collect();
        assert_eq!(records, [0, 3, 1, 1, 1, 0, 0], "what a block does not have is nothing");
        let mut out = Vec::new();
        part(pieces, &mut out);
        let places = out.iter().filter_map(|output| match output {
            Output::Deliver(delivery) => Some((delivery.index, delivery.attempt)),
            Output::Status(_) => None,
        });
        let expected = [(3, 1), (4, 1), (5, 1), (5, 1), (7, 1), (8, 2), (8, 1), (9, 1), (10, 1)];
        assert_eq!(places.collect::<Vec<_>>(), expected);
    }
}
