mod store;

use std::sync::Arc;

use sealane_frame::{
    FrameAnnouncement, Header, LinkContext, ReceivedFrame, StoredFrame, open_announcement,
    open_compact, open_frame, open_stored,
};
use sealane_seal::{Binding, Epoch, OpenedMessage, Opener, Slot};

use crate::removal::AnnouncedRemovals;
use crate::{EpochSource, Error, GroupMember};
use store::SessionStore;

/// A reader of what comes over links. What it has accepted is never accepted again, whatever is
/// recorded and played, and whenever it is stopped: it stores a sender's session before the session
/// moves. Of a sender that keeps its rate it does so ahead, on a thread of its own, so that no
/// message waits for the disk.
///
/// One process of a folder has one at a time.
pub struct LiveReader {
    store: SessionStore,
    opener: Opener,
    /// Nothing of an earlier epoch is taken: what was accepted in it is not known any more.
    floor: Epoch,
    /// Of them nothing new is taken.
    leavers: AnnouncedRemovals,
}

/// A frame that was opened and accepted.
#[derive(Debug)]
pub struct LiveMessage<'f> {
    /// The header in the full form. All but the hops are authentic.
    pub header: Header,
    /// The body, in the buffer the frame arrived in.
    pub body: &'f [u8],
    /// Sender, epoch, context and counter: which message it is.
    pub opened: OpenedMessage,
}

/// A sender that has made itself known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveSender {
    /// Its slot.
    pub slot: Slot,
    /// The announcement that holds for its compact frames, for the link's roster.
    pub announced: FrameAnnouncement,
    /// How many orders of the group it has obeyed. A reader that has obeyed fewer is behind.
    pub orders: u64,
}

impl GroupMember {
    /// A reader of what comes over links, which goes on where the last one of this folder was.
    ///
    /// Sessions in a folder that was copied or restored may be old: each waits for a later start of
    /// its sender. Where they cannot be read, nothing is taken live before the next epoch.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], and those of [`EpochSource::opener`].
    pub fn live_reader(&self) -> Result<LiveReader, Error> {
        let mut opener = self.opener()?;
        let mut floor = self.live_from();
        let kept = self.keys.sessions(&self.keys.lock()?, self.name())?;
        if kept.is_none() {
            floor = Epoch(self.epochs().newest().0.saturating_add(1));
        }
        let kept = kept.unwrap_or_default();
        opener.set_live_floor(floor);
        kept.iter().for_each(|state| opener.restore(state));
        let store = SessionStore::new(Arc::clone(&self.keys), self.name(), kept);
        Ok(LiveReader { store, opener, floor, leavers: AnnouncedRemovals::of(self) })
    }
}

impl LiveReader {
    /// Tells it what has changed in the group.
    ///
    /// # Errors
    ///
    /// As [`EpochSource::refresh`].
    pub fn follow(&mut self, source: &impl EpochSource) -> Result<(), Error> {
        source.refresh(&mut self.opener)?;
        self.opener.set_live_floor(self.floor.max(source.live_from()));
        self.leavers = AnnouncedRemovals::of(source);
        Ok(())
    }

    /// Allows announcements of unknown contexts to be tried: to be called once a second.
    pub fn allow_trials(&mut self) {
        self.opener.allow_trials();
    }

    /// Takes a sender's announcement.
    ///
    /// # Errors
    ///
    /// As [`open_announcement`], and [`Error::Io`]: then nothing has moved.
    pub fn announced(&mut self, frame: &mut [u8], now_ms: u64) -> Result<LiveSender, Error> {
        self.stored_ahead();
        let mut announced = open_announcement(&mut self.opener, frame)?;
        self.leavers.check(announced.opened())?;
        if let Some(state) = announced.to_store(now_ms) {
            self.store.save(state)?;
        }
        let orders = announced.announcement().orders;
        let opened = announced.accept();
        let [low, ..] = orders.to_le_bytes();
        let announced = FrameAnnouncement { context: opened.context(), orders: low };
        Ok(LiveSender { slot: opened.slot(), announced, orders })
    }

    /// Opens a frame of the full form and accepts it.
    ///
    /// # Errors
    ///
    /// As [`open_frame`], and [`Error::Io`]: then nothing has moved.
    pub fn open<'f>(
        &mut self,
        binding: &Binding,
        frame: &'f mut [u8],
        now_ms: u64,
    ) -> Result<LiveMessage<'f>, Error> {
        self.stored_ahead();
        let received = open_frame(&mut self.opener, binding, frame)?;
        self.leavers.check(received.pending.opened())?;
        let message = accept(&mut self.store, received, now_ms)?;
        self.store_ahead(message.opened.slot(), now_ms);
        Ok(message)
    }

    /// Opens a frame of the full form that comes out of a stream. Its sender has not announced
    /// itself, and nothing moves. The frame opens again, so that the caller has to know it.
    ///
    /// # Errors
    ///
    /// As [`open_stored`], and [`Error::Leaving`].
    pub fn open_kept<'f>(
        &mut self,
        binding: &Binding,
        frame: &'f mut [u8],
    ) -> Result<StoredFrame<'f>, Error> {
        let newest = self.opener.epochs().newest();
        let stored = open_stored(&mut self.opener, newest, binding, frame)?;
        self.leavers.check(&stored.opened)?;
        Ok(stored)
    }

    /// Opens a frame of the compact form of a link and accepts it.
    ///
    /// # Errors
    ///
    /// As [`open_compact`], and [`Error::Io`]: then nothing has moved.
    pub fn open_compact<'f>(
        &mut self,
        binding: &Binding,
        frame: &'f mut [u8],
        link: &LinkContext<'_>,
        now_ms: u64,
    ) -> Result<LiveMessage<'f>, Error> {
        self.stored_ahead();
        let received = open_compact(&mut self.opener, binding, frame, link)?;
        self.leavers.check(received.pending.opened())?;
        let message = accept(&mut self.store, received, now_ms)?;
        self.store_ahead(message.opened.slot(), now_ms);
        Ok(message)
    }

    /// Goes on under a ceiling that was stored meanwhile.
    #[inline]
    fn stored_ahead(&mut self) {
        if let Some(state) = self.store.stored_ahead() {
            self.opener.stored_ahead(&state);
        }
    }

    /// Begins to store the next ceiling of a sender, if that is worth it and nothing else is being
    /// stored.
    #[inline]
    fn store_ahead(&mut self, slot: Slot, now_ms: u64) {
        if !self.store.is_busy()
            && let Some(state) = self.opener.to_store_ahead(slot, now_ms)
        {
            self.store.save_ahead(state);
        }
    }
}

fn accept<'f>(
    store: &mut SessionStore,
    mut received: ReceivedFrame<'_, 'f>,
    now_ms: u64,
) -> Result<LiveMessage<'f>, Error> {
    if received.pending.waits_for_store(now_ms) {
        // The state that is being stored already may be enough.
        if let Some(state) = store.wait() {
            received.pending.stored_ahead(&state);
        }
        if let Some(state) = received.pending.to_store(now_ms) {
            store.save(state)?;
        }
    }
    let (header, body) = (received.header, received.body);
    Ok(LiveMessage { header, body, opened: received.accept() })
}

impl std::fmt::Debug for LiveReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveReader").field("opener", &self.opener).finish_non_exhaustive()
    }
}
