//! The state that a live reader keeps of each sender.

use crate::limits::WINDOW_BITS;
use crate::window::ReplayWindow;
use crate::{Class, Epoch, Error, SenderContext};

/// A sender that announced itself, as its reader knows it.
///
/// All holders of the group's key can make an unsigned frame of any slot. So such frames move a
/// window of their own, and nothing that signed messages depend on.
#[derive(Debug, Clone)]
pub(crate) struct SenderSession {
    pub(crate) context: SenderContext,
    pub(crate) start: u64,
    signed: ReplayWindow,
    unsigned: ReplayWindow,
    /// Unsigned counters that stay closed though the window was set back.
    closed: Option<ClosedCounters>,
    /// An unsigned frame was refused as a repeat or behind the window. Nothing has proved yet that
    /// the sender made it.
    is_refused: bool,
    /// An announcement lies behind the unsigned window, and the sender is asked whether it is old.
    doubt: WindowDoubt,
}

/// Counters of one epoch, at most as many as a window has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ClosedCounters {
    epoch: Epoch,
    from: u64,
    to: u64,
}

/// Whether somebody else may have moved the unsigned window.
#[derive(Debug, Clone, PartialEq, Eq)]
enum WindowDoubt {
    None,
    /// The next question of the reader is to settle it.
    Raised,
    /// That question and all later ones settle it. The window is the one of that time; it lies
    /// elsewhere, since hardly a session is ever in doubt.
    Asked {
        question: u64,
        before: Box<ReplayWindow>,
    },
}

/// How an announcement proves that it was made of late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FreshAnswer {
    /// It answers none of the reader's questions.
    Missing,
    /// It answers that question of the reader, and perhaps earlier ones.
    To(u64),
}

impl SenderSession {
    /// The session that an announcement begins. Nothing that was sealed before it is taken: an
    /// earlier run of the reader may have accepted it.
    pub(crate) fn new(context: SenderContext, start: u64, epoch: Epoch, counter: u64) -> Self {
        let window = ReplayWindow::closed_below(epoch, counter);
        let (closed, is_refused, doubt) = (None, false, WindowDoubt::None);
        SenderSession {
            context,
            start,
            signed: window,
            unsigned: window,
            closed,
            is_refused,
            doubt,
        }
    }

    /// Whether a message of the session may be accepted.
    pub(crate) fn check(&self, class: Class, epoch: Epoch, counter: u64) -> Result<(), Error> {
        let window = self.window(class);
        if epoch < window.epoch().max(self.signed.epoch()) {
            return Err(Error::EpochPast);
        }
        let is_closed = |closed: ClosedCounters| {
            closed.epoch == epoch && (closed.from..closed.to).contains(&counter)
        };
        if class != Class::Signed && self.closed.is_some_and(is_closed) {
            return Err(Error::Replayed);
        }
        if epoch == window.epoch() { window.check(counter) } else { Ok(()) }
    }

    /// Marks a counter that [`SenderSession::check`] let pass.
    pub(crate) fn accept(&mut self, class: Class, epoch: Epoch, counter: u64) {
        let window = if class == Class::Signed { &mut self.signed } else { &mut self.unsigned };
        if window.epoch() != epoch {
            *window = ReplayWindow::new(epoch);
        }
        window.accept(counter);
    }

    /// Whether a start that is announced in `epoch` comes after this one. A later epoch is enough:
    /// otherwise a member whose clock was wrong, or that left the group, could keep the slot from
    /// the next one that has it.
    pub(crate) fn is_before(&self, epoch: Epoch, start: u64) -> bool {
        (self.signed.epoch(), self.start) < (epoch, start)
    }

    /// Notes why [`SenderSession::check`] refused a frame. If somebody has used up the counters
    /// that the sender is about to use, this alone shows it.
    pub(crate) fn refused(&mut self, class: Class, error: &Error) {
        self.is_refused |=
            class != Class::Signed && matches!(error, Error::Replayed | Error::Stale);
    }

    /// Takes an announcement that passed [`SenderSession::check`]. If unsigned frames have moved
    /// their window beyond it, others than the sender made them, and the window is set back.
    ///
    /// An announcement that was held back on its way looks the same: true frames came before it. So
    /// only one counts that was made after the frames were accepted, since it answers a question
    /// that was asked then. Whether such a question is worth asking is the result.
    pub(crate) fn announce(&mut self, epoch: Epoch, counter: u64, answer: FreshAnswer) -> bool {
        let is_newest = (epoch, counter) >= (self.signed.epoch(), self.signed.next());
        self.accept(Class::Signed, epoch, counter);
        if !is_newest {
            return false;
        }
        // The sender comes to counters that others have used. A recording of those frames costs it
        // a question. Counters that stayed closed would cost all of them.
        let is_reached = |closed: &ClosedCounters| {
            (closed.epoch, closed.from) <= (epoch, counter.saturating_add(WINDOW_BITS))
        };
        self.closed = self.closed.filter(|closed| !is_reached(closed));
        match (answer, &self.doubt) {
            (FreshAnswer::To(answered), WindowDoubt::Asked { question, before })
                if answered >= *question =>
            {
                let before = **before;
                (self.doubt, self.is_refused) = (WindowDoubt::None, false);
                // A true frame beyond the announcement did not exist when the question was asked.
                if (before.epoch(), before.next()) > (epoch, counter + 1) {
                    self.set_back(epoch, counter, &before);
                }
            }
            (_, WindowDoubt::None) if self.is_doubtful(epoch, counter) => {
                self.doubt = WindowDoubt::Raised;
            }
            _ => {}
        }
        self.doubt != WindowDoubt::None
    }

    /// Whether the unsigned window may refuse the frame behind an announcement. Within its width it
    /// usually admits that frame, since frames overtake one another.
    fn is_doubtful(&self, epoch: Epoch, counter: u64) -> bool {
        let width = if self.is_refused { 1 } else { WINDOW_BITS };
        let place = (self.unsigned.epoch(), self.unsigned.next());
        place > (epoch, counter.saturating_add(width))
    }

    /// Sets the unsigned window back to an announcement. It keeps what was accepted since the
    /// question was asked: that may be true.
    fn set_back(&mut self, epoch: Epoch, counter: u64, before: &ReplayWindow) {
        let after = self.unsigned;
        self.unsigned = after.set_back(epoch, counter, before);
        // Otherwise a recording of the frame that moved the window would do so again. No more than
        // a window's width is closed: whoever moved it chose how far.
        let to = after.next();
        let near = if after.epoch() == epoch { counter + 1 + WINDOW_BITS } else { 0 };
        let from = to.saturating_sub(WINDOW_BITS).max(near);
        self.closed = (from < to).then_some(ClosedCounters { epoch: after.epoch(), from, to });
    }

    /// The reader asks a question: it settles a doubt that was raised before it.
    pub(crate) fn ask(&mut self, question: u64) {
        if self.doubt == WindowDoubt::Raised {
            self.doubt = WindowDoubt::Asked { question, before: Box::new(self.unsigned) };
        }
    }

    fn window(&self, class: Class) -> &ReplayWindow {
        if class == Class::Signed { &self.signed } else { &self.unsigned }
    }
}

#[cfg(test)]
mod tests;
