//! The actions of a machine when their time has come.

use super::Mesh;
use crate::interface::NewsCause;
use crate::limits::{MESH_PROBES, MIN_REPORT_PAUSE_MS};
use crate::messages::MissingParts;
use crate::neighbour::{LinkId, MeshNeighbour, NeighbourPresence};
use crate::routes::is_later;
use crate::{
    InterfaceId, MachineRole, MeshEvent, MeshSpan, MeshTime, MessageType, NeighbourProbe,
    SendUrgency, UnitReceiver,
};

impl Mesh {
    pub(super) fn tick(&mut self) {
        // Most of the time nothing is due: no list is made before.
        let mut at = 0;
        while let Some((id, interface)) = self.interfaces.iter().nth(at) {
            at += 1;
            if interface.due() <= self.now {
                self.tick_interface(*id);
            }
        }
        if self.now >= self.neighbours_at {
            self.tick_neighbours();
        }
        if self.now >= self.second_at {
            self.second_at = self.now + MeshSpan::seconds(1);
            self.voice.allow_trials();
            self.bad_signatures.clear();
            let longest = self.interfaces.values().map(|one| one.hello.interval).max();
            self.routes.pace(longest.unwrap_or_default());
            let voice = &self.voice;
            self.routes.sweep(self.now, |slot| voice.is_member(slot));
            // Routes run out, and the blamed are forgiven.
            self.is_stale = true;
        }
        if self.starving_at.is_some_and(|at| at <= self.now) {
            self.ask_again();
        }
        if self.raise_at().is_some_and(|at| at <= self.now) {
            self.raise_wanted();
        }
        if !self.has_asked && self.remembered_until().is_some_and(|at| at <= self.now) {
            self.ask_first();
        }
        if self.config.role == MachineRole::Gateway
            && self.report_at.is_some_and(|at| at <= self.now)
        {
            self.report();
            let rest = if self.reports.is_quiet() { QUIET_REPORTS } else { 1 };
            self.report_at = Some(self.now + self.report_pause().times(rest));
        }
        self.tick_orders();
        self.send_waiting();
    }

    /// Looks at all neighbours, and finds out when that is to be done again.
    fn tick_neighbours(&mut self) {
        let (mut due, mut next, mut here) = (vec![], None, None);
        for (id, neighbour) in self.neighbours.iter() {
            // They are in the order of their interfaces.
            if here.is_none_or(|(interface, _)| interface != id.interface) {
                let interface = self.interfaces.get(&id.interface);
                here = interface.map(|interface| (id.interface, interface.grace()));
            }
            let Some((_, grace)) = here else { continue };
            let wake = self.wake_of(neighbour, grace);
            if self.now >= wake.min(neighbour.watch.heard + lost_after(neighbour)) {
                due.push(*id);
            } else {
                next = earlier(next, wake);
            }
        }
        for id in due {
            self.tick_neighbour(id);
            let wake = self.neighbours.get(&id).and_then(|one| self.neighbour_wake(one));
            next = wake.map_or(next, |wake| earlier(next, wake));
        }
        self.neighbours_at = next.unwrap_or(self.now).max(self.now + MeshSpan(1));
    }

    fn tick_interface(&mut self, id: InterfaceId) {
        let Some(interface) = self.interfaces.get(&id) else { return };
        let (now, is_due) = (self.now, |at: Option<MeshTime>| at.is_some_and(|at| at <= self.now));
        let announces = is_due(interface.announcement.at);
        let greets = interface.hello.at <= now;
        let tells = is_due(interface.routes.at);
        let asks = is_due(interface.requests.at);
        let lacks = is_due(interface.parts.wanted.due());
        if announces {
            self.announce(id);
        }
        if greets {
            self.hello(id);
            self.raise_own();
        }
        if tells {
            self.tell_routes(id);
        }
        if asks {
            self.ask_routes(id);
        }
        if lacks {
            self.ask_parts(id);
        }
    }

    /// Now and then the own routes have a later sequence, so that others can take longer ways. It
    /// is seldom, since those who have heard of it do not take routes of those who have not.
    fn raise_own(&mut self) {
        let shortest = self.interfaces.values().map(|one| one.hello.interval).min();
        if self.now.since(self.own_raised) >= shortest.unwrap_or_default().times(RAISE_HELLOS) {
            self.own_raised = self.now;
            self.own_sequence = self.own_sequence.wrapping_add(1);
        }
    }

    /// When the own routes are told since somebody asked for a later sequence.
    pub(super) fn raise_at(&self) -> Option<MeshTime> {
        self.own_wanted.map(|_| self.own_answered + RAISE_PAUSE)
    }

    /// Raises the own sequence to the one that was asked for, and tells it.
    fn raise_wanted(&mut self) {
        let Some(wanted) = self.own_wanted.take() else { return };
        self.own_answered = self.now;
        if is_later(wanted, self.own_sequence) {
            (self.own_sequence, self.own_raised) = (wanted, self.now);
        }
        self.news(self.voice.slot(), NewsCause::Changed);
    }

    fn ask_parts(&mut self, id: InterfaceId) {
        let Some(interface) = self.interfaces.get_mut(&id) else { return };
        let pause = interface.medium.air(interface.medium.mtu).times(4).max(MeshSpan::millis(20));
        let lacks = interface.parts.wanted.ask(self.now, pause);
        for lack in lacks {
            let Some(interface) = self.interfaces.get_mut(&id) else { return };
            let Some(to) = interface.addresses.get(&lack.from).copied() else { continue };
            let missing = MissingParts { to, id: lack.id, parts: lack.parts };
            let body = missing.to_bytes();
            let bytes = crate::interface::COMPACT_BYTES + body.len();
            let air = interface.air(bytes);
            // It saves the air time of all that has come: it is a part of the data's share.
            let to = UnitReceiver::Neighbour(lack.from);
            let is_scarce = interface.medium.has_duty();
            let may_say = !is_scarce || interface.may_say(self.now, bytes).is_ok();
            if may_say && interface.budget.may(self.now, SendUrgency::Normal, to, air) {
                self.counters.parts_asked += u64::from(lack.parts.count_ones());
                self.say(id, MessageType::Missing, &body, to);
            }
        }
    }

    /// Has a neighbour looked at when that is due: something was heard of it.
    pub(super) fn look_at(&mut self, id: LinkId) {
        let wake = self.neighbours.get(&id).and_then(|one| self.neighbour_wake(one));
        self.neighbours_at = self.neighbours_at.min(wake.unwrap_or(self.now));
    }

    /// When something is to be done about a neighbour.
    fn neighbour_wake(&self, neighbour: &MeshNeighbour) -> Option<MeshTime> {
        let grace = self.interfaces.get(&neighbour.id.interface)?.grace();
        Some(self.wake_of(neighbour, grace))
    }

    /// The same, where that is how long a neighbour may be overdue.
    fn wake_of(&self, neighbour: &MeshNeighbour, grace: MeshSpan) -> MeshTime {
        let lost = neighbour.watch.heard + lost_after(neighbour);
        let silent = neighbour.watch.due + grace;
        match neighbour.watch.presence {
            NeighbourPresence::Heard
                if !neighbour.hello.sleeps && self.used.contains(neighbour.id) =>
            {
                neighbour.watch.due.min(lost)
            }
            NeighbourPresence::Heard => silent.min(lost),
            NeighbourPresence::Asked { next, .. } => next.min(silent),
            NeighbourPresence::Silent => lost,
        }
    }

    fn tick_neighbour(&mut self, id: LinkId) {
        let Some(interface) = self.interfaces.get(&id.interface) else { return };
        let (gap, grace) = (interface.gap(), interface.grace());
        let is_crowded = interface.channel.is_crowded();
        let is_used = self.used.contains(id);
        let now = self.now;
        let Some(neighbour) = self.neighbours.get_mut(&id) else { return };
        if now >= neighbour.watch.heard + lost_after(neighbour) {
            return self.lose(id);
        }
        let is_late = now >= neighbour.watch.due + grace;
        match neighbour.watch.presence {
            NeighbourPresence::Silent => {}
            _ if is_late => self.silence(id),
            NeighbourPresence::Heard
                if is_used && !neighbour.hello.sleeps && now >= neighbour.watch.due =>
            {
                // Where many miss the same hello, the first answer is heard by all.
                let late = if is_crowded { self.random.within(gap.part(2)) } else { MeshSpan(0) };
                let next = now + late;
                neighbour.watch.presence = NeighbourPresence::Asked { probes: 0, since: now, next };
                if late.0 == 0 {
                    self.ask_neighbour(id, gap);
                }
            }
            NeighbourPresence::Asked { next, .. } if now >= next => self.ask_neighbour(id, gap),
            _ => {}
        }
    }

    /// Nothing goes by a neighbour until it is heard again.
    fn silence(&mut self, id: LinkId) {
        let Some(neighbour) = self.neighbours.get_mut(&id) else { return };
        neighbour.watch.presence = NeighbourPresence::Silent;
        self.is_stale = true;
        if self.used.contains(id) {
            self.event(MeshEvent::NextHopSilent { slot: id.slot, interface: id.interface });
        }
    }

    /// Asks a next hop that was not heard in time whether it is there, or gives it up. Probes come
    /// anywhere in the first half of their gaps: else the answers of two neighbours that do not
    /// hear each other would meet again and again.
    fn ask_neighbour(&mut self, id: LinkId, gap: MeshSpan) {
        let number = self.random.word() as u32;
        let late = self.random.within(gap.part(2));
        let now = self.now;
        let Some(neighbour) = self.neighbours.get_mut(&id) else { return };
        let NeighbourPresence::Asked { probes, since, .. } = neighbour.watch.presence else {
            return;
        };
        if probes == MESH_PROBES {
            return self.silence(id);
        }
        neighbour.watch.probed(number, now);
        let address = UnitReceiver::Neighbour(neighbour.address);
        let probe = NeighbourProbe { is_answer: false, to: id.slot, number };
        let sent = self.probe(id.interface, address, probe);
        // Without air time a neighbour is not thought to be silent.
        let probes = probes + u8::from(sent.is_ok());
        let next = match (sent, probes) {
            (Err(ready), _) => ready.max(now + gap),
            (_, MESH_PROBES) => (since + gap.times(MESH_PROBES.into())).max(now + gap.part(2)),
            _ => (since + gap.times(probes.into())).max(now) + late,
        };
        if let Some(neighbour) = self.neighbours.get_mut(&id) {
            neighbour.watch.presence = NeighbourPresence::Asked { probes, since, next };
        }
    }

    /// How often this gateway reports: at the pace of its slowest interface.
    fn report_pause(&self) -> MeshSpan {
        let pause = |one: &crate::interface::MeshInterface| {
            let air = one.air(REPORT_BYTES).0;
            let share = u64::from(one.medium.duty_ppm).max(1);
            if one.medium.has_duty() {
                MeshSpan(air * REPORT_SHARE * 1_000_000 / share)
            } else {
                MeshSpan(0)
            }
        };
        let slowest = self.interfaces.values().map(pause).max().unwrap_or_default();
        slowest.max(MeshSpan::millis(MIN_REPORT_PAUSE_MS))
    }
}

fn earlier(known: Option<MeshTime>, other: MeshTime) -> Option<MeshTime> {
    Some(known.map_or(other, |known| known.min(other)))
}

/// After how long a neighbour is forgotten.
fn lost_after(neighbour: &MeshNeighbour) -> MeshSpan {
    neighbour.hello.interval.times(LOST_INTERVALS)
}

/// Hellos between two sequences of the own routes.
const RAISE_HELLOS: u64 = 4 * crate::interface::WHOLE_HELLOS;
/// The shortest time between two sequences of the own routes that were asked for.
const RAISE_PAUSE: MeshSpan = MeshSpan::millis(300);
/// Hello intervals after which a neighbour is forgotten.
const LOST_INTERVALS: u64 = 12;
/// The bytes of a report, at most.
const REPORT_BYTES: usize = 310;
/// A gateway to which nothing comes reports so many times less often.
const QUIET_REPORTS: u64 = 8;
/// A report takes one part of so many of the duty cycle.
const REPORT_SHARE: u64 = 20;
