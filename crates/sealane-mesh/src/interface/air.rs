//! The messages that have air time, and those that have to wait.

use super::{ANNOUNCEMENT_BYTES, HELLO_UNIT_BYTES, MeshInterface};
use crate::{MeshSpan, MeshTime, SendUrgency, UnitReceiver};

/// The kinds of message that take turns where air time is scarce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScarceTurn {
    Announcement,
    Routes,
    Requests,
    Probe,
}

/// The messages that wait for air time on an interface.
#[derive(Debug)]
pub(crate) struct AirTurns {
    /// The message that there was no air time for: all else leaves it as much as it takes.
    pub(super) first: Option<AirTimeWaiting>,
    /// Nothing is said of documents before, where air time is scarce.
    pub(crate) documents_at: MeshTime,
}

/// Something that was refused air time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AirTimeWaiting {
    what: ScarceTurn,
    bytes: usize,
    /// When it is to be asked for again.
    ready: MeshTime,
}

/// The bytes that a hello takes, at most.
const LONGEST_HELLO_BYTES: usize = 138;

impl MeshInterface {
    /// Whether there is air time for a message of control; else when there is. Where there is a
    /// duty cycle, that of the next hello is kept for it: without hellos neighbours are lost, and
    /// all that is told of that takes more.
    pub(crate) fn may_say(&mut self, now: MeshTime, bytes: usize) -> Result<(), MeshTime> {
        let kept = if self.medium.has_duty() { self.greeting() } else { MeshSpan(0) };
        self.may_control(now, self.air(bytes) + kept)
    }

    /// Whether there is air time for an announcement; else it waits until there is.
    pub(crate) fn may_announce(&mut self, now: MeshTime) -> bool {
        let ready = self.may_tell(now, ScarceTurn::Announcement, ANNOUNCEMENT_BYTES).err();
        self.announcement.at = ready.or(self.announcement.at);
        ready.is_none()
    }

    /// Whether there is air time for something that is told in turn; else when there is. Where
    /// there is a duty cycle, what was refused is next: what takes the most air time would always
    /// come last.
    pub(crate) fn may_tell(
        &mut self,
        now: MeshTime,
        what: ScarceTurn,
        bytes: usize,
    ) -> Result<(), MeshTime> {
        let first = self.waits(now);
        let others = first.filter(|first| first.what != what);
        let told = self.may_say(now, bytes + others.map_or(0, |first| first.bytes));
        self.turns.first = match told {
            Ok(()) => others,
            Err(ready) => others.or(Some(AirTimeWaiting { what, bytes, ready })),
        };
        told
    }

    /// The message that waits for air time.
    pub(super) fn waits(&self, now: MeshTime) -> Option<AirTimeWaiting> {
        let still = |first: &AirTimeWaiting| match first.what {
            ScarceTurn::Announcement => self.announcement.at.is_some(),
            ScarceTurn::Routes => self.routes.at.is_some(),
            ScarceTurn::Requests => self.requests.at.is_some(),
            // A neighbour that is heard meanwhile is not asked again.
            ScarceTurn::Probe => now <= first.ready + self.gap().times(2),
        };
        self.turns.first.filter(|_| self.medium.has_duty()).filter(still)
    }

    /// Whether there is air time for a hello; else when there is.
    pub(crate) fn may_greet(&mut self, now: MeshTime) -> Result<(), MeshTime> {
        self.may_control(now, self.greeting())
    }

    /// The air time of a hello.
    fn greeting(&self) -> MeshSpan {
        let is_narrow = self.medium.mtu < HELLO_UNIT_BYTES;
        self.air(if is_narrow { HELLO_UNIT_BYTES } else { LONGEST_HELLO_BYTES })
    }

    fn may_control(&mut self, now: MeshTime, air: MeshSpan) -> Result<(), MeshTime> {
        if self.budget.may(now, SendUrgency::Control, UnitReceiver::Everybody, air) {
            return Ok(());
        }
        let ready = self.budget.ready(now, SendUrgency::Control, air);
        Err(ready.max(now + MeshSpan::millis(1)))
    }

    /// Whether there is air time for a piece of an order, and for an urgent frame of somebody
    /// behind it; else when there is.
    pub(crate) fn may_give(&mut self, now: MeshTime, bytes: usize) -> Result<(), MeshTime> {
        let kept =
            if bytes <= self.medium.mtu { self.medium.air(self.medium.mtu) } else { MeshSpan(0) };
        let air = self.air(bytes) + kept;
        if self.budget.may(now, SendUrgency::Urgent, UnitReceiver::Everybody, air) {
            return Ok(());
        }
        let ready = self.budget.ready(now, SendUrgency::Urgent, air);
        Err(ready.max(now + MeshSpan::millis(1)))
    }
}
