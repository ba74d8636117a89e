//! Orders that come in pieces.

use std::collections::BTreeMap;

use sealane_frame::GroupTag;
use sealane_seal::Slot;

use super::{OrderPieces, PIECE_BYTES};
use crate::limits::{MAX_ORDER_COLLECTIONS, MAX_ORDER_COLLECTIONS_OF_ONE};

/// Orders of which pieces have come. Each neighbour's pieces are put together by themselves, so
/// that one that tells junk spoils nothing but its own.
#[derive(Debug, Default)]
pub(crate) struct OrderCollections(Vec<OrderCollection>);

#[derive(Debug)]
struct OrderCollection {
    from: Slot,
    group: GroupTag,
    number: u64,
    length: u16,
    pieces: BTreeMap<u16, Vec<u8>>,
}

/// An order whose pieces are all there. Nobody has looked at its signature.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WholeOrder {
    pub(crate) number: u64,
    pub(crate) notice: Vec<u8>,
}

/// Pieces that are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OrderLack {
    pub(crate) number: u64,
    pub(crate) first: u16,
    pub(crate) pieces: u64,
}

/// Whether pieces were new, and the whole where they were the last.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PiecesAdded {
    pub(crate) is_new: bool,
    pub(crate) whole: Option<WholeOrder>,
}

impl OrderCollections {
    /// Takes pieces of a neighbour.
    pub(crate) fn add(&mut self, from: Slot, told: &OrderPieces) -> PiecesAdded {
        let is_it = |one: &OrderCollection| {
            (one.from, one.group, one.number, one.length)
                == (from, told.group, told.number, told.length)
        };
        let at = match self.0.iter().position(is_it) {
            Some(at) => at,
            None => self.begin(from, told),
        };
        // The one that goes on stands last, so that the first is what was left longest ago.
        let mut one = self.0.remove(at);
        let before = one.pieces.len();
        for (number, piece) in (told.first..).zip(told.bytes.chunks(PIECE_BYTES)) {
            one.pieces.entry(number).or_insert_with(|| piece.to_vec());
        }
        let is_new = one.pieces.len() > before;
        if one.pieces.len() < count(one.length) {
            self.0.push(one);
            return PiecesAdded { is_new, whole: None };
        }
        let notice = one.pieces.into_values().flatten().collect();
        PiecesAdded { is_new, whole: Some(WholeOrder { number: one.number, notice }) }
    }

    /// Makes room for an order, and gives where it is.
    fn begin(&mut self, from: Slot, told: &OrderPieces) -> usize {
        let of_one = self.0.iter().filter(|one| one.from == from).count();
        let leaves = if of_one >= MAX_ORDER_COLLECTIONS_OF_ONE {
            self.0.iter().position(|one| one.from == from)
        } else {
            (self.0.len() >= MAX_ORDER_COLLECTIONS).then_some(0)
        };
        if let Some(leaves) = leaves {
            self.0.remove(leaves);
        }
        let OrderPieces { group, number, length, .. } = *told;
        self.0.push(OrderCollection { from, group, number, length, pieces: BTreeMap::new() });
        self.0.len() - 1
    }

    /// The pieces to ask a neighbour for: the first missing ones of the order with that number. If
    /// the neighbour has begun to give a later order, they are those of that one.
    pub(crate) fn lack(&self, from: Slot, group: GroupTag, wants: u64) -> OrderLack {
        let its = self.0.iter().filter(|one| one.from == from && one.group == group);
        let next = its.filter(|one| one.number >= wants).min_by_key(|one| one.number);
        let Some(one) = next else {
            return OrderLack { number: wants, first: 0, pieces: u64::MAX };
        };
        let count = u16::try_from(count(one.length)).unwrap_or(u16::MAX);
        let missing = |piece: &u16| !one.pieces.contains_key(piece);
        let first = (0..count).find(missing).unwrap_or(0);
        let window = (first..count.min(first.saturating_add(64))).filter(missing);
        let pieces = window.fold(0, |bits, piece| bits | 1 << (piece - first));
        OrderLack { number: one.number, first, pieces }
    }

    /// Forgets what is not lacking any more.
    pub(crate) fn forget(&mut self, group: GroupTag, below: u64) {
        self.0.retain(|one| one.group != group || one.number >= below);
    }

    pub(crate) fn is_bounded(&self) -> bool {
        self.0.len() <= MAX_ORDER_COLLECTIONS
    }
}

/// How many pieces a notice of so many bytes has.
fn count(length: u16) -> usize {
    usize::from(length).div_ceil(PIECE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(number: u16) -> Slot {
        Slot::new(number).unwrap()
    }

    fn pieces(number: u64, first: u16, bytes: usize) -> OrderPieces {
        let group = GroupTag::from_bytes([1; 4]);
        OrderPieces { group, number, length: 300, first, bytes: vec![first as u8; bytes] }
    }

    #[test]
    fn pieces_of_one_neighbour_make_a_whole_in_any_order() {
        let mut all = OrderCollections::default();
        let group = GroupTag::from_bytes([1; 4]);
        let none = OrderLack { number: 7, first: 0, pieces: u64::MAX };
        assert_eq!(all.lack(slot(1), group, 7), none);
        assert!(all.add(slot(1), &pieces(7, 2, 44)).is_new);
        assert!(!all.add(slot(1), &pieces(7, 2, 44)).is_new);
        assert!(all.add(slot(2), &pieces(7, 0, 256)).whole.is_none(), "of another one");
        assert_eq!(all.lack(slot(1), group, 7), OrderLack { number: 7, first: 0, pieces: 3 });
        assert_eq!(all.lack(slot(2), group, 7), OrderLack { number: 7, first: 2, pieces: 1 });
        assert_eq!(all.lack(slot(1), group, 6).number, 7, "what it has begun to give");
        let added = all.add(slot(1), &pieces(7, 0, 256));
        let whole = added.whole.unwrap();
        assert_eq!((whole.number, whole.notice.len()), (7, 300));
        assert_eq!([whole.notice[0], whole.notice[256]], [0, 2]);
        all.forget(group, 8);
        assert_eq!(all.lack(slot(2), group, 7), none);
    }

    #[test]
    fn junk_of_one_neighbour_takes_nobodys_room() {
        let mut all = OrderCollections::default();
        all.add(slot(1), &pieces(7, 0, 128));
        for number in 0..10_000 {
            all.add(slot(2), &pieces(number, 1, 128));
            assert!(all.is_bounded());
        }
        let group = GroupTag::from_bytes([1; 4]);
        assert_eq!(all.lack(slot(1), group, 7).first, 1, "what another one gave is still there");
    }
}
