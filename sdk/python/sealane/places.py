"""How far a reader has come in each of its streams: what it resumes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import NotTheProtocol
from .message import Event, Gap, Joined, Place, Unrecovered

#: Topics of systems, for which a leading wildcard does not stand (spec/topic.md).
SYSTEMS = ("dead", "groups", "audit")


def matches(pattern: str, topic: str) -> bool:
    """Whether the topic is one of the pattern's (spec/topic.md)."""
    asked, given = pattern.split("/"), topic.split("/")
    if asked[0] in ("*", "**") and given[0] in SYSTEMS:
        return False
    if asked[-1] == "**":
        asked.pop()
        given = given[: len(asked)] if len(given) >= len(asked) else given
    return len(asked) == len(given) and all(a in ("*", g) for a, g in zip(asked, given))


def whole(frame: dict[str, Any], field: str) -> int:
    """A field that is an integer from 0."""
    value = frame.get(field)
    if type(value) is not int or value < 0:
        raise NotTheProtocol(f"`{field}` of a frame is {value!r}")
    return value


def text(frame: dict[str, Any], field: str) -> str:
    value = frame.get(field)
    if type(value) is not str:
        raise NotTheProtocol(f"`{field}` of a frame is {value!r}")
    return value


class ReadStream:
    """How far one stream was read."""

    __slots__ = ("next", "generation", "floor", "is_repeated")

    def __init__(self, offset: int, generation: int) -> None:
        self.next = offset
        self.generation = generation
        #: The generation of the last delivery: no later message has a lower one.
        self.floor = 0
        #: The hub cannot seek, and sends again what was read.
        self.is_repeated = False


class ReaderPlaces:
    """The places of one reader, and the rules that each frame must keep."""

    def __init__(self, pattern: str, known: Mapping[str, Place]) -> None:
        self._pattern = pattern
        self._is_single = "*" not in pattern
        self._since: int | None = None
        self.streams = {name: ReadStream(*place) for name, place in known.items()}

    def start(self, asked: str) -> dict[str, Any]:
        """Where a connection begins. A pattern begins where it began at first, so that a stream of
        which nothing has come yet is read whole; seeks put the others in place.
        """
        known = self.streams.get(self._pattern)
        if known is not None and self._is_single:
            return {"from": known.next, "generation": known.generation}
        if asked == "new" and self._since is not None:
            return {"from": f"@{self._since}"}
        return {"from": asked}

    def began(self, time: int) -> None:
        """The hub's clock when the subscription was first made: what `new` means from then on."""
        if self._since is None:
            self._since = time

    def seeks(self, can_seek: bool) -> list[dict[str, Any]]:
        """What a new connection of a pattern asks before its first credit."""
        if self._is_single:
            return []
        if not can_seek:
            for stream in self.streams.values():
                stream.is_repeated = True
            return []
        return [
            {"seek": {"stream": name, "offset": at.next, "generation": at.generation}}
            for name, at in self.streams.items()
        ]

    def joined(self, frame: dict[str, Any]) -> Event | None:
        """The reading of a stream stands."""
        name, offset = text(frame, "stream"), whole(frame, "offset")
        generation, recovered = whole(frame, "generation"), frame.get("recovered")
        if type(recovered) is not bool:
            raise NotTheProtocol(f"`recovered` of a frame is {recovered!r}")
        known = self.streams.get(name)
        if known is None:
            if not matches(self._pattern, name):
                raise NotTheProtocol(f"the hub joins {name}, which is not in {self._pattern}")
            self.streams[name] = ReadStream(offset, generation)
            if recovered:
                return None if self._is_single else Joined(name, offset, generation)
            return Unrecovered(name, offset, generation)
        if known.is_repeated:
            return None
        if recovered and offset == known.next:
            known.generation = max(generation, known.generation)
            return None
        # Generation 0 is of a stream that is not there any more.
        if recovered and 0 < generation <= known.generation:
            raise NotTheProtocol(f"{name} goes on at {offset}, and {known.next} is to come")
        self.streams[name] = ReadStream(offset, generation)
        return Unrecovered(name, offset, generation)

    def gap(self, frame: dict[str, Any]) -> Gap:
        """Offsets will not come."""
        gap = read_gap(frame)
        known = self._known(gap.stream)
        if not known.is_repeated and (gap.first != known.next or gap.last < gap.first):
            raise NotTheProtocol(
                f"a gap of {gap.stream} from {gap.first}, and {known.next} is to come"
            )
        known.next = max(known.next, gap.last + 1)
        return gap

    def advance(self, name: str, offset: int, generation: int) -> bool:
        """Goes on behind a delivery that does not simply follow the last one; says whether it is
        new here.
        """
        known = self._known(name)
        if known.is_repeated and offset < known.next and generation <= known.generation:
            return False
        if offset != known.next or generation < known.floor:
            raise NotTheProtocol(
                f"{name}: offset {offset} of generation {generation} came, "
                f"and {known.next} of {known.floor} or later is to come"
            )
        known.next = offset + 1
        known.generation = known.floor = generation
        known.is_repeated = False
        return True

    def place(self, name: str) -> Place | None:
        known = self.streams.get(name)
        return None if known is None else Place(known.next, known.generation)

    def _known(self, name: str) -> ReadStream:
        known = self.streams.get(name)
        if known is not None:
            return known
        if not matches(self._pattern, name):
            raise NotTheProtocol(f"a message of {name} came, which is not in {self._pattern}")
        raise NotTheProtocol(f"a message of {name} came before it was joined")


def read_gap(frame: dict[str, Any]) -> Gap:
    """The gap of a frame."""
    first, last = whole(frame, "from"), whole(frame, "to")
    return Gap(text(frame, "stream"), first, last, str(frame.get("reason")))
