//! Messages of publishing sessions: what comes again is answered as it was first.

use std::iter::Peekable;
use std::sync::Arc;
use std::vec::IntoIter;

use sealane_protocol::{EnqueueOutcome, StreamPosition};

use super::{AppendAsked, AppendedMessages, CommitPlan, CommitPlanner, StagedStream, StreamTarget};
use crate::envelope::StreamEnvelope;
use crate::publishing::{PublishAnswered, SessionOutbox, StoredPlace};
use crate::store::{SessionNext, StoreFault, StoredSession};
use crate::stream::StreamEntry;
use crate::writer::command::{
    CommandAnswer, CommandRefusal, FindSessionCommand, PublishCommand, SessionItem, WriterCommand,
};
use crate::{Error, Level};

/// The session of the messages that are planned.
struct PlannedSender {
    key: Arc<[u8]>,
    owner: Arc<str>,
    outbox: Arc<SessionOutbox>,
    keep: u64,
}

impl CommitPlan {
    /// Plans numbered messages one by one. Those for a stream that is just being removed, and all
    /// behind them for its topic, wait for the next commit.
    pub(super) fn publish(
        &mut self,
        planner: &mut CommitPlanner,
        publish: PublishCommand,
    ) -> Result<(), StoreFault> {
        let PublishCommand { key, owner, outbox, keep, items, share } = publish;
        let sender = PlannedSender { key, owner, outbox, keep };
        let (mut planned, mut later) = (Ok(()), Vec::new());
        for run in by_topic(items) {
            let Some(topic) = run.first().map(|first| first.topic.clone()) else { continue };
            // One topic waits, the others of the session go on: the order counts within a stream.
            let leaves = matches!(self.target(planner, &topic), StreamTarget::Leaving);
            if leaves || self.replies.awaits(&topic) {
                self.replies.wait_for(topic);
                later.extend(run);
                continue;
            }
            match &planned {
                Ok(()) => planned = self.publish_run(planner, &sender, run),
                Err(fault) => refuse(&sender, &run, fault),
            }
        }
        if !later.is_empty() {
            let PlannedSender { key, owner, outbox, keep } = sender;
            let later = PublishCommand { key, owner, outbox, keep, items: later, share };
            self.replies.defer(WriterCommand::Publish(later));
        }
        planned
    }

    /// Plans messages of one topic.
    fn publish_run(
        &mut self,
        planner: &mut CommitPlanner,
        sender: &PlannedSender,
        run: Vec<SessionItem>,
    ) -> Result<(), StoreFault> {
        let Some(topic) = run.first().map(|item| item.topic.clone()) else { return Ok(()) };
        let mut stream = self.known(planner, &topic);
        let mut session = match self.find_session(planner, stream.as_deref(), &sender.key) {
            Ok(session) => session,
            Err(fault) => {
                refuse(sender, &run, &fault);
                return Err(fault);
            }
        };
        session.belong_to(&sender.owner);
        let mut is_changed = false;
        let run_count = run.len();
        let mut items = run.into_iter().peekable();
        while let Some(item) = items.next() {
            let n = item.n;
            let mut told = item.told(Err(Error::NumberForgotten { n }));
            let mut skipped = None;
            match session.look(n, item.digest) {
                SessionNext::New => {
                    let owner = sender.owner.clone();
                    let (mut asked, digests) =
                        AppendAsked::next(item, &mut items, self.now_ms, owner);
                    asked.own_unless_whole(run_count);
                    let count = digests.len() as u64;
                    told.result = self.store_next(planner, &mut stream, asked);
                    if let Ok(placed) = &told.result {
                        session.push(placed.first, &digests, sender.keep);
                        told.to = n + count - 1;
                        is_changed = true;
                    } else if count > 1 {
                        // Those behind it are numbered as if it were stored.
                        let (to, result) = (n + count - 1, Err(Error::NumberSkipped { next: n }));
                        skipped = Some(PublishAnswered { from: n + 1, to, result, ..told.clone() });
                    }
                }
                SessionNext::Stored(first) => {
                    let level = stream.as_ref().map_or(Level::Memory, |s| s.settings().level);
                    told.result = Ok(StoredPlace { first, level, replayed: true });
                }
                SessionNext::Reused => told.result = Err(Error::KeyReused),
                SessionNext::Zero => told.result = Err(Error::parameter("n", NUMBERS)),
                SessionNext::Skipped(next) => told.result = Err(Error::NumberSkipped { next }),
                SessionNext::Forgotten => {}
            }
            // A result stored before does not depend on this commit, and is told even if it fails.
            let is_old = matches!(told.result, Ok(_) | Err(Error::KeyReused));
            if is_old && session.is_certain(n) {
                sender.outbox.tell([told]);
            } else {
                let number = stream.as_ref().map(|stream| stream.number);
                self.note(number, sender, told);
                skipped.into_iter().for_each(|told| self.note(number, sender, told));
            }
        }
        if is_changed && let Some(stream) = &stream {
            self.staged(stream).sessions.insert(sender.key.clone(), session);
        }
        Ok(())
    }

    /// Tells a session which of its numbers comes next.
    pub(super) fn tell_session(
        &mut self,
        planner: &CommitPlanner,
        find: FindSessionCommand,
    ) -> Result<(), StoreFault> {
        if matches!(self.target(planner, &find.topic), StreamTarget::Leaving) {
            self.replies.defer(WriterCommand::FindSession(find));
            return Ok(());
        }
        let stream = self.known(planner, &find.topic);
        match self.find_session(planner, stream.as_deref(), &find.key) {
            Ok(session) => {
                // The number may be one of this very commit, and is told once that stands.
                let next = session.last() + 1;
                self.replies.push(None, CommandAnswer::FindSession(find.reply, next));
                Ok(())
            }
            Err(fault) => {
                let error = Error::from(fault.clone());
                drop(find.reply.send(Err(error)));
                Err(fault)
            }
        }
    }

    /// Accepts or refuses the next messages of a session; the stream is known afterwards. Returns
    /// where the first is.
    fn store_next(
        &mut self,
        planner: &mut CommitPlanner,
        stream: &mut Option<Arc<StreamEntry>>,
        asked: AppendAsked,
    ) -> Result<StoredPlace, Error> {
        let topic = asked.topic.clone();
        let (appended, _) = self.accept(planner, stream.clone(), asked, None)?;
        let AppendedMessages { generation, offset, level, .. } = appended;
        let first = match appended.due_ms {
            Some(due_ms) => EnqueueOutcome::Due(due_ms),
            None => EnqueueOutcome::At(StreamPosition { generation, offset }),
        };
        if stream.is_none() {
            *stream = self.known(planner, &topic);
        }
        if let Some(stream) = stream.as_ref().filter(|_| appended.due_ms.is_some()) {
            self.staged(stream).waits = true;
        }
        Ok(StoredPlace { first, level, replayed: false })
    }

    /// Notes what is to be told when the commit has ended, in one piece with what was noted before.
    fn note(&mut self, number: Option<u32>, sender: &PlannedSender, told: PublishAnswered) {
        if let Some((before, CommandAnswer::Publish(outbox, last))) = self.replies.last_mut()
            && *before == number
            && Arc::ptr_eq(outbox, &sender.outbox)
            && last.takes(&told)
        {
            last.to = told.to;
            return;
        }
        self.replies.push(number, CommandAnswer::Publish(sender.outbox.clone(), told));
    }

    fn known(
        &self,
        planner: &CommitPlanner,
        topic: &sealane_message::Topic,
    ) -> Option<Arc<StreamEntry>> {
        match self.target(planner, topic) {
            StreamTarget::Known(stream) => Some(stream),
            StreamTarget::New | StreamTarget::Leaving => None,
        }
    }

    /// The messages that the session has had stored, or that are planned for it.
    fn find_session(
        &self,
        planner: &CommitPlanner,
        stream: Option<&StreamEntry>,
        key: &Arc<[u8]>,
    ) -> Result<StoredSession, StoreFault> {
        let Some(stream) = stream else { return Ok(StoredSession::default()) };
        let of_plan = self.gains.get(&stream.number).and_then(|staged| staged.sessions.get(key));
        if let Some(session) = of_plan {
            return Ok(session.clone());
        }
        let is_meant = |staged: &&StagedStream| staged.stream.number == stream.number;
        let mut unsaved = planner.unsaved.iter().rev().filter(is_meant);
        match unsaved.find_map(|staged| staged.sessions.get(key)) {
            Some(session) => Ok(session.made_certain()),
            None if self.streams.makes(&stream.topic) => Ok(StoredSession::default()),
            None => match planner.sessions.find(stream.number, key) {
                Some(session) => {
                    debug_assert!({
                        let stored = planner.writes.find_session(stream.number, key);
                        stored.map_or(true, |stored| stored == *session)
                    });
                    Ok(session.clone())
                }
                None => planner.writes.find_session(stream.number, key),
            },
        }
    }
}

/// Runs of one topic, in order.
fn by_topic(items: Vec<SessionItem>) -> Vec<Vec<SessionItem>> {
    // Almost all come for one stream, and are not moved.
    let is_one = |pair: &[SessionItem]| matches!(pair, [a, b] if a.topic == b.topic);
    if items.windows(2).all(is_one) {
        return vec![items];
    }
    let mut runs: Vec<Vec<SessionItem>> = Vec::new();
    for item in items {
        match runs.last_mut() {
            Some(run) if run.first().is_some_and(|first| first.topic == item.topic) => {
                run.push(item);
            }
            _ => runs.push(vec![item]),
        }
    }
    runs
}

impl AppendAsked {
    /// A message, and with it those that follow it by number and are stored if it is.
    /// Their digests stand beside them.
    fn next(
        first: SessionItem,
        behind: &mut Peekable<IntoIter<SessionItem>>,
        now_ms: u64,
        owner: Arc<str>,
    ) -> (Self, Vec<u32>) {
        let is_plain = |item: &SessionItem| item.expect.is_none() && item.delay_ms.is_none();
        let is_first_plain = is_plain(&first);
        let SessionItem { topic, n, envelope, expect, delay_ms, digest } = first;
        let group = envelope.group();
        let due_ms = delay_ms.map(|delay_ms| now_ms + delay_ms);
        // Growing bit by bit would move the first of them again and again.
        let room = if is_first_plain { behind.len() + 1 } else { 1 };
        let mut envelopes = Vec::with_capacity(room);
        let mut digests = Vec::with_capacity(room);
        envelopes.push(envelope);
        digests.push(digest);
        let goes_along = |item: &SessionItem, before: usize| {
            is_first_plain
                && is_plain(item)
                && item.n == n + before as u64
                && item.envelope.group() == group
        };
        while let Some(item) = behind.next_if(|item| goes_along(item, envelopes.len())) {
            envelopes.push(item.envelope);
            digests.push(item.digest);
        }
        let (key, each, is_numbered) = (None, Vec::new(), true);
        let asked = Self { topic, envelopes, group, expect, due_ms, key, each, owner, is_numbered };
        (asked, digests)
    }

    /// Gives the messages memory of their own, unless they are all of their run. Others of it may
    /// be refused or known, and would stay in the memory that these share with them.
    fn own_unless_whole(&mut self, run_count: usize) {
        if self.envelopes.len() < run_count {
            self.envelopes.iter_mut().for_each(StreamEnvelope::own);
        }
    }
}

/// Why a number is refused that no message can have.
const NUMBERS: &str = "is 0: a session numbers its messages of a stream from 1";

/// Tells that the store could not be asked.
fn refuse(sender: &PlannedSender, run: &[SessionItem], fault: &StoreFault) {
    let error = Error::from(CommandRefusal::Unstorable(fault.clone()));
    sender.outbox.tell(run.iter().map(|item| item.told(Err(error.clone()))));
}
