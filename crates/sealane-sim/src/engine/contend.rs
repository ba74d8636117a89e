//! When a radio sends: what waits, back-off, and trying again.

use super::air::{ChannelBusy, RadioTransmission, TransmissionKind};
use super::body::{QueuedUnit, RadioBackoff, SimPort};
use super::{SimEvent, SimMedium, SimRun};
use crate::medium::{BLE_ADVERTISING_DELAY, DOT11P_ACK, DOT11P_AIFS, DOT11P_TRIES};
use crate::node::{SimUnitTarget, SimUrgency};
use crate::random::{DrawPurpose, TransmissionDraws};
use crate::watch::{LossReason, RunEvent};
use crate::{SimError, SimMediumProfile, SimSpan, SimTime};

/// A radio of LoRa that finds its channel busy listens again within so many transmissions of its
/// unit: where that controls or is urgent, and else.
const SOON_TIMES: u64 = 4;
const LATER_TIMES: u64 = 16;

impl SimRun<'_> {
    /// A unit for a shared medium: it waits for the radio.
    pub(super) fn queue_for_air(
        &mut self,
        medium: usize,
        node: u32,
        unit: QueuedUnit,
    ) -> Result<(), SimError> {
        let Some(port) = self.body_mut(node).and_then(|body| body.port_mut(medium)) else {
            self.ether.slots.release(unit.slot);
            return Ok(());
        };
        if !port.queue(unit) {
            self.ether.slots.release(unit.slot);
            return self.watch.tells(self.clock.now, node, RunEvent::Drop(LossReason::Full));
        }
        self.contend(medium, node)
    }

    /// Begins to try, if something waits and nothing is under way.
    pub(super) fn contend(&mut self, medium: usize, node: u32) -> Result<(), SimError> {
        let now = self.clock.now;
        let Some(profile) = self.scenario.media.get(medium).map(|plan| plan.profile) else {
            return Ok(());
        };
        let Some(SimMedium::Air(air)) = self.ether.media.get(medium) else { return Ok(()) };
        let Some(body) = self.fleet.bodies.get_mut(node as usize) else { return Ok(()) };
        let (is_awake, life) = (body.listens.is_some(), body.life);
        let Some(port) = body.port(medium) else { return Ok(()) };
        if !is_awake || port.is_busy || !port.has_waiting() {
            return Ok(());
        }
        let draws = TransmissionDraws::new(air.source, node, port.transmissions);
        let busy = profile.notices().and_then(|late| air.busy(node, body, now, late));
        let source = air.source;
        let Some(port) = body.port_mut(medium) else { return Ok(()) };
        port.is_busy = true;
        let at = match profile {
            SimMediumProfile::Lora(_) if busy.is_some() => self.listens_again(medium, node, source),
            SimMediumProfile::Dot11p => {
                port.back_off(now, busy, draws.below(node, DrawPurpose::Wait, port.window))
            }
            SimMediumProfile::BleAdvertising(_) => {
                now + SimSpan(draws.below(node, DrawPurpose::Wait, BLE_ADVERTISING_DELAY.0))
            }
            _ => now,
        };
        if at <= now {
            return self.transmit(medium, node, &profile);
        }
        self.clock.agenda.put(at, SimEvent::Attempt { medium, node, life });
        Ok(())
    }

    /// A radio's turn may have come.
    pub(super) fn attempt(&mut self, medium: usize, node: u32, life: u32) -> Result<(), SimError> {
        let now = self.clock.now;
        if !self.is_alive(node, life) {
            return Ok(());
        }
        let Some(profile) = self.scenario.media.get(medium).map(|plan| plan.profile) else {
            return Ok(());
        };
        let Some(SimMedium::Air(air)) = self.ether.media.get(medium) else { return Ok(()) };
        let Some(body) = self.fleet.bodies.get_mut(node as usize) else { return Ok(()) };
        let is_awake = body.listens.is_some();
        let notices = profile.notices().filter(|_| is_awake);
        let busy = notices.and_then(|late| air.busy(node, body, now, late));
        let source = air.source;
        let Some(port) = body.port_mut(medium) else { return Ok(()) };
        if !is_awake {
            port.is_busy = false;
            return Ok(());
        }
        if matches!(profile, SimMediumProfile::Lora(_)) && busy.is_some() && port.has_waiting() {
            let at = self.listens_again(medium, node, source);
            self.clock.agenda.put(at, SimEvent::Attempt { medium, node, life });
            return Ok(());
        }
        if let Some(busy) = busy {
            port.backoff.stands_still(busy);
        }
        let due = port.backoff.due();
        if matches!(profile, SimMediumProfile::Dot11p) && due > now {
            self.clock.agenda.put(due, SimEvent::Attempt { medium, node, life });
            return Ok(());
        }
        self.transmit(medium, node, &profile)
    }

    /// When a radio of LoRa listens again, which cannot know how long the channel will be busy:
    /// within a while of chance, for what is urgent within a shorter one.
    fn listens_again(&mut self, medium: usize, node: u32, source: u64) -> SimTime {
        let profile = self.scenario.media.get(medium).map(|plan| plan.profile);
        let port = self.fleet.bodies.get_mut(node as usize).and_then(|body| body.port_mut(medium));
        let (Some(profile), Some(port)) = (profile, port) else { return self.clock.now };
        let Some(unit) = port.first() else { return self.clock.now };
        port.put_off += 1;
        let times = if unit.urgency <= SimUrgency::Urgent { SOON_TIMES } else { LATER_TIMES };
        let window = profile.air_time(self.ether.slots.unit(unit.slot).len()).0 * times;
        let number = port.transmissions | u64::from(port.put_off) << 40;
        let late =
            TransmissionDraws::new(source, node, number).below(node, DrawPurpose::Wait, window);
        self.clock.now + SimSpan(late.max(1))
    }

    /// Sends what waits first, or again what nobody has acknowledged.
    fn transmit(
        &mut self,
        medium: usize,
        node: u32,
        profile: &SimMediumProfile,
    ) -> Result<(), SimError> {
        let now = self.clock.now;
        loop {
            let Some(SimMedium::Air(air)) = self.ether.media.get_mut(medium) else { return Ok(()) };
            let Some(body) = self.fleet.bodies.get_mut(node as usize) else { return Ok(()) };
            let Some(index) = body.port_on(medium) else { return Ok(()) };
            let Some(port) = body.ports.get_mut(index) else { return Ok(()) };
            let Some(unit) = port.next() else {
                port.is_busy = false;
                return Ok(());
            };
            let air_time = profile.air_time(self.ether.slots.unit(unit.slot).len());
            if port.duty.as_mut().is_some_and(|duty| !duty.spend(now, air_time)) {
                port.give_up();
                self.ether.slots.release(unit.slot);
                self.watch.tells(now, node, RunEvent::Drop(LossReason::Duty))?;
                continue;
            }
            if profile.acknowledges() && matches!(unit.to, SimUnitTarget::One(_)) {
                // The radio holds it until it is acknowledged, and the transmission beside.
                port.tries(unit);
                self.ether.slots.hold(unit.slot);
            }
            port.sent += air_time;
            port.transmissions += 1;
            port.put_off = 0;
            let transmission = RadioTransmission {
                from: node,
                life: body.life,
                side: body.side,
                place: body.place,
                what: TransmissionKind::Unit { slot: unit.slot, to: unit.to },
                draws: TransmissionDraws::new(air.source, node, port.transmissions),
                starts: now,
                ends: now + air_time,
                over: vec![],
            };
            body.pays(index, air_time);
            let transmission = air.begin(transmission);
            self.clock.agenda.put(now + air_time, SimEvent::End { medium, transmission });
            return Ok(());
        }
    }

    /// A radio answers to a unit for its machine alone, if the machine is still there.
    pub(super) fn acknowledge(
        &mut self,
        medium: usize,
        node: u32,
        life: u32,
        to: u32,
    ) -> Result<(), SimError> {
        let now = self.clock.now;
        let answers = self.is_alive(node, life);
        let body = self.fleet.bodies.get_mut(node as usize);
        let Some(body) = body.filter(|body| answers && body.listens.is_some()) else {
            return self.answered(medium, to, false);
        };
        let Some(SimMedium::Air(air)) = self.ether.media.get_mut(medium) else { return Ok(()) };
        let Some(index) = body.port_on(medium) else { return Ok(()) };
        let Some(port) = body.ports.get_mut(index) else { return Ok(()) };
        port.sent += DOT11P_ACK;
        port.transmissions += 1;
        let transmission = RadioTransmission {
            from: node,
            life,
            side: body.side,
            place: body.place,
            what: TransmissionKind::Acknowledgement { to },
            draws: TransmissionDraws::new(air.source, node, port.transmissions),
            starts: now,
            ends: now + DOT11P_ACK,
            over: vec![],
        };
        body.pays(index, DOT11P_ACK);
        let transmission = air.begin(transmission);
        self.watch.acknowledges(DOT11P_ACK);
        self.clock.agenda.put(now + DOT11P_ACK, SimEvent::End { medium, transmission });
        Ok(())
    }

    /// No acknowledgement came in time.
    pub(super) fn unanswered(
        &mut self,
        medium: usize,
        node: u32,
        life: u32,
    ) -> Result<(), SimError> {
        match self.is_alive(node, life) {
            true => self.answered(medium, node, false),
            false => Ok(()),
        }
    }

    /// A radio knows whether its unit was acknowledged: then it goes on to the next one, and
    /// otherwise it tries again, or has tried often enough. It tells nobody.
    pub(super) fn answered(
        &mut self,
        medium: usize,
        node: u32,
        is_acknowledged: bool,
    ) -> Result<(), SimError> {
        let Some(port) = self.body_mut(node).and_then(|body| body.port_mut(medium)) else {
            return Ok(());
        };
        let Some(trying) = port.trying else { return Ok(()) };
        port.is_busy = false;
        if is_acknowledged || trying.tries >= DOT11P_TRIES {
            port.give_up();
            self.ether.slots.release(trying.unit.slot);
            if !is_acknowledged {
                self.watch.tells(self.clock.now, node, RunEvent::Drop(LossReason::Unanswered))?;
            }
        } else {
            port.widen();
        }
        self.contend(medium, node)
    }
}

impl SimPort {
    /// Begins a back-off by the rules of EDCA, and gives when it is over: at once, where a new unit
    /// finds a channel that has been free for a while.
    fn back_off(&mut self, now: SimTime, busy: Option<ChannelBusy>, slots: u64) -> SimTime {
        let is_free = busy.is_none() && self.heard_until + DOT11P_AIFS <= now;
        if is_free && self.trying.is_none() {
            self.backoff = RadioBackoff { slots: 0, counts_from: now };
            return now;
        }
        let from = busy.map_or(now, |busy| busy.until).max(self.heard_until);
        self.backoff = RadioBackoff { slots, counts_from: from + DOT11P_AIFS };
        self.backoff.due()
    }
}
