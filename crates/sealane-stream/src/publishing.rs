//! A publishing session: numbered messages in, and what became of them out.

use std::collections::HashMap;
use std::future::poll_fn;
use std::num::NonZero;
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll, Waker};
use std::thread::available_parallelism;

use parking_lot::Mutex;
use sealane_message::Topic;
use sealane_protocol::EnqueueOutcome;
use sealane_protocol::limits::MAX_DELAY_MS;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::envelope::StreamEnvelope;
use crate::limits::{MAX_DIRECT_ANSWERS, MAX_WRITE_QUEUE_BYTES, MAX_WRITE_QUEUE_MESSAGES};
use crate::registry::StreamRegistry;
use crate::writer::{FindSessionCommand, PublishCommand, SessionItem, WriterCommand};
use crate::{Error, Level};

/// The answer to messages of one stream whose numbers follow each other.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishAnswered {
    /// The stream.
    pub stream: Topic,
    /// The number of the first.
    pub from: u64,
    /// The number of the last.
    pub to: u64,
    /// Where they are; the same refusal for all where they are not stored.
    pub result: Result<StoredPlace, Error>,
}

/// Where messages are that were stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredPlace {
    /// Where the first is; the others are behind it.
    pub first: EnqueueOutcome,
    /// The level that was reached.
    pub level: Level,
    /// Whether they were stored before, and came again.
    pub replayed: bool,
}

impl PublishAnswered {
    /// Whether `next` goes on where this one ends.
    pub(crate) fn takes(&self, next: &PublishAnswered) -> bool {
        let is_next = self.to + 1 == next.from && self.stream == next.stream;
        is_next
            && match (&self.result, &next.result) {
                (Ok(placed), Ok(next)) => {
                    // Answers join only if their places follow each other too. The client computes
                    // the rest from the first.
                    let behind = placed.first.behind(self.to - self.from + 1);
                    let is_same = placed.level == next.level && placed.replayed == next.replayed;
                    behind == next.first && is_same
                }
                (Err(error), Err(next)) => error == next,
                _ => false,
            }
    }
}

/// The connection of a session, as the thread sees it that has answers for it.
pub trait DirectAnswer: Send + Sync {
    /// Sends the answers that there are, if the connection can do it at once. It is called by the
    /// hub's one writer, so that it must wait for nothing. Returns whether nothing is left to do;
    /// otherwise the task that waits for the answers is woken.
    fn answer(&self) -> bool;
}

/// Answers that wait for the connection of a session. They are as many at most as the connection
/// had credit for.
#[derive(Default)]
pub(crate) struct SessionOutbox {
    waiting: Mutex<OutboxWaiting>,
    direct: OnceLock<Weak<dyn DirectAnswer>>,
}

#[derive(Debug, Default)]
struct OutboxWaiting {
    answers: Vec<PublishAnswered>,
    /// Another connection goes on with the session.
    is_taken: bool,
    /// The task that waits for answers.
    waker: Option<Waker>,
}

impl SessionOutbox {
    /// Adds answers; the connection is woken once for all that it has not seen.
    pub(crate) fn tell(&self, answers: impl IntoIterator<Item = PublishAnswered>) {
        if self.add(answers) {
            self.wake();
        }
    }

    /// Adds answers; returns whether the connection is to be told of them.
    pub(crate) fn add(&self, answers: impl IntoIterator<Item = PublishAnswered>) -> bool {
        let mut waiting = self.waiting.lock();
        let was_empty = waiting.answers.is_empty();
        for answer in answers {
            match waiting.answers.last_mut() {
                Some(last) if last.takes(&answer) => last.to = answer.to,
                _ => waiting.answers.push(answer),
            }
        }
        // A connection with answers waiting was told already.
        was_empty && !waiting.answers.is_empty()
    }

    /// Wakes the task that waits for answers. One that does not wait looks before it does.
    pub(crate) fn wake(&self) {
        // The waker is taken out, so that the task is woken once, and outside of the lock.
        let waker = self.waiting.lock().waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Has the answers sent by this thread if the connection can do that, or else by its task.
    pub(crate) fn send(&self) {
        let direct = self.direct.get().and_then(Weak::upgrade);
        if !direct.is_some_and(|direct| direct.answer()) {
            self.wake();
        }
    }

    /// Sends what `send` sends, unless the session goes on elsewhere: whoever takes it comes behind
    /// all that was sent here.
    fn unless_taken<T>(&self, send: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let waiting = self.waiting.lock();
        // Check and send share the lock. A message of the old connection can then not follow one of
        // the new.
        if waiting.is_taken { Err(Error::SessionTaken) } else { send() }
    }

    fn take_over(&self) {
        self.waiting.lock().is_taken = true;
        self.wake();
    }
}

fn direct_max() -> usize {
    static MAX: OnceLock<usize> = OnceLock::new();
    *MAX.get_or_init(|| MAX_DIRECT_ANSWERS / available_parallelism().map_or(1, NonZero::get))
}

/// Has the connections of these sessions send their answers: some by this thread, which is the
/// writer's, and where they are more the rest by the workers meanwhile.
pub(crate) fn send(told: &[Arc<SessionOutbox>]) {
    // Each connection sent here is spared a thread that wakes: 25.3 to 19.9 µs of CPU a message
    // (decision 12).
    let (here, elsewhere) = told.split_at(told.len().min(direct_max().max(1)));
    // The others are woken first, so that workers send while this thread does.
    elsewhere.iter().for_each(|outbox| outbox.wake());
    here.iter().for_each(|outbox| outbox.send());
}

/// The sessions that have a connection, by their keys.
#[derive(Default)]
pub(crate) struct OpenSessions(Mutex<HashMap<Arc<[u8]>, Arc<SessionOutbox>>>);

/// A session that publishes on a connection. Its messages count from 1 in each stream; what it
/// repeats is answered as it was first, on this connection or a later one.
pub struct PublishSession {
    registry: Arc<StreamRegistry>,
    queue: Arc<Semaphore>,
    sessions: Arc<OpenSessions>,
    key: Arc<[u8]>,
    owner: Arc<str>,
    outbox: Arc<SessionOutbox>,
}

/// A share of the writer's queue.
pub struct QueueShare(OwnedSemaphorePermit);

impl PublishSession {
    /// Goes on with the session `name` of the token `owner`, and ends the connection that had it.
    pub(crate) fn open(
        registry: Arc<StreamRegistry>,
        queue: Arc<Semaphore>,
        sessions: Arc<OpenSessions>,
        owner: &str,
        name: &str,
    ) -> Self {
        // The length stands first, so that no owner and name make another's.
        let (token, name) = (owner.as_bytes(), name.as_bytes());
        let key: Arc<[u8]> = [&(token.len() as u32).to_le_bytes(), token, name].concat().into();
        let owner = Arc::from(owner);
        let outbox = Arc::new(SessionOutbox::default());
        let before = sessions.0.lock().insert(key.clone(), outbox.clone());
        if let Some(before) = before {
            // The newest connection wins. A client whose old connection hangs could otherwise not
            // come back.
            before.take_over();
        }
        Self { registry, queue, sessions, key, owner, outbox }
    }

    /// Room in the writer's queue for `items`, if there is some now.
    pub fn try_room(&self, items: &[SessionItem]) -> Option<QueueShare> {
        self.queue.clone().try_acquire_many_owned(cost(items)).ok().map(QueueShare)
    }

    /// Room in the writer's queue for `items`, once there is some.
    ///
    /// # Errors
    /// [`Error::Draining`].
    pub fn room(
        &self,
        items: &[SessionItem],
    ) -> impl Future<Output = Result<QueueShare, Error>> + Send + use<> {
        let (queue, cost) = (self.queue.clone(), cost(items));
        async move {
            let room = queue.acquire_many_owned(cost).await;
            room.map(QueueShare).map_err(|_| Error::Draining)
        }
    }

    /// Has messages stored, in order; each has its answer coming. The places of the last `keep` of
    /// each stream are remembered, which are to be all that may be unanswered.
    ///
    /// # Errors
    /// [`Error::SessionTaken`] and [`Error::Draining`].
    pub fn publish(
        &self,
        mut items: Vec<SessionItem>,
        keep: u64,
        room: QueueShare,
    ) -> Result<(), Error> {
        let count = items.len();
        items.retain(|item| match check(item) {
            Ok(()) => true,
            Err(error) => {
                self.refuse(item, error);
                false
            }
        });
        if items.is_empty() {
            return Ok(());
        }
        if items.len() < count {
            // Those that were refused would stay in the memory that the others share with them.
            items.iter_mut().for_each(|item| item.envelope.own());
        }
        let (key, owner) = (self.key.clone(), self.owner.clone());
        let (outbox, share) = (self.outbox.clone(), room.0);
        let publish = PublishCommand { key, owner, outbox, keep, items, share };
        self.outbox.unless_taken(|| self.registry.send(WriterCommand::Publish(publish)))
    }

    /// The number of the session's next message in a stream, behind all that it has sent so far.
    ///
    /// # Errors
    /// [`Error::Draining`], and failures of the store.
    pub async fn next(&self, topic: &Topic) -> Result<u64, Error> {
        let (reply, answer) = oneshot::channel();
        let (topic, key) = (topic.clone(), self.key.clone());
        let find = FindSessionCommand { topic, key, reply };
        self.registry.send(WriterCommand::FindSession(find))?;
        answer.await.unwrap_or(Err(Error::Draining))
    }

    /// Answers that an item is refused, which never comes to the writer.
    fn refuse(&self, item: &SessionItem, error: Error) {
        self.outbox.tell([item.told(Err(error))]);
    }

    /// Has the writer itself send answers by `direct`, where it sends them to few. It can be said
    /// once.
    pub fn answer_by(&self, direct: Weak<dyn DirectAnswer>) {
        let is_first = self.outbox.direct.set(direct).is_ok();
        debug_assert!(is_first, "one connection for each session that is opened");
    }

    /// Waits until there are answers, and moves them into `answers`.
    ///
    /// # Errors
    /// [`Error::SessionTaken`], once all answers were taken.
    pub async fn answers(&self, answers: &mut Vec<PublishAnswered>) -> Result<(), Error> {
        poll_fn(|cx| self.poll_answers(cx, answers)).await
    }

    /// As [`PublishSession::answers`], of a task that waits for other things too.
    ///
    /// # Errors
    /// As [`PublishSession::answers`].
    pub fn poll_answers(
        &self,
        cx: &mut Context<'_>,
        answers: &mut Vec<PublishAnswered>,
    ) -> Poll<Result<(), Error>> {
        let mut waiting = self.outbox.waiting.lock();
        if !waiting.answers.is_empty() {
            answers.append(&mut waiting.answers);
            return Poll::Ready(Ok(()));
        }
        if waiting.is_taken {
            return Poll::Ready(Err(Error::SessionTaken));
        }
        // Cloning a waker costs an atomic count. The same task polls again and again.
        if !waiting.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            waiting.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Moves the answers that there are into `answers`.
    pub fn take_answers(&self, answers: &mut Vec<PublishAnswered>) {
        answers.append(&mut self.outbox.waiting.lock().answers);
    }
}

impl Drop for PublishSession {
    fn drop(&mut self) {
        let mut sessions = self.sessions.0.lock();
        // A newer connection may have the entry by now, and must keep it.
        if sessions.get(&self.key).is_some_and(|outbox| Arc::ptr_eq(outbox, &self.outbox)) {
            sessions.remove(&self.key);
        }
    }
}

/// The share of the writer's queue that items take. The queue is bounded both in messages and in
/// bytes.
fn cost(items: &[SessionItem]) -> u32 {
    queue_cost(items.iter().map(|item| &item.envelope))
}

/// The share of the writer's queue that messages take.
pub(crate) fn queue_cost<'a>(envelopes: impl Iterator<Item = &'a StreamEnvelope>) -> u32 {
    const UNIT_BYTES: usize = MAX_WRITE_QUEUE_BYTES / MAX_WRITE_QUEUE_MESSAGES;
    let cost: usize = envelopes.map(|envelope| 1 + envelope.body.len() / UNIT_BYTES).sum();
    // A request larger than the whole queue waits until that is empty, and not for ever.
    cost.min(MAX_WRITE_QUEUE_MESSAGES) as u32
}

fn check(item: &SessionItem) -> Result<(), Error> {
    if item.delay_ms.is_some_and(|delay_ms| delay_ms > MAX_DELAY_MS) {
        return Err(Error::parameter("delayMs", "is longer than 30 days"));
    }
    if item.delay_ms.is_some() && item.expect.is_some() {
        return Err(Error::parameter("expect", "cannot be asked of a delayed message"));
    }
    Ok(())
}
