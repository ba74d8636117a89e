use std::time::{Duration, Instant};

use sealane_frame::{
    FrameAnnouncement, Header, LinkContext, ReceivedFrame, StoredFrame, open_announcement,
    open_compact, open_frame, open_stored,
};
use sealane_seal::{AnnouncedQuestions, Binding, OpenedMessage, Opener, ReaderQuestion, Slot};

use crate::crypto::random;
use crate::limits::{MAX_QUESTION_INTERVAL_MS, MIN_QUESTION_INTERVAL_MS};
use crate::removal::AnnouncedRemovals;
use crate::{EpochSource, Error, GroupMember};

/// A reader of what comes over links. What it has accepted is never accepted again, whatever is
/// recorded and played, and whenever it is stopped: it takes nothing of a sender before the sender
/// has answered a question that the reader drew after its own start. So it stores nothing.
///
/// [`LiveReader::questions`] are for the announcements of the sender beside it.
pub struct LiveReader {
    opener: Opener,
    /// Of them nothing new is taken.
    leavers: AnnouncedRemovals,
    /// When another question may be asked, and how long after it the next one.
    may_ask: Instant,
    wait: Duration,
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
    /// A reader of what comes over links, which has asked its first question.
    ///
    /// # Errors
    ///
    /// Those of [`EpochSource::opener`], and [`Error::Cipher`] without randomness.
    pub fn live_reader(&self) -> Result<LiveReader, Error> {
        let mut opener = self.opener()?;
        opener.set_live_floor(self.live_from());
        opener.require_answers();
        let (may_ask, wait) = (Instant::now(), first_wait());
        let mut reader = LiveReader { opener, leavers: AnnouncedRemovals::of(self), may_ask, wait };
        reader.ask()?;
        Ok(reader)
    }
}

/// How long an answer to the first question is waited for. Each later one is waited for longer: on
/// a slow mesh answers take minutes, and only the newest questions count.
fn first_wait() -> Duration {
    Duration::from_millis(MIN_QUESTION_INTERVAL_MS)
}

impl LiveReader {
    /// Tells it what has changed in the group.
    ///
    /// # Errors
    ///
    /// As [`EpochSource::refresh`].
    pub fn follow(&mut self, source: &impl EpochSource) -> Result<(), Error> {
        source.refresh(&mut self.opener)?;
        self.opener.set_live_floor(source.live_from());
        self.leavers = AnnouncedRemovals::of(source);
        Ok(())
    }

    /// Allows announcements of unknown contexts to be tried: to be called once a second.
    pub fn allow_trials(&mut self) {
        self.opener.allow_trials();
    }

    /// The questions for the next announcement of the sender beside this reader: its own one, and
    /// those of others that wait for an answer. It asks another one if a sender is there that has
    /// answered none, since an answer may have been lost.
    ///
    /// # Errors
    ///
    /// [`Error::Cipher`] without randomness.
    pub fn questions(&mut self) -> Result<AnnouncedQuestions, Error> {
        if self.opener.lacks_answers() && Instant::now() >= self.may_ask {
            self.ask()?;
        }
        Ok(self.opener.questions())
    }

    /// Has the last question of each member answered again: the sender beside this reader has
    /// drawn another context ([`GroupSender::context`](crate::GroupSender::context)).
    pub fn answer_again(&mut self) {
        self.opener.answer_again();
    }

    fn ask(&mut self) -> Result<(), Error> {
        self.opener.ask(ReaderQuestion(random()?));
        self.may_ask = Instant::now() + self.wait;
        self.wait = (2 * self.wait).min(Duration::from_millis(MAX_QUESTION_INTERVAL_MS));
        Ok(())
    }

    /// Takes a sender's announcement. Its question is answered by the next
    /// [`LiveReader::questions`], also if it answers none itself and is refused.
    ///
    /// # Errors
    ///
    /// As [`open_announcement`]: then nothing has moved.
    pub fn announced(&mut self, frame: &mut [u8]) -> Result<LiveSender, Error> {
        let announced = open_announcement(&mut self.opener, frame)?;
        self.leavers.check(announced.opened())?;
        let orders = announced.announcement().orders;
        let opened = announced.accept();
        let [low, ..] = orders.to_le_bytes();
        let announced = FrameAnnouncement { context: opened.context(), orders: low };
        self.wait = first_wait();
        Ok(LiveSender { slot: opened.slot(), announced, orders })
    }

    /// Opens a frame of the full form and accepts it.
    ///
    /// # Errors
    ///
    /// As [`open_frame`]: then nothing has moved.
    pub fn open<'f>(
        &mut self,
        binding: &Binding,
        frame: &'f mut [u8],
    ) -> Result<LiveMessage<'f>, Error> {
        let received = open_frame(&mut self.opener, binding, frame)?;
        self.leavers.check(received.pending.opened())?;
        Ok(accept(received))
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
    /// As [`open_compact`]: then nothing has moved.
    pub fn open_compact<'f>(
        &mut self,
        binding: &Binding,
        frame: &'f mut [u8],
        link: &LinkContext<'_>,
    ) -> Result<LiveMessage<'f>, Error> {
        let received = open_compact(&mut self.opener, binding, frame, link)?;
        self.leavers.check(received.pending.opened())?;
        Ok(accept(received))
    }
}

fn accept<'f>(received: ReceivedFrame<'_, 'f>) -> LiveMessage<'f> {
    let (header, body) = (received.header, received.body);
    LiveMessage { header, body, opened: received.accept() }
}

impl std::fmt::Debug for LiveReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveReader").field("opener", &self.opener).finish_non_exhaustive()
    }
}
