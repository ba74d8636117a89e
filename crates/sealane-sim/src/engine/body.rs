//! A machine as the world sees it: where it is, whether it listens, and what waits to be sent.

use std::collections::VecDeque;

use super::air::ChannelBusy;
use super::slots::SlotId;
use crate::limits::MAX_PORT_WAITING;
use crate::medium::{
    DOT11P_AIFS, DOT11P_SLOT, DOT11P_WINDOW, DOT11P_WINDOW_MOST, RadioDutyWindow, RadioPower,
};
use crate::node::{SimUnitTarget, SimUrgency};
use crate::place::SimPlace;
use crate::scenario::{CapturedBehaviour, MediumPlan, NodePlan};
use crate::{SimSpan, SimTime};

/// The state of a machine.
#[derive(Debug)]
pub(crate) struct SimMachineState {
    /// Where it began.
    pub(crate) home: SimPlace,
    pub(crate) place: SimPlace,
    /// Where it was when that was told last.
    pub(crate) told: SimPlace,
    /// Whether it has a motion that decides where it is.
    pub(crate) is_carried: bool,
    /// Whether it is there: it has joined and not left.
    pub(crate) is_up: bool,
    /// Since when it hears; nothing while it is asleep or away.
    pub(crate) listens: Option<SimTime>,
    /// How often it has joined. What was put on the agenda for an earlier life is not done.
    pub(crate) life: u32,
    /// Machines of different sides of a partition do not hear each other.
    pub(crate) side: u16,
    pub(crate) capture: Option<CapturedBehaviour>,
    pub(crate) battery: Option<SimBattery>,
    pub(crate) ports: Vec<SimPort>,
    /// The tick that is on the agenda.
    pub(crate) wakes: Option<SimTime>,
}

/// The energy left in a battery.
#[derive(Debug)]
pub(crate) struct SimBattery {
    pub(crate) left_j: f64,
    /// Until when it was reckoned.
    reckoned: SimTime,
}

/// A radio, or the plug of a wire.
#[derive(Debug)]
pub(crate) struct SimPort {
    pub(crate) medium: usize,
    power: RadioPower,
    waiting: VecDeque<QueuedUnit>,
    /// Whether an attempt or a transmission is under way.
    pub(crate) is_busy: bool,
    /// Slots of the back-off that are left, and since when it counts.
    pub(crate) backoff: RadioBackoff,
    /// Nothing where it may always send.
    pub(crate) duty: Option<RadioDutyWindow>,
    /// All that it has sent.
    pub(crate) sent: SimSpan,
    /// How long it has heard the channel busy, and until when it last was.
    pub(crate) heard: SimSpan,
    pub(crate) heard_until: SimTime,
    /// How much of both was told to the program.
    pub(crate) told: SimSpan,
    /// The unit to one machine that its radio tries to send, until that is acknowledged.
    pub(crate) trying: Option<UnitRetry>,
    /// The slots of the next back-off are below it.
    pub(crate) window: u64,
    /// How often it has found the channel busy since it sent last, where that is all it can find.
    pub(crate) put_off: u32,
    /// How often it has sent, to tell the chances of one time from those of another.
    pub(crate) transmissions: u64,
}

/// A unit that is sent until it is acknowledged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnitRetry {
    pub(crate) unit: QueuedUnit,
    /// How often it was sent.
    pub(crate) tries: u32,
    /// Whether its receiver has it, and only the acknowledgement was lost.
    pub(crate) is_taken: bool,
}

/// Where a radio stands that waits for its turn.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RadioBackoff {
    pub(crate) slots: u64,
    pub(crate) counts_from: SimTime,
}

/// A unit that waits for a radio.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueuedUnit {
    pub(crate) slot: SlotId,
    pub(crate) to: SimUnitTarget,
    pub(crate) urgency: SimUrgency,
}

impl SimMachineState {
    /// A machine that has not joined yet.
    pub(crate) fn new(plan: &NodePlan, media: &[MediumPlan], home: SimPlace) -> Self {
        let ports = plan.media.iter().filter_map(|&medium| {
            let plan = media.get(medium)?;
            Some(SimPort::new(medium, plan))
        });
        Self {
            home,
            place: home,
            told: home,
            is_carried: plan.motion.is_some(),
            is_up: false,
            listens: None,
            life: 0,
            side: 0,
            capture: None,
            battery: plan.battery_j.map(|left_j| SimBattery { left_j, reckoned: SimTime(0) }),
            ports: ports.collect(),
            wakes: None,
        }
    }

    /// The number of its port on a medium.
    pub(crate) fn port_on(&self, medium: usize) -> Option<usize> {
        self.ports.iter().position(|port| port.medium == medium)
    }

    /// Its port on a medium.
    pub(crate) fn port(&self, medium: usize) -> Option<&SimPort> {
        self.ports.iter().find(|port| port.medium == medium)
    }

    /// The same, to be changed.
    pub(crate) fn port_mut(&mut self, medium: usize) -> Option<&mut SimPort> {
        self.ports.iter_mut().find(|port| port.medium == medium)
    }

    /// Takes what listening has cost since the last time.
    pub(crate) fn reckon(&mut self, now: SimTime) {
        let listens_mw: f64 = match self.listens {
            Some(_) => self.ports.iter().map(|port| port.power.listens_mw).sum(),
            None => 0.0,
        };
        if let Some(battery) = &mut self.battery {
            battery.left_j -= listens_mw / 1e3 * (now - battery.reckoned).as_s();
            battery.reckoned = now;
        }
    }

    /// Takes what a transmission costs beyond listening.
    pub(crate) fn pays(&mut self, port: usize, air: SimSpan) {
        let Some(power) = self.ports.get(port).map(|port| port.power) else { return };
        if let Some(battery) = &mut self.battery {
            battery.left_j -= (power.sends_mw - power.listens_mw).max(0.0) / 1e3 * air.as_s();
        }
    }

    /// Whether it has a battery and nothing left in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.battery.as_ref().is_some_and(|battery| battery.left_j <= 0.0)
    }
}

impl SimPort {
    fn new(medium: usize, plan: &MediumPlan) -> Self {
        Self {
            medium,
            power: plan.power,
            waiting: VecDeque::new(),
            is_busy: false,
            backoff: RadioBackoff::default(),
            duty: (plan.duty_ppm < 1_000_000).then(|| RadioDutyWindow::new(plan.duty_ppm)),
            sent: SimSpan(0),
            heard: SimSpan(0),
            heard_until: SimTime(0),
            told: SimSpan(0),
            trying: None,
            window: DOT11P_WINDOW,
            put_off: 0,
            transmissions: 0,
        }
    }

    /// The channel was busy; what was counted already is not counted twice. Of a transmission that
    /// began before another one and ended after it, the part before is left out. A back-off stood
    /// still meanwhile.
    pub(crate) fn hears(&mut self, starts: SimTime, ends: SimTime) {
        self.heard += ends - starts.max(self.heard_until);
        self.heard_until = self.heard_until.max(ends);
        if self.is_busy {
            self.backoff.stands_still(ChannelBusy { since: starts, until: ends });
        }
    }

    /// Whether a unit found room: behind those that are as urgent.
    pub(crate) fn queue(&mut self, unit: QueuedUnit) -> bool {
        if self.waiting.len() >= MAX_PORT_WAITING {
            return false;
        }
        let at = self.waiting.partition_point(|other| other.urgency <= unit.urgency);
        self.waiting.insert(at, unit);
        true
    }

    /// The next unit to send: again the unit that was not acknowledged, or the first that waits.
    pub(crate) fn next(&mut self) -> Option<QueuedUnit> {
        match self.trying {
            Some(trying) => Some(trying.unit),
            None => self.waiting.pop_front(),
        }
    }

    /// The same, left where it is.
    pub(crate) fn first(&self) -> Option<QueuedUnit> {
        self.trying.map(|trying| trying.unit).or_else(|| self.waiting.front().copied())
    }

    pub(crate) fn has_waiting(&self) -> bool {
        self.trying.is_some() || !self.waiting.is_empty()
    }

    /// Sends a unit that is to be acknowledged, once or once more.
    pub(crate) fn tries(&mut self, unit: QueuedUnit) {
        let fresh = UnitRetry { unit, tries: 0, is_taken: false };
        self.trying.get_or_insert(fresh).tries += 1;
    }

    /// The next back-off is as long again, up to a bound.
    pub(crate) fn widen(&mut self) {
        self.window = (2 * self.window).min(DOT11P_WINDOW_MOST);
    }

    /// Turns to the next unit, whatever became of this one.
    pub(crate) fn give_up(&mut self) {
        self.trying = None;
        self.window = DOT11P_WINDOW;
    }

    /// Forgets what waits, and gives it back to be released.
    pub(crate) fn clear(&mut self) -> VecDeque<QueuedUnit> {
        self.is_busy = false;
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.extend(self.trying.map(|trying| trying.unit));
        self.give_up();
        waiting
    }
}

impl RadioBackoff {
    /// When its slots have passed.
    pub(crate) fn due(self) -> SimTime {
        self.counts_from + SimSpan(self.slots.saturating_mul(DOT11P_SLOT.0))
    }

    /// The channel is or was busy: the slots that passed before are done, and the rest begins when
    /// it has been free for a while.
    pub(crate) fn stands_still(&mut self, busy: ChannelBusy) {
        let passed = (busy.since - self.counts_from).0 / DOT11P_SLOT.0;
        self.slots = self.slots.saturating_sub(passed);
        self.counts_from = self.counts_from.max(busy.until + DOT11P_AIFS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    #[test]
    fn a_back_off_stands_still_while_the_channel_is_busy() {
        let mut backoff = RadioBackoff { slots: 10, counts_from: SimTime(1_000) };
        let busy = |since, until| ChannelBusy { since: SimTime(since), until: SimTime(until) };
        backoff.stands_still(busy(1_000 + 3 * 13 + 5, 2_000));
        assert_eq!((backoff.slots, backoff.counts_from), (7, SimTime(2_110)));
        // Before the channel was free for long enough nothing was counted.
        backoff.stands_still(busy(2_050, 3_000));
        assert_eq!((backoff.slots, backoff.due()), (7, SimTime(3_110 + 7 * 13)));
    }

    #[test]
    fn a_back_off_is_drawn_from_twice_as_many_slots_after_each_try() {
        let text = "version = 1\nduration_s = 1\n[[medium]]\nname = \"m\"\nprofile = \"11p\"\n\
                    [[node]]\nname = \"n\"\nkind = \"mesh\"\nmedia = [\"m\"]\n";
        let mut port = SimPort::new(0, &Scenario::parse(text).unwrap().media[0]);
        let mut windows = vec![port.window];
        (0..8).for_each(|_| {
            port.widen();
            windows.push(port.window);
        });
        assert_eq!(windows, [16, 32, 64, 128, 256, 512, 1024, 1024, 1024]);
        port.give_up();
        assert_eq!(port.window, 16);
    }
}
