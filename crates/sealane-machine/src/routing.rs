//! The keys of the machine that finds neighbours and routes, and what people are told of it.

use sealane_frame::PeerTag;
use sealane_group::{EpochSource, GroupMembership};
use sealane_link::{LinkRelay, RoutingHandle, RoutingSecrets};
use sealane_mesh::{MeshEvent, MeshOutput};
use sealane_seal::{Epoch, Slot};
use tracing::{info, warn};

use crate::Result;
use crate::orders::ObeyingMember;
use crate::page::random;

/// The mesh's group, while its machine runs.
pub(crate) struct RoutingGroup {
    obeying: ObeyingMember,
    router: Option<RoutingHandle>,
    /// The machine's knowledge of the group.
    known: GroupFingerprint,
    /// The last message about the group.
    said: Option<String>,
}

/// As much of a group as tells whether it has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct GroupFingerprint {
    orders: u64,
    epoch: Epoch,
    members: Vec<Slot>,
}

impl RoutingGroup {
    /// Begins with the mesh's group, as the machine's key folder has it.
    ///
    /// # Errors
    /// The key folder's refusal, or a system without random bytes.
    pub(crate) fn begin(member: GroupMembership) -> Result<(RoutingGroup, RoutingSecrets)> {
        let secrets =
            RoutingSecrets { keys: member.as_provisioned()?.mesh_keys()?, seed: random()? };
        let known = GroupFingerprint::of(&member);
        let obeying = ObeyingMember::new(member, "mesh");
        Ok((RoutingGroup { obeying, router: None, known, said: None }, secrets))
    }

    /// The slot of this machine in the mesh's group.
    pub(crate) fn slot(&self) -> Slot {
        self.obeying.member.slot()
    }

    /// The machine's own address in the mesh.
    ///
    /// # Errors
    /// The refusal of the group.
    pub(crate) fn tag(&self) -> Result<PeerTag> {
        Ok(self.obeying.member.source()?)
    }

    /// Goes on beside a relay that runs.
    pub(crate) fn follow_with(&mut self, relay: &LinkRelay) {
        self.router = relay.router();
        if let Some(router) = &self.router {
            router.listen(Box::new(tell));
        }
        self.obeying.follow_with(relay);
    }

    /// Reads what the group has become, and has the machine follow. To be called once a second.
    pub(crate) fn follow(&mut self) {
        let outcome = self.try_follow().map_err(|error| error.to_string());
        // The same fault each second would bury all other lines.
        if let Err(error) = &outcome
            && self.said.as_ref() != Some(error)
        {
            warn!("the mesh's group: {error}; routing goes on as it was");
        }
        self.said = outcome.err();
    }

    fn try_follow(&mut self) -> Result<(), sealane_group::Error> {
        self.obeying.obey();
        self.obeying.member.reload()?;
        self.obeying.feed()?;
        let now = GroupFingerprint::of(&self.obeying.member);
        // Deriving the keys of all epochs is costly, and this runs once a second.
        if now == self.known {
            return Ok(());
        }
        let rekeyed = self.obeying.member.as_provisioned()?.mesh_rekeyed()?;
        let router = self.router.as_ref();
        // If the machine has too much to do, it follows a second later.
        if router.is_some_and(|router| router.rekey(rekeyed).is_ok()) {
            info!("the mesh's group has changed: its members and keys are known");
            // The state moves only if the machine took the keys. A full machine is asked again a
            // second later.
            self.known = now;
        }
        Ok(())
    }
}

impl GroupFingerprint {
    fn of(member: &GroupMembership) -> GroupFingerprint {
        let members = member.addresses().into_iter().map(|(slot, _)| slot).collect();
        GroupFingerprint { orders: member.orders(), epoch: member.epochs().newest(), members }
    }
}

/// Logs what people want to know at once.
fn tell(output: &MeshOutput) {
    let MeshOutput::Event(event) = output else { return };
    match event {
        MeshEvent::NeighbourFound { slot, .. } => {
            info!("mesh: slot {} is a neighbour", slot.number());
        }
        MeshEvent::NeighbourLost { slot, .. } => {
            info!("mesh: slot {} is no neighbour any more", slot.number());
        }
        MeshEvent::BlackHole { via, gateway } => warn!(
            "mesh: frames for the gateway in slot {} vanish behind slot {}, which is avoided",
            gateway.number(),
            via.number()
        ),
        MeshEvent::Faulty { slot } => {
            warn!("mesh: slot {} sends what no machine sends", slot.number());
        }
        MeshEvent::OwnSlotHeard => warn!(
            "mesh: another machine sends with this machine's keys, or its own frames come back: \
             each machine needs a key folder of its own"
        ),
        _ => {}
    }
}
