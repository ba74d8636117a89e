"""What a subscription has finished, and tells the hub in its next frame."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from .endpoint import HubSocket, Seconds, milliseconds
from .refusals import NotAConsumer

if TYPE_CHECKING:
    from .codec import Codec
    from .message import Message

#: An acknowledgement waits so long for others.
GATHER_SECONDS = 0.01
# No answer says that an acknowledgement has come. The hub may deliver again what was acknowledged
# in the last moments of a connection: so many messages are known again then.
MAX_KNOWN = 16_384
#: Most messages are finished in their order. Where they are not, sorting makes the frame shorter.
FEW_RANGES = 16

Entry = TypeVar("Entry")
#: Stream, generation and offset of a message.
Key = tuple[str, int, int]


class Settlements:
    """Acknowledgements and refusals of one subscription, over its connections.

    `ack` and `nack` may be called in any thread.
    """

    def __init__(self, codec: Codec, pattern: str, is_reader: bool) -> None:
        self._codec = codec
        self._names_streams = "*" in pattern
        self._is_reader = is_reader
        self._loop = asyncio.get_running_loop()
        self._acks: list[Key] = []
        self._nacks: list[tuple[Key, int]] = []
        self._known: deque[Key] = deque(maxlen=MAX_KNOWN)
        #: What was acknowledged and may come again nevertheless.
        self._done: set[Key] = set()
        self._socket: HubSocket | None = None
        self._can_delay = True
        self._is_due = False
        self._tasks: set[asyncio.Task[None]] = set()
        #: The number of the connection.
        self.link = 0

    def connected(self, socket: HubSocket, features: list[str]) -> None:
        """The subscription stands on another connection."""
        self._socket = socket
        self._can_delay = "nack-delay" in features

    def lost(self) -> None:
        """The connection is gone: its unfinished messages come again."""
        self._socket = None
        self.link += 1
        if len(self._done) > MAX_KNOWN:
            self._done.clear()
        self._done.update(self._known, _taken(self._acks))
        self._known.clear()
        _taken(self._nacks)

    @property
    def may_be_done(self) -> bool:
        """Whether anything that comes may be of a message that was acknowledged."""
        return bool(self._done)

    def is_done(self, key: Key) -> bool:
        """Whether this delivery is of a message that was acknowledged on another connection."""
        if key not in self._done:
            return False
        self._acks.append(key)
        return True

    def began_anew(self, key: Key) -> None:
        """It is a first delivery: the consumer was set back, and the message is to be done."""
        self._done.discard(key)

    def ack(self, message: Message) -> None:
        if message.is_settled or self._is_reader:
            return
        message.is_settled = True
        if message.link == self.link:
            self._acks.append(message.key)
            if not self._is_due:
                self._wake()
        elif len(self._done) < MAX_KNOWN:
            self._done.add(message.key)

    def nack(self, message: Message, delay: Seconds) -> None:
        if self._is_reader:
            raise NotAConsumer({"message": "a reader refuses no message"})
        if message.is_settled:
            return
        message.is_settled = True
        if message.link == self.link:
            key = message.key
            self._nacks.append((key, milliseconds(delay)))
            if not self._is_due:
                self._wake()

    def frames(self, credit: int = 0) -> list[bytes]:
        """The frames that tell all this, and give credit."""
        self._is_due = False
        acks, nacks = _taken(self._acks), _taken(self._nacks)
        self._known.extend(acks)
        first: dict[str, Any] = {"credit": credit} if credit else {}
        if acks:
            first["ack"] = self._ranges(acks)
        frames: list[dict[str, Any]] = []
        by_delay: dict[int, list[Key]] = {}
        for key, delay in nacks:
            by_delay.setdefault(delay, []).append(key)
        for delay, keys in by_delay.items():
            if delay and not self._can_delay:
                self._hold(keys, delay)
            elif delay:
                frames.append({"nack": self._ranges(keys), "delayMs": delay})
            else:
                frames.append({"nack": self._ranges(keys)})
        # Credit comes last: what was refused comes again before anything new.
        frames += [first] if first else []
        return [self._codec.encode(frame) for frame in frames]

    async def close(self) -> None:
        """Tells what is left."""
        await self._send()
        self.lost()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _wake(self) -> None:
        self._is_due = True
        self._loop.call_soon_threadsafe(self._begin_sending)

    def _begin_sending(self) -> None:
        self._start(self._send_after(GATHER_SECONDS))

    async def _send(self) -> None:
        socket = self._socket
        if socket is None:
            return
        for frame in self.frames():
            await socket.write(frame)

    def _hold(self, keys: list[Key], delay: int) -> None:
        """Holds back what a hub without `nack-delay` would deliver at once."""

        self._start(self._send_after(delay / 1000, [(key, 0) for key in keys]))

    async def _send_after(self, wait: float, nacks: Sequence[tuple[Key, int]] = ()) -> None:
        link = self.link
        await asyncio.sleep(wait)
        if link == self.link:
            self._nacks += nacks
            await self._send()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work, name="sealane settlements")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _ranges(self, keys: list[Key]) -> list[dict[str, Any]]:
        """Offsets as acknowledgements name them, few of them."""
        ranges = self._runs(keys)
        return ranges if len(ranges) <= FEW_RANGES else self._runs(sorted(keys))

    def _runs(self, keys: list[Key]) -> list[dict[str, Any]]:
        """The runs of offsets that follow each other."""
        ranges: list[dict[str, Any]] = []
        stream, last = "", -2
        current: dict[str, Any] = {}
        for name, _, offset in keys:
            if name == stream and offset == last + 1:
                current["to"] = last = offset
                continue
            stream, last = name, offset
            current = {"from": last, "to": last}
            if self._names_streams:
                current["stream"] = stream
            ranges.append(current)
        return ranges


def _taken(entries: list[Entry]) -> list[Entry]:
    """The entries, which leave their list. Another thread may append at the same time."""
    taken = entries[:]
    del entries[: len(taken)]
    return taken
