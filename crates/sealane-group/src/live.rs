use std::collections::BTreeMap;
use std::sync::Arc;

use sealane_frame::{
    Announced, Header, LinkContext, Received, open_announcement, open_compact, open_frame,
};
use sealane_seal::{Binding, Epoch, Opened, Opener, SessionState, Slot};

use crate::folder::IdentityKeys;
use crate::{EpochSource, Error, Member};

/// A reader of what comes over links. What it has accepted is never accepted again, whatever is
/// recorded and played, and whenever it is stopped: it stores a sender's session before the session
/// moves.
///
/// One process of a folder has one at a time.
pub struct LiveReader {
    keys: Arc<IdentityKeys>,
    name: String,
    opener: Opener,
    sessions: BTreeMap<Slot, SessionState>,
    /// Nothing of an earlier epoch is taken: what was accepted in it is not known any more.
    floor: Epoch,
}

/// A frame that was opened and accepted.
#[derive(Debug)]
pub struct LiveMessage<'f> {
    /// The header in the full form. All but the hops are authentic.
    pub header: Header,
    /// The body, in the buffer the frame arrived in.
    pub body: &'f [u8],
    /// Sender, epoch, context and counter: which message it is.
    pub opened: Opened,
}

/// A sender that has made itself known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveSender {
    /// Its slot.
    pub slot: Slot,
    /// What holds for its compact frames, for the link's roster.
    pub announced: Announced,
    /// How many orders of the group it has obeyed. A reader that has obeyed fewer is behind.
    pub orders: u64,
}

impl Member {
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
        let (mut sessions, mut floor) = (BTreeMap::new(), self.live_from());
        match self.keys.sessions(&self.keys.lock()?, self.name())? {
            Some(kept) => sessions.extend(kept.into_iter().map(|state| (state.slot(), state))),
            None => floor = Epoch(self.epochs().newest().0.saturating_add(1)),
        }
        opener.set_live_floor(floor);
        sessions.values().for_each(|state| opener.restore(state));
        let (keys, name) = (Arc::clone(&self.keys), self.name().to_owned());
        Ok(LiveReader { keys, name, opener, sessions, floor })
    }
}

impl LiveReader {
    /// Tells it what has changed in the group.
    ///
    /// # Errors
    ///
    /// As [`EpochSource::refresh`].
    pub fn follow(&mut self, member: &Member) -> Result<(), Error> {
        member.refresh(&mut self.opener)?;
        self.opener.set_live_floor(self.floor.max(member.live_from()));
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
    /// What [`open_announcement`] refuses, and [`Error::Io`]: then nothing has moved.
    pub fn announced(&mut self, frame: &mut [u8], now_ms: u64) -> Result<LiveSender, Error> {
        let mut announced = open_announcement(&mut self.opener, frame)?;
        if let Some(state) = announced.to_store(now_ms) {
            store(&self.keys, &self.name, &mut self.sessions, state)?;
        }
        let orders = announced.announcement().orders;
        let opened = announced.accept();
        let [low, ..] = orders.to_le_bytes();
        let announced = Announced { context: opened.context(), orders: low };
        Ok(LiveSender { slot: opened.slot(), announced, orders })
    }

    /// Opens a frame of the full form and accepts it.
    ///
    /// # Errors
    ///
    /// What [`open_frame`] refuses, and [`Error::Io`]: then nothing has moved.
    pub fn open<'f>(
        &mut self,
        binding: &Binding,
        frame: &'f mut [u8],
        now_ms: u64,
    ) -> Result<LiveMessage<'f>, Error> {
        let received = open_frame(&mut self.opener, binding, frame)?;
        accept(&self.keys, &self.name, &mut self.sessions, received, now_ms)
    }

    /// Opens a frame of the compact form of a link and accepts it.
    ///
    /// # Errors
    ///
    /// What [`open_compact`] refuses, and [`Error::Io`]: then nothing has moved.
    pub fn open_compact<'f>(
        &mut self,
        binding: &Binding,
        frame: &'f mut [u8],
        link: &LinkContext<'_>,
        now_ms: u64,
    ) -> Result<LiveMessage<'f>, Error> {
        let received = open_compact(&mut self.opener, binding, frame, link)?;
        accept(&self.keys, &self.name, &mut self.sessions, received, now_ms)
    }
}

fn accept<'f>(
    keys: &IdentityKeys,
    name: &str,
    sessions: &mut BTreeMap<Slot, SessionState>,
    mut received: Received<'_, 'f>,
    now_ms: u64,
) -> Result<LiveMessage<'f>, Error> {
    if let Some(state) = received.pending.to_store(now_ms) {
        store(keys, name, sessions, state)?;
    }
    let (header, body) = (received.header, received.body);
    Ok(LiveMessage { header, body, opened: received.accept() })
}

/// Keeps a session on disk, among those of all other senders.
#[cold]
fn store(
    keys: &IdentityKeys,
    name: &str,
    sessions: &mut BTreeMap<Slot, SessionState>,
    state: SessionState,
) -> Result<(), Error> {
    let before = sessions.insert(state.slot(), state);
    let all: Vec<SessionState> = sessions.values().copied().collect();
    let kept = keys.lock().and_then(|lock| keys.save_sessions(&lock, name, &all));
    if kept.is_err() {
        match before {
            Some(before) => sessions.insert(before.slot(), before),
            None => sessions.remove(&state.slot()),
        };
    }
    kept
}

impl std::fmt::Debug for LiveReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveReader").field("opener", &self.opener).finish_non_exhaustive()
    }
}
