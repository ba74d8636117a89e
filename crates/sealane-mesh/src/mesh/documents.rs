//! Messages about documents between neighbours. What they say is not for the mesh to know.

use sealane_seal::Slot;

use super::Mesh;
use super::carry::patience;
use crate::bytes::{MessageBytes, first, version};
use crate::floods::WaitingFrame;
use crate::limits::MAX_DOCUMENTS_WAITING;
use crate::messages::MessageType;
use crate::neighbour::LinkId;
use crate::{
    DocumentAudience, InterfaceId, MeshError, MeshOutput, MeshTime, SendUrgency, UnitReceiver,
};

/// So many times as long as urgent frames do, messages wait: there are few, and none is out of
/// date.
const PATIENCE: u64 = 10;
/// More neighbours than so many are as many.
const CROWD: u64 = 16;
/// In the place of a slot: for each neighbour that hears it.
const ALL: u16 = u16::MAX;

/// Whom a message is for: on the air, and in its body.
#[derive(Debug, Clone, Copy)]
struct DocumentReceiver {
    to: UnitReceiver,
    slot: u16,
}

impl Mesh {
    /// How many messages about documents of an urgency may wait beside those that do. Where air
    /// time is scarce there is room when one can go: what it says is new then, and nobody else has
    /// said it meanwhile.
    pub fn documents_room(&self, urgency: SendUrgency) -> usize {
        let waiting = self.floods.documents();
        let mut scarce = self.documents_moments(urgency);
        match scarce.any(|at| waiting > 0 || at > self.now) {
            true => 0,
            false => MAX_DOCUMENTS_WAITING.saturating_sub(waiting),
        }
    }

    /// When a message about documents can go, on each interface where air time is scarce.
    fn documents_moments(&self, urgency: SendUrgency) -> impl Iterator<Item = MeshTime> {
        let scarce = self.interfaces.iter().filter(|(id, one)| {
            let is_here = |link: &LinkId| link.interface == **id;
            one.medium.has_duty() && self.neighbours.keys().any(is_here)
        });
        scarce.map(move |(_, one)| one.documents_ready(self.now, urgency))
    }

    /// When there is room again, where air time is scarce.
    pub(super) fn documents_wake(&self) -> Option<MeshTime> {
        let kinds = [SendUrgency::Urgent, SendUrgency::Normal].into_iter();
        let all = kinds.flat_map(|urgency| self.documents_moments(urgency));
        all.filter(|at| self.has_documents && *at > self.now).min()
    }

    /// Somebody has said something of documents: all who have something to say to it find different
    /// moments, and the later ones hear the first.
    pub(super) fn rest_documents(&mut self, id: InterfaceId) {
        let others = self.neighbours.keys().filter(|link| link.interface == id).count() as u64;
        let Some(interface) = self.interfaces.get_mut(&id) else { return };
        if !interface.medium.has_duty() || interface.turns.documents_at > self.now {
            return;
        }
        let air = interface.air(interface.medium.documents_bytes());
        let late = self.random.within(air.times(2 * others.min(CROWD)));
        interface.turns.documents_at = self.now + late;
    }

    /// Has a message wait for its turn.
    pub(super) fn tell_documents(
        &mut self,
        to: DocumentAudience,
        urgency: SendUrgency,
        message: &[u8],
    ) {
        match to {
            DocumentAudience::One(slot) => match self.best_link(slot) {
                Some(link) => self.tell_neighbour(link, urgency, message),
                None => self.counters.no_route += 1,
            },
            DocumentAudience::All { but } => {
                for interface in self.interfaces.keys().copied().collect::<Vec<_>>() {
                    self.tell_interface(interface, but, urgency, message);
                }
            }
        }
    }

    fn tell_interface(
        &mut self,
        interface: InterfaceId,
        but: Option<Slot>,
        urgency: SendUrgency,
        message: &[u8],
    ) {
        let here = self.neighbours.keys().filter(|link| link.interface == interface);
        let others: Vec<LinkId> = here.filter(|link| Some(link.slot) != but).copied().collect();
        match others[..] {
            [] => {}
            // The radio sends a message to one neighbour again where it is lost.
            [one] => self.tell_neighbour(one, urgency, message),
            _ => self.wait_documents(
                interface,
                DocumentReceiver { to: UnitReceiver::Everybody, slot: ALL },
                urgency,
                message,
            ),
        }
    }

    fn tell_neighbour(&mut self, link: LinkId, urgency: SendUrgency, message: &[u8]) {
        let Some(neighbour) = self.neighbours.get(&link) else { return };
        let (to, slot) = (UnitReceiver::Neighbour(neighbour.address), link.slot.number());
        self.wait_documents(link.interface, DocumentReceiver { to, slot }, urgency, message);
    }

    fn wait_documents(
        &mut self,
        interface: InterfaceId,
        reader: DocumentReceiver,
        urgency: SendUrgency,
        message: &[u8],
    ) {
        let mut body = vec![first(0)];
        body.extend(reader.slot.to_le_bytes());
        body.extend(message);
        self.wait(WaitingFrame {
            interface,
            to: reader.to,
            frame: body.into(),
            urgency,
            due: self.now,
            until: self.now + patience(SendUrgency::Urgent).times(PATIENCE),
            from: None,
            is_documents: true,
            flood: None,
            heard_of: vec![],
        });
    }

    /// Where a neighbour is heard best.
    fn best_link(&self, slot: Slot) -> Option<LinkId> {
        let all = self.neighbours.values().filter(|one| one.id.slot == slot);
        all.min_by_key(|one| one.cost().unwrap_or(u16::MAX)).map(|one| one.id)
    }

    pub(super) fn send_documents(&mut self, one: &WaitingFrame) {
        let Some(form) = self.interfaces.get(&one.interface).map(|one| one.medium.form) else {
            return;
        };
        let Ok(unit) = self.voice.say(form, MessageType::Documents, &one.frame) else { return };
        self.counters.documents += 1;
        self.counters.documents_bytes += unit.len() as u64;
        self.send(one.interface, one.to, unit, one.urgency);
    }

    /// A neighbour has said hello, and perhaps what it holds.
    pub(super) fn hear_digest(&mut self, by: LinkId, digest: Option<[u8; 8]>, is_proven: bool) {
        if self.has_documents {
            let digest = digest.filter(|_| is_proven);
            self.outputs.push_back(MeshOutput::Digest { by: by.slot, digest });
        }
        if digest.is_some() {
            self.rest_documents(by.interface);
        }
    }

    pub(super) fn hear_documents(&mut self, by: LinkId, body: &[u8]) -> Result<(), MeshError> {
        let mut fields = MessageBytes::new(body);
        if version(fields.byte()?)? != 0 {
            return Err(MeshError::Range);
        }
        let to = fields.word()?;
        let Some((tag, is_proven)) =
            self.neighbours.get(&by).map(|one| (one.tag, one.proof.is_proven))
        else {
            self.counters.stranger += 1;
            return Ok(());
        };
        self.rest_documents(by.interface);
        if to == ALL || to == self.voice.slot().number() {
            let message = fields.rest().to_vec();
            self.outputs.push_back(MeshOutput::Documents { by: by.slot, tag, is_proven, message });
        }
        Ok(())
    }
}
