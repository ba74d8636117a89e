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
use sealane_document::{Agent, DocumentsStatus, Keeper, Quota, Store};
use sealane_frame::PeerTag;
use sealane_group::Member;
use sealane_link::{Relay, RelayCard};
use sealane_mesh::Output;
use sealane_seal::Slot;
use sealane_seal::policy::Battery;
use tokio::sync::{mpsc, oneshot};

use crate::config::MachineConfig;
use crate::limits::MAX_DOCUMENT_TASKS;
use crate::page::PageServer;
use crate::{AskRefusal, MachineError, Result};
pub use config::DocumentsConfig;
use desk::{Desk, Own};
use heard::Heard;
use thrift::Thrift;
pub(crate) use told::told;

/// What the thread is to do.
pub(crate) enum Task {
    /// The mesh's machine has said something.
    Heard(Output),
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
    /// What relay cards say of groups.
    Know(Vec<StrangerGroup>),
    /// Nothing follows.
    End,
}

/// What a program is answered.
pub(crate) type Answered = Result<DocumentAnswer, AskRefusal>;

/// Looks at what is kept whenever something may have come.
pub(crate) type StoreFollower = Box<dyn FnMut(&Store) + Send>;

/// The documents while they are held.
pub(crate) struct Documents {
    tasks: SyncSender<Task>,
    thread: Option<std::thread::JoinHandle<()>>,
    serving: Option<tokio::task::JoinHandle<()>>,
    page: Option<PageServer>,
    socket: Option<PathBuf>,
    status: Counts,
}

/// What is counted of documents, as the thread has said it last.
pub(crate) type Counts = Arc<Mutex<DocumentsStatus>>;

impl Documents {
    /// Begins to hold them, if a configuration says so: with the keys of a member, or without any.
    ///
    /// # Errors
    /// The store, the socket or the keys.
    pub(crate) fn open(
        config: &MachineConfig,
        relay: &Relay,
        slot: Slot,
        member: Option<Member>,
    ) -> Result<Option<Documents>> {
        let (Some(asked), Some(router)) = (&config.documents, relay.router()) else {
            return Ok(None);
        };
        if member.is_none() && asked.socket.is_some() {
            let cause = "documents.socket: a relay cannot read what it keeps";
            return Err(config.value(cause));
        }
        let keeper = if member.is_some() { Keeper::Member } else { Keeper::Relay };
        let store = Store::open(&config.beside(&asked.store), keeper, Quota::default())?;
        let air = config::air_of(&config.links);
        let mut agent = Agent::new(slot, store, air.message_bytes);
        agent.set_scarce(air.is_scarce);
        let policy = config.policy(asked)?;
        agent.set_policy(policy.clone());
        let own = member.map(|member| Own::new(member, policy.clone())).transpose()?;
        let given = asked.battery_percent.and_then(Battery::new);
        let (heard, status) = (Arc::<Heard>::default(), Counts::default());
        let thrift = Thrift::new(policy, given);
        let mut desk = Desk::new(agent, router.clone(), own, Arc::clone(&heard), thrift);
        desk.tell_status_by(Arc::clone(&status));
        desk.follow()?;
        let (tasks, waiting) = sync_channel(MAX_DOCUMENT_TASKS);
        let hear = tasks.clone();
        router.listen(Box::new(move |output: &Output| {
            // It never waits: what is lost is asked for again.
            if let Some(by) = heard::speaker(output).filter(|by| heard.enter(*by))
                && hear.try_send(Task::Heard(output.clone())).is_err()
            {
                heard.leave(by);
            }
        }));
        let thread = std::thread::Builder::new().name("documents".to_owned());
        let thread = thread.spawn(move || desk.run(&waiting)).map_err(MachineError::NoResource)?;
        let (serving, page, socket) = (None, None, None);
        let thread = Some(thread);
        let mut documents = Documents { tasks, thread, serving, page, socket, status };
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

    /// What is counted, for whoever tells it.
    pub(crate) fn counts(&self) -> Counts {
        Arc::clone(&self.status)
    }

    /// Has something follow what is kept, on the thread that keeps it.
    ///
    /// # Errors
    /// [`MachineError::NoResource`]: the thread has ended.
    pub(crate) fn follow_by(&self, follower: StoreFollower) -> Result<()> {
        let ended = |_| MachineError::NoResource(std::io::ErrorKind::BrokenPipe.into());
        self.tasks.send(Task::FollowStore(follower)).map_err(ended)
    }

    /// What gives a value to those who watch. It never waits, and says whether there was room.
    pub(crate) fn teller(&self) -> impl Fn(Value) -> bool + Send + 'static {
        let tasks = self.tasks.clone();
        move |value| tasks.try_send(Task::Tell(value)).is_ok()
    }

    /// What has frames kept, and handed on, that came by other ways: for the machine of that
    /// address. It never waits, and says whether there was room.
    pub(crate) fn keeper(&self, own: PeerTag) -> impl Fn(Vec<u8>) -> bool + Send + Sync + 'static {
        let tasks = self.tasks.clone();
        move |frame| tasks.try_send(Task::Keep { frame, own }).is_ok()
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
        let _ = self.tasks.send(Task::Know(cards.iter().map(stranger).collect()));
    }

    /// Has the thread look whether its group has changed. To be called once a second.
    pub(crate) fn follow(&self) {
        let _ = self.tasks.try_send(Task::Follow);
    }
}

impl Drop for Documents {
    fn drop(&mut self) {
        self.page = None;
        self.serving.iter().for_each(tokio::task::JoinHandle::abort);
        let _ = self.tasks.send(Task::End);
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
async fn ask(tasks: &SyncSender<Task>, asked: DocumentQuestion) -> Answered {
    let (answer, answered) = oneshot::channel();
    match tasks.try_send(Task::Ask { asked, answer }) {
        Ok(()) => answered.await.unwrap_or(Err(AskRefusal::Ended)),
        Err(_) => Err(AskRefusal::Busy),
    }
}
