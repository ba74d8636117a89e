//! A machine that runs: what it holds, and the task that follows groups and configurations.

use std::fs::File;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sealane_frame::PeerTag;
use sealane_group::GroupMembership;
use sealane_link::{FrameTally, LinkError, LinkRelay, RelayBeside, RelayCard};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::config::{MachineConfig, MachinePlan};
use crate::documents::DocumentService;
use crate::gateway::{GatewayBeside, RunningGateway};
use crate::limits::GROUP_LOOK_MS;
use crate::member::{MemberBeside, MemberKeys, RunningMember};
use crate::orders::CardOrders;
use crate::page::PageServer;
use crate::routing::RoutingGroup;
use crate::status::{MachineStatus, MachineWatch};
use crate::{MachineError, Result, status_page};

/// A machine's role beside a relay, with the keys that the role takes.
pub enum DaemonRole {
    /// Nothing: it carries what others send.
    Relay,
    /// It brings frames to a hub, and those of the hub into the mesh. It has no key of them.
    Gateway,
    /// It has an interface, and documents that programs of its user write and read. The interface
    /// takes the right to administer the network.
    Member(MemberKeys),
    /// The same without an interface: what programs send as packets is not for it.
    Documents(MemberKeys),
}

/// The role of a machine, and its keys.
pub struct MachineKeys {
    /// Its role.
    pub role: DaemonRole,
    /// Its membership of the mesh's group, where its configuration has `[routing]`.
    pub mesh: Option<GroupMembership>,
}

/// The outcome of a machine that has ended.
#[derive(Debug)]
#[must_use = "a machine may have ended for a fault"]
pub struct MachineEnd {
    /// The frames carried and dropped.
    pub tally: FrameTally,
    /// The frames that wait for the hub of a gateway.
    pub waiting: Option<WaitingFrames>,
    /// Why it has ended, if nobody has asked it to.
    pub fault: Option<MachineError>,
}

/// Frames that wait for a hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingFrames {
    /// The file that they wait in.
    pub queue: PathBuf,
    /// How many there are.
    pub frames: u64,
}

/// The role that runs beside the relay.
enum RunningRole {
    Relay(CardOrders),
    Gateway(RunningGateway),
    Member(Box<RunningMember>),
}

/// A relay, and what runs beside it: a gateway, or a member with its interface.
pub struct Machine {
    plan: MachinePlan,
    relay: LinkRelay,
    routing: Option<RoutingGroup>,
    documents: Option<DocumentService>,
    role: RunningRole,
    /// It is served for as long as the machine runs.
    _page: Option<PageServer>,
}

/// A hold on a machine that runs. The machine ends with it.
pub struct MachineHandle {
    reloads: mpsc::Sender<oneshot::Sender<Result<()>>>,
    running: JoinHandle<Result<MachineEnd>>,
    watch: MachineWatch,
    tag: PeerTag,
    cards: Vec<RelayCard>,
    view: Option<String>,
}

/// The role before the relay has links.
enum RoleBeside {
    Relay,
    Gateway(GatewayBeside),
    Member(Box<MemberBeside>),
}

impl Machine {
    /// Starts a machine: opens its links, and all that its configuration and its role say. It is
    /// called within a runtime of tokio.
    ///
    /// # Errors
    ///
    /// [`MachineError`]; nothing runs then.
    pub async fn start(config: MachineConfig, keys: MachineKeys) -> Result<MachineHandle> {
        let mut plan = MachinePlan::of(config)?;
        let capture = plan.config.capture.as_deref().map(create).transpose()?;
        let mesh = keys.mesh.filter(|_| plan.config.links.routing.is_some());
        let (mut routing, secrets) = mesh.map(RoutingGroup::begin).transpose()?.unzip();
        // Queue and interface are there before the links: a frame that comes at once is taken.
        let beside = RoleBeside::begin(keys.role, &mut plan, routing.as_ref())?;
        let around = RelayBeside { end: beside.end(), machine: secrets };
        let relay = LinkRelay::open(&plan.config.links, &plan.cards, around);
        let relay = relay.map_err(|cause| plan.config.refused(cause))?;
        // Nothing of this machine's own leaves before it.
        capture.map_or(Ok(()), |file| relay.capture(file)).map_err(MachineError::NoResource)?;
        // The listener is set before orders are read, so that none that comes over the mesh is
        // missed.
        routing.iter_mut().for_each(|routing| routing.follow_with(&relay));
        let mut documents = match &routing {
            Some(routing) => {
                DocumentService::open(&plan.config, &relay, routing.slot(), beside.member()?)?
            }
            None => None,
        };
        let view = serve_view(&plan.config, documents.as_mut()).await?;
        let role = beside.join(&plan, &relay, documents.as_ref())?;
        let watch = role.watch(&relay, documents.as_ref());
        let page = status_page::serve(&plan.config, &watch).await?;
        let (tag, cards) = (relay.tag(), plan.cards.clone());
        let machine = Machine { plan, relay, routing, documents, role, _page: page };
        let (reloads, asked) = mpsc::channel(1);
        let running = tokio::spawn(machine.run(asked));
        Ok(MachineHandle { reloads, running, watch, tag, cards, view })
    }

    /// Follows groups and configurations until it is to end.
    async fn run(
        mut self,
        mut asked: mpsc::Receiver<oneshot::Sender<Result<()>>>,
    ) -> Result<MachineEnd> {
        let mut beat = tokio::time::interval(Duration::from_millis(GROUP_LOOK_MS));
        let came = self.role.came();
        let fault = loop {
            tokio::select! {
                answer = asked.recv() => match answer {
                    // A program that has gone away reads nothing.
                    Some(answer) => _ = answer.send(self.reload()),
                    None => break None,
                },
                // A removal is not to wait for the next beat.
                () = notified(came.as_deref()) => self.hasten(),
                _ = beat.tick() => {
                    let fault = self.role.fault(&self.plan.config);
                    if fault.is_some() {
                        break fault;
                    }
                    self.follow();
                    self.routing.iter_mut().for_each(RoutingGroup::follow);
                }
            }
        };
        // The handle notices the end by this, also before all is carried.
        drop(asked);
        let ended = tokio::task::spawn_blocking(move || self.end(fault));
        ended.await.map_err(|error| MachineError::NoResource(error.into()))
    }

    /// Goes on with what the group of a member has become.
    fn follow(&mut self) {
        if let RunningRole::Member(member) = &mut self.role {
            member.follow(&mut self.plan, &self.relay);
            self.documents.iter().for_each(DocumentService::follow);
        }
    }

    fn hasten(&mut self) {
        if let RunningRole::Member(member) = &self.role {
            member.hasten();
        }
        self.follow();
    }

    /// Goes on with what the file says now, and says in the status what became of it.
    fn reload(&mut self) -> Result<()> {
        let outcome = self.read_again();
        if let Err(refused) = &outcome {
            self.relay.refuse_reload(refused.to_string());
        }
        outcome
    }

    fn read_again(&mut self) -> Result<()> {
        let next = self.plan.read_again()?;
        // Files and sockets that are open stay: to change them takes a new start.
        let is_same = match self.role {
            RunningRole::Gateway(_) => next.config.gateway == self.plan.config.gateway,
            _ => next.config.documents == self.plan.config.documents,
        };
        if !is_same || next.config.links.status != self.plan.config.links.status {
            return Err(next.config.refused(LinkError::LinksChanged));
        }
        if let RunningRole::Member(member) = &mut self.role {
            self.plan = member.reload(&self.plan, next, &self.relay)?;
            return Ok(());
        }
        let taken = self.relay.reload(&next.config.links, &next.cards);
        taken.map_err(|cause| next.config.refused(cause))?;
        self.documents.iter().for_each(|documents| documents.know(&next.cards));
        self.role.know(&next);
        self.plan = next;
        Ok(())
    }

    /// Ends all that runs. Links take what has come, and then it is kept: it waits for that.
    fn end(self, fault: Option<MachineError>) -> MachineEnd {
        let Machine { relay, documents, role, .. } = self;
        // Their thread seals and stores documents that wait, and the mesh still carries those.
        drop(documents);
        let (tally, waiting) = match role {
            RunningRole::Relay(_) => (relay.stop(), None),
            RunningRole::Gateway(gateway) => (relay.stop(), Some(gateway.stop())),
            RunningRole::Member(member) => {
                // Packets that programs have sent go into the links, so the links end last.
                member.stop();
                (relay.stop(), None)
            }
        };
        MachineEnd { tally, waiting, fault }
    }
}

impl MachineHandle {
    /// How the machine is now.
    pub fn status(&self) -> MachineStatus {
        self.watch.status()
    }

    /// Its own address in frames.
    pub fn tag(&self) -> PeerTag {
        self.tag
    }

    /// The relay cards that it was started with; that of a member's own group is the last one.
    pub fn cards(&self) -> &[RelayCard] {
        &self.cards
    }

    /// Where the page of the team is served, with the key that opens it.
    pub fn view(&self) -> Option<&str> {
        self.view.as_deref()
    }

    /// Reads the configuration and its cards again.
    ///
    /// # Errors
    ///
    /// The refusal of either; the machine goes on as it was.
    pub async fn reload(&self) -> Result<()> {
        let ended = || MachineError::NoResource(std::io::ErrorKind::BrokenPipe.into());
        let (answer, answered) = oneshot::channel();
        self.reloads.send(answer).await.map_err(|_| ended())?;
        answered.await.map_err(|_| ended())?
    }

    /// Waits until the machine ends by itself, as when somebody deletes its interface.
    pub async fn ended(&self) {
        self.reloads.closed().await;
    }

    /// Ends the machine, and waits until what has come is carried and kept.
    ///
    /// # Errors
    ///
    /// [`MachineError::NoResource`]: the machine's task has panicked.
    pub async fn stop(self) -> Result<MachineEnd> {
        drop(self.reloads);
        let ended = self.running.await;
        ended.map_err(|error| MachineError::NoResource(error.into()))?
    }
}

impl RoleBeside {
    fn begin(
        role: DaemonRole,
        plan: &mut MachinePlan,
        routing: Option<&RoutingGroup>,
    ) -> Result<RoleBeside> {
        Ok(match role {
            DaemonRole::Relay => RoleBeside::Relay,
            DaemonRole::Gateway => {
                RoleBeside::Gateway(GatewayBeside::begin(&plan.config, routing)?)
            }
            DaemonRole::Member(keys) => {
                RoleBeside::Member(Box::new(MemberBeside::begin(keys, plan, true)?))
            }
            DaemonRole::Documents(keys) => {
                RoleBeside::Member(Box::new(MemberBeside::begin(keys, plan, false)?))
            }
        })
    }

    /// The taker of the links' frames.
    fn end(&self) -> Option<sealane_link::RelayEnd> {
        match self {
            RoleBeside::Relay => None,
            RoleBeside::Gateway(gateway) => Some(gateway.end()),
            RoleBeside::Member(member) => member.end(),
        }
    }

    /// The member that reads and writes documents; others only keep them.
    fn member(&self) -> Result<Option<GroupMembership>> {
        match self {
            RoleBeside::Member(member) => member.member().map(Some),
            _ => Ok(None),
        }
    }

    fn join(
        self,
        plan: &MachinePlan,
        relay: &LinkRelay,
        documents: Option<&DocumentService>,
    ) -> Result<RunningRole> {
        let mut role = match self {
            RoleBeside::Relay => RunningRole::Relay(CardOrders::new(relay)),
            RoleBeside::Gateway(gateway) => {
                RunningRole::Gateway(gateway.join(plan, relay, documents)?)
            }
            RoleBeside::Member(member) => {
                return Ok(RunningRole::Member(Box::new(member.join(plan, relay, documents)?)));
            }
        };
        documents.iter().for_each(|documents| documents.know(&plan.cards));
        if let RunningRole::Relay(orders) = &mut role {
            orders.keep(&plan.cards);
        }
        Ok(role)
    }
}

impl RunningRole {
    /// Goes on with the cards of another configuration.
    fn know(&mut self, plan: &MachinePlan) {
        match self {
            RunningRole::Relay(orders) => drop(orders.keep(&plan.cards)),
            RunningRole::Gateway(gateway) => gateway.follow(plan),
            RunningRole::Member(_) => {}
        }
    }

    fn came(&self) -> Option<Arc<Notify>> {
        match self {
            RunningRole::Member(member) => Some(member.came()),
            _ => None,
        }
    }

    fn fault(&self, config: &MachineConfig) -> Option<MachineError> {
        match self {
            RunningRole::Member(member) => member.fault(config),
            _ => None,
        }
    }

    fn watch(&self, relay: &LinkRelay, documents: Option<&DocumentService>) -> MachineWatch {
        let mut watch = MachineWatch::of(relay);
        watch.documents = documents.map(DocumentService::counts);
        match self {
            RunningRole::Relay(_) => {}
            RunningRole::Gateway(gateway) => watch.gateway = Some(gateway.gateway()),
            RunningRole::Member(member) => watch.end = member.watch(),
        }
        watch
    }
}

async fn notified(came: Option<&Notify>) {
    match came {
        Some(came) => came.notified().await,
        None => pending().await,
    }
}

/// Serves the page of the team where that is asked for, and gives its address.
async fn serve_view(
    config: &MachineConfig,
    documents: Option<&mut DocumentService>,
) -> Result<Option<String>> {
    match (documents, config.view) {
        (Some(documents), Some(address)) => documents.view(address).await.map(Some),
        (None, Some(_)) => Err(MachineError::View(" needs [documents] in the configuration")),
        (_, None) => Ok(None),
    }
}

/// The file of a capture, which nobody else reads: it shows who talks to whom.
fn create(file: &Path) -> Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    // The mode counts only for a new file. An existing one keeps the mode that its owner chose.
    let mut options = File::options();
    let opened = options.write(true).create(true).truncate(true).mode(0o600).open(file);
    opened.map_err(|cause| MachineError::file(file, cause))
}
