//! A machine of the mesh as it is shipped, with the documents of a member or of nobody.

use std::collections::VecDeque;

use sealane_document::agent::{DocumentNeighbour, OutboxScope};
use sealane_document::{RegisterEntry, ShelfKeeper};
use sealane_mesh::{
    Config, InterfaceId, Mesh, MeshAddress, MeshInput, MeshMedium, MeshOutput, MeshProvision,
    MeshTime, SendUrgency,
};
use sealane_message::DataType;
use sealane_sim::{BleRate, SimMediumProfile};

use super::{FieldMachine, FieldRadio, FieldUnit};
use crate::failure::Result;
use crate::measure::cpu_ns;
use crate::members::GROUP;
use crate::team::{TeamMember, TeamSeat};

const RADIO: InterfaceId = InterfaceId(0);
/// The bytes that the product puts into one message on media that carry less.
const MESSAGE_BYTES: usize = 180;

/// The mesh that a machine starts in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldMeshSetup<'a> {
    pub(crate) provision: &'a MeshProvision,
    pub(crate) members: u16,
    pub(crate) radio: FieldRadio,
}

/// A machine.
pub(crate) struct FieldMeshMachine {
    mesh: Mesh,
    pub(crate) member: TeamMember,
    told: Option<[u8; 8]>,
    outgoing: VecDeque<FieldUnit>,
    /// Nanoseconds of CPU that all of it has taken, of the mesh and of documents.
    pub(crate) spent_ns: f64,
    /// How often the clock was looked at for it, before and after.
    pub(crate) looks: u64,
}

impl FieldMeshMachine {
    /// Starts a machine on its radio.
    pub(crate) fn start(post: FieldMeshSetup<'_>, slot: u16, keeper: ShelfKeeper) -> Result<Self> {
        let context = (u64::from(slot) + 1).to_le_bytes();
        let keys = post.provision.keys(slot, context, 1)?;
        let mut seed = [7; 32];
        seed[..2].copy_from_slice(&slot.to_le_bytes());
        let mut mesh = Mesh::new(Config { seed, ..Config::default() }, keys, MeshTime(0))?;
        let medium = medium(&post.radio.profile);
        mesh.take(MeshTime(0), MeshInput::Up { interface: RADIO, medium });
        let seat = TeamSeat { slot, members: post.members, keeper, message_bytes: MESSAGE_BYTES };
        let member = TeamMember::new(seat)?;
        let outgoing = VecDeque::new();
        let mut machine = Self { mesh, member, told: None, outgoing, spent_ns: 0.0, looks: 0 };
        machine.settle(MeshTime(0))?;
        Ok(machine)
    }

    /// Writes a document. The field is to be settled after it.
    pub(crate) fn write(
        &mut self,
        now: MeshTime,
        data_type: DataType,
        body: &[u8],
    ) -> Result<Vec<u8>> {
        self.timed(|machine| {
            let frame = machine.member.write(data_type, body)?;
            machine.settle(now)?;
            Ok(frame)
        })
    }

    /// Frames that are kept.
    pub(crate) fn kept(&self) -> usize {
        self.member.agent.store().len()
    }

    /// Lines of chat of a member that are kept.
    pub(crate) fn lines_of(&self, slot: u16) -> usize {
        let registers = self.member.agent.store().registers(GROUP).into_iter();
        let all = registers.flat_map(|registers| registers.iter());
        let is_line = |entry: &&RegisterEntry| {
            entry.origin.number() == slot && entry.data_type == DataType::CHAT
        };
        all.filter(is_line).count()
    }

    fn timed<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let before = cpu_ns();
        let done = work(self);
        self.spent_ns += cpu_ns() - before;
        self.looks += 1;
        done
    }

    fn take(&mut self, now: MeshTime, input: MeshInput<'_>) -> Result<()> {
        self.timed(|machine| {
            machine.mesh.take(now, input);
            machine.settle(now)
        })
    }

    /// Does all that is to be done now.
    fn settle(&mut self, now: MeshTime) -> Result<()> {
        loop {
            let mut is_idle = true;
            while let Some(output) = self.mesh.next_output() {
                is_idle = false;
                self.obey(output)?;
            }
            is_idle &= !self.tell(now)?;
            if is_idle {
                return Ok(());
            }
        }
    }

    fn obey(&mut self, output: MeshOutput) -> Result<()> {
        match output {
            MeshOutput::Send { to, unit: bytes, urgency, .. } => {
                self.outgoing.push_back(FieldUnit { to, bytes, urgency });
                Ok(())
            }
            MeshOutput::Digest { by, digest } => {
                self.member.agent.hear_digest(by, digest);
                Ok(())
            }
            MeshOutput::Documents { by, tag, is_proven, message } => {
                let by = DocumentNeighbour { slot: by, tag, is_proven };
                Ok(self.member.agent.hear(by, &message)?)
            }
            _ => Ok(()),
        }
    }

    /// Tells neighbours as much as the mesh has room for; whether there was anything.
    fn tell(&mut self, now: MeshTime) -> Result<bool> {
        let digest = self.member.agent.told_digest();
        let mut is_told = self.told != digest;
        if is_told {
            self.told = digest;
            self.mesh.take(now, MeshInput::Digest { digest: self.told });
        }
        while let Some(lot) = self.room() {
            let now_ms = now.0 / 1000;
            let Some(telling) = self.member.agent.next_telling(now_ms, lot) else { break };
            is_told = true;
            let urgency = if telling.is_urgent { SendUrgency::Urgent } else { SendUrgency::Normal };
            self.mesh.take(
                now,
                MeshInput::Documents { to: telling.to, urgency, message: telling.message.into() },
            );
        }
        Ok(is_told)
    }

    /// The documents that the mesh has room for.
    fn room(&self) -> Option<OutboxScope> {
        if self.mesh.documents_room(SendUrgency::Normal) > 0 {
            return Some(OutboxScope::All);
        }
        (self.mesh.documents_room(SendUrgency::Urgent) > 0).then_some(OutboxScope::Urgent)
    }
}

impl FieldMachine for FieldMeshMachine {
    fn heard(&mut self, now: MeshTime, from: usize, unit: &[u8]) -> Result<()> {
        let from = MeshAddress(from as u64);
        self.take(now, MeshInput::Heard { interface: RADIO, from, unit: unit.into() })
    }

    fn tick(&mut self, now: MeshTime) -> Result<()> {
        self.take(now, MeshInput::Tick)
    }

    fn next_unit(&mut self) -> Option<FieldUnit> {
        self.outgoing.pop_front()
    }

    fn next_wake(&self) -> Option<MeshTime> {
        self.mesh.next_wake()
    }
}

/// The description of its radio that the machine is given.
fn medium(profile: &SimMediumProfile) -> MeshMedium {
    let medium = MeshMedium::ble(profile.unit_bytes());
    match profile {
        SimMediumProfile::BleConnection { rate: BleRate::TwoM, .. } => {
            MeshMedium { bytes_per_second: 2 * medium.bytes_per_second, ..medium }
        }
        _ => medium,
    }
}
