//! A machine of the mesh as it is shipped, with the documents of a member or of nobody.

use std::collections::VecDeque;

use sealane_document::agent::{Audience, Lot, Neighbour};
use sealane_document::{Entry, Keeper};
use sealane_mesh::{
    Address, Config, Input, InterfaceId, Medium, Mesh, Output, Provision, Time, Urgency,
};
use sealane_message::DataType;
use sealane_sim::{BleRate, Profile};

use super::{Error, Machine, Radio, Unit};
use crate::measure::cpu_ns;
use crate::members::GROUP;
use crate::team::{Member, Seat};

const RADIO: InterfaceId = InterfaceId(0);
/// The bytes that the product puts into one message on media that carry less.
const MESSAGE_BYTES: usize = 180;

/// The mesh that a machine starts in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Post<'a> {
    pub(crate) provision: &'a Provision,
    pub(crate) members: u16,
    pub(crate) radio: Radio,
}

/// A machine.
pub(crate) struct Ours {
    mesh: Mesh,
    pub(crate) member: Member,
    told: Option<[u8; 8]>,
    outgoing: VecDeque<Unit>,
    /// Nanoseconds of CPU that all of it has taken, of the mesh and of documents.
    pub(crate) spent_ns: f64,
    /// How often the clock was looked at for it, before and after.
    pub(crate) looks: u64,
}

impl Ours {
    /// Starts a machine on its radio.
    pub(crate) fn start(post: Post<'_>, slot: u16, keeper: Keeper) -> Result<Self, Error> {
        let context = (u64::from(slot) + 1).to_le_bytes();
        let keys = post.provision.keys(slot, context, 1)?;
        let mut seed = [7; 32];
        seed[..2].copy_from_slice(&slot.to_le_bytes());
        let mut mesh = Mesh::new(Config { seed, ..Config::default() }, keys, Time(0))?;
        let medium = medium(&post.radio.profile);
        mesh.take(Time(0), Input::Up { interface: RADIO, medium });
        let seat = Seat { slot, members: post.members, keeper, message_bytes: MESSAGE_BYTES };
        let member = Member::new(seat)?;
        let outgoing = VecDeque::new();
        let mut machine = Self { mesh, member, told: None, outgoing, spent_ns: 0.0, looks: 0 };
        machine.settle(Time(0))?;
        Ok(machine)
    }

    /// Writes a document. The field is to be settled after it.
    pub(crate) fn write(
        &mut self,
        now: Time,
        data_type: DataType,
        body: &[u8],
    ) -> Result<Vec<u8>, Error> {
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
        let is_line =
            |entry: &&Entry| entry.origin.number() == slot && entry.data_type == DataType::CHAT;
        all.filter(is_line).count()
    }

    fn timed<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        let before = cpu_ns();
        let done = work(self);
        self.spent_ns += cpu_ns() - before;
        self.looks += 1;
        done
    }

    fn take(&mut self, now: Time, input: Input<'_>) -> Result<(), Error> {
        self.timed(|machine| {
            machine.mesh.take(now, input);
            machine.settle(now)
        })
    }

    /// Does all that is to be done now.
    fn settle(&mut self, now: Time) -> Result<(), Error> {
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

    fn obey(&mut self, output: Output) -> Result<(), Error> {
        match output {
            Output::Send { to, unit: bytes, urgency, .. } => {
                self.outgoing.push_back(Unit { to, bytes, urgency });
                Ok(())
            }
            Output::Digest { by, digest } => {
                self.member.agent.hear_digest(by, digest);
                Ok(())
            }
            Output::Documents { by, tag, is_proven, message } => {
                let by = Neighbour { slot: by, tag, is_proven };
                Ok(self.member.agent.hear(by, &message)?)
            }
            _ => Ok(()),
        }
    }

    /// Tells neighbours as much as the mesh has room for; whether there was anything.
    fn tell(&mut self, now: Time) -> Result<bool, Error> {
        let digest = self.member.agent.told_digest();
        let mut is_told = self.told != digest;
        if is_told {
            self.told = digest;
            self.mesh.take(now, Input::Digest { digest: self.told });
        }
        while let Some(lot) = self.room() {
            let now_ms = now.0 / 1000;
            let Some(telling) = self.member.agent.next_telling(now_ms, lot) else { break };
            is_told = true;
            let to = match telling.to {
                Audience::One(slot) => sealane_mesh::Audience::One(slot),
                Audience::All { but } => sealane_mesh::Audience::All { but },
            };
            let urgency = if telling.is_urgent { Urgency::Urgent } else { Urgency::Normal };
            self.mesh.take(now, Input::Documents { to, urgency, message: &telling.message });
        }
        Ok(is_told)
    }

    /// The documents that the mesh has room for.
    fn room(&self) -> Option<Lot> {
        if self.mesh.documents_room(Urgency::Normal) > 0 {
            return Some(Lot::All);
        }
        (self.mesh.documents_room(Urgency::Urgent) > 0).then_some(Lot::Urgent)
    }
}

impl Machine for Ours {
    fn heard(&mut self, now: Time, from: usize, unit: &[u8]) -> Result<(), Error> {
        let from = Address(from as u64);
        self.take(now, Input::Heard { interface: RADIO, from, unit })
    }

    fn tick(&mut self, now: Time) -> Result<(), Error> {
        self.take(now, Input::Tick)
    }

    fn next_unit(&mut self) -> Option<Unit> {
        self.outgoing.pop_front()
    }

    fn next_wake(&self) -> Option<Time> {
        self.mesh.next_wake()
    }
}

/// The description of its radio that the machine is given.
fn medium(profile: &Profile) -> Medium {
    let medium = Medium::ble(profile.unit_bytes());
    match profile {
        Profile::BleConnection { rate: BleRate::TwoM, .. } => {
            Medium { bytes_per_second: 2 * medium.bytes_per_second, ..medium }
        }
        _ => medium,
    }
}
