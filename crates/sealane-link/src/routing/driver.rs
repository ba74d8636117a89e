//! The thread that owns the machine: what comes to it, and what it wants done.

use std::sync::Arc;
use std::time::Duration;

use sealane_frame::{FrameAtHop, PeerTag};
use sealane_mesh::{
    CarriedSources, InterfaceId, Mesh, MeshError, MeshEvent, MeshInput, MeshOutput, MeshTime,
    SendUrgency, UnitReceiver,
};

use super::found::LinkNeighbour;
use super::frames::interface;
use super::links::RoutingLinks;
use super::pace::RoutingPace;
use super::places::{LinkPlace, NeighbourPlaces};
use super::{
    AirTimeSpent, FoundNeighbour, IntakeNext, RouteStatus, RoutingFound, RoutingNeighbour,
    RoutingSecrets, RoutingShared, RoutingStatus, RoutingTask, RoutingWay,
};
use crate::config::Config;
use crate::counters::DropReason;
use crate::desk::is_announcement;
use crate::limits::ROUTING_TURN_MS;
use crate::link::RelayLink;
use crate::relay::{RelayArrival, RelayShared};
use crate::table::RelayTable;
use crate::{LinkConfig, LinkError};

/// The machine at work.
pub(crate) struct RoutingDriver {
    mesh: Mesh,
    shared: Arc<RelayShared>,
    routing: Arc<RoutingShared>,
    links: RoutingLinks,
    places: NeighbourPlaces,
    /// The neighbours and ways that the data path's table knows.
    found: RoutingFound,
    /// The table whose sources the machine carries.
    version: Option<u64>,
    pace: RoutingPace,
    status: RoutingStatus,
}

impl RoutingDriver {
    /// The machine of a configuration with its interfaces.
    ///
    /// # Errors
    ///
    /// [`LinkError::ConfigValue`]: what the machine refuses.
    pub(crate) fn machine(
        config: &Config,
        machine: RoutingSecrets,
        end: Option<PeerTag>,
    ) -> Result<Mesh, LinkError> {
        let value = |error: MeshError| LinkError::ConfigValue(format!("routing: {error}"));
        let missing = || LinkError::ConfigValue("[routing] is missing".to_owned());
        let routing = config.routing.as_ref().ok_or_else(missing)?;
        let own = sealane_mesh::Config {
            role: routing.role(),
            attached: end.into_iter().collect(),
            sleeps: routing.sleeps,
            seed: machine.seed,
        };
        let mut mesh = Mesh::new(own, machine.keys, MeshTime(0)).map_err(value)?;
        for (index, link) in config.links.iter().enumerate() {
            if let Some(medium) = link.mesh_medium() {
                // Interfaces come up before any thread runs, so that no unit is heard on an
                // interface that the machine lacks.
                mesh.take(MeshTime(0), MeshInput::Up { interface: interface(index), medium });
            }
        }
        Ok(mesh)
    }

    pub(crate) fn new(
        mesh: Mesh,
        shared: &Arc<RelayShared>,
        routing: &Arc<RoutingShared>,
        links: &Arc<[RelayLink]>,
        configs: &[LinkConfig],
    ) -> Self {
        let links = RoutingLinks::new(shared, links, configs);
        let status = RoutingStatus::clone(&routing.status());
        Self {
            mesh,
            links,
            shared: Arc::clone(shared),
            routing: Arc::clone(routing),
            places: NeighbourPlaces::default(),
            found: RoutingFound::default(),
            version: None,
            pace: RoutingPace::default(),
            status,
        }
    }

    /// Works until nothing follows.
    pub(crate) fn run(mut self) {
        self.follow_sources();
        loop {
            let now = self.now();
            let wake = self.mesh.next_wake().map(|at| Duration::from_micros(at.since(now).0));
            let stale = self.pace.patience();
            // The thread also wakes for a stale table. Without that, a quiet mesh would leave
            // frames on a way that has gone.
            let turn = Duration::from_millis(ROUTING_TURN_MS);
            let patience = wake.into_iter().chain(stale).chain([turn]).min().unwrap_or(turn);
            match self.routing.intake.next(patience) {
                IntakeNext::Task(task) => self.take(task),
                // The time is read anew here, since the wait itself took most of it.
                IntakeNext::Late => self.mesh.take(self.now(), MeshInput::Tick),
                IntakeNext::End => return,
            }
            self.tell_loads();
            self.drain();
            self.refresh();
            // One addition for each turn keeps the shared counters out of the path of each unit.
            self.shared.counters.take(self.links.tally());
        }
    }

    fn now(&self) -> MeshTime {
        MeshTime(self.shared.now_us())
    }

    fn take(&mut self, task: RoutingTask) {
        let now = self.now();
        match task {
            RoutingTask::Heard { link, from, unit } => {
                self.links.note_load(link, unit.len());
                let from = self.places.hear(LinkPlace { link, address: from });
                let interface = interface(link);
                self.mesh.take(now, MeshInput::Heard { interface, from, unit: (&*unit).into() });
                self.pace.note_change();
            }
            RoutingTask::Mesh(input) => {
                let is_documents = matches!(input, MeshInput::Documents { .. });
                self.mesh.take(now, input);
                if is_documents {
                    self.routing.documents.set(1, &self.mesh);
                }
            }
            RoutingTask::Rekey(rekeyed) => {
                let outcome = self.mesh.rekey(now, *rekeyed);
                self.status.fault = outcome.err().map(|error| error.to_string());
                // A new epoch changes tags and routes. Table and status must not wait for their
                // usual turn.
                self.pace.note_change();
                self.pace.tell_now();
            }
        }
    }

    /// Tells the machine once a second how busy the channels of its radios are.
    fn tell_loads(&mut self) {
        let now = self.now();
        for (link, busy_ppm) in self.links.loads(now) {
            let interface = interface(link);
            self.mesh.take(now, MeshInput::Load { interface, busy_ppm });
        }
    }

    /// Does what the machine wants done.
    fn drain(&mut self) {
        let mut has_delivered = false;
        while let Some(output) = self.mesh.next_output() {
            match output {
                MeshOutput::Send { interface, to, unit, urgency } => {
                    self.send(usize::from(interface.0), to, &unit, urgency);
                }
                // A timer changes routes too, and then no unit has made the table stale.
                MeshOutput::Table(_) => self.pace.refresh_now(),
                MeshOutput::Deliver { frame } => {
                    // The end gathers packets of a turn, and gets one pause after the last instead
                    // of one after each.
                    has_delivered = true;
                    self.routing.hear(&MeshOutput::Deliver { frame: frame.clone() });
                    self.deliver(frame);
                }
                notice @ MeshOutput::Notice { .. } => self.routing.hear(&notice),
                MeshOutput::Traced(trace) => self.routing.hear(&MeshOutput::Traced(trace)),
                output @ (MeshOutput::Digest { .. } | MeshOutput::Documents { .. }) => {
                    self.routing.hear(&output);
                }
                MeshOutput::Event(event) => {
                    self.status.own_slot_heard += u64::from(event == MeshEvent::OwnSlotHeard);
                    self.pace.refresh_now();
                    self.routing.hear(&MeshOutput::Event(event));
                }
            }
        }
        if let Some(end) = self.shared.end.as_ref().filter(|_| has_delivered)
            && let Err(why) = (end.take)(RelayArrival::Pause)
        {
            self.links.tally().drop(why, 1);
        }
        self.routing.documents.set(0, &self.mesh);
        let mesh = &self.mesh;
        self.places.end_turn(|name| mesh.neighbours().iter().any(|one| one.address == name));
    }

    /// Sends a unit of the machine. Over wires frames to everybody go by the data path.
    fn send(&mut self, link: usize, to: UnitReceiver, unit: &[u8], urgency: SendUrgency) {
        let is_control = urgency == SendUrgency::Control || self.routing.is_control(unit);
        // The data path has sent this frame over the wires already. A second copy would only be
        // counted as a repeat.
        if !is_control && to == UnitReceiver::Everybody && !self.links.is_radio(link) {
            return;
        }
        let to = match to {
            UnitReceiver::Everybody => None,
            UnitReceiver::Neighbour(name) => match self.places.of(name) {
                Some(at) => Some(at.address),
                None => return self.links.tally().drop(DropReason::NoRoute, 1),
            },
        };
        self.links.send(link, to, unit);
        if !is_control {
            self.links.tally().forwarded.add(1, unit.len());
        }
    }

    /// Takes a frame that a radio brought for this machine, or for everybody.
    fn deliver(&mut self, mut frame: Vec<u8>) {
        let table = self.shared.table();
        let outcome = match self.judge(&table, &frame) {
            Ok(true) => self.flood(&table, &mut frame),
            Ok(false) => self.give(&mut frame),
            Err(why) => Err(why),
        };
        if let Err(why) = outcome {
            self.links.tally().drop(why, 1);
        }
    }

    /// Whether a frame is for everybody, if its source may send.
    fn judge(&self, table: &RelayTable, frame: &[u8]) -> Result<bool, DropReason> {
        let view = sealane_frame::FrameView::parse(frame).map_err(|_| DropReason::Malformed)?;
        let header = view.header();
        // The mesh has authenticated the hop, not the source. The cards decide here as they do on
        // wires.
        let source = table.member(header.source()).ok_or(DropReason::UnknownSource)?;
        match source.group == header.group() {
            true => Ok(header.destination() == PeerTag::BROADCAST),
            false => Err(DropReason::UnknownGroup),
        }
    }

    fn give(&mut self, frame: &mut [u8]) -> Result<(), DropReason> {
        let end = self.shared.end.as_ref().ok_or(DropReason::NoEnd)?;
        let frame_bytes = frame.len();
        (end.take)(RelayArrival::Frame(frame))?;
        self.links.tally().delivered.add(1, frame_bytes);
        Ok(())
    }

    /// Sends a frame to everybody that came by a radio, or was made here, to all wires.
    fn flood(&mut self, table: &RelayTable, frame: &mut [u8]) -> Result<(), DropReason> {
        let at = FrameAtHop::parse(frame, table.own()).map_err(|_| DropReason::Malformed)?;
        let header = *at.header();
        // A frame at its last hop still reaches this machine's member. It only travels no further.
        let goes_on = at.pass_on(PeerTag::BROADCAST).is_ok();
        // Wires and radios share one memory of repeats. Otherwise a frame would cross between them
        // for ever.
        self.shared.with_floods(|floods| {
            if !floods.is_new(&header, frame) {
                return Err(DropReason::Repeat);
            }
            if goes_on && is_announcement(&header) {
                floods.hold(header.source(), header.previous_hop(), frame);
            }
            Ok(())
        })?;
        if goes_on {
            self.links.send_on_wires(table, frame);
        }
        // The member's own frame comes through here on its way out, and must not come back to it.
        if self.shared.end.is_some() && header.source() != table.end() {
            return self.give(frame);
        }
        Ok(())
    }

    /// Has the data path's table and the status follow what the machine has found.
    fn refresh(&mut self) {
        let now = self.now();
        if self.pace.is_table_due(now) {
            self.follow_sources();
            let found = self.look();
            // A table costs an allocation in each thread that follows it. Hellos that change
            // nothing must not cause one.
            if found != self.found {
                self.found = found;
                self.shared.publish(self.found.clone());
                self.pace.tell_now();
            }
        }
        if self.pace.is_status_due(now) {
            self.tell();
        }
    }

    /// Has the machine carry what the cards of the newest table allow.
    fn follow_sources(&mut self) {
        let version = Some(self.shared.version());
        // On wires the data path checks sources by its own table, so that the machine needs none.
        if !self.routing.has_radio || self.version == version {
            return;
        }
        // The version was read before the table. A swap in between makes the next turn look again,
        // never miss it.
        self.version = version;
        let table = self.shared.table();
        let sources: CarriedSources = table.members().map(|one| (one.tag, one.group)).collect();
        self.mesh.set_sources(Arc::new(sources));
    }

    fn look(&mut self) -> RoutingFound {
        let all = self.mesh.neighbours();
        self.places.keep(|name| all.iter().any(|one| one.address == name));
        let mut found = RoutingFound::default();
        // A neighbour without a cost is heard one way only. Frames sent to it would vanish.
        for one in all.iter().filter(|one| one.cost.is_some()) {
            let Some(at) = self.places.of(one.address) else { continue };
            let (slot, link, address) = (one.slot.number(), at.link, at.address);
            found.neighbours.push(FoundNeighbour { slot, tag: one.tag, link, address });
        }
        for (tag, route) in self.mesh.table().addresses() {
            let via =
                LinkNeighbour { link: usize::from(route.hop.interface.0), tag: route.hop.tag };
            found.ways.insert(tag, via);
            if route.is_gateway {
                found.gateways.insert(tag);
            }
        }
        found
    }

    fn tell(&mut self) {
        let link = |interface: InterfaceId| {
            let config = self.links.configs().get(usize::from(interface.0));
            config.map(|config| config.name.clone()).unwrap_or_default()
        };
        let neighbours = self.mesh.neighbours().into_iter().map(|one| RoutingNeighbour {
            slot: one.slot,
            tag: one.tag,
            link: link(one.interface),
            address: self.places.of(one.address).map(|at| at.address),
            heard: one.heard,
            told: one.told,
            round_trip: one.round_trip,
            cost: one.cost,
            is_avoided: one.is_avoided,
        });
        let neighbours = neighbours.collect();
        let table = self.mesh.table();
        let routes = table.routes().map(|route| RouteStatus {
            to: route.to,
            is_gateway: route.is_gateway,
            metric: route.metric,
            ways: self.ways(route.to, &link),
        });
        let routes = routes.collect();
        let spent = self.links.configs().iter().enumerate().filter_map(|(index, config)| {
            let medium = config.discovery?.medium.name();
            let interface = InterfaceId(u8::try_from(index).ok()?);
            let parts = self.mesh.spent(interface);
            Some(AirTimeSpent { link: config.name.clone(), medium, parts })
        });
        let spent = spent.collect();
        self.status = RoutingStatus {
            epoch: self.mesh.epoch(),
            neighbours,
            routes,
            spent,
            counters: self.mesh.counters(),
            ..self.status.clone()
        };
        self.routing.tell(self.status.clone());
    }

    fn ways(
        &self,
        to: sealane_seal::Slot,
        link: &impl Fn(InterfaceId) -> String,
    ) -> Vec<RoutingWay> {
        let ways = self.mesh.ways(to).into_iter().map(|way| RoutingWay {
            via: way.via,
            link: link(way.interface),
            metric: way.metric(),
            is_used: way.is_used,
            is_avoided: way.is_avoided,
        });
        ways.collect()
    }
}
