//! A program that says now and then that it is there.

use std::sync::Arc;

use super::{Effect, Input, Send, To, Urgency};
use crate::{Random, Span, Time};

/// Sends a beacon on every port, at a time of chance within each period, so that machines that
/// begin together do not stay together.
#[derive(Debug)]
pub(crate) struct Beacon {
    node: u32,
    every: Span,
    /// The unit that was sent last. It is written anew once nobody else holds it.
    unit: Arc<[u8]>,
    random: Random,
    ports: usize,
    sequence: u32,
    /// When the period began.
    period: Time,
    next: Time,
}

impl Beacon {
    pub(super) fn new(node: u32, every: Span, bytes: usize, mut random: Random, now: Time) -> Self {
        let next = now + Span(random.below(every.0));
        let unit = vec![0; bytes].into();
        Self { node, every, unit, random, ports: 0, sequence: 0, period: now, next }
    }

    #[inline]
    pub(super) fn next_wake(&self) -> Time {
        self.next
    }

    #[inline]
    pub(super) fn take(&mut self, now: Time, input: Input<'_>, effects: &mut Vec<Effect>) {
        match input {
            Input::Up { port, .. } => self.ports = self.ports.max(port + 1),
            Input::Tick if now >= self.next => self.send(effects),
            Input::Heard { .. } | Input::Load { .. } | Input::Offer(_) | Input::Tick => {}
        }
    }

    #[inline(never)]
    fn send(&mut self, effects: &mut Vec<Effect>) {
        let head = self.node.to_le_bytes().into_iter().chain(self.sequence.to_le_bytes());
        let unit = Arc::make_mut(&mut self.unit);
        unit.iter_mut().zip(head).for_each(|(place, byte)| *place = byte);
        for port in 0..self.ports {
            let (to, urgency) = (To::Everybody, Urgency::Control);
            effects.push(Effect::Send(Send { port, to, unit: Arc::clone(&self.unit), urgency }));
        }
        self.sequence = self.sequence.wrapping_add(1);
        self.period = self.period + self.every;
        self.next = self.period + Span(self.random.below(self.every.0));
    }
}
