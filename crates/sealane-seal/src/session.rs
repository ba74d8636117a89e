//! The state that a live reader keeps of each sender.

use crate::limits::WINDOW_BITS;
use crate::window::ReplayWindow;
use crate::{Class, Epoch, Error, SenderContext};

/// A sender that announced itself, as its reader knows it.
///
/// All holders of the group's key can make an unsigned frame of any slot. So such frames move a
/// window of their own, and nothing that signed messages depend on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SenderSession {
    pub(crate) context: SenderContext,
    pub(crate) start: u64,
    signed: ReplayWindow,
    unsigned: ReplayWindow,
    /// Unsigned counters that stay closed though the window was set back.
    closed: Option<ClosedCounters>,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WindowDoubt {
    None,
    /// The next question of the reader is to settle it.
    Raised,
    /// That question and all later ones settle it. The place is that of the window at that time.
    Asked {
        question: u64,
        epoch: Epoch,
        next: u64,
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
        let (closed, doubt) = (None, WindowDoubt::None);
        SenderSession { context, start, signed: window, unsigned: window, closed, doubt }
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

    /// Takes an announcement that passed [`SenderSession::check`]. If unsigned frames have moved
    /// their window far beyond it, others than the sender made them, and the window is set back.
    ///
    /// An announcement that was held back on its way looks the same: true frames came before it. So
    /// only one counts that was made after the frames were accepted, since it answers a question
    /// that was asked then. Whether such a question is worth asking is the result.
    pub(crate) fn announce(&mut self, epoch: Epoch, counter: u64, answer: FreshAnswer) -> bool {
        let is_newest = (epoch, counter) >= (self.signed.epoch(), self.signed.next());
        self.accept(Class::Signed, epoch, counter);
        let place = (self.unsigned.epoch(), self.unsigned.next());
        // Within its width the window still admits what the sender seals next.
        let reach = (epoch, counter.saturating_add(WINDOW_BITS));
        if !is_newest || place <= reach {
            return false;
        }
        match (answer, self.doubt) {
            (FreshAnswer::To(answered), WindowDoubt::Asked { question, epoch: then, next })
                if answered >= question =>
            {
                self.doubt = WindowDoubt::None;
                if (then, next) <= reach {
                    return false;
                }
                self.unsigned = ReplayWindow::closed_below(epoch, counter + 1);
                // Otherwise a recording of the frame that moved the window would do so again. No
                // more than a window's width is closed: whoever moved it chose how far.
                let (epoch, to) = place;
                let from = to.saturating_sub(WINDOW_BITS);
                self.closed = Some(ClosedCounters { epoch, from, to });
            }
            (_, WindowDoubt::Asked { .. }) => {}
            (_, WindowDoubt::None | WindowDoubt::Raised) => self.doubt = WindowDoubt::Raised,
        }
        self.doubt != WindowDoubt::None
    }

    /// The reader asks a question: it settles a doubt that was raised before it.
    pub(crate) fn ask(&mut self, question: u64) {
        if self.doubt == WindowDoubt::Raised {
            let (epoch, next) = (self.unsigned.epoch(), self.unsigned.next());
            self.doubt = WindowDoubt::Asked { question, epoch, next };
        }
    }

    fn window(&self, class: Class) -> &ReplayWindow {
        if class == Class::Signed { &self.signed } else { &self.unsigned }
    }
}

#[cfg(test)]
mod tests;
