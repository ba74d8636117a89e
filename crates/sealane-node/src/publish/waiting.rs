//! Messages on their way to the hub, which takes them when its writer has room for them.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use sealane_protocol::Error;
use sealane_stream::{PublishSession, QueueShare, SessionItem};

type RoomComing = Pin<Box<dyn Future<Output = Result<QueueShare, Error>> + Send>>;

/// The messages of a session that the hub has not got yet.
#[derive(Default)]
pub(super) struct SessionBacklog {
    /// Those that room is asked for, and those that came since.
    asked: Vec<SessionItem>,
    later: Vec<SessionItem>,
    /// Set while there is no room for `asked`.
    coming: Option<RoomComing>,
    /// Bytes of all of them.
    bytes: u64,
    /// Bytes that the hub has got since they were asked for.
    gone_bytes: u64,
    /// Messages of one stream whose places the hub keeps.
    keep: u64,
}

impl SessionBacklog {
    /// Adds a message of so many bytes. `keep` messages of its stream may be unanswered.
    pub(super) fn add(&mut self, item: SessionItem, bytes: u64, keep: u64) {
        self.later.push(item);
        self.bytes += bytes;
        self.keep = self.keep.max(keep);
    }

    /// Gives the last messages that were added memory of their own, so many of them.
    pub(super) fn own_last(&mut self, count: usize) {
        self.later.iter_mut().rev().take(count).for_each(|item| item.envelope.own());
    }

    /// Gives the hub what it has room for.
    pub(super) fn hand_over(&mut self, session: &PublishSession) -> Result<(), Error> {
        // While earlier messages wait for room, later ones stay behind them. The numbers of a
        // session must not overtake.
        if self.coming.is_some() || self.later.is_empty() {
            return Ok(());
        }
        let items = std::mem::take(&mut self.later);
        match session.try_room(&items) {
            Some(room) => self.publish(session, items, room),
            None => {
                // The future is kept between polls, since a semaphore serves in the order of
                // asking.
                self.coming = Some(Box::pin(session.room(&items)));
                self.asked = items;
                Ok(())
            }
        }
    }

    /// Gives the hub what has waited for room, once there is some. Without anything that waits
    /// nothing comes.
    pub(super) fn poll_room(
        &mut self,
        session: &PublishSession,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Error>> {
        let Some(coming) = &mut self.coming else { return Poll::Pending };
        let room = ready!(coming.as_mut().poll(cx))?;
        self.coming = None;
        let items = std::mem::take(&mut self.asked);
        self.publish(session, items, room)?;
        Poll::Ready(self.hand_over(session))
    }

    fn publish(
        &mut self,
        session: &PublishSession,
        items: Vec<SessionItem>,
        room: QueueShare,
    ) -> Result<(), Error> {
        // The room goes with the messages, and comes back when the writer has planned them.
        session.publish(items, self.keep, room)?;
        // Bytes are let go together once nothing waits. Until then they are in memory here.
        if self.coming.is_none() && self.later.is_empty() {
            self.gone_bytes += std::mem::take(&mut self.bytes);
        }
        Ok(())
    }

    /// Bytes that the hub has got since this was asked last.
    pub(super) fn let_go(&mut self) -> u64 {
        std::mem::take(&mut self.gone_bytes)
    }
}
