//! One walk through the objects, link by link.

use std::collections::BTreeMap;

use super::{ChainLink, ChainPosition, ChainPositions, ChainStanding, SnapshotChain};
use crate::format::pack::ObjectHash;
use crate::format::snapshot::snapshot_key;
use crate::vault::chain::ChainHead;
use crate::vault::unread::GIVEN_UP;

/// The chain so far, and what it may still lead to.
pub(super) struct ChainWalk {
    positions: Vec<ChainHead>,
    /// The number that the next link must have.
    next: u64,
    loose: BTreeMap<u64, ChainLink>,
}

impl ChainWalk {
    pub(super) fn new(from: ChainHead) -> ChainWalk {
        ChainWalk { positions: vec![from], next: from.0 + 1, loose: BTreeMap::new() }
    }

    fn head(&self) -> ChainHead {
        self.positions.last().copied().unwrap_or_default()
    }

    pub(super) fn run(
        mut self,
        there: &ChainPositions,
        chain: &mut SnapshotChain,
    ) -> Vec<ChainHead> {
        let first = self.next;
        for (&number, at) in there.range(first..) {
            let gap = number > self.next;
            match at {
                // Nobody knows its hash: what follows names a link before it.
                ChainPosition::Removed(hash) if *hash == GIVEN_UP => self.next += u64::from(!gap),
                ChainPosition::Removed(hash) => {
                    if gap {
                        chain.missing(self.next, number - 1);
                    }
                    self.push(number, *hash);
                }
                ChainPosition::Foreign(_) if gap => {}
                ChainPosition::Nothing => {}
                ChainPosition::Foreign(_) => self.next += 1,
                ChainPosition::Link(found) => {
                    let owner = found.standing == ChainStanding::Owner;
                    if found.previous == self.head().1 && (owner || !gap) {
                        self.push(number, found.hash);
                    } else if owner {
                        self.vouch(number, found, there, chain);
                    } else {
                        self.loose.insert(number, found.clone());
                        self.next += u64::from(!gap);
                    }
                }
            }
        }
        self.name_loose(there, chain);
        chain.next = self.next;
        self.positions
    }

    fn push(&mut self, number: u64, hash: ObjectHash) {
        self.positions.push((number, hash));
        self.next = number + 1;
    }

    /// Takes the owner's link, and before it what it leads to: the owner saw all of that.
    fn vouch(
        &mut self,
        number: u64,
        found: &ChainLink,
        there: &ChainPositions,
        chain: &mut SnapshotChain,
    ) {
        let mut back = vec![(number, found.hash)];
        let mut wanted = found.previous;
        loop {
            let known = self.positions.iter().rposition(|(_, hash)| *hash == wanted);
            if let Some(known) = known {
                for (number, _) in self.positions.split_off(known + 1) {
                    if let Some(ChainPosition::Link(found)) = there.get(&number) {
                        self.loose.insert(number, found.clone());
                    }
                }
                break;
            }
            let loose = self.loose.iter().find(|(_, found)| found.hash == wanted);
            let Some((&at, _)) = loose else {
                let before = back.last().map_or(number, |(number, _)| *number);
                self.name_hole((before, wanted), there, chain);
                break;
            };
            if let Some(found) = self.loose.remove(&at) {
                back.push((at, found.hash));
                wanted = found.previous;
            }
        }
        self.positions.extend(back.into_iter().rev());
        self.next = number + 1;
    }

    /// Names what is missing between the chain so far and a link: its number, and the hash that it
    /// names of the link before it. What was given up is not missing.
    fn name_hole(
        &self,
        (before, wanted): ChainHead,
        there: &ChainPositions,
        chain: &mut SnapshotChain,
    ) {
        let last = before.saturating_sub(1);
        let is_it =
            |(number, hash): &ChainHead| *hash == wanted || (*number == last && *hash == GIVEN_UP);
        if chain.removed.iter().any(is_it) {
            return;
        }
        chain.broken.get_or_insert(last);
        let mut from = self.head().0 + 1;
        let named = chain.problems.len();
        for &number in there.range(from..=before).map(|(number, _)| number) {
            if from < number {
                chain.missing(from, number - 1);
            }
            from = number + 1;
        }
        if chain.problems.len() > named {
            return;
        }
        match there.get(&last) {
            // The object there is named already.
            Some(ChainPosition::Foreign(_)) => {}
            // Somebody took the number after the link had gone, or in its place.
            Some(ChainPosition::Link(found)) if found.standing.is_believed() => {
                chain.replaced(last, wanted);
            }
            _ => chain.missing_link(last, Some(wanted)),
        }
    }

    fn name_loose(&mut self, there: &ChainPositions, chain: &mut SnapshotChain) {
        for (&number, found) in &self.loose {
            chain.loose.push(number);
            // A link that nobody believed was named already.
            if found.standing.is_believed() {
                let mut reason = String::from("no link of the chain leads to it");
                let before = there.range(..number).next_back().map_or(0, |(number, _)| *number);
                if before + 1 < number {
                    reason = format!("{reason}; {} is not there", snapshot_key(number - 1));
                }
                chain.problem(&snapshot_key(number), &reason);
            }
        }
        debug_assert!(self.positions.is_sorted_by_key(|(number, _)| *number));
    }
}
