//! Full gossip: every few seconds a node sends all that it holds, encrypted, to each node that it
//! has a connection with. The periodic document is the report's sign of life.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use sealane_mesh::{MeshSpan, MeshTime, SendUrgency, UnitReceiver};

use super::ChaCha;
use super::document::{CHATS_SENT, GossipDocument};
use crate::failure::{BenchFailure, Result};
use crate::field::{FieldMachine, FieldUnit};

/// Message, index and total in front of each part, as in the report's program.
const PART_HEADER_BYTES: usize = 8;

/// A node of the report.
pub(crate) struct GossipNode {
    pub(crate) document: GossipDocument,
    cipher: ChaCha,
    unit_bytes: usize,
    every: MeshSpan,
    next: MeshTime,
    number: u32,
    /// The parts of documents that are under way, by their senders.
    parts: BTreeMap<usize, GossipParts>,
    outgoing: VecDeque<FieldUnit>,
}

#[derive(Default)]
struct GossipParts {
    number: u32,
    came: BTreeMap<u16, Vec<u8>>,
}

impl GossipNode {
    /// A node that sends at `first`, and from then on every so often.
    pub(crate) fn new(
        node: usize,
        unit_bytes: usize,
        first: MeshTime,
        every: MeshSpan,
    ) -> Result<Self> {
        let cipher = ChaCha::new().ok_or_else(|| BenchFailure::broken("the recipe"))?;
        Ok(Self {
            document: GossipDocument::new(node as u32),
            cipher,
            unit_bytes,
            every,
            next: first,
            number: 0,
            parts: BTreeMap::new(),
            outgoing: VecDeque::new(),
        })
    }

    fn tell(&mut self) -> Result<()> {
        let document = self.document.build(CHATS_SENT);
        let sealed =
            self.cipher.seal(&document).ok_or_else(|| BenchFailure::broken("the recipe"))?;
        self.number += 1;
        let body = self.unit_bytes.saturating_sub(PART_HEADER_BYTES).max(1);
        let total = sealed.len().div_ceil(body) as u16;
        for (index, part) in (0_u16..).zip(sealed.chunks(body)) {
            let mut unit = self.number.to_le_bytes().to_vec();
            unit.extend(index.to_le_bytes());
            unit.extend(total.to_le_bytes());
            unit.extend(part);
            let (to, urgency) = (UnitReceiver::Everybody, SendUrgency::Normal);
            self.outgoing.push_back(FieldUnit { to, bytes: Arc::from(unit), urgency });
        }
        Ok(())
    }

    fn merge(&mut self, sealed: &[u8]) -> Option<()> {
        self.document.merge(GossipDocument::read(&self.cipher.open(sealed)?)?);
        Some(())
    }
}

impl FieldMachine for GossipNode {
    fn heard(&mut self, _now: MeshTime, from: usize, unit: &[u8]) -> Result<()> {
        let broken = || BenchFailure::broken("the recipe");
        let (head, part) = unit.split_first_chunk::<PART_HEADER_BYTES>().ok_or_else(broken)?;
        let [a, b, c, d, e, f, g, h] = *head;
        let (number, index) = (u32::from_le_bytes([a, b, c, d]), u16::from_le_bytes([e, f]));
        let parts = self.parts.entry(from).or_default();
        if parts.number != number {
            *parts = GossipParts { number, came: BTreeMap::new() };
        }
        parts.came.insert(index, part.to_vec());
        if parts.came.len() < usize::from(u16::from_le_bytes([g, h])) {
            return Ok(());
        }
        let sealed: Vec<u8> = std::mem::take(&mut parts.came).into_values().flatten().collect();
        self.merge(&sealed).ok_or_else(broken)
    }

    fn tick(&mut self, now: MeshTime) -> Result<()> {
        if now < self.next {
            return Ok(());
        }
        self.next = now + self.every;
        self.tell()
    }

    fn next_unit(&mut self) -> Option<FieldUnit> {
        self.outgoing.pop_front()
    }

    fn next_wake(&self) -> Option<MeshTime> {
        Some(self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_holds_what_another_one_has_told_in_parts() {
        let make = |node| GossipNode::new(node, 60, MeshTime(0), MeshSpan::seconds(5)).unwrap();
        let (mut one, mut other) = (make(1), make(2));
        one.document.chat(7);
        one.tick(MeshTime(0)).unwrap();
        let units: Vec<FieldUnit> = std::iter::from_fn(|| one.next_unit()).collect();
        assert!(units.len() > 2 && units.iter().all(|unit| unit.bytes.len() <= 60));
        for unit in &units {
            assert!(!other.document.has_chat(7, 1));
            other.heard(MeshTime(1), 1, &unit.bytes).unwrap();
        }
        assert!(other.document.has_chat(7, 1));
        assert_eq!(one.next_wake(), Some(MeshTime(5_000_000)));
    }
}
