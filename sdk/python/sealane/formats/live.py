"""Messages of a live link, and the sessions of their senders: spec/seal.md."""

from collections import deque
from dataclasses import dataclass, replace

from . import seal
from .refused import Refused

WINDOW = 1024
MAX_TRIALS = 32
#: Questions that one announcement answers, and questions of a reader that an answer counts for.
MAX_ANSWERS = 16
MAX_QUESTIONS = 16


@dataclass(frozen=True)
class Announcement:
    """What a sender tells of itself."""

    #: Later starts of a sender have higher numbers.
    start: int
    #: How many orders of its group the sender has obeyed.
    orders: int
    #: The sender's question as a reader, if it asks one.
    question: bytes | None = None
    #: The questions of others that it answers.
    answers: tuple[bytes, ...] = ()

    @classmethod
    def parse(cls, body: bytes) -> "Announcement":
        """Reads the body of an announcement."""
        words = [body[at : at + 8] for at in range(1, len(body), 8)]
        is_whole = len(body) % 8 == 1 and 2 <= len(words) <= 3 + MAX_ANSWERS
        if not is_whole or body[0] != 2 or words[2:] == [bytes(8)]:
            raise Refused("SL-SEAL-20")
        start, orders = (int.from_bytes(word, "big") for word in words[:2])
        own = next((word for word in words[2:3] if any(word)), None)
        return cls(start, orders, own, tuple(words[3:]))


@dataclass(frozen=True)
class Heard:
    """A message that opened. It counts as accepted once `Live.accept` has returned."""

    opened: seal.Opened
    announcement: Announcement | None


@dataclass(frozen=True)
class Window:
    """The counters of one epoch that were accepted."""

    epoch: int
    #: Counters below it count as accepted.
    least: int = 0
    #: One more than the highest counter that was accepted.
    next: int = 0
    accepted: frozenset[int] = frozenset()

    @classmethod
    def above(cls, epoch: int, counter: int) -> "Window":
        """A window in which every counter below one counts as accepted."""
        return cls(epoch, counter, counter)

    @property
    def place(self) -> tuple[int, int]:
        """How far it has come."""
        return self.epoch, self.next

    def check(self, counter: int) -> None:
        """Refuses what lies behind the window or was accepted."""
        if counter < self.next - WINDOW:
            raise Refused("SL-SEAL-06")
        if counter < self.least or counter in self.accepted:
            raise Refused("SL-SEAL-05")

    def has(self, epoch: int, counter: int) -> bool:
        """Whether it says that a counter was accepted."""
        return epoch == self.epoch and counter in self.accepted

    def set_back(self, epoch: int, counter: int, before: "Window") -> "Window":
        """Closed up to a counter, and in the width above it what was accepted since `before`."""
        back = Window.above(epoch, counter + 1)
        for since in range(counter + 1, min(counter + 1 + WINDOW, self.next)):
            if self.has(epoch, since) and not before.has(epoch, since):
                back = back.take(epoch, since)
        return back

    def take(self, epoch: int, counter: int) -> "Window":
        """The window behind a counter that was accepted."""
        if epoch != self.epoch:
            return Window(epoch).take(epoch, counter)
        after = max(self.next, counter + 1)
        kept = frozenset(one for one in self.accepted if one >= after - WINDOW)
        return replace(self, next=after, accepted=kept | {counter})


@dataclass
class Session:
    """What a reader keeps of the sender in one slot."""

    context: bytes
    start: int
    signed: Window
    unsigned: Window
    #: An epoch, and unsigned counters of it that stay closed.
    closed: tuple[int, range] | None = None
    #: The next question settles whether others have moved the unsigned window.
    is_doubted: bool = False
    #: The number of that question, and the unsigned window when it was asked.
    asked: tuple[int, Window] | None = None
    #: An unsigned frame was refused as a repeat or behind the window.
    is_refused: bool = False

    @classmethod
    def begun(cls, context: bytes, start: int, epoch: int, counter: int) -> "Session":
        """The session that an announcement begins."""
        return cls(context, start, *[Window.above(epoch, counter)] * 2)

    def window(self, klass: str) -> Window:
        """The window of a class."""
        return self.signed if klass == "S" else self.unsigned

    def check(self, klass: str, epoch: int, counter: int) -> None:
        """Refuses a counter that may not be accepted, and notes it of an unsigned frame."""
        try:
            self._check(klass, epoch, counter)
        except Refused:
            self.is_refused |= klass != "S"
            raise

    def _check(self, klass: str, epoch: int, counter: int) -> None:
        if klass != "S" and self.closed and self.closed[0] == epoch and counter in self.closed[1]:
            raise Refused("SL-SEAL-05")
        if self.window(klass).epoch == epoch:
            self.window(klass).check(counter)

    def take(self, klass: str, epoch: int, counter: int) -> None:
        """Counts it as accepted."""
        after = self.window(klass).take(epoch, counter)
        if klass == "S":
            self.signed = after
        else:
            self.unsigned = after

    def announce(self, epoch: int, counter: int, answered: int) -> bool:
        """Takes an announcement, and says whether another question is worth asking.

        `answered` is the number of the newest question that it answers, or 0.
        """
        is_newest = (epoch, counter) >= self.signed.place
        self.take("S", epoch, counter)
        if not is_newest:
            return False
        if self.closed and (self.closed[0], self.closed[1].start) <= (epoch, counter + WINDOW):
            self.closed = None
        if self.asked and answered >= self.asked[0]:
            before, self.asked, self.is_refused = self.asked[1], None, False
            if before.place > (epoch, counter + 1):
                self._set_back(epoch, counter, before)
        elif not self.asked and not self.is_doubted:
            width = 1 if self.is_refused else WINDOW
            self.is_doubted = self.unsigned.place > (epoch, counter + width)
        return self.is_doubted or self.asked is not None

    def _set_back(self, epoch: int, counter: int, before: Window) -> None:
        after, self.unsigned = self.unsigned, self.unsigned.set_back(epoch, counter, before)
        near = counter + 1 + WINDOW if after.epoch == epoch else 0
        closed = range(max(after.next - WINDOW, near), after.next)
        self.closed = (after.epoch, closed) if closed else None

    def ask(self, number: int) -> None:
        """The reader asks a question."""
        if self.is_doubted:
            self.is_doubted, self.asked = False, (number, self.unsigned)


@dataclass(frozen=True)
class Newest:
    """The newest authentic announcement of a slot, whether it began a session or not."""

    context: bytes
    #: Epoch, start and counter: what is made later compares greater.
    made: tuple[int, int, int]
    #: The last question of the slot.
    question: bytes | None


class Live:
    """Opens messages as they come from a link, in two steps: `open`, and `accept` with the effect.

    A reader that `requires` answers begins no session before its sender has answered a question
    that was given to `ask`. It stores nothing.
    """

    def __init__(
        self, keys: seal.Keys, own: int | None = None, floor: int = 0, requires: bool = False
    ):
        self.keys = keys
        self.own = own
        self.floor = floor
        self.requires = requires
        self.sessions: dict[int, Session] = {}
        self.trials = MAX_TRIALS
        #: Whether another question is worth asking.
        self.lacks = False
        self._asked: deque[tuple[int, bytes]] = deque(maxlen=MAX_QUESTIONS)
        self._count = 0
        self._heard: dict[int, Newest] = {}
        #: The slots whose questions wait for an answer.
        self._waiting: list[int] = []

    @property
    def newest(self) -> int:
        """The newest epoch whose secret is held."""
        return max(self.keys.secrets, default=0)

    def allow_trials(self, trials: int = MAX_TRIALS) -> None:
        """Lets so many announcements of unknown contexts be tried."""
        self.trials = trials

    def ask(self, question: bytes) -> None:
        """Asks all senders a question: 8 random bytes, for the next announcement of one's own."""
        self._count += 1
        self._asked.append((self._count, question))
        self.lacks = False
        for session in self.sessions.values():
            session.ask(self._count)

    def questions(self) -> tuple[bytes | None, list[bytes]]:
        """The own question, and those that the next announcement answers. They are given once."""
        slots, self._waiting = self._waiting[:MAX_ANSWERS], self._waiting[MAX_ANSWERS:]
        answers = [self._heard[slot].question for slot in slots]
        return (self._asked[-1][1] if self._asked else None), answers

    def open(self, sealed: seal.Sealed, is_announcement: bool = False) -> Heard:
        """Opens a message or refuses it. Only trials and questions are noted."""
        layout = seal.Layout(self.keys, sealed, self.newest)
        header = layout.header
        if is_announcement and layout.klass != "S":
            raise Refused("SL-SEAL-09")
        if header.slot == self.own:
            raise Refused("SL-SEAL-11")
        session = self._session(header.slot, layout.klass, header.epoch, sealed.context)
        layout.admit()
        if session is None:
            is_tried = self._try_context(is_announcement, header, sealed.context)
        else:
            is_tried = False
            session.check(layout.klass, header.epoch, header.counter)
        opened = layout.open()
        announcement = Announcement.parse(opened.body) if is_announcement else None
        heard = Heard(opened, announcement)
        if announcement:
            self._check_start(heard)
            # The newest announcement of a slot gives its trial back.
            self.trials += self._note(opened, announcement) and is_tried
            self._check_answer(heard)
        return heard

    def accept(self, heard: Heard) -> None:
        """Moves the session of the sender. What was accepted since `open` is refused again."""
        opened, told = heard.opened, heard.announcement
        session = self._session(opened.slot, opened.klass, opened.epoch, opened.context)
        if session is None:
            if told is None:
                raise Refused("SL-SEAL-12")
            self._check_start(heard)
            self._check_answer(heard)
            session = Session.begun(opened.context, told.start, opened.epoch, opened.counter)
        else:
            session.check(opened.klass, opened.epoch, opened.counter)
        if told is None:
            session.take(opened.klass, opened.epoch, opened.counter)
        elif session.announce(opened.epoch, opened.counter, self._answered(told)):
            self.lacks = True
        self.sessions[opened.slot] = session

    def _session(self, slot: int, klass: str, epoch: int, context: bytes) -> Session | None:
        """The session of a context, if there is one. Refuses an epoch that is past."""
        session = self.sessions.get(slot)
        if session and session.context != context:
            session = None
        reached = max(session.signed.epoch, session.window(klass).epoch) if session else 0
        if epoch < max(self.newest - 1, self.floor, reached):
            raise Refused("SL-SEAL-07")
        return session

    def _try_context(self, is_announcement: bool, header: seal.SealHeader, context: bytes) -> bool:
        """Takes a trial for an unknown context, and says so. What goes on behind the newest
        announcement of the slot takes none."""
        if not is_announcement:
            raise Refused("SL-SEAL-12")
        newest = self._heard.get(header.slot)
        if newest and newest.context == context:
            epoch, _, counter = newest.made
            if (header.epoch, header.counter) > (epoch, counter):
                return False
        if self.trials == 0:
            raise Refused("SL-SEAL-14")
        self.trials -= 1
        return True

    def _note(self, opened: seal.Opened, told: Announcement) -> bool:
        """Notes an announcement and its question, if it is the newest of its slot: whether it is."""
        slot, made = opened.slot, (opened.epoch, told.start, opened.counter)
        known = self._heard.get(slot)
        if known and made <= known.made:
            return False
        last = known.question if known else None
        if told.question not in (None, last) and slot not in self._waiting:
            self._waiting.append(slot)
        self._heard[slot] = Newest(opened.context, made, told.question or last)
        return True

    def _answered(self, told: Announcement) -> int:
        """The number of the newest question that an announcement answers, or 0."""
        return max((number for number, own in self._asked if own in told.answers), default=0)

    def _begins(self, heard: Heard) -> bool:
        session = self.sessions.get(heard.opened.slot)
        return session is None or session.context != heard.opened.context

    def _check_start(self, heard: Heard) -> None:
        """Refuses a new context that started no later."""
        session = self.sessions.get(heard.opened.slot)
        if session and self._begins(heard):
            if (heard.opened.epoch, heard.announcement.start) <= (session.signed.epoch, session.start):
                raise Refused("SL-SEAL-05")

    def _check_answer(self, heard: Heard) -> None:
        """Refuses a new context that answers no question, if the reader requires answers."""
        if self.requires and self._begins(heard) and not self._answered(heard.announcement):
            self.lacks = True
            raise Refused("SL-SEAL-12")
