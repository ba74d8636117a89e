"""Messages of a live link, and the sessions of their senders: spec/seal.md."""

import time
from dataclasses import dataclass, field, replace
from typing import Callable, Iterable

from . import seal
from .refused import Refused

WINDOW = 1024
MAX_TRIALS = 32
MAX_BLOCK = 16_384
#: A ceiling that is needed sooner lies further ahead, and one that is needed later less far.
GROW_SECONDS = 0.5
SHRINK_SECONDS = 1.0


@dataclass(frozen=True)
class Announcement:
    """What a sender tells of itself."""

    #: Later starts of a sender have higher numbers.
    start: int
    #: How many orders of its group the sender has obeyed.
    orders: int

    @classmethod
    def parse(cls, body: bytes) -> "Announcement":
        """Reads the body of an announcement."""
        if len(body) != 17 or body[0] != 1:
            raise Refused("SL-SEAL-20")
        return cls(int.from_bytes(body[1:9], "big"), int.from_bytes(body[9:], "big"))


@dataclass(frozen=True)
class Heard:
    """A message that opened. It counts as accepted once `Live.accept` has returned."""

    opened: seal.Opened
    announcement: Announcement | None


@dataclass
class Session:
    """What a reader keeps of the sender in one slot."""

    slot: int
    epoch: int
    context: bytes
    start: int
    #: After a restart every counter below it counts as accepted.
    ceiling: int
    #: Counters below it count as accepted now.
    least: int = 0
    #: One more than the highest counter that was accepted.
    next: int = 0
    accepted: set[int] = field(default_factory=set)
    block: int = 1
    stored_at: float = float("-inf")

    def encode(self) -> bytes:
        """The session at rest."""
        numbers = b"".join([b"\x01", self.slot.to_bytes(2, "big"), self.epoch.to_bytes(8, "big")])
        ends = self.start.to_bytes(8, "big") + self.ceiling.to_bytes(8, "big")
        return numbers + self.context + ends

    @classmethod
    def decode(cls, data: bytes) -> "Session":
        """The session as it goes on after a restart."""
        if len(data) != 35 or data[0] != 1:
            raise Refused("SL-SEAL-20")
        number = lambda start, end: int.from_bytes(data[start:end], "big")
        start, ceiling = number(19, 27), number(27, 35)
        session = cls(number(1, 3), number(3, 11), data[11:19], start, ceiling)
        session.least = session.next = ceiling
        return session

    def check(self, counter: int) -> None:
        """Refuses what lies behind the window or was accepted."""
        if counter < self.next - WINDOW:
            raise Refused("SL-SEAL-06")
        if counter < self.least or counter in self.accepted:
            raise Refused("SL-SEAL-05")

    def entered(self, epoch: int) -> "Session":
        """The session in a later epoch, where its window begins anew."""
        return replace(self, epoch=epoch, ceiling=0, least=0, next=0, accepted=set())

    def take(self, counter: int) -> None:
        """Counts it as accepted."""
        self.next = max(self.next, counter + 1)
        self.accepted = {one for one in self.accepted if one >= self.next - WINDOW} | {counter}

    def ahead(self, counter: int, now: float) -> "Session | None":
        """The session to store before a counter is accepted, if there is one."""
        passed = now - self.stored_at
        if passed < GROW_SECONDS:
            block = min(self.block * 2, MAX_BLOCK)
        else:
            block = max(self.block // 2, 1) if passed < SHRINK_SECONDS else 1
        highest = max(self.next - 1, counter)
        ceiling = highest + block
        is_due = counter >= self.ceiling or passed >= SHRINK_SECONDS and ceiling < self.ceiling
        return replace(self, ceiling=ceiling, block=block, stored_at=now) if is_due else None


class Live:
    """Opens messages as they come from a link, in two steps: `open`, and `accept` with the effect.

    `store` takes a session at rest and keeps it durably; what it kept last of each slot is given
    to the next reader as `sessions`. A reader that has lost them sets `floor` one epoch higher.
    """

    def __init__(
        self,
        keys: seal.Keys,
        own: int | None = None,
        floor: int = 0,
        sessions: Iterable[bytes] = (),
        store: Callable[[bytes], None] = lambda session: None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.keys = keys
        self.own = own
        self.floor = floor
        self.sessions = {one.slot: one for one in map(Session.decode, sessions)}
        self.trials = MAX_TRIALS
        self._store = store
        self._clock = clock

    @property
    def newest(self) -> int:
        """The newest epoch whose secret is held."""
        return max(self.keys.secrets, default=0)

    def allow_trials(self, trials: int = MAX_TRIALS) -> None:
        """Lets so many announcements of unknown contexts be tried."""
        self.trials = trials

    def open(self, sealed: seal.Sealed, is_announcement: bool = False) -> Heard:
        """Opens a message or refuses it. Only the trial of an unknown context is counted."""
        layout = seal.Layout(self.keys, sealed, self.newest)
        header = layout.header
        if is_announcement and layout.klass != "S":
            raise Refused("SL-SEAL-09")
        if header.slot == self.own:
            raise Refused("SL-SEAL-11")
        session = self._session(header.slot, header.epoch, sealed.context)
        layout.admit()
        if session is None:
            self._try_context(is_announcement)
        elif session.epoch == header.epoch:
            session.check(header.counter)
        opened = layout.open()
        announcement = Announcement.parse(opened.body) if is_announcement else None
        heard = Heard(opened, announcement)
        self._check_start(heard)
        return heard

    def accept(self, heard: Heard) -> None:
        """Moves the session of the sender. What was accepted since `open` is refused again."""
        opened = heard.opened
        session = self._session(opened.slot, opened.epoch, opened.context)
        if session is None:
            if heard.announcement is None:
                raise Refused("SL-SEAL-12")
            self._check_start(heard)
            named = (opened.slot, opened.epoch, opened.context, heard.announcement.start)
            session = Session(*named, ceiling=0)
        elif session.epoch < opened.epoch:
            session = session.entered(opened.epoch)
        else:
            session.check(opened.counter)
        ahead = session.ahead(opened.counter, self._clock())
        if ahead:
            self._store(ahead.encode())
            session = ahead
        session.take(opened.counter)
        self.sessions[opened.slot] = session

    def _session(self, slot: int, epoch: int, context: bytes) -> Session | None:
        """The session of a context, if there is one. Refuses an epoch that is past."""
        session = self.sessions.get(slot)
        if session and session.context != context:
            session = None
        if epoch < max(self.newest - 1, self.floor, session.epoch if session else 0):
            raise Refused("SL-SEAL-07")
        return session

    def _try_context(self, is_announcement: bool) -> None:
        if not is_announcement:
            raise Refused("SL-SEAL-12")
        if self.trials == 0:
            raise Refused("SL-SEAL-14")
        self.trials -= 1

    def _check_start(self, heard: Heard) -> None:
        """Refuses a new context of an earlier epoch, or of one in which it started no later."""
        opened, told = heard.opened, heard.announcement
        session = self.sessions.get(opened.slot)
        if told is None or session is None or session.context == opened.context:
            return
        if (opened.epoch, told.start) <= (session.epoch, session.start):
            raise Refused("SL-SEAL-05")
