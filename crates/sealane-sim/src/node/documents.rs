//! The documents of a machine in the mesh: `sealane-document` as it is shipped, kept in memory.

use std::collections::BTreeMap;
use std::fmt;

use sealane_document::agent::{DocumentGroupKeys, DocumentNeighbour, OriginDuty, OutboxScope};
use sealane_document::{
    DocumentAgent, DocumentCursor, DocumentQuota, DocumentStore, ShelfKeeper, class_of, stream_name,
};
use sealane_frame::{FrameBuf, GroupTag, HeaderFields, PeerTag, seal_frame};
use sealane_mesh as mesh;
use sealane_message::DataType;
use sealane_seal::policy::{Conditions, Policy};
use sealane_seal::{Binding, Epochs, Group, Sealer, SigningKey, Slot, Term};

use super::SimFrameMark;
use super::mesh::SimMeshSeat;
use crate::{SimError, SimTime};

/// The knowledge about each other of a scenario's machines that keep documents.
pub(super) struct DocumentTeam {
    signing: BTreeMap<u32, [u8; 32]>,
    terms: Vec<Term>,
    air: BTreeMap<u32, SimDocumentLimits>,
}

/// How messages about documents fit the media of a machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct SimDocumentLimits {
    message_bytes: usize,
    is_scarce: bool,
}

impl SimDocumentLimits {
    /// Of a machine on these media.
    pub(super) fn of(media: &[mesh::MeshMedium]) -> Option<Self> {
        let message_bytes = media.iter().map(mesh::MeshMedium::documents_bytes).min()?;
        let is_scarce = media.iter().any(mesh::MeshMedium::has_duty);
        Some(Self { message_bytes, is_scarce })
    }
}

impl DocumentTeam {
    /// All who have a seat, with the seeds of their signing keys.
    pub(super) fn new(
        seats: &[SimMeshSeat],
        air: BTreeMap<u32, SimDocumentLimits>,
        mut seed: impl FnMut() -> [u8; 32],
    ) -> Result<Self, SimError> {
        let signing: BTreeMap<u32, _> = seats.iter().map(|seat| (seat.node, seed())).collect();
        let term = |seat: &SimMeshSeat| {
            let seed = signing.get(&seat.node).copied().unwrap_or_default();
            let verifying_key = SigningKey::from_seed(&seed)?.verifying_key();
            let since = sealane_seal::Epoch(0);
            Ok(Term { slot: seat.slot, since, until: None, verifying_key })
        };
        let terms = seats.iter().map(term).collect::<Result<Vec<_>, sealane_seal::Error>>();
        let terms = terms.map_err(|error| SimError::Value(format!("documents: {error}")))?;
        Ok(Self { signing, terms, air })
    }

    /// The signing key of a machine.
    pub(super) fn signing_key(&self, node: u32) -> Option<SigningKey> {
        SigningKey::from_seed(self.signing.get(&node)?).ok()
    }
}

/// The documents that a machine keeps, and its messages about them.
pub(super) struct SimDocuments {
    agent: DocumentAgent,
    own: SimMeshSeat,
    group: (Group, GroupTag),
    /// The digest that the mesh tells.
    told: Option<Option<[u8; 8]>>,
    /// Up to where it was said what came.
    seen: DocumentCursor,
    frame: FrameBuf,
}

impl SimDocuments {
    /// None yet. A machine that starts anew asks its neighbours for all.
    pub(super) fn new(
        team: &DocumentTeam,
        own: SimMeshSeat,
        group: (Group, GroupTag),
        epochs: Epochs,
    ) -> Option<Self> {
        let air = team.air.get(&own.node)?;
        let store = DocumentStore::in_memory(ShelfKeeper::Member, DocumentQuota::default()).ok()?;
        let mut agent = DocumentAgent::new(own.slot, store, air.message_bytes);
        agent.set_scarce(air.is_scarce);
        let terms = team.terms.clone();
        let keys = DocumentGroupKeys { group: group.0, tag: group.1, own: own.slot, epochs, terms };
        agent.set_group(keys).ok()?;
        let (seen, frame) = (DocumentCursor::START, FrameBuf::new());
        Some(Self { agent, own, group, told: None, seen, frame })
    }

    /// Seals a document of this machine and keeps it; gives the mark of its frame.
    pub(super) fn write(
        &mut self,
        sealer: &mut Sealer,
        data_type: DataType,
        body: &[u8],
    ) -> Option<SimFrameMark> {
        let (group, tag) = &self.group;
        let class = class_of(&Policy::default(), group, data_type, &Conditions::default()).ok()?;
        let fields = HeaderFields {
            class,
            next_hop: PeerTag::BROADCAST,
            destination: PeerTag::BROADCAST,
            ..HeaderFields::new(*tag, self.own.tag, data_type.number())
        };
        let binding = Binding::stream(&stream_name(*tag, data_type));
        let frame = seal_frame(sealer, &fields, &binding, body, &mut self.frame).ok()?;
        let mark = SimFrameMark::of(frame);
        // A store in memory has no fault, and a quota's refusal is counted by it.
        self.agent.write(frame, self.own.tag).ok()?;
        Some(mark)
    }

    /// Takes what a neighbour's hello says that it holds.
    pub(super) fn hear_digest(&mut self, by: Slot, digest: Option<[u8; 8]>) {
        self.agent.hear_digest(by, digest);
    }

    /// Takes a message of a neighbour.
    pub(super) fn hear(&mut self, by: DocumentNeighbour, message: &[u8]) {
        // The agent counts a fault in the message.
        let _ = self.agent.hear(by, message);
    }

    /// The marks of what others have written and came since this was asked last.
    pub(super) fn news(&mut self) -> Vec<SimFrameMark> {
        let fresh = self.agent.store().since(self.seen, usize::MAX);
        self.seen = fresh.last().map_or(self.seen, |last| last.at);
        let others = fresh.iter().filter(|one| one.entry.origin != self.own.slot);
        others.map(|one| SimFrameMark::of(one.entry.frame())).collect()
    }

    /// Gives the mesh what there is to tell; whether that was anything.
    pub(super) fn tell(
        &mut self,
        now: SimTime,
        mesh: &mut mesh::Mesh,
        sealer: &mut Sealer,
    ) -> bool {
        let at = mesh::MeshTime(now.0);
        let mut has_told = false;
        while let Some(duty) = self.agent.next_duty() {
            // Its group is never keyed anew, so that nothing is to be sealed again.
            if let OriginDuty::GoOn { counter, .. } = duty
                && sealer.next_counter().is_ok_and(|next| counter >= next)
            {
                sealer.go_on_at(counter + 1);
            }
        }
        let digest = self.agent.told_digest();
        if self.told != Some(digest) {
            self.told = Some(digest);
            mesh.take(at, mesh::MeshInput::Digest { digest });
            has_told = true;
        }
        while let Some(lot) = room(mesh) {
            let Some(telling) = self.agent.next_telling(now.0 / 1000, lot) else { break };
            let urgency = match telling.is_urgent {
                true => mesh::SendUrgency::Urgent,
                false => mesh::SendUrgency::Normal,
            };
            mesh.take(
                at,
                mesh::MeshInput::Documents {
                    to: telling.to,
                    urgency,
                    message: telling.message.into(),
                },
            );
            has_told = true;
        }
        has_told
    }
}

impl fmt::Debug for SimDocuments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Documents").field("own", &self.own).finish_non_exhaustive()
    }
}

/// The documents that the mesh has room for.
fn room(mesh: &mesh::Mesh) -> Option<OutboxScope> {
    let has_room = |urgency| mesh.documents_room(urgency) > 0;
    match (has_room(mesh::SendUrgency::Normal), has_room(mesh::SendUrgency::Urgent)) {
        (true, _) => Some(OutboxScope::All),
        (false, true) => Some(OutboxScope::Urgent),
        (false, false) => None,
    }
}
