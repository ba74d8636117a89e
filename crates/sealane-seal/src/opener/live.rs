//! Opening what comes over a link: only of senders that announced themselves, and only once.

use super::*;
use crate::session::FreshAnswer;

impl Opener {
    /// Refuses live messages of earlier epochs.
    pub fn set_live_floor(&mut self, epoch: Epoch) {
        self.live_floor = epoch;
    }

    /// Allows [`MAX_TRIALS`] announcements of unknown contexts to be tried from now on: to be
    /// called once a second, so that whoever makes them up costs the reader no more than that.
    pub fn allow_trials(&mut self) {
        self.trials = MAX_TRIALS;
    }

    /// Begins the session of a sender that is known by other means than an announcement, such as
    /// the handshake of a link. It takes the place of the slot's session.
    pub fn introduce(&mut self, slot: Slot, epoch: Epoch, context: SenderContext) {
        self.sessions.set(slot, SenderSession::new(context, 0, epoch, 0));
    }

    /// The context that a slot has announced, for links that carry one byte of it.
    pub fn announced(&self, slot: Slot) -> Option<SenderContext> {
        self.sessions.get(slot).map(|session| session.context)
    }

    /// Opens a message from a link, where it stands in `sealed`; the arguments are those of
    /// [`Opener::open_stored`].
    ///
    /// No window moves until [`PendingOpen::accept`] is called on the result; none moves on an
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
        let SframeHeader { key, counter } = layout.header;
        let session = self.sessions.get_mut(key.slot);
        let session = session.filter(|session| session.context == attached.context);
        let session = session.ok_or(Error::Unannounced)?;
        let is_open = session.check(key.class, epoch, counter);
        is_open.inspect_err(|error| session.refused(key.class, error))?;
        self.open(epoch, attached, sealed, &layout)?;
        let opened = layout.opened(self.group.id(), epoch, attached.context);
        Ok(PendingOpen { opener: self, opened })
    }

    /// Opens a sender's announcement: a class S message in the full form whose body is an
    /// [`Announcement`]. Of a context that is not known, it costs one of the trials, which an
    /// authentic one gives back if it is the newest of its slot. Its question waits for an answer
    /// then, also if it answers none itself.
    ///
    /// # Errors
    ///
    /// As [`Opener::open_live`]; [`Error::TooManyTrials`]; [`Error::Replayed`] if epoch and start
    /// are not above those of the slot's session; [`Error::Unannounced`] if it begins a session and
    /// answers none of the reader's questions; [`Error::Malformed`] for another body.
    pub fn open_announcement(
        &mut self,
        attached: &Attached<'_>,
        sealed: &mut [u8],
    ) -> Result<PendingAnnouncement<'_>, Error> {
        let layout = SealLayout::find(self.group, Form::Full, self.epochs.newest(), sealed, 0)?;
        let SframeHeader { key, counter } = layout.header;
        if key.class != Class::Signed {
            return Err(Error::Class);
        }
        let (slot, context) = (key.slot, attached.context);
        let epoch = self.live_epoch(&layout.header)?;
        let known = self.sessions.get(slot).cloned();
        let is_next = self.questions.is_next(KeyOf { epoch, context }, slot, counter);
        let is_same = known.as_ref().is_some_and(|session| session.context == context);
        match known.as_ref().filter(|_| is_same) {
            Some(session) => session.check(key.class, epoch, counter)?,
            None if is_next => {}
            None => self.trials = self.trials.checked_sub(1).ok_or(Error::TooManyTrials)?,
        }
        self.open(epoch, attached, sealed, &layout)?;
        let opened = layout.opened(self.group.id(), epoch, context);
        let body = sealed.get(opened.body()).unwrap_or_default();
        let announcement = Announcement::from_bytes(body)?;
        let start = announcement.start;
        let is_later = known.as_ref().is_none_or(|session| session.is_before(epoch, start));
        if !is_same && !is_later {
            return Err(Error::Replayed);
        }
        let (made, asked) = (AnnouncedAt { epoch, start, counter }, announcement.questions.own);
        let is_newest = self.questions.hear(slot, context, made, asked);
        if is_newest && !is_same && !is_next {
            // Each member of a large group has its trial, however many answers are missing.
            self.trials += 1;
        }
        let answer = self.questions.answered_by(&announcement.questions);
        if !is_same && self.questions.are_required && answer == FreshAnswer::Missing {
            self.questions.lacks_answers = true;
            return Err(Error::Unannounced);
        }
        let session = known.filter(|_| is_same);
        let begun = || SenderSession::new(context, start, epoch, counter);
        let session = session.unwrap_or_else(begun);
        Ok(PendingAnnouncement { opener: self, opened, announcement, session, answer })
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

/// An authentic live message that has not been accepted yet.
///
/// [`accept`](PendingOpen::accept) belongs into the transaction of the message's effect. Dropped
/// instead, the message may come again.
#[must_use = "the session moves only when the message is accepted"]
pub struct PendingOpen<'a> {
    opener: &'a mut Opener,
    opened: OpenedMessage,
}

impl PendingOpen<'_> {
    /// The message.
    pub fn opened(&self) -> &OpenedMessage {
        &self.opened
    }

    /// Moves the sender's session.
    pub fn accept(self) -> OpenedMessage {
        if let Some(session) = self.opener.sessions.get_mut(self.opened.slot()) {
            session.accept(self.opened.class(), self.opened.epoch(), self.opened.counter());
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
    answer: FreshAnswer,
}

impl PendingAnnouncement<'_> {
    /// The message that it is the body of.
    pub fn opened(&self) -> &OpenedMessage {
        &self.opened
    }

    /// The sender's statement about itself.
    pub fn announcement(&self) -> &Announcement {
        &self.announcement
    }

    /// Begins the session, or goes on with it if the sender announced itself again.
    pub fn accept(self) -> OpenedMessage {
        let PendingAnnouncement { opener, opened, mut session, answer, .. } = self;
        let is_doubted = session.announce(opened.epoch(), opened.counter(), answer);
        opener.questions.lacks_answers |= is_doubted;
        opener.sessions.set(opened.slot(), session);
        opened
    }
}

impl fmt::Debug for PendingAnnouncement<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Announced").field("opened", &self.opened).finish_non_exhaustive()
    }
}
