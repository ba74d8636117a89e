//! A program that sends on each message that it hears for the first time, unless others do: the
//! plain flood that a routing protocol is measured beside.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::{ProgramEffect, ProgramInput, SimOffer, SimOutgoingUnit, SimUnitTarget, SimUrgency};
use crate::{SimMediumProfile, SimRandom, SimSpan, SimTime};

/// How many messages are known again.
const KNOWN: usize = 4096;
/// A message that was heard so often while it waited is not sent on.
const COPIES: u32 = 2;
/// How long a message waits at most before it is sent on, in transmissions of its length.
const WAIT_TRANSMISSIONS: u64 = 16;
const MARK: u8 = b'F';
const EVERYBODY: u32 = u32::MAX;
/// Mark, hops left, message, receiver, urgency.
const HEADER_BYTES: usize = 1 + 1 + 8 + 4 + 1;

/// See the module.
#[derive(Debug)]
pub(crate) struct FloodProgram {
    node: u32,
    hops: u8,
    random: SimRandom,
    ports: Vec<Option<SimMediumProfile>>,
    known: BTreeSet<u64>,
    order: VecDeque<u64>,
    waiting: BTreeMap<u64, FloodPending>,
}

#[derive(Debug)]
struct FloodPending {
    at: SimTime,
    copies: u32,
    unit: Arc<[u8]>,
    urgency: SimUrgency,
}

impl FloodProgram {
    pub(super) fn new(node: u32, hops: u8, random: SimRandom) -> Self {
        Self {
            node,
            hops,
            random,
            ports: vec![],
            known: BTreeSet::new(),
            order: VecDeque::new(),
            waiting: BTreeMap::new(),
        }
    }

    pub(super) fn next_wake(&self) -> Option<SimTime> {
        // Asked after each unit that is heard; mostly nothing waits.
        if self.waiting.is_empty() {
            return None;
        }
        self.waiting.values().map(|waiting| waiting.at).min()
    }

    #[inline(never)]
    pub(super) fn take(
        &mut self,
        now: SimTime,
        input: ProgramInput<'_>,
        effects: &mut Vec<ProgramEffect>,
    ) {
        match input {
            ProgramInput::Up { port, profile, .. } => {
                self.ports.resize(self.ports.len().max(port + 1), None);
                if let Some(place) = self.ports.get_mut(port) {
                    *place = Some(*profile);
                }
            }
            ProgramInput::Heard { port, unit, .. } => self.heard(now, port, unit, effects),
            ProgramInput::Offer(offer) => self.offer(offer, effects),
            ProgramInput::Load { .. } => {}
            ProgramInput::Tick => self.send_due(now, effects),
        }
    }

    fn offer(&mut self, offer: &SimOffer, effects: &mut Vec<ProgramEffect>) {
        self.remember(offer.message);
        let urgency = if offer.is_urgent { SimUrgency::Urgent } else { SimUrgency::Normal };
        let mut unit = vec![MARK, self.hops];
        unit.extend(offer.message.to_le_bytes());
        unit.extend(offer.to.unwrap_or(EVERYBODY).to_le_bytes());
        unit.push(u8::from(offer.is_urgent));
        // The number of the message is a part of it.
        unit.resize(HEADER_BYTES + offer.bytes.saturating_sub(8), 0);
        self.send(&unit.into(), urgency, effects);
    }

    fn heard(&mut self, now: SimTime, port: usize, unit: &[u8], effects: &mut Vec<ProgramEffect>) {
        let Some(header) = FloodHeader::read(unit) else { return };
        if let Some(waiting) = self.waiting.get_mut(&header.message) {
            waiting.copies += 1;
            if waiting.copies >= COPIES {
                self.waiting.remove(&header.message);
            }
            return;
        }
        if !self.remember(header.message) {
            return;
        }
        let is_mine = header.to == self.node;
        if is_mine || header.to == EVERYBODY {
            effects.push(ProgramEffect::Deliver { message: header.message });
        }
        let Some(left) = header.hops.checked_sub(1).filter(|left| *left > 0 && !is_mine) else {
            return;
        };
        let profile = self.ports.get(port).copied().flatten();
        let air = profile.map_or(SimSpan(1000), |profile| profile.air_time(unit.len()));
        let at = now + SimSpan(self.random.below(WAIT_TRANSMISSIONS * air.0) + 1);
        let mut unit = unit.to_vec();
        if let Some(hops) = unit.get_mut(1) {
            *hops = left;
        }
        let urgency = if header.is_urgent { SimUrgency::Urgent } else { SimUrgency::Normal };
        self.waiting
            .insert(header.message, FloodPending { at, copies: 1, unit: unit.into(), urgency });
    }

    fn send_due(&mut self, now: SimTime, effects: &mut Vec<ProgramEffect>) {
        let due = self.waiting.iter().filter(|(_, waiting)| waiting.at <= now);
        let due: Vec<u64> = due.map(|(message, _)| *message).collect();
        for message in due {
            if let Some(waiting) = self.waiting.remove(&message) {
                self.send(&waiting.unit, waiting.urgency, effects);
            }
        }
    }

    fn send(&self, unit: &Arc<[u8]>, urgency: SimUrgency, effects: &mut Vec<ProgramEffect>) {
        for port in (0..).zip(&self.ports).filter_map(|(port, up)| up.map(|_| port)) {
            let (to, unit) = (SimUnitTarget::Everybody, Arc::clone(unit));
            effects.push(ProgramEffect::Send(SimOutgoingUnit { port, to, unit, urgency }));
        }
    }

    /// Whether it is new.
    fn remember(&mut self, message: u64) -> bool {
        let is_new = self.known.insert(message);
        if is_new {
            self.order.push_back(message);
        }
        if self.order.len() > KNOWN
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
            self.waiting.remove(&oldest);
        }
        is_new
    }
}

struct FloodHeader {
    hops: u8,
    message: u64,
    to: u32,
    is_urgent: bool,
}

impl FloodHeader {
    /// Anything may be in the air.
    fn read(unit: &[u8]) -> Option<Self> {
        let (&[mark, hops], rest) = unit.split_first_chunk::<2>()?;
        let (message, rest) = rest.split_first_chunk::<8>()?;
        let (to, rest) = rest.split_first_chunk::<4>()?;
        let is_urgent = *rest.first()? == 1;
        let (message, to) = (u64::from_le_bytes(*message), u32::from_le_bytes(*to));
        (mark == MARK).then_some(FloodHeader { hops, message, to, is_urgent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BleRate;

    fn flood(node: u32) -> FloodProgram {
        let mut flood = FloodProgram::new(node, 3, SimRandom::new(1, "test", u64::from(node)));
        let profile = SimMediumProfile::BleAdvertising(BleRate::OneM);
        flood.take(
            SimTime(0),
            ProgramInput::Up { port: 0, profile: &profile, duty_ppm: 1 },
            &mut vec![],
        );
        flood
    }

    fn unit(effects: &[ProgramEffect]) -> Vec<u8> {
        let sends = effects.iter().find_map(|effect| match effect {
            ProgramEffect::Send(send) => Some(send.unit.to_vec()),
            _ => None,
        });
        sends.unwrap()
    }

    #[test]
    fn a_message_goes_on_once_with_one_hop_less_and_ends_at_its_receiver() {
        let [mut one, mut two, mut three] = [1, 2, 3].map(flood);
        let (mut sent, mut on, mut there) = (vec![], vec![], vec![]);
        let offer =
            SimOffer { message: 77, to: Some(3), bytes: 20, is_urgent: true, document: None };
        one.take(SimTime(0), ProgramInput::Offer(&offer), &mut sent);
        assert_eq!(unit(&sent).len(), HEADER_BYTES + 12);
        two.take(SimTime(9), ProgramInput::Heard { port: 0, from: 9, unit: &unit(&sent) }, &mut on);
        assert!(on.is_empty() && two.next_wake() > Some(SimTime(9)));
        let wake = two.next_wake().unwrap();
        two.take(wake, ProgramInput::Tick, &mut on);
        assert_eq!((unit(&on)[1], two.next_wake()), (2, None));
        three.take(wake, ProgramInput::Heard { port: 0, from: 9, unit: &unit(&on) }, &mut there);
        three.take(wake, ProgramInput::Heard { port: 0, from: 9, unit: &unit(&on) }, &mut there);
        assert_eq!(there, [ProgramEffect::Deliver { message: 77 }]);
    }

    #[test]
    fn what_two_others_have_sent_is_not_sent_again_and_rubbish_is_nothing() {
        let [mut one, mut two] = [1, 2].map(flood);
        let (mut sent, mut on) = (vec![], vec![]);
        let offer = SimOffer { message: 5, to: None, bytes: 8, is_urgent: false, document: None };
        one.take(SimTime(0), ProgramInput::Offer(&offer), &mut sent);
        two.take(SimTime(1), ProgramInput::Heard { port: 0, from: 9, unit: &unit(&sent) }, &mut on);
        two.take(SimTime(2), ProgramInput::Heard { port: 0, from: 9, unit: &unit(&sent) }, &mut on);
        assert_eq!((on.len(), two.next_wake()), (1, None), "delivered, and not sent on");
        for length in 0..HEADER_BYTES {
            two.take(
                SimTime(3),
                ProgramInput::Heard { port: 0, from: 9, unit: &unit(&sent)[..length] },
                &mut on,
            );
        }
        assert_eq!(on.len(), 1);
    }
}
