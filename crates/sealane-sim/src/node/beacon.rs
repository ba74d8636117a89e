//! A program that says now and then that it is there.

use std::sync::Arc;

use super::{ProgramEffect, ProgramInput, SimOutgoingUnit, SimUnitTarget, SimUrgency};
use crate::{SimRandom, SimSpan, SimTime};

/// Sends a beacon on every port, at a time of chance within each period, so that machines that
/// begin together do not stay together.
#[derive(Debug)]
pub(crate) struct BeaconProgram {
    node: u32,
    every: SimSpan,
    /// The unit that was sent last. It is written anew once nobody else holds it.
    unit: Arc<[u8]>,
    random: SimRandom,
    ports: usize,
    sequence: u32,
    /// When the period began.
    period: SimTime,
    next: SimTime,
}

impl BeaconProgram {
    pub(super) fn new(
        node: u32,
        every: SimSpan,
        bytes: usize,
        mut random: SimRandom,
        now: SimTime,
    ) -> Self {
        let next = now + SimSpan(random.below(every.0));
        let unit = vec![0; bytes].into();
        Self { node, every, unit, random, ports: 0, sequence: 0, period: now, next }
    }

    #[inline]
    pub(super) fn next_wake(&self) -> SimTime {
        self.next
    }

    #[inline]
    pub(super) fn take(
        &mut self,
        now: SimTime,
        input: ProgramInput<'_>,
        effects: &mut Vec<ProgramEffect>,
    ) {
        match input {
            ProgramInput::Up { port, .. } => self.ports = self.ports.max(port + 1),
            ProgramInput::Tick if now >= self.next => self.send(effects),
            ProgramInput::Heard { .. }
            | ProgramInput::Load { .. }
            | ProgramInput::Offer(_)
            | ProgramInput::Tick => {}
        }
    }

    #[inline(never)]
    fn send(&mut self, effects: &mut Vec<ProgramEffect>) {
        let head = self.node.to_le_bytes().into_iter().chain(self.sequence.to_le_bytes());
        let unit = Arc::make_mut(&mut self.unit);
        unit.iter_mut().zip(head).for_each(|(place, byte)| *place = byte);
        for port in 0..self.ports {
            let (to, urgency) = (SimUnitTarget::Everybody, SimUrgency::Control);
            effects.push(ProgramEffect::Send(SimOutgoingUnit {
                port,
                to,
                unit: Arc::clone(&self.unit),
                urgency,
            }));
        }
        self.sequence = self.sequence.wrapping_add(1);
        self.period = self.period + self.every;
        self.next = self.period + SimSpan(self.random.below(self.every.0));
    }
}
