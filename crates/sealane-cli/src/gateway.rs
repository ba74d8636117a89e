//! `sealane gateway`.

mod follower;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use sealane_document::limits::kept;
use sealane_frame::{FrameView, GroupTag, PeerTag};
use sealane_gateway::{
    Gateway, GatewayError, GatewaySettings, HubAccess, Intake, PutDown, PutOrders,
};
use sealane_link::{
    Arrival, Beside, CarriedType, End, GatewayConfig, LinkError, Port, Relay, RelayCard, Take, Who,
};
use sealane_message::DataType;

use crate::args::key::KeysArgs;
use crate::args::operate::Gateway as Args;
use crate::documents::Documents;
use crate::relay::{
    BEAT, CardOrders, Page, Plan, Routing, Tell, Teller, Told, create, read, refused, started,
    tell, tell_reload,
};
use crate::signals::Signals;
use crate::{Failure, Terminal};
use follower::Follower;

/// Brings frames to the hub, and its own into the mesh, until Ctrl-C or SIGTERM. SIGHUP reads the
/// configuration and its cards again.
///
/// # Errors
/// [`Failure::Link`], [`Failure::Gateway`], or a file that cannot be read.
pub async fn run(args: &Args, terminal: &mut Terminal) -> Result<(), Failure> {
    let plan = read(&args.file)?;
    let wrong = |cause| refused(&args.file, cause);
    let settings = settings(&plan, &args.file)?;
    let mut asked = Signals::new().map_err(Failure::Runtime)?;
    let capture = args.capture.as_deref().map(create).transpose()?;
    let routing = Routing::read(&args.file, &plan.config, &KeysArgs::default())?;
    let (mut routing, machine) = routing.unzip();
    let tag = own_tag(&plan, routing.as_ref(), &args.file)?;
    let ways = Arc::<OnceLock<Ways>>::default();
    let gateway = Arc::new(Gateway::start(&settings, put_by(&ways))?);
    let end = Some(End { tag, take: take_by(gateway.intake()) });
    let relay = Relay::open(&plan.config, &plan.cards, Beside { end, machine }).map_err(wrong)?;
    routing.iter_mut().for_each(|routing| routing.follow_with(&relay));
    capture.map_or(Ok(()), |file| relay.capture(file)).map_err(Failure::Runtime)?;
    let slot = routing.as_ref().map(Routing::slot);
    let open = |slot| Documents::open(&args.file, &plan.config, &relay, slot, None);
    let documents = slot.map(open).transpose()?.flatten();
    let _ = ways.set(Ways::of(&relay, documents.as_ref(), tag));
    if let Some(documents) = &documents {
        let mut follower = Follower::new(&gateway, tag);
        documents.follow_by(Box::new(move |store| follower.look(store)))?;
    }
    gateway.serve(&groups(&plan));
    let (mut orders, put) = (CardOrders::new(&relay), put_orders_by(&relay));
    let mut know = |cards: &[RelayCard]| {
        documents.iter().for_each(|one| one.know(cards));
        gateway.serve_orders(&orders.keep(cards), &put);
    };
    know(&plan.cards);
    let page = Page::serve(&plan.config, teller(&relay, &gateway, documents.as_ref()));
    let _page = page.await.map_err(wrong)?;
    let waiting = || gateway.status().queue.frames;
    let more = vec![("hub", settings.hub.address.as_str().into()), ("waiting", waiting().into())];
    started(&relay, &plan, more, terminal)?;
    let mut beat = tokio::time::interval(BEAT);
    let name = loop {
        tokio::select! {
            name = asked.next() => match name {
                "SIGHUP" => {
                    let cards = reload(&relay, &gateway, &args.file, &plan);
                    tell_reload(&relay, cards.map(|cards| know(&cards)));
                }
                name => break name,
            },
            _ = beat.tick() => routing.iter_mut().for_each(Routing::follow),
        }
    };
    eprintln!("sealane: {name}: stopping");
    drop(documents);
    let ended = Arc::clone(&gateway);
    // The links take what has come, and then it is kept.
    let tally = tokio::task::spawn_blocking(move || {
        let tally = relay.stop();
        ended.stop();
        tally
    });
    tell(&tally.await.map_err(|error| Failure::Runtime(error.into()))?, terminal)?;
    eprintln!("sealane: frames that wait in {}: {}", settings.queue.display(), waiting());
    Ok(())
}

/// What gives the status of a gateway.
fn teller(relay: &Relay, gateway: &Arc<Gateway>, documents: Option<&Documents>) -> Teller {
    let (watch, of) = (relay.watch(), Arc::clone(gateway));
    let counts = documents.map(Documents::counts);
    let tell: Tell = Arc::new(move || Told {
        status: watch.status(),
        end: None,
        gateway: Some(of.status()),
        documents: counts.as_ref().map(|counts| counts.lock().clone()),
    });
    Teller { tell, router: relay.router() }
}

/// The hub and the queue cannot change while it runs.
/// Gives the cards that it goes on with.
fn reload(
    relay: &Relay,
    gateway: &Gateway,
    file: &Path,
    before: &Plan,
) -> Result<Vec<RelayCard>, Failure> {
    let plan = read(file)?;
    let is_same = (&plan.config.status, &plan.config.gateway)
        == (&before.config.status, &before.config.gateway);
    let taken = match is_same {
        true => relay.reload(&plan.config, &plan.cards).map(drop),
        false => Err(LinkError::LinksChanged),
    };
    taken.map_err(|cause| refused(file, cause))?;
    gateway.serve(&groups(&plan));
    Ok(plan.cards)
}

fn groups(plan: &Plan) -> Vec<GroupTag> {
    plan.cards.iter().map(sealane_link::RelayCard::group).collect()
}

/// Takes what this machine hears.
fn take_by(intake: Arc<Intake>) -> Take {
    Box::new(move |arrival| {
        if let Arrival::Frame(frame) = arrival {
            intake.take(frame);
        }
        Ok(())
    })
}

/// How frames of the hub go into the mesh.
struct Ways {
    port: Mutex<Port>,
    /// Has documents kept, which neighbours then exchange.
    keep: Option<Box<dyn Fn(Vec<u8>) -> bool + Send + Sync>>,
}

impl Ways {
    fn of(relay: &Relay, documents: Option<&Documents>, own: PeerTag) -> Ways {
        let keep = documents.map(|documents| Box::new(documents.keeper(own)) as Box<_>);
        Ways { port: Mutex::new(relay.port()), keep }
    }

    fn put(&self, mut frame: Vec<u8>) {
        let kind = FrameView::parse(&frame).map(|view| view.header().data_type());
        let is_document = kind.is_ok_and(|kind| kept(DataType::from_number(kind)) > 0);
        match &self.keep {
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
fn put_by(ways: &Arc<OnceLock<Ways>>) -> PutDown {
    let ways = Arc::clone(ways);
    Arc::new(move |frame| {
        if let Some(ways) = ways.get() {
            ways.put(frame);
        }
    })
}

/// Hands orders of the hub to the mesh's machine, if there is one.
fn put_orders_by(relay: &Relay) -> PutOrders {
    let router = relay.router();
    Arc::new(move |input| router.as_ref().is_none_or(|router| router.push(input).is_ok()))
}

/// A gateway is no member of the groups that it serves: it has the address of its machine in the
/// mesh, or one of its own.
fn own_tag(plan: &Plan, routing: Option<&Routing>, file: &Path) -> Result<PeerTag, Failure> {
    match (routing, plan.config.tag) {
        (Some(routing), _) => routing.tag(),
        (None, Some(Who::Tag(tag))) => Ok(tag),
        _ => {
            let cause = "tag: a gateway needs an own address".to_owned();
            Err(refused(file, LinkError::ConfigValue(cause)))
        }
    }
}

/// Files are named as seen from the folder of the configuration.
fn settings(plan: &Plan, file: &Path) -> Result<GatewaySettings, Failure> {
    let wrong = |what: String| GatewayError::Config(format!("{}: {what}", file.display()));
    let missing = || wrong("[gateway] is missing: which hub, and where the queue is".to_owned());
    let asked = plan.config.gateway.as_ref().ok_or_else(missing)?;
    let GatewayConfig { hub, token, ca, queue, queue_bytes, up, down } = asked;
    let folder = file.parent().unwrap_or(Path::new(""));
    let beside = |name: &String| folder.join(name);
    let types = |list: &[CarriedType]| list.iter().map(|CarriedType(one)| *one).collect();
    let hub = HubAccess {
        address: hub.clone(),
        token: token.as_ref().map(beside),
        ca: ca.as_ref().map(beside),
    };
    // What cannot be used is refused now, and not when the first frame comes.
    hub.client().map_err(wrong)?;
    Ok(GatewaySettings {
        hub,
        queue: beside(queue),
        queue_bytes: *queue_bytes,
        up: types(up),
        down: types(down),
    })
}
