"""Messages, and what is told beside them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, NamedTuple, Union

if TYPE_CHECKING:
    from .endpoint import Seconds
    from .settlements import Settlements


class Place(NamedTuple):
    """A place in a stream. Reading from it says whether everything since is still there."""

    offset: int
    generation: int


class Published(NamedTuple):
    """A message is stored: at an offset of a generation, or held back until `due`."""

    stream: str
    #: None: the message is held back.
    offset: int | None
    generation: int | None
    #: What had happened to it before the hub answered: `memory`, `os` or `disk`.
    level: str
    #: The message was stored before, and came again; nothing was appended.
    replayed: bool = False
    due: datetime | None = None
    #: Its number in the session, where it went by a publishing socket.
    n: int | None = None
    #: The message's id, where the hub says it.
    id: str | None = None


def moment(milliseconds: int) -> datetime:
    """The time of so many Unix milliseconds."""
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc)


class Message:
    """One message of a stream, as it was delivered."""

    __slots__ = ("_frame", "_settlements", "link", "is_settled")

    def __init__(
        self, frame: dict[str, Any], settlements: Settlements | None = None, link: int = 0
    ) -> None:
        self._frame = frame
        self._settlements = settlements
        #: The connection that brought it, of those of its subscription.
        self.link = link
        #: Whether `ack` or `nack` was called.
        self.is_settled = False

    @property
    def body(self) -> dict[str, Any]:
        """The message as its publisher wrote it, with an id."""
        body: dict[str, Any] = self._frame["deliver"]
        return body

    @property
    def id(self) -> str:
        return str(self.body.get("id", ""))

    @property
    def stream(self) -> str:
        stream: str = self._frame["stream"]
        return stream

    @property
    def offset(self) -> int:
        offset: int = self._frame["offset"]
        return offset

    @property
    def generation(self) -> int:
        generation: int = self._frame["generation"]
        return generation

    @property
    def key(self) -> tuple[str, int, int]:
        """Its stream, generation and offset: no other message has the same."""
        frame = self._frame
        return frame["stream"], frame["generation"], frame["offset"]

    @property
    def attempt(self) -> int:
        """How often it was delivered to its consumer, counting this time."""
        attempt: int = self._frame["attempt"]
        return attempt

    @property
    def stored(self) -> datetime:
        """When it entered its stream, by the hub's clock."""
        return moment(self._frame["storedMs"])

    @property
    def after(self) -> Place:
        """The place behind it: `start=message.after` goes on there."""
        return Place(self.offset + 1, self.generation)

    def ack(self) -> None:
        """It is done, and will not come again. It goes with the next frame, within milliseconds."""
        if self._settlements is not None:
            self._settlements.ack(self)

    def nack(self, delay: Seconds = 0) -> None:
        """It shall come again after this time, to any member."""
        if self._settlements is not None:
            self._settlements.nack(self, delay)

    def __repr__(self) -> str:
        return f"<Message {self.stream} {self.offset}: {self.body!r}>"


@dataclass(frozen=True)
class Connected:
    """The subscription stands, for the first time or again."""


@dataclass(frozen=True)
class Joined:
    """The reading of a stream of a pattern begins."""

    stream: str
    offset: int
    generation: int


@dataclass(frozen=True)
class Unrecovered:
    """It goes on at `offset`; messages since the last place may be lost, or come again."""

    stream: str
    offset: int
    generation: int


@dataclass(frozen=True)
class Gap:
    """The offsets `first` to `last` will not come: `retention` or `damaged`."""

    stream: str
    first: int
    last: int
    reason: str


@dataclass(frozen=True)
class Reconnecting:
    """The connection ended. `code` is the hub's, or `NotReachable`."""

    code: str


@dataclass(frozen=True)
class Draining:
    """The hub stops; `Reconnecting` follows."""


Event = Union[Connected, Joined, Unrecovered, Gap, Reconnecting, Draining]
