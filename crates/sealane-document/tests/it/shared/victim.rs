//! A member of a team, and what it refuses.

use std::collections::BTreeMap;

use sealane_document::agent::{AgentCounters, DocumentNeighbour};
use sealane_document::{DocumentAgent, DocumentQuota, DocumentStore, ShelfKeeper};
use sealane_frame::{FrameBuf, HeaderFields, seal_frame};
use sealane_seal::{Binding, Class, Epoch, Sealer, Slot};

use crate::field::net::Team;
use crate::team::{GROUP, peer};

pub(crate) const BODY: &[u8] = &[0, 1, 0, 0, 0, 0, 0, 1, 2, 3, 0, 1, 2, 3, 0];

/// A member that is attacked.
pub(crate) struct Victim {
    pub(crate) agent: DocumentAgent,
    pub(crate) team: Team,
}

impl Victim {
    pub(crate) fn new() -> Self {
        Self::with(
            DocumentStore::in_memory(ShelfKeeper::Member, DocumentQuota::default()).unwrap(),
            vec![],
        )
    }

    pub(crate) fn with(store: DocumentStore, removed: Vec<Vec<u16>>) -> Self {
        let team = Team { members: 20, removed };
        let mut agent = DocumentAgent::new(Slot::new(0).unwrap(), store, 400);
        agent.set_group(team.keys(0, Epoch(team.removed.len() as u64))).unwrap();
        Self { agent, team }
    }

    pub(crate) fn sealer(&self, slot: u16, epoch: u64) -> Sealer {
        self.team.sealer(slot, Epoch(epoch), 77 + u64::from(slot))
    }

    /// A neighbour hands frames on; gives how many were taken as news.
    pub(crate) fn hear(&mut self, frames: &[&[u8]]) -> u64 {
        let before = self.counters().taken;
        let message = message_of(frames);
        let by = DocumentNeighbour { slot: Slot::new(9).unwrap(), tag: peer(9), is_proven: true };
        self.agent.hear(by, &message).unwrap();
        self.counters().taken - before
    }

    pub(crate) fn counters(&self) -> AgentCounters {
        self.agent.counters()
    }

    /// The frames that were refused, by name, where there were any.
    pub(crate) fn refused(&self) -> BTreeMap<&'static str, u64> {
        refused(&self.agent)
    }

    /// Asserts that so many frames or messages were refused for these reasons, and for no others.
    pub(crate) fn assert_refused<const N: usize>(&self, reasons: [(&'static str, u64); N]) {
        assert_eq!(self.refused(), BTreeMap::from(reasons));
    }
}

/// The frames that a machine has refused, by name, where there were any.
pub(crate) fn refused(agent: &DocumentAgent) -> BTreeMap<&'static str, u64> {
    let c = agent.counters();
    let all = [
        ("malformed", c.malformed),
        ("unproven", c.unproven),
        ("strange group", c.strange_group),
        ("unknown epoch", c.unknown_epoch),
        ("no member", c.no_member),
        ("stale epoch", c.stale_epoch),
        ("leaving", c.leaving),
        ("below floor", c.below_floor),
        ("forged", c.forged),
        ("no document", c.no_document),
        ("malformed body", c.malformed_body),
        ("too far ahead", c.too_far_ahead),
        ("repeats", c.repeats),
        ("older", agent.store().counters().older),
        ("conflicts", agent.store().counters().conflicts),
    ];
    all.into_iter().filter(|(_, count)| *count > 0).collect()
}

/// Frames in one message, as they are: none in the brief form.
pub(crate) fn message_of(frames: &[&[u8]]) -> Vec<u8> {
    let mut message = vec![0, 0, 0, 0, 4];
    for frame in frames {
        let frame = &frame[frame.len().min(17)..];
        // Twice its length, and one for a whole frame.
        match 2 * frame.len() + 1 {
            short @ 0..0x80 => message.push(short as u8),
            long => message.extend([(long & 0x7f | 0x80) as u8, (long >> 7) as u8]),
        }
        message.extend(frame);
    }
    message
}

/// Seals a body in a class of choice.
pub(crate) fn as_class(
    sealer: &mut Sealer,
    slot: u16,
    data_type: u16,
    class: Class,
    body: &[u8],
) -> Vec<u8> {
    let binding = Binding::stream(&format!("mesh/{GROUP}/{data_type}"));
    let fields = HeaderFields { class, ..HeaderFields::new(GROUP, peer(slot), data_type) };
    seal_frame(sealer, &fields, &binding, body, &mut FrameBuf::new()).unwrap().to_vec()
}
