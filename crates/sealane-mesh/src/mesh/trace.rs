//! Which way leads to a machine: each machine on it says what it knows, and passes the question on.

use sealane_seal::Slot;

use super::Mesh;
use crate::hello::INFINITE;
use crate::limits::{MAX_TRACE_HOPS, MAX_TRACES_PER_SECOND};
use crate::messages::{MessageType, RouteTrace, TraceHop, TraceWay};
use crate::neighbour::LinkId;
use crate::{MeshOutput, MeshSpan, MeshTime, UnitReceiver};

/// How many traces were passed on in this second. Questions take no room of answers.
#[derive(Debug, Default)]
pub(super) struct TraceRates {
    since: MeshTime,
    questions: u32,
    answers: u32,
}

impl TraceRates {
    fn may(&mut self, now: MeshTime, is_answer: bool) -> bool {
        if now.since(self.since) >= MeshSpan::seconds(1) {
            *self = Self { since: now, ..Self::default() };
        }
        let count = if is_answer { &mut self.answers } else { &mut self.questions };
        *count += 1;
        *count <= MAX_TRACES_PER_SECOND
    }
}

impl Mesh {
    /// Asks for the way to a machine. The answer, or that there is none, is an
    /// [`MeshOutput::Traced`]; there may also be nothing, as of any message.
    pub(super) fn trace(&mut self, target: Slot, number: u32) {
        let own = self.voice.slot();
        let trace = RouteTrace {
            is_answer: false,
            is_cut: false,
            to: own,
            number,
            origin: own,
            target,
            hops: vec![],
        };
        self.go_on_tracing(trace);
    }

    pub(super) fn hear_trace(&mut self, by: LinkId, trace: RouteTrace) {
        let is_proven = self.neighbours.get(&by).is_some_and(|one| one.proof.is_proven);
        let is_for_us = trace.to == self.voice.slot() && is_proven;
        if !is_for_us || !self.traces.may(self.now, trace.is_answer) {
            return;
        }
        match trace.is_answer {
            true => self.go_back(trace),
            false => self.go_on_tracing(trace),
        }
    }

    /// Says what this machine knows, and passes a question on or turns it back.
    fn go_on_tracing(&mut self, mut trace: RouteTrace) {
        let own = self.voice.slot();
        let is_loop = trace.hops.iter().any(|hop| hop.slot == own);
        let is_there = trace.target == own;
        let hop = self.table.hop(trace.target).filter(|_| !is_there).copied();
        let via = hop.map(|hop| LinkId { interface: hop.interface, slot: hop.slot });
        let is_last = trace.hops.len() + 1 >= MAX_TRACE_HOPS;
        let round_trip = via.and_then(|via| self.neighbours.get(&via)?.quality.round_trip());
        let round_trip_us = round_trip.and_then(|trip| u32::try_from(trip.0).ok());
        if trace.hops.len() < MAX_TRACE_HOPS {
            let ways = if is_there { vec![] } else { self.trace_ways(trace.target) };
            trace.hops.push(TraceHop { slot: own, round_trip_us, ways });
        }
        match via.filter(|_| !is_loop && !is_last) {
            Some(via) => self.pass_trace(trace, via),
            None => {
                (trace.is_answer, trace.is_cut) = (true, !is_there);
                self.go_back(trace);
            }
        }
    }

    fn trace_ways(&self, target: Slot) -> Vec<TraceWay> {
        let ways = self.ways(target).into_iter();
        ways.map(|way| TraceWay { via: way.via, metric: way.metric().unwrap_or(INFINITE) })
            .collect()
    }

    /// Sends an answer to the machine from which the question came.
    fn go_back(&mut self, trace: RouteTrace) {
        let own = self.voice.slot();
        if trace.origin == own {
            self.outputs.push_back(MeshOutput::Traced(trace));
            return;
        }
        let at = trace.hops.iter().position(|hop| hop.slot == own);
        let before = at.and_then(|at| at.checked_sub(1)).and_then(|at| trace.hops.get(at));
        let Some(before) = before.map(|hop| hop.slot) else { return };
        let near = self.neighbours.values().filter(|one| one.id.slot == before);
        let usable = near.filter_map(|one| Some((one.cost()?, one.id)));
        if let Some((_, via)) = usable.min() {
            self.pass_trace(trace, via);
        }
    }

    /// Sends it to a neighbour, if there is air time.
    fn pass_trace(&mut self, trace: RouteTrace, via: LinkId) {
        let Some(address) = self.neighbours.get(&via).map(|one| one.address) else { return };
        let body = RouteTrace { to: via.slot, ..trace }.to_bytes();
        let Some(interface) = self.interfaces.get_mut(&via.interface) else { return };
        let bytes = crate::interface::COMPACT_BYTES + body.len();
        if interface.may_say(self.now, bytes).is_ok() {
            self.say(via.interface, MessageType::Trace, &body, UnitReceiver::Neighbour(address));
        }
    }
}
