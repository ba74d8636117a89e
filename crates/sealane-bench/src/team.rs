//! Members of a team that keep documents, with fixed secrets: what is measured is work, and nothing
//! here is secret.

use sealane_document::agent::{DocumentGroupKeys, StrangerGroup};
use sealane_document::{DocumentAgent, DocumentQuota, DocumentStore, ShelfKeeper, stream_name};
use sealane_frame::{FrameBuf, HeaderFields, PeerTag, seal_frame};
use sealane_message::DataType;
use sealane_seal::policy::{Conditions, Policy};
use sealane_seal::{
    Binding, Epoch, EpochSecret, Epochs, Group, History, Sealer, SigningKey, Slot, Suite, Term,
};

use crate::failure::{BenchFailure, Result};
use crate::members::{GROUP, GROUP_ID, draw_context};

/// The application log that lines of class C are kept in.
pub(crate) const LOG: DataType = DataType::from_number(72);

/// A member, or a machine that keeps what members say and has no keys.
pub(crate) struct TeamMember {
    pub(crate) agent: DocumentAgent,
    pub(crate) slot: Slot,
    pub(crate) tag: PeerTag,
    origin: Option<TeamOrigin>,
    buf: FrameBuf,
}

/// The state with which a member seals.
struct TeamOrigin {
    sealer: Sealer,
    group: Group,
    policy: Policy,
}

/// The identity of a machine of a team.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TeamSeat {
    pub(crate) slot: u16,
    pub(crate) members: u16,
    pub(crate) keeper: ShelfKeeper,
    /// The bytes that a message to neighbours fills where it can.
    pub(crate) message_bytes: usize,
}

impl TeamMember {
    /// A machine that has kept nothing yet.
    pub(crate) fn new(seat: TeamSeat) -> Result<Self> {
        let slot =
            Slot::new(seat.slot).ok_or_else(|| BenchFailure::broken("a machine without keys"))?;
        let store = DocumentStore::in_memory(seat.keeper, DocumentQuota::default())?;
        let mut agent = DocumentAgent::new(slot, store, seat.message_bytes);
        let origin = match seat.keeper {
            ShelfKeeper::Relay => {
                let members = (0..seat.members).filter_map(Slot::new);
                let members = members.map(|slot| (slot, tag(slot.number()))).collect();
                agent.set_strangers(vec![StrangerGroup {
                    group: GROUP,
                    newest: Epoch(0),
                    members,
                }]);
                None
            }
            ShelfKeeper::Member => {
                let keys = keys(slot, seat.members)?;
                let mut sealer = Sealer::new(keys.group, slot, draw_context()?, &keys.epochs, 0)?;
                sealer.set_signing_key(signing(slot)?);
                let (group, policy) = (keys.group, Policy::default());
                agent.set_group(keys)?;
                Some(TeamOrigin { sealer, group, policy })
            }
        };
        Ok(Self { agent, slot, tag: tag(seat.slot), origin, buf: FrameBuf::new() })
    }

    /// A document as it travels, in the class that the policy gives its type.
    pub(crate) fn seal(&mut self, data_type: DataType, body: &[u8]) -> Result<&[u8]> {
        let origin =
            self.origin.as_mut().ok_or_else(|| BenchFailure::broken("a machine without keys"))?;
        let decision = origin.policy.decide(data_type, &Conditions::default());
        let class = origin.policy.class_in(&origin.group, data_type, &decision)?;
        let fields = HeaderFields {
            class,
            next_hop: PeerTag::BROADCAST,
            destination: PeerTag::BROADCAST,
            ..HeaderFields::new(GROUP, self.tag, data_type.number())
        };
        let binding = Binding::stream(&stream_name(GROUP, data_type));
        Ok(seal_frame(&mut origin.sealer, &fields, &binding, body, &mut self.buf)?)
    }

    /// Seals a document and keeps it, so that neighbours are told.
    pub(crate) fn write(&mut self, data_type: DataType, body: &[u8]) -> Result<Vec<u8>> {
        let frame = self.seal(data_type, body)?.to_vec();
        self.agent.write(&frame, self.tag)?;
        Ok(frame)
    }
}

/// As the report's recipe has it.
const SUITE: Suite = Suite::ChaCha20Poly1305;

fn keys(own: Slot, members: u16) -> Result<DocumentGroupKeys> {
    let group = Group::new(GROUP_ID, SUITE);
    let secret = EpochSecret::new([1; 32]);
    let epochs = Epochs::new(group.id(), History::Kept, Epoch(0), secret);
    let mut terms = Vec::new();
    for slot in (0..members).filter_map(Slot::new) {
        let verifying_key = signing(slot)?.verifying_key();
        terms.push(Term { slot, since: Epoch(0), until: None, verifying_key });
    }
    Ok(DocumentGroupKeys { group, tag: GROUP, own, epochs, terms })
}

fn signing(slot: Slot) -> Result<SigningKey> {
    let [low, high] = slot.number().to_le_bytes();
    let mut seed = [0x5a; 32];
    seed[..2].copy_from_slice(&[low, high]);
    Ok(SigningKey::from_seed(&seed)?)
}

fn tag(slot: u16) -> PeerTag {
    let [low, high] = slot.to_le_bytes();
    PeerTag::from_hash([8, low, high, 1, 1, 1, 1, 1])
}
