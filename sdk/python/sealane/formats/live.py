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
    #: The number of that question, and the place of the window when it was asked.
    asked: tuple[int, tuple[int, int]] | None = None

    @classmethod
    def begun(cls, context: bytes, start: int, epoch: int, counter: int) -> "Session":
        """The session that an announcement begins."""
        return cls(context, start, *[Window.above(epoch, counter)] * 2)

    def window(self, klass: str) -> Window:
        """The window of a class."""
        return self.signed if klass == "S" else self.unsigned

    def check(self, klass: str, epoch: int, counter: int) -> None:
        """Refuses a counter that may not be accepted."""
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
        place, reach = self.unsigned.place, (epoch, counter + WINDOW)
        if not is_newest or place <= reach:
            return False
        if self.asked is None:
            self.is_doubted = True
        elif answered >= self.asked[0]:
            (then, following), self.asked = self.asked[1], None
            if (then, following) > reach:
                self.closed = place[0], range(max(place[1] - WINDOW, 0), place[1])
                self.unsigned = Window.above(epoch, counter + 1)
        return self.is_doubted or self.asked is not None

    def ask(self, number: int) -> None:
        """The reader asks a question."""
        if self.is_doubted:
            self.is_doubted, self.asked = False, (number, self.unsigned.place)


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
        self._heard: list[bytes] = []
        self._last: dict[int, bytes] = {}

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
        heard, self._heard = self._heard, []
        return (self._asked[-1][1] if self._asked else None), heard

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
            self._try_context(is_announcement)
        else:
            session.check(layout.klass, header.epoch, header.counter)
        opened = layout.open()
        announcement = Announcement.parse(opened.body) if is_announcement else None
        heard = Heard(opened, announcement)
        if announcement:
            self._note(opened.slot, announcement.question)
        self._check_start(heard)
        return heard

    def accept(self, heard: Heard) -> None:
        """Moves the session of the sender. What was accepted since `open` is refused again."""
        opened, told = heard.opened, heard.announcement
        session = self._session(opened.slot, opened.klass, opened.epoch, opened.context)
        if session is None:
            if told is None:
                raise Refused("SL-SEAL-12")
            self._check_start(heard)
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

    def _try_context(self, is_announcement: bool) -> None:
        if not is_announcement:
            raise Refused("SL-SEAL-12")
        if self.trials == 0:
            raise Refused("SL-SEAL-14")
        self.trials -= 1

    def _note(self, slot: int, question: bytes | None) -> None:
        """Notes a question that was not heard from that slot last."""
        if question is None or self._last.get(slot) == question or question in self._heard:
            return
        if len(self._heard) < MAX_ANSWERS:
            self._heard.append(question)
            self._last[slot] = question

    def _answered(self, told: Announcement) -> int:
        """The number of the newest question that an announcement answers, or 0."""
        return max((number for number, own in self._asked if own in told.answers), default=0)

    def _check_start(self, heard: Heard) -> None:
        """Refuses a new context that started no later, and one that does not answer."""
        opened, told = heard.opened, heard.announcement
        session = self.sessions.get(opened.slot)
        if told is None or session and session.context == opened.context:
            return
        if session and (opened.epoch, told.start) <= (session.signed.epoch, session.start):
            raise Refused("SL-SEAL-05")
        if self.requires and not self._answered(told):
            self.lacks = True
            raise Refused("SL-SEAL-12")
