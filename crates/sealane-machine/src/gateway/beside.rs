//! A gateway beside the relay of its machine: what it hears of the links, and puts there.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use sealane_document::limits::kept;
use sealane_frame::{FrameView, GroupTag, PeerTag};
use sealane_link::{
    LinkRelay, RelayArrival, RelayCard, RelayEnd, RelayPort, RouteAddress, TakeArrival,
};
use sealane_message::DataType;

use super::follower::DocumentFollower;
use super::{CarriedType, Gateway, GatewayConfig, GatewayError, GatewaySettings, HubAccess};
use super::{GatewayIntake, PutDown, PutOrders};
use crate::config::{MachineConfig, MachinePlan};
use crate::documents::DocumentService;
use crate::orders::CardOrders;
use crate::routing::RoutingGroup;
use crate::{Result, WaitingFrames};

/// A gateway that is there before its relay has links.
pub(crate) struct GatewayBeside {
    gateway: Arc<Gateway>,
    settings: GatewaySettings,
    tag: PeerTag,
    ways: Arc<OnceLock<MeshWays>>,
}

impl GatewayBeside {
    /// Opens the queue. A configuration that cannot be used is refused now, and not when the first
    /// frame comes.
    pub(crate) fn begin(
        config: &MachineConfig,
        routing: Option<&RoutingGroup>,
    ) -> Result<GatewayBeside> {
        let settings = settings(config)?;
        let tag = own_tag(config, routing)?;
        let ways = Arc::<OnceLock<MeshWays>>::default();
        // The queue is open before a link is, so that the first frame of the mesh can be kept.
        let gateway = Arc::new(Gateway::start(&settings, put_by(&ways))?);
        Ok(GatewayBeside { gateway, settings, tag, ways })
    }

    /// The taker of the links' frames.
    pub(crate) fn end(&self) -> RelayEnd {
        RelayEnd { tag: self.tag, take: take_by(self.gateway.intake()) }
    }

    /// Goes on beside a relay that runs.
    pub(crate) fn join(
        self,
        plan: &MachinePlan,
        relay: &LinkRelay,
        documents: Option<&DocumentService>,
    ) -> Result<RunningGateway> {
        let GatewayBeside { gateway, settings, tag, ways } = self;
        let _ = ways.set(MeshWays::of(relay, documents, tag));
        if let Some(documents) = documents {
            let mut follower = DocumentFollower::new(&gateway, tag);
            documents.follow_by(Box::new(move |store| follower.look(store)))?;
        }
        gateway.serve(&groups(plan));
        let (orders, put) = (CardOrders::new(relay), put_orders_by(relay));
        let mut running = RunningGateway { gateway, settings, orders, put };
        running.know(&plan.cards);
        Ok(running)
    }
}

/// A gateway whose relay runs.
pub(crate) struct RunningGateway {
    gateway: Arc<Gateway>,
    settings: GatewaySettings,
    orders: CardOrders,
    put: PutOrders,
}

impl RunningGateway {
    pub(crate) fn gateway(&self) -> Arc<Gateway> {
        Arc::clone(&self.gateway)
    }

    /// Serves the groups of another configuration from now on.
    pub(crate) fn follow(&mut self, plan: &MachinePlan) {
        self.gateway.serve(&groups(plan));
        self.know(&plan.cards);
    }

    fn know(&mut self, cards: &[RelayCard]) {
        self.gateway.serve_orders(&self.orders.keep(cards), &self.put);
    }

    /// Keeps what was heard, ends, and gives what waits for the hub. It waits for the disk.
    pub(crate) fn stop(self) -> WaitingFrames {
        self.gateway.stop();
        let frames = self.gateway.status().queue.frames;
        WaitingFrames { queue: self.settings.queue, frames }
    }
}

fn groups(plan: &MachinePlan) -> Vec<GroupTag> {
    plan.cards.iter().map(RelayCard::group).collect()
}

/// Takes what this machine hears.
fn take_by(intake: Arc<GatewayIntake>) -> TakeArrival {
    Box::new(move |arrival| {
        if let RelayArrival::Frame(frame) = arrival {
            intake.take(frame);
        }
        Ok(())
    })
}

/// How frames of the hub go into the mesh.
struct MeshWays {
    port: Mutex<RelayPort>,
    /// Has documents kept, which neighbours then exchange.
    keep: Option<Box<dyn Fn(Vec<u8>) -> bool + Send + Sync>>,
}

impl MeshWays {
    fn of(relay: &LinkRelay, documents: Option<&DocumentService>, own: PeerTag) -> MeshWays {
        let keep = documents.map(|documents| Box::new(documents.keeper(own)) as Box<_>);
        MeshWays { port: Mutex::new(relay.port()), keep }
    }

    fn put(&self, mut frame: Vec<u8>) {
        let kind = FrameView::parse(&frame).map(|view| view.header().data_type());
        let is_document = kind.is_ok_and(|kind| kept(DataType::from_number(kind)) > 0);
        match &self.keep {
            // A machine that is away now gets a kept document later. A frame to everybody it would
            // miss.
            Some(keep) if is_document => drop(keep(frame)),
            _ => {
                let mut port = self.port.lock();
                port.push(&mut frame);
                port.flush();
            }
        }
    }
}

/// Puts frames of the hub into the mesh, once there are links.
fn put_by(ways: &Arc<OnceLock<MeshWays>>) -> PutDown {
    let ways = Arc::clone(ways);
    Arc::new(move |frame| {
        if let Some(ways) = ways.get() {
            ways.put(frame);
        }
    })
}

/// Hands orders of the hub to the mesh's machine, if there is one.
fn put_orders_by(relay: &LinkRelay) -> PutOrders {
    let router = relay.router();
    Arc::new(move |input| router.as_ref().is_none_or(|router| router.push(input).is_ok()))
}

/// A gateway is no member of the groups that it serves: it has the address of its machine in the
/// mesh, or one of its own.
fn own_tag(config: &MachineConfig, routing: Option<&RoutingGroup>) -> Result<PeerTag> {
    match (routing, config.links.tag) {
        (Some(routing), _) => routing.tag(),
        (None, Some(RouteAddress::Tag(tag))) => Ok(tag),
        _ => Err(config.value("tag: a gateway needs an own address")),
    }
}

fn settings(config: &MachineConfig) -> Result<GatewaySettings> {
    let wrong = |what: String| GatewayError::Config(format!("{}: {what}", config.file.display()));
    let missing = || wrong("[gateway] is missing: which hub, and where the queue is".to_owned());
    let asked = config.gateway.as_ref().ok_or_else(missing)?;
    let GatewayConfig { hub, token, ca, queue, queue_bytes, up, down } = asked;
    let types = |list: &[CarriedType]| list.iter().map(|CarriedType(one)| *one).collect();
    let hub = HubAccess {
        address: hub.clone(),
        token: token.as_ref().map(|name| config.beside(name)),
        ca: ca.as_ref().map(|name| config.beside(name)),
    };
    // An unusable setting is refused now, and not when the first frame comes.
    hub.client().map_err(|trouble| wrong(trouble.to_string()))?;
    Ok(GatewaySettings {
        hub,
        queue: config.beside(queue),
        queue_bytes: *queue_bytes,
        up: types(up),
        down: types(down),
    })
}
