//! The documents of a machine of the mesh: one thread holds them, hears neighbours and answers
//! programs of this user.

mod calls;
mod config;
mod desk;
mod heard;
mod socket;
mod thrift;
mod told;
mod view;
mod words;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use parking_lot::Mutex;
use sealane::Value;
use sealane::documents::{DocumentAnswer, DocumentQuestion};
use sealane_document::agent::StrangerGroup;
use sealane_document::{DocumentAgent, DocumentQuota, DocumentStore, DocumentsStatus, ShelfKeeper};
use sealane_frame::PeerTag;
use sealane_group::GroupMembership;
use sealane_link::{LinkRelay, RelayCard};
use sealane_mesh::MeshOutput;
use sealane_seal::Slot;
use sealane_seal::policy::Battery;
use tokio::sync::{mpsc, oneshot};

use crate::config::MachineConfig;
use crate::limits::MAX_DOCUMENT_TASKS;
use crate::page::PageServer;
use crate::{AskRefusal, MachineError, Result};
pub use config::DocumentsConfig;
use desk::{DocumentThreadState, OwnOrigin};
use heard::NeighbourBacklog;
use thrift::DocumentPace;
pub(crate) use told::told;

/// A task of the thread.
pub(crate) enum DocumentTask {
    /// The mesh's machine has said something.
    Heard(MeshOutput),
    /// A program asks for something.
    Ask { asked: DocumentQuestion, answer: oneshot::Sender<Answered> },
    /// A program wants to have what is new.
    Watch(mpsc::Sender<Value>),
    /// Those who watch are to have this, too.
    Tell(Value),
    /// Something of this machine follows what is kept.
    FollowStore(StoreFollower),
    /// A frame came by other ways than the exchange; `own` is this machine's address.
    Keep { frame: Vec<u8>, own: PeerTag },
    /// Orders of the group may have been obeyed.
    Follow,
    /// The groups of relay cards.
    Know(Vec<StrangerGroup>),
    /// Nothing follows.
    End,
}

/// The answer to a program.
pub(crate) type Answered = Result<DocumentAnswer, AskRefusal>;

/// Looks at what is kept whenever something may have come.
pub(crate) type StoreFollower = Box<dyn FnMut(&DocumentStore) + Send>;

/// The documents while they are held.
pub(crate) struct DocumentService {
    tasks: SyncSender<DocumentTask>,
    thread: Option<std::thread::JoinHandle<()>>,
    serving: Option<tokio::task::JoinHandle<()>>,
    page: Option<PageServer>,
    socket: Option<PathBuf>,
    status: SharedDocumentsStatus,
}

/// The counts of documents, as the thread last gave them.
pub(crate) type SharedDocumentsStatus = Arc<Mutex<DocumentsStatus>>;

impl DocumentService {
    /// Begins to hold them, if a configuration says so: with the keys of a member, or without any.
    ///
    /// # Errors
    /// The store, the socket or the keys.
    pub(crate) fn open(
        config: &MachineConfig,
        relay: &LinkRelay,
        slot: Slot,
        member: Option<GroupMembership>,
    ) -> Result<Option<DocumentService>> {
        let (Some(asked), Some(router)) = (&config.documents, relay.router()) else {
            return Ok(None);
        };
        if member.is_none() && asked.socket.is_some() {
            // A relay has no keys. Its socket could only show sealed bytes, and would promise more.
            let cause = "documents.socket: a relay cannot read what it keeps";
            return Err(config.value(cause));
        }
        let keeper = if member.is_some() { ShelfKeeper::Member } else { ShelfKeeper::Relay };
        let store =
            DocumentStore::open(&config.beside(&asked.store), keeper, DocumentQuota::default())?;
        let air = config::air_of(&config.links);
        let mut agent = DocumentAgent::new(slot, store, air.message_bytes);
        // A single radio with a duty cycle decides. A frame then goes on only while somebody in
        // reach may lack it.
        agent.set_scarce(air.is_scarce);
        let policy = config.policy(asked)?;
        agent.set_policy(policy.clone());
        let own = member.map(|member| OwnOrigin::new(member, policy.clone())).transpose()?;
        let given = asked.battery_percent.and_then(Battery::new);
        let (heard, status) =
            (Arc::<NeighbourBacklog>::default(), SharedDocumentsStatus::default());
        let thrift = DocumentPace::new(policy, given);
        let mut desk =
            DocumentThreadState::new(agent, router.clone(), own, Arc::clone(&heard), thrift);
        desk.tell_status_by(Arc::clone(&status));
        // The group is read before the thread starts, so that a key folder that cannot be read ends
        // the start.
        desk.follow()?;
        let (tasks, waiting) = sync_channel(MAX_DOCUMENT_TASKS);
        let hear = tasks.clone();
        router.listen(Box::new(move |output: &MeshOutput| {
            // It never waits: what is lost is asked for again.
            if let Some(by) = heard::speaker(output).filter(|by| heard.enter(*by))
                && hear.try_send(DocumentTask::Heard(output.clone())).is_err()
            {
                heard.leave(by);
            }
        }));
        let thread = std::thread::Builder::new().name("documents".to_owned());
        let thread = thread.spawn(move || desk.run(&waiting)).map_err(MachineError::NoResource)?;
        let (serving, page, socket) = (None, None, None);
        let thread = Some(thread);
        let mut documents = DocumentService { tasks, thread, serving, page, socket, status };
        if let Some(name) = &asked.socket {
            let path = config.beside(name);
            documents.serving = Some(socket::serve(&path, documents.tasks.clone())?);
            documents.socket = Some(path);
        }
        Ok(Some(documents))
    }

    /// Serves the page of the team, and gives its address with the key that opens it.
    ///
    /// # Errors
    /// An address that others reach, or that is taken.
    pub(crate) async fn view(&mut self, address: std::net::SocketAddr) -> Result<String> {
        let (page, url) = view::serve(address, self.tasks.clone()).await?;
        self.page = Some(page);
        Ok(url)
    }

    /// The counts, for the status.
    pub(crate) fn counts(&self) -> SharedDocumentsStatus {
        Arc::clone(&self.status)
    }

    /// Has something follow what is kept, on the thread that keeps it.
    ///
    /// # Errors
    /// [`MachineError::NoResource`]: the thread has ended.
    pub(crate) fn follow_by(&self, follower: StoreFollower) -> Result<()> {
        let ended = |_| MachineError::NoResource(std::io::ErrorKind::BrokenPipe.into());
        self.tasks.send(DocumentTask::FollowStore(follower)).map_err(ended)
    }

    /// A function that gives a value to all watchers. It never waits, and says whether there was
    /// room.
    pub(crate) fn teller(&self) -> impl Fn(Value) -> bool + Send + 'static {
        let tasks = self.tasks.clone();
        move |value| tasks.try_send(DocumentTask::Tell(value)).is_ok()
    }

    /// A function that has frames kept and handed on that came by other ways. The frames are for
    /// the machine of that address. It never waits, and says whether there was room.
    pub(crate) fn keeper(&self, own: PeerTag) -> impl Fn(Vec<u8>) -> bool + Send + Sync + 'static {
        let tasks = self.tasks.clone();
        move |frame| tasks.try_send(DocumentTask::Keep { frame, own }).is_ok()
    }

    /// Tells the thread of groups that it has no keys of: it keeps what their members send. Frames
    /// say the lowest byte of their epoch: cards more than 127 epochs old are to be written again.
    pub(crate) fn know(&self, cards: &[RelayCard]) {
        let stranger = |card: &RelayCard| StrangerGroup {
            group: card.group(),
            newest: card.epoch(),
            members: card.members().collect(),
        };
        // A thread that has ended keeps nothing.
        let _ = self.tasks.send(DocumentTask::Know(cards.iter().map(stranger).collect()));
    }

    /// Has the thread look whether its group has changed. To be called once a second.
    pub(crate) fn follow(&self) {
        let _ = self.tasks.try_send(DocumentTask::Follow);
    }
}

impl Drop for DocumentService {
    fn drop(&mut self) {
        self.page = None;
        // The doors close first. A program that asks during the end would wait for an answer that
        // never comes.
        self.serving.iter().for_each(tokio::task::JoinHandle::abort);
        // This send waits for room, because an end that was dropped would leave the thread running.
        let _ = self.tasks.send(DocumentTask::End);
        if let Some(thread) = self.thread.take() {
            // A thread that has panicked has said so on standard error.
            let _ = thread.join();
        }
        if let Some(socket) = &self.socket {
            let _ = std::fs::remove_file(socket);
        }
    }
}

/// Asks the thread, and waits for its answer.
async fn ask(tasks: &SyncSender<DocumentTask>, asked: DocumentQuestion) -> Answered {
    let (answer, answered) = oneshot::channel();
    match tasks.try_send(DocumentTask::Ask { asked, answer }) {
        Ok(()) => answered.await.unwrap_or(Err(AskRefusal::Ended)),
        Err(_) => Err(AskRefusal::Busy),
    }
}
