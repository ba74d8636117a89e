//! `sealane mesh`.

mod commands;
mod end;
mod status;
mod trace;

use std::sync::Arc;
use std::time::Duration;

use sealane_group::{EpochSource, KeyFolder, Member};
use sealane_link::{Behind, Beside, LinkError, MeshConfig, Relay, RelayCard, Tun};

use crate::args::key::KeysArgs;
use crate::args::mesh::{Mesh, MeshVerb, Up};
use crate::documents::Documents;
use crate::key::open;
use crate::relay::{
    CardOrders, EndTold, Obeying, Page, Plan, Routing, Tell, Teller, Told, create, read, refused,
    tell, tell_reload,
};
use crate::signals::Signals;
use crate::{Failure, Terminal};
use end::End;

/// Runs what was asked of a mesh.
///
/// # Errors
/// [`Failure::Link`], what the key folder refuses, or a file that cannot be read.
pub async fn run(args: &Mesh, terminal: &mut Terminal) -> Result<(), Failure> {
    match &args.verb {
        MeshVerb::Up(asked) => up(&args.keys, asked, terminal).await,
        MeshVerb::Status(asked) => status::run(asked, terminal).await,
        MeshVerb::Trace(asked) => trace::run(&args.keys, asked, terminal).await,
    }
}

/// How often an end looks whether its group has other members.
const BEAT: Duration = Duration::from_secs(1);

/// Gives this machine an interface until Ctrl-C or SIGTERM, then says what was carried and dropped.
/// SIGHUP reads the configuration, its cards and the group again.
async fn up(keys: &KeysArgs, asked: &Up, terminal: &mut Terminal) -> Result<(), Failure> {
    let (folder, keys_args) = (open(keys)?, keys);
    let keys = &folder;
    let member = keys.group(&asked.group)?;
    let wrong = |cause| refused(&asked.file, cause);
    let mut plan = with_own_card(read(&asked.file)?, own_card(&member));
    let mesh = mesh_of(&plan).map_err(wrong)?.clone();
    let own = member.source()?;
    let mut signals = Signals::new().map_err(Failure::Runtime)?;
    let behind = behind(&plan, &mesh).map_err(wrong)?;
    let mtu = plan.config.packet_bytes().map_err(wrong)?;
    tell_awaited(&behind);
    let capture = asked.capture.as_deref().map(create).transpose()?;
    let tun = Tun::open(&mesh, mtu).map_err(wrong)?;
    let sender = member.sender()?;
    let slot = member.slot().number();
    let end = Arc::new(End::new(member, tun, behind)?);
    let taker = Arc::clone(&end);
    let take = Box::new(move |arrival: sealane_link::Arrival<'_>| taker.take(arrival));
    let (mut routing, machine) = Routing::read(&asked.file, &plan.config, keys_args)?.unzip();
    let beside = Beside { end: Some(sealane_link::End { tag: own, take }), machine };
    let relay = Relay::open(&plan.config, &plan.cards, beside).map_err(wrong)?;
    routing.iter_mut().for_each(|routing| routing.follow_with(&relay));
    let mut orders = Orders::begin(keys, asked, &plan, &relay)?;
    let opened = open_documents(keys, asked, &plan, &relay, routing.as_ref()).await?;
    let (documents, view) = opened;
    documents.iter().for_each(|one| end.hand_commands_to(Box::new(one.teller())));
    capture.map_or(Ok(()), |file| relay.capture(file)).map_err(Failure::Runtime)?;
    let told = Telling { group: &asked.group, slot, interface: &mesh.interface };
    let page = Page::serve(&plan.config, told.teller(&relay, &end, documents.as_ref()));
    let _page = page.await.map_err(wrong)?;
    let (port, carrier) = (relay.port(), Arc::clone(&end));
    let carrier = std::thread::spawn(move || carrier.carry(sender, port));
    started(&Started { group: &asked.group, mesh: &mesh, mtu, view }, terminal)?;
    let running = Running { keys, asked, relay: &relay, end: &end, documents: &documents };
    let name = running.until_end(&mut plan, &mut routing, &mut orders, &mut signals).await;
    eprintln!("sealane: {name}: stopping");
    drop(documents);
    let ended = Arc::clone(&end);
    let tally = tokio::task::spawn_blocking(move || {
        ended.stop();
        // A thread that has panicked has said so on standard error.
        let _ = carrier.join();
        relay.stop()
    });
    tell(&tally.await.map_err(|error| Failure::Runtime(error.into()))?, terminal)?;
    match end.is_gone() {
        true => Err(wrong(LinkError::InterfaceGone { interface: mesh.interface })),
        false => Ok(()),
    }
}

/// Holds the documents of the group, and serves their page, where that is asked for: gives the
/// page's address, too.
async fn open_documents(
    keys: &KeyFolder,
    asked: &Up,
    plan: &Plan,
    relay: &Relay,
    routing: Option<&Routing>,
) -> Result<(Option<Documents>, Option<String>), Failure> {
    let mut documents = match routing.map(Routing::slot) {
        Some(slot) => {
            let member = keys.group(&asked.group)?;
            Documents::open(&asked.file, &plan.config, relay, slot, Some(member))?
        }
        None => None,
    };
    let view = match (&mut documents, asked.view) {
        (Some(documents), Some(address)) => Some(documents.view(address).await?),
        (None, Some(_)) => {
            return Err(Failure::Usage("--view needs [documents] in the configuration"));
        }
        (_, None) => None,
    };
    Ok((documents, view))
}

/// An end that runs.
struct Running<'a> {
    keys: &'a KeyFolder,
    asked: &'a Up,
    relay: &'a Relay,
    end: &'a End,
    documents: &'a Option<Documents>,
}

impl Running<'_> {
    /// Goes on until there is a reason to end, and names it.
    async fn until_end(
        &self,
        plan: &mut Plan,
        routing: &mut Option<Routing>,
        orders: &mut Orders,
        signals: &mut Signals,
    ) -> &'static str {
        let Running { keys, asked, relay, end, .. } = *self;
        let mut beat = tokio::time::interval(BEAT);
        let came = orders.own.came();
        loop {
            tokio::select! {
                name = signals.next() => match name {
                    "SIGHUP" => {
                        let reloaded = reload(keys, asked, plan, relay, end);
                        orders.keep(plan, reloaded.is_ok());
                        tell_reload(relay, reloaded);
                    }
                    name => return name,
                },
                // A removal is not to wait for the next beat.
                () = came.notified() => {
                    orders.follow();
                    end.hasten();
                    self.follow(plan);
                }
                _ = beat.tick() => {
                    if end.is_gone() {
                        return "its interface is gone";
                    }
                    orders.follow();
                    self.follow(plan);
                    routing.iter_mut().for_each(Routing::follow);
                }
            }
        }
    }

    /// Goes on with what the group has become.
    fn follow(&self, plan: &mut Plan) {
        follow(plan, self.relay, self.end);
        self.documents.iter().for_each(Documents::follow);
    }
}

/// The orders of groups here: of the own one, which are obeyed, and of those on cards, which are
/// kept for others.
struct Orders {
    own: Obeying,
    others: CardOrders,
    /// What was said of the own group last.
    said: Option<String>,
}

impl Orders {
    fn begin(keys: &KeyFolder, asked: &Up, plan: &Plan, relay: &Relay) -> Result<Orders, Failure> {
        let name = format!("group {}", asked.group);
        let mut own = Obeying::new(keys.group(&asked.group)?, &name);
        own.follow_with(relay);
        let mut orders = Orders { own, others: CardOrders::new(relay), said: None };
        orders.keep(plan, true);
        Ok(orders)
    }

    /// Has those of the cards kept, if others were read. The card of the own group is the last one.
    fn keep(&mut self, plan: &Plan, is_new: bool) {
        if let Some((_, others)) = plan.cards.split_last().filter(|_| is_new) {
            self.others.keep(others);
        }
    }

    fn follow(&mut self) {
        let error = self.own.follow().err().map(|error| error.to_string());
        if let Some(error) = error.as_ref().filter(|error| self.said.as_ref() != Some(error)) {
            eprintln!("sealane: the group's orders: {error}; they are tried again");
        }
        self.said = error;
    }
}

fn reload(
    keys: &KeyFolder,
    asked: &Up,
    plan: &mut Plan,
    relay: &Relay,
    end: &End,
) -> Result<(), Failure> {
    let wrong = |cause| refused(&asked.file, cause);
    let next = with_own_card(read(&asked.file)?, own_card(&keys.group(&asked.group)?));
    let before = mesh_of(plan).map_err(wrong)?;
    let is_same = mesh_of(&next).map_err(wrong)?.has_interface_of(before);
    let kept = (&next.config.status, &next.config.documents);
    if !is_same || kept != (&plan.config.status, &plan.config.documents) {
        return Err(wrong(LinkError::LinksChanged));
    }
    go_on_with(&next, relay, end).map_err(wrong)?;
    *plan = next;
    Ok(())
}

fn go_on_with(plan: &Plan, relay: &Relay, end: &End) -> Result<(), LinkError> {
    let behind = behind(plan, mesh_of(plan)?)?;
    tell_awaited(&behind);
    relay.reload(&plan.config, &plan.cards)?;
    end.go_on_with(behind);
    Ok(())
}

/// Goes on with the members that the group has now, if they are others than before. The
/// configuration stays as it was read last.
fn follow(plan: &mut Plan, relay: &Relay, end: &End) {
    let card = end.card();
    if plan.cards.last() == Some(&card) {
        return;
    }
    // Told once: what is refused now would be refused again.
    plan.cards.pop();
    plan.cards.push(card);
    match go_on_with(plan, relay, end) {
        Ok(()) => eprintln!("sealane: the group has changed: its members are known"),
        Err(error) => {
            eprintln!("sealane: the group has changed: {error}; it is as it was");
            relay.refuse_reload(error.to_string());
        }
    }
}

/// What stays the same in the status of an end.
struct Telling<'a> {
    group: &'a str,
    slot: u16,
    interface: &'a str,
}

impl Telling<'_> {
    /// What gives the status of an end.
    fn teller(&self, relay: &Relay, end: &Arc<End>, documents: Option<&Documents>) -> Teller {
        let (watch, end, slot) = (relay.watch(), Arc::clone(end), self.slot);
        let (group, interface) = (self.group.to_owned(), self.interface.to_owned());
        let counts = documents.map(Documents::counts);
        let tell: Tell = Arc::new(move || {
            let told = EndTold {
                group: group.clone(),
                slot,
                epoch: end.card().epoch().0,
                interface: interface.clone(),
                mtu: u16::try_from(end.mtu()).unwrap_or(u16::MAX),
                unsealed: end.unsealed(),
                awaited: end.awaited(),
            };
            let documents = counts.as_ref().map(|counts| counts.lock().clone());
            Told { status: watch.status(), end: Some(told), gateway: None, documents }
        });
        Teller { tell, router: relay.router() }
    }
}

fn tell_awaited(behind: &Behind) {
    for slot in behind.awaited() {
        eprintln!("sealane: slot {slot} is no member now: its addresses wait for it");
    }
}

/// The card of the own group is the last one.
fn with_own_card(mut plan: Plan, card: RelayCard) -> Plan {
    plan.cards.retain(|other| other.group() != card.group());
    plan.cards.push(card);
    plan
}

/// What a relay may know of the own group.
fn own_card(member: &Member) -> RelayCard {
    RelayCard::new(member.tag(), member.epochs().newest(), member.addresses())
}

fn mesh_of(plan: &Plan) -> Result<&MeshConfig, LinkError> {
    let missing = || LinkError::ConfigValue("[mesh] is missing: the interface".to_owned());
    plan.config.mesh.as_ref().ok_or_else(missing)
}

fn behind(plan: &Plan, mesh: &MeshConfig) -> Result<Behind, LinkError> {
    let missing = || LinkError::ConfigValue("there is no card".to_owned());
    Ok(Behind::new(mesh, plan.cards.last().ok_or_else(missing)?))
}

/// What is said of an end that has started.
struct Started<'a> {
    group: &'a str,
    mesh: &'a MeshConfig,
    mtu: u16,
    /// Where the page of the team is, with its key.
    view: Option<String>,
}

fn started(told: &Started<'_>, terminal: &mut Terminal) -> Result<(), Failure> {
    let version = env!("CARGO_PKG_VERSION");
    let Started { group, mesh, mtu, view } = told;
    let addresses: Vec<String> = mesh.addresses.iter().map(ToString::to_string).collect();
    if terminal.json() {
        let addresses = addresses.into_iter().map(sealane::Value::from).collect();
        let mut fields = vec![
            ("version", version.into()),
            ("group", (*group).into()),
            ("interface", mesh.interface.as_str().into()),
            ("addresses", sealane::Value::Array(addresses)),
            ("mtu", u64::from(*mtu).into()),
        ];
        fields.extend(view.as_deref().map(|view| ("view", view.into())));
        terminal.record(fields)?;
    } else {
        let (interface, addresses) = (&mesh.interface, addresses.join(", "));
        terminal.line(format_args!(
            "sealane {version}  mesh of {group}  {interface} {addresses}  mtu {mtu}"
        ))?;
        if let Some(view) = view {
            terminal.line(format_args!("the team: {view}"))?;
        }
    }
    terminal.flush()
}
