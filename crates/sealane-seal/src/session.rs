//! The state that a live reader keeps of each sender.

use crate::limits::{MAX_CEILING_BLOCK, MAX_COUNTER};
use crate::window::ReplayWindow;
use crate::{Epoch, Error, SenderContext, Slot};

/// A sender that announced itself, as its reader knows it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SenderSession {
    pub(crate) context: SenderContext,
    pub(crate) start: u64,
    pub(crate) window: ReplayWindow,
    /// Below it a restart accepts nothing: as it was stored last.
    ceiling: u64,
    /// When the ceiling was raised last, or was last asked for ahead; and the next counter then.
    raised_ms: u64,
    raised_at: u64,
    /// The ceiling that is being stored ahead; 0 if none is.
    ahead: u64,
}

/// A block that was used up faster than this doubles.
const SHORT_MS: u64 = 500;
/// A block that was not used up within this is given up: its sender has become slower.
const LONG_MS: u64 = 1000;
/// The time that a ceiling lasts which is stored ahead, at the rate of the counters before it. It
/// is less than a second, so that a restart refuses no more than a second's messages.
const AHEAD_MS: u64 = 750;

impl SenderSession {
    pub(crate) fn new(context: SenderContext, start: u64, epoch: Epoch) -> SenderSession {
        SenderSession {
            context,
            start,
            window: ReplayWindow::new(epoch),
            ceiling: 0,
            raised_ms: 0,
            raised_at: 0,
            ahead: 0,
        }
    }

    /// The ceiling that has to be stored before a counter is accepted, if it has to be: far enough
    /// ahead that a fast sender does not make the reader write for each message, and no farther
    /// than what it sends in about a second. Of a sender that became slower it is a lower one.
    pub(crate) fn raise(&self, epoch: Epoch, counter: u64, now_ms: u64) -> Option<CeilingRaise> {
        let is_same = epoch == self.window.epoch();
        let accepted = if is_same { self.window.next() } else { 0 };
        let least = accepted.max(counter + 1);
        let passed_ms = now_ms.saturating_sub(self.raised_ms);
        let is_ahead = is_same && counter < self.ceiling;
        if is_ahead && (passed_ms < LONG_MS || least == self.ceiling) {
            return None;
        }
        let block = match passed_ms {
            ..SHORT_MS => self.block() * 2,
            SHORT_MS..LONG_MS => self.block() / 2,
            LONG_MS.. => 1,
        };
        let block = block.clamp(1, MAX_CEILING_BLOCK);
        Some(CeilingRaise { ceiling: least + block - 1, raised_ms: now_ms })
    }

    /// By how much the ceiling was raised last.
    fn block(&self) -> u64 {
        match self.ceiling {
            0 => 0,
            ceiling => ceiling.saturating_sub(self.raised_at) + 1,
        }
    }

    /// Takes a lower ceiling over at once: it may be stored by now, whether its message is accepted
    /// or not. It takes the place of one that was stored ahead, too.
    pub(crate) fn lower(&mut self, epoch: Epoch, ceiling: u64) {
        self.ahead = 0;
        if epoch == self.window.epoch() {
            self.ceiling = self.ceiling.min(ceiling);
        }
    }

    /// Marks a counter, under a ceiling that was stored.
    pub(crate) fn accept(&mut self, epoch: Epoch, counter: u64, raise: Option<CeilingRaise>) {
        if self.window.epoch() != epoch {
            self.window = ReplayWindow::new(epoch);
            self.ceiling = 0;
        }
        if let Some(CeilingRaise { ceiling, raised_ms }) = raise {
            debug_assert!(
                ceiling > counter && ceiling >= self.window.next(),
                "a ceiling lies above all that was accepted"
            );
            (self.ceiling, self.raised_ms, self.ahead) = (ceiling, raised_ms, 0);
            self.raised_at = self.window.next().max(counter + 1);
        }
        self.window.accept(counter);
    }

    /// The ceiling that is worth storing before a counter needs it, once half of the counters below
    /// the last one are used: as many as come in [`AHEAD_MS`] at the rate of that half, and no more
    /// than twice as many as there were. Nothing of a sender that comes to a stop, or sends once in
    /// a second. It is given once: where it cannot be stored, the next message stores one itself.
    pub(crate) fn ask_ahead(&mut self, now_ms: u64) -> Option<u64> {
        let next = self.window.next();
        let lay_ahead = self.ceiling.saturating_sub(self.raised_at);
        let is_asked = self.ahead > 0;
        if is_asked || self.ceiling.saturating_sub(next) > lay_ahead / 2 {
            return None;
        }
        let used = next.saturating_sub(self.raised_at);
        let passed_ms = now_ms.saturating_sub(self.raised_ms).max(1);
        let wanted = used.saturating_mul(AHEAD_MS) / passed_ms;
        let ceiling = next + wanted.min(2 * lay_ahead).min(MAX_CEILING_BLOCK);
        if ceiling <= self.ceiling {
            return None;
        }
        (self.ahead, self.raised_ms, self.raised_at) = (ceiling, now_ms, next);
        Some(ceiling)
    }

    /// Goes on under a ceiling that [`SenderSession::ask_ahead`] gave and that is stored now. It is
    /// void if another one was given to be stored since then.
    pub(crate) fn take_ahead(&mut self, epoch: Epoch, ceiling: u64) {
        if self.ahead == ceiling && self.window.epoch() == epoch {
            self.ceiling = self.ceiling.max(ceiling);
            self.ahead = 0;
        }
    }
}

/// A ceiling that is to be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CeilingRaise {
    pub(crate) ceiling: u64,
    raised_ms: u64,
}

/// A live sender's session at rest: to be stored before the message that asked for it is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionState {
    pub(crate) slot: Slot,
    pub(crate) epoch: Epoch,
    pub(crate) context: SenderContext,
    pub(crate) start: u64,
    pub(crate) ceiling: u64,
}

const VERSION: u8 = 1;

impl SessionState {
    /// Bytes of a state at rest.
    pub const BYTES: usize = 1 + 2 + 8 + SenderContext::BYTES + 8 + 8;

    /// The sender.
    pub fn slot(&self) -> Slot {
        self.slot
    }

    /// The context that the sender announced last.
    pub fn context(&self) -> SenderContext {
        self.context
    }

    /// Every counter below it counts as accepted after a restart.
    pub fn ceiling(&self) -> u64 {
        self.ceiling
    }

    /// The same session, of which nothing is accepted any more: its sender has to start anew.
    #[must_use]
    pub fn closed(self) -> SessionState {
        SessionState { ceiling: MAX_COUNTER + MAX_CEILING_BLOCK, ..self }
    }

    pub(crate) fn session(&self) -> SenderSession {
        let window = ReplayWindow::closed_below(self.epoch, self.ceiling);
        let ceiling = self.ceiling;
        let raised_at = ceiling;
        SenderSession {
            window,
            ceiling,
            raised_at,
            ..SenderSession::new(self.context, self.start, self.epoch)
        }
    }

    /// Version 1, slot, epoch, context, start and ceiling; integers big-endian.
    pub fn to_bytes(&self) -> [u8; SessionState::BYTES] {
        let mut bytes = [VERSION; SessionState::BYTES];
        let parts: [&[u8]; 5] = [
            &self.slot.number().to_be_bytes(),
            &self.epoch.0.to_be_bytes(),
            &self.context.0,
            &self.start.to_be_bytes(),
            &self.ceiling.to_be_bytes(),
        ];
        let targets = bytes.iter_mut().skip(1);
        targets.zip(parts.into_iter().flatten()).for_each(|(target, byte)| *target = *byte);
        bytes
    }

    /// Reads a state.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] for a wrong length, version, slot or ceiling.
    pub fn from_bytes(bytes: &[u8]) -> Result<SessionState, Error> {
        let bytes: &[u8; SessionState::BYTES] = bytes.try_into().map_err(|_| Error::Malformed)?;
        let [VERSION, high, low, words @ ..] = bytes else { return Err(Error::Malformed) };
        let slot = Slot::new(u16::from_be_bytes([*high, *low])).ok_or(Error::Malformed)?;
        let (words, _) = words.as_chunks();
        let [epoch, context, start, ceiling] = words else { return Err(Error::Malformed) };
        let ceiling = u64::from_be_bytes(*ceiling);
        if ceiling > MAX_COUNTER + MAX_CEILING_BLOCK {
            return Err(Error::Malformed);
        }
        let epoch = Epoch(u64::from_be_bytes(*epoch));
        let (context, start) = (SenderContext(*context), u64::from_be_bytes(*start));
        Ok(SessionState { slot, epoch, context, start, ceiling })
    }
}

#[cfg(test)]
mod tests;
