//! Opening what comes over a link: only of senders that announced themselves, and only once.

use super::*;
use crate::session::CeilingRaise;

impl Opener {
    /// Refuses live messages of earlier epochs. A reader whose sessions were lost calls it with the
    /// epoch after the newest, since any message of the present one may be a recorded one.
    pub fn set_live_floor(&mut self, epoch: Epoch) {
        self.live_floor = epoch;
    }

    /// Allows [`MAX_TRIALS`] announcements of unknown contexts to be tried from now on: to be
    /// called once a second, so that whoever makes them up costs the reader no more than that.
    pub fn allow_trials(&mut self) {
        self.trials = MAX_TRIALS;
    }

    /// Puts a stored session back after a restart.
    pub fn restore(&mut self, state: &SessionState) {
        self.sessions.set(state.slot, state.session());
    }

    /// A session whose ceiling is worth storing before a message needs it, now that one was
    /// accepted. A caller that stores it elsewhere, and goes on meanwhile, waits for no disk as
    /// long as its sender keeps its rate. Nothing else may be stored of the slot until that is done
    /// or given up; then [`Opener::stored_ahead`] tells of it.
    pub fn to_store_ahead(&mut self, slot: Slot, now_ms: u64) -> Option<SessionState> {
        let session = self.sessions.get_mut(slot)?;
        let ceiling = session.ask_ahead(now_ms)?;
        Some(session.state(slot, session.window.epoch(), ceiling))
    }

    /// Goes on under a ceiling that [`Opener::to_store_ahead`] gave and that is stored durably now.
    pub fn stored_ahead(&mut self, state: &SessionState) {
        let session = self.sessions.get_mut(state.slot);
        if let Some(session) = session.filter(|session| session.context == state.context) {
            session.take_ahead(state.epoch, state.ceiling);
        }
    }

    /// The context that a slot has announced, for links that carry one byte of it.
    pub fn announced(&self, slot: Slot) -> Option<SenderContext> {
        self.sessions.get(slot).map(|session| session.context)
    }

    /// Opens a message from a link, where it stands in `sealed`; the arguments are those of
    /// [`Opener::open_stored`].
    ///
    /// Nothing moves until [`PendingOpen::accept`] is called on the result; nothing moves on an
    /// error.
    ///
    /// # Errors
    ///
    /// All faults of a peer. If a key was applied, the body is zeroed.
    pub fn open_live(
        &mut self,
        form: Form,
        attached: &Attached<'_>,
        sealed: &mut [u8],
        clear: usize,
    ) -> Result<PendingOpen<'_>, Error> {
        let layout = SealLayout::find(self.group, form, self.epochs.newest(), sealed, clear)?;
        let epoch = self.live_epoch(&layout.header)?;
        let session = self.sessions.get(layout.header.key.slot);
        let session = session.filter(|session| session.context == attached.context);
        session.ok_or(Error::Unannounced)?.check(epoch, layout.header.counter)?;
        self.open(epoch, attached, sealed, &layout)?;
        let opened = layout.opened(self.group.id(), epoch, attached.context);
        Ok(PendingOpen { opener: self, opened, raise: None })
    }

    /// Opens a sender's announcement: a class S message in the full form whose body is an
    /// [`Announcement`]. Of a context that is not known, it costs one of the trials.
    ///
    /// # Errors
    ///
    /// As [`Opener::open_live`]; [`Error::TooManyTrials`]; [`Error::Replayed`] if epoch and start
    /// are not above those of the slot's session; [`Error::Malformed`] for another body.
    pub fn open_announcement(
        &mut self,
        attached: &Attached<'_>,
        sealed: &mut [u8],
    ) -> Result<PendingAnnouncement<'_>, Error> {
        let layout = SealLayout::find(self.group, Form::Full, self.epochs.newest(), sealed, 0)?;
        if layout.header.key.class != Class::Signed {
            return Err(Error::Class);
        }
        let (slot, counter) = (layout.header.key.slot, layout.header.counter);
        let epoch = self.live_epoch(&layout.header)?;
        let known = self.sessions.get(slot).copied();
        match known.filter(|session| session.context == attached.context) {
            Some(session) => session.check(epoch, counter)?,
            None => self.trials = self.trials.checked_sub(1).ok_or(Error::TooManyTrials)?,
        }
        self.open(epoch, attached, sealed, &layout)?;
        let opened = layout.opened(self.group.id(), epoch, attached.context);
        let body = sealed.get(opened.body()).unwrap_or_default();
        let announcement = Announcement::from_bytes(body)?;
        let session = match known {
            Some(session) if session.context == attached.context => session,
            Some(session) if !session.is_before(epoch, announcement.start) => {
                return Err(Error::Replayed);
            }
            _ => SenderSession::new(attached.context, announcement.start, epoch),
        };
        Ok(PendingAnnouncement { opener: self, opened, announcement, session, raise: None })
    }

    /// The epoch of a live message, if one of that slot may still come.
    fn live_epoch(&self, header: &SframeHeader) -> Result<Epoch, Error> {
        if Some(header.key.slot) == self.own {
            return Err(Error::Reflected);
        }
        let newest = self.epochs.newest();
        let epoch = header.key.epoch(newest);
        let is_late = epoch.0.saturating_add(MAX_LIVE_EPOCHS_BEHIND) < newest.0;
        if is_late || epoch < self.live_floor {
            return Err(Error::EpochPast);
        }
        self.admit(header.key.slot, epoch).map(|()| epoch)
    }
}

impl SenderSession {
    /// Whether a message of the session may be accepted.
    fn check(&self, epoch: Epoch, counter: u64) -> Result<(), Error> {
        match self.window.epoch() {
            later if later > epoch => Err(Error::EpochPast),
            same if same == epoch => self.window.check(counter),
            _ => Ok(()),
        }
    }

    /// Whether a start that is announced in `epoch` comes after this one. A later epoch is enough:
    /// otherwise one whose clock was wrong, or who left the group, could keep the slot from whoever
    /// has it next.
    fn is_before(&self, epoch: Epoch, start: u64) -> bool {
        (self.window.epoch(), self.start) < (epoch, start)
    }

    fn state(&self, slot: Slot, epoch: Epoch, ceiling: u64) -> SessionState {
        SessionState { slot, epoch, context: self.context, start: self.start, ceiling }
    }
}

/// An authentic live message that has not been accepted yet.
///
/// Store what [`PendingOpen::to_store`] gives, then [`accept`](PendingOpen::accept). Dropped
/// instead, the message may come again.
#[must_use = "the session moves only when the message is accepted"]
pub struct PendingOpen<'a> {
    opener: &'a mut Opener,
    opened: OpenedMessage,
    raise: Option<CeilingRaise>,
}

impl PendingOpen<'_> {
    /// The message.
    pub fn opened(&self) -> &OpenedMessage {
        &self.opened
    }

    /// The state that has to be stored durably before the message is accepted; none for most
    /// messages. `now_ms` is any clock that does not go back.
    pub fn to_store(&mut self, now_ms: u64) -> Option<SessionState> {
        let (slot, epoch) = (self.opened.slot(), self.opened.epoch());
        let session = self.opener.sessions.get_mut(slot)?;
        let raise = session.raise(epoch, self.opened.counter(), now_ms)?;
        self.raise = Some(raise);
        session.lower(epoch, raise.ceiling);
        Some(session.state(slot, epoch, raise.ceiling))
    }

    /// Whether the message cannot be accepted before something is stored.
    pub fn waits_for_store(&self, now_ms: u64) -> bool {
        let session = self.opener.sessions.get(self.opened.slot());
        let raise = |session: &SenderSession| {
            session.raise(self.opened.epoch(), self.opened.counter(), now_ms)
        };
        session.and_then(raise).is_some()
    }

    /// [`Opener::stored_ahead`], for a state whose storing was waited for.
    pub fn stored_ahead(&mut self, state: &SessionState) {
        self.opener.stored_ahead(state);
    }

    /// Moves the sender's session.
    pub fn accept(self) -> OpenedMessage {
        if let Some(session) = self.opener.sessions.get_mut(self.opened.slot()) {
            session.accept(self.opened.epoch(), self.opened.counter(), self.raise);
        }
        self.opened
    }
}

impl fmt::Debug for PendingOpen<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Pending").field("opened", &self.opened).finish_non_exhaustive()
    }
}

/// An authentic announcement that has not been accepted yet.
#[must_use = "the session begins only when the announcement is accepted"]
pub struct PendingAnnouncement<'a> {
    opener: &'a mut Opener,
    opened: OpenedMessage,
    announcement: Announcement,
    session: SenderSession,
    raise: Option<CeilingRaise>,
}

impl PendingAnnouncement<'_> {
    /// The message that it is the body of.
    pub fn opened(&self) -> &OpenedMessage {
        &self.opened
    }

    /// The sender's statement about itself.
    pub fn announcement(&self) -> Announcement {
        self.announcement
    }

    /// The state that has to be stored durably before the announcement is accepted.
    pub fn to_store(&mut self, now_ms: u64) -> Option<SessionState> {
        let (slot, epoch) = (self.opened.slot(), self.opened.epoch());
        let raise = self.session.raise(epoch, self.opened.counter(), now_ms)?;
        self.raise = Some(raise);
        let known = self.opener.sessions.get_mut(slot);
        if let Some(known) = known.filter(|known| known.context == self.session.context) {
            known.lower(epoch, raise.ceiling);
        }
        Some(self.session.state(slot, epoch, raise.ceiling))
    }

    /// Begins the session, or goes on with it if the sender announced itself again.
    pub fn accept(self) -> OpenedMessage {
        let PendingAnnouncement { opener, opened, mut session, raise, .. } = self;
        session.accept(opened.epoch(), opened.counter(), raise);
        opener.sessions.set(opened.slot(), session);
        opened
    }
}

impl fmt::Debug for PendingAnnouncement<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Announced").field("opened", &self.opened).finish_non_exhaustive()
    }
}
