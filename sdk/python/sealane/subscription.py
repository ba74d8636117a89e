"""A subscription: its loop drives the credit, and the connection may come and go."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Union

from .endpoint import Endpoint, HubSocket, Outage, Seconds, SocketLost, milliseconds, passes
from .errors import Ended, HubError, NotTheProtocol, SealaneError
from .message import (
    Connected,
    Draining,
    Event,
    Gap,
    Joined,
    Message,
    Place,
    Reconnecting,
    Unrecovered,
)
from .places import ReaderPlaces, matches, read_gap, text, whole
from .settlements import Settlements

if TYPE_CHECKING:
    from typing_extensions import Self

#: `"first"`, `"new"`, an offset, a time, or the place behind a message.
Start = Union[str, int, datetime, Place]

MAX_CREDIT = 1024
DELIVERY_BATCH = 256
#: What is asked for at first. A loop that keeps pace is asked for more.
FIRST_CREDIT = 32
#: The messages that are asked for shall take no more memory than about this.
MAX_AHEAD_BYTES = 8 << 20
ACK_WAIT_SECONDS = 30.0
#: A consumer that is closed waits so long for what comes again.
LAST_SECONDS = 0.1

LOG = logging.getLogger("sealane")


def start_text(start: Start) -> str:
    """A place as requests name it."""
    if isinstance(start, datetime):
        return f"@{max(0, round(start.timestamp() * 1000))}"
    return str(start.offset if isinstance(start, Place) else start)


@dataclass
class SubscriptionOptions:
    """How to subscribe: the parameters of spec/hub.md §4, and those of this side."""

    start: Start | None = None
    places: Mapping[str, Place] | None = None
    consumer: str | None = None
    ack: Literal["manual", "auto"] = "manual"
    credit: int | None = None
    batch: int = DELIVERY_BATCH
    max_in_flight: int | None = None
    ack_wait: Seconds | None = None
    max_attempts: int | None = None
    heartbeat: Seconds | None = None
    on_event: Callable[[Event], None] | None = None

    def query(self) -> dict[str, Any]:
        """The parameters that stay the same on each connection."""
        return {
            "consumer": self.consumer,
            "batch": min(self.batch, self.credit or self.batch),
            "max_in_flight": self.max_in_flight,
            "ack_wait_ms": None if self.ack_wait is None else milliseconds(self.ack_wait),
            "max_attempts": self.max_attempts,
        }


class CreditWindow:
    """How many messages are asked for ahead of the loop."""

    def __init__(self, options: SubscriptionOptions, is_reader: bool) -> None:
        self._fixed = options.credit
        self._size = options.credit or (FIRST_CREDIT if is_reader else 1)
        # What waits here for a consumer must be done before it is delivered again.
        wait = options.ack_wait
        self._ahead = 0.0 if is_reader else milliseconds(wait or ACK_WAIT_SECONDS) / 4000
        self._mean_bytes = 0.0
        self._handed, self._handed_at = 0, 0.0
        #: Given, and not used yet.
        self.open = 0

    def check(self, messages: int) -> None:
        """Refuses more messages than were asked for."""
        if messages > self.open:
            raise NotTheProtocol(f"{messages} messages came, and {self.open} were asked for")

    def used(self, messages: int, size: int) -> None:
        """Messages came, in a frame of so many bytes."""
        self.open -= messages
        if messages:
            self._mean_bytes += (size / messages - self._mean_bytes) / 4

    def handed(self, messages: int) -> None:
        """The loop has got so many."""
        self._handed, self._handed_at = messages, time.monotonic()

    def grant(self) -> int:
        """How many more are asked for, now that the loop has done what it got."""
        if self._fixed is None and self._handed:
            most = min(MAX_CREDIT, self._size * 2)
            if self._mean_bytes:
                most = min(most, int(MAX_AHEAD_BYTES / self._mean_bytes))
            if self._ahead:
                took = (time.monotonic() - self._handed_at) / self._handed
                most = min(most, int(self._ahead / max(took, 1e-6)))
            self._size = max(1, most)
        self._handed = 0
        more = self._size - self.open
        if self.open * 2 > self._size or more <= 0:
            return 0
        self.open += more
        return more

    def lost(self) -> None:
        self.open = 0


class Subscription:
    """Messages as they come: `async for message in subscription`.

    The first step of the loop connects, and so does `async with`. The subscription ends with the
    block, with the loop where there is no block, and with its client.
    """

    def __init__(self, endpoint: Endpoint, pattern: str, options: SubscriptionOptions) -> None:
        self._endpoint = endpoint
        self._pattern = pattern
        self._options = options
        is_reader = options.start is not None and options.consumer is None
        known = options.places or {}
        self._places = ReaderPlaces(pattern, known) if is_reader else None
        self._asked: set[str] = set()
        self.is_automatic = options.ack == "auto"
        self._window = CreditWindow(options, is_reader)
        self._settlements = Settlements(endpoint.codec, pattern, is_reader)
        self._loop = asyncio.get_running_loop()
        self._queue: deque[Message | Event] = deque()
        self._current: Message | None = None
        self._socket: HubSocket | None = None
        self._joining: asyncio.Task[HubSocket] | None = None
        self._has_stood = False
        self._is_away = False
        self._failure: SealaneError | None = None
        self._closing = asyncio.Event()

    # --- the loop ---

    async def __aiter__(self) -> AsyncIterator[Message]:
        # A generator is the fastest loop. `anext` goes without it, since a generator that is
        # cancelled while it waits has ended.
        queue = self._queue
        while True:
            while queue:
                item = queue.popleft()
                if isinstance(item, Message):
                    yield item
                    if self.is_automatic:
                        item.ack()
                else:
                    self.tell(item)
            if not await self.fill():
                return

    async def __anext__(self) -> Message:
        current, self._current = self._current, None
        if current is not None and self.is_automatic:
            current.ack()
        while True:
            while self._queue:
                item = self._queue.popleft()
                if isinstance(item, Message):
                    self._current = item
                    return item
                self.tell(item)
            if not await self.fill():
                raise StopAsyncIteration

    async def __aenter__(self) -> Self:
        if self._socket is None and not self._closing.is_set():
            try:
                await self._joined()
            except SocketLost:
                raise Ended("the subscription was closed") from None
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.close()

    def __del__(self) -> None:
        # A loop that was left without a block lets go of its connection.
        socket, self._socket = self._socket, None
        if socket is None or self._loop.is_closed():
            return
        abandon = partial(_abandon, socket, self._settlements, self._endpoint.closing)
        try:
            is_here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            is_here = False
        if is_here:
            abandon()
        else:
            self._loop.call_soon_threadsafe(abandon)

    async def close(self) -> None:
        """Ends it. What was acknowledged is told to the hub; all else comes again."""
        self._closing.set()
        await self._take_repeated()
        self._queue.clear()
        if self._joining is not None:
            self._joining.cancel()
            await asyncio.wait([self._joining])
        await self._settlements.close()
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close()

    async def _take_repeated(self) -> None:
        """Acknowledges again what is coming again, although it was done on another connection."""
        socket = self._socket
        if socket is None or self._places is not None or not self._settlements.may_be_done:
            return
        with contextlib.suppress(SocketLost, SealaneError, asyncio.TimeoutError):
            while True:
                self._receive(await asyncio.wait_for(socket.read(), LAST_SECONDS), socket.size)

    def place(self, stream: str | None = None) -> Place | None:
        """Where a reader will go on in a stream: `start=` of another subscription."""
        places = self._places
        return None if places is None else places.place(stream or self._pattern)

    def take(self) -> list[Message | Event]:
        """All that has come and was not handed out."""
        taken = list(self._queue)
        self._queue.clear()
        return taken

    async def fill(self) -> bool:
        """Waits until something is to be handed out; says whether anything will be."""
        while not self._queue:
            if self._closing.is_set():
                return False
            if self._failure is not None:
                raise self._failure.with_traceback(None)
            try:
                socket = self._socket or await self._joined()
                for frame in self._settlements.frames(self._window.grant()):
                    await socket.write(frame)
                self._receive(await socket.read(), socket.size)
            except (SocketLost, SealaneError) as ended:
                await self._ended(ended)
        self._window.handed(len(self._queue))
        return True

    # --- connections ---

    async def _joined(self) -> HubSocket:
        """Connects. A caller that does not wait for it to the end finds it done the next time."""
        if self._joining is None:
            self._joining = asyncio.create_task(self._join(), name="sealane connects")
            self._joining.add_done_callback(_look)
        joining = self._joining
        try:
            return await asyncio.shield(joining)
        except asyncio.CancelledError:
            if not joining.cancelled():
                raise
            raise SocketLost("the subscription was closed") from None
        finally:
            if joining.done():
                self._joining = None

    async def _join(self) -> HubSocket:
        """Connects, and waits until the subscription stands."""
        patience = None if self._has_stood else self._endpoint.patience
        outage = Outage(patience, self._closing)
        while True:
            if self._closing.is_set():
                raise Ended("the subscription is closed")
            try:
                return await self._stand()
            except (SocketLost, HubError) as ended:
                if isinstance(ended, HubError) and not passes(ended):
                    raise
                self._tell_of(ended)
                await outage.wait(ended)

    async def _stand(self) -> HubSocket:
        start: dict[str, Any] = {}
        if self._options.start is not None:
            start = {"from": start_text(self._options.start)}
            if isinstance(self._options.start, Place):
                start["generation"] = self._options.start.generation
        if self._places is not None and (self._has_stood or self._places.streams):
            start = self._places.start(start["from"])
        query = {"stream": self._pattern, **self._options.query(), **start}
        socket = await self._endpoint.open("/v1/subscribe", query, self._options.heartbeat)
        try:
            frame = await socket.first("status")
            await self._stands(socket, frame)
        except BaseException:
            await socket.close()
            raise
        self._socket, self._has_stood = socket, True
        return socket

    async def _stands(self, socket: HubSocket, frame: dict[str, Any]) -> None:
        if frame["status"] != "subscribed":
            raise NotTheProtocol(f"the first frame is {frame['status']!r}")
        if frame.get("stream") != self._pattern:
            raise NotTheProtocol(f"the hub subscribes {frame.get('stream')!r}")
        features = frame.get("features", ["batch", "nack-delay", "seek", "sealed"])
        if not isinstance(features, list):
            raise NotTheProtocol(f"`features` of a frame is {features!r}")
        self._is_away = False
        self.tell(Connected())
        if self._places is not None:
            self._places.began(whole(frame, "time"))
            if "offset" in frame and (event := self._places.joined(frame)) is not None:
                self._queue.append(event)
            for seek in self._places.seeks("seek" in features):
                await socket.write(self._endpoint.codec.encode(seek))
        elif frame.get("recovered") is False:
            place = whole(frame, "offset"), whole(frame, "generation")
            self._queue.append(Unrecovered(self._pattern, *place))
        self._settlements.connected(socket, features)

    async def _ended(self, ended: SealaneError | SocketLost) -> None:
        """The connection is gone: whether another is made, or the loop ends."""
        socket, self._socket = self._socket, None
        self._settlements.lost()
        self._window.lost()
        if not self._closing.is_set():
            if isinstance(ended, SealaneError) and not self._passes(ended):
                self._failure = ended
            else:
                self._tell_of(ended)
        if socket is not None:
            await socket.close()

    def _tell_of(self, ended: Exception) -> None:
        """Tells once that the connection is made again."""
        if self._is_away:
            return
        self._is_away = True
        code = ended.code if isinstance(ended, HubError) else "NotReachable"
        if code == "Draining":
            self.tell(Draining())
        self.tell(Reconnecting(code))

    def _passes(self, error: SealaneError) -> bool:
        if not isinstance(error, HubError):
            return False
        # The pattern's other streams are still there.
        return passes(error) or (error.code == "StreamRemoved" and "*" in self._pattern)

    # --- frames ---

    def _receive(self, frame: dict[str, Any], size: int) -> None:
        if "batch" in frame:
            batch = frame["batch"]
            if type(batch) is not list:
                raise NotTheProtocol(f"`batch` of a frame is {batch!r}")
            self._deliver(batch, size)
        elif "deliver" in frame:
            self._deliver([frame], size)
        elif frame.get("status") == "joined":
            if self._places is not None:
                event = self._places.joined(frame)
            else:
                offset, generation = whole(frame, "offset"), whole(frame, "generation")
                event = Joined(text(frame, "stream"), offset, generation)
            if event is not None:
                self._queue.append(event)
        elif frame.get("status") == "gap":
            self._queue.append(read_gap(frame) if self._places is None else self._places.gap(frame))

    def _deliver(self, frames: list[Any], size: int) -> None:
        if len(frames) > self._window.open:
            self._window.check(sum(type(one) is dict and "deliver" in one for one in frames))
        count = 0
        places = self._places
        streams = {} if places is None else places.streams
        settlements, append = self._settlements, self._queue.append
        link, asked, may_be_done = settlements.link, self._asked, settlements.may_be_done
        try:
            for frame in frames:
                # What a newer hub puts beside deliveries is passed over, and costs no credit.
                if type(frame) is not dict or "deliver" not in frame:
                    continue
                count += 1
                stream, offset = frame["stream"], frame["offset"]
                generation = frame["generation"]
                if not (
                    type(frame["deliver"]) is dict
                    and type(offset) is type(generation) is type(frame["attempt"]) is int
                    and type(frame["storedMs"]) is int
                    and type(stream) is str
                ):
                    raise NotTheProtocol(f"a delivery has fields of wrong types: {frame!r:.200}")
                if places is None:
                    is_plain = frame["attempt"] == 1 and not may_be_done and stream in asked
                    if not is_plain and not self._is_wanted(stream, generation, offset, frame):
                        continue
                else:
                    known = streams.get(stream)
                    if known is None or offset != known.next or generation != known.floor:
                        if not places.advance(stream, offset, generation):
                            continue
                    else:
                        known.next = offset + 1
                append(Message(frame, settlements, link))
        except KeyError as lacking:
            raise NotTheProtocol(f"a delivery has no field {lacking}") from None
        finally:
            self._window.used(count, size)

    def _is_wanted(self, stream: str, generation: int, offset: int, frame: dict[str, Any]) -> bool:
        """Whether a consumer's delivery is handed out."""
        if stream not in self._asked:
            if not matches(self._pattern, stream):
                raise NotTheProtocol(f"a message of {stream} came, which is not in {self._pattern}")
            self._asked.add(stream)
        key = (stream, generation, offset)
        if frame["attempt"] > 1:
            return not self._settlements.is_done(key)
        self._settlements.began_anew(key)
        return True

    def tell(self, event: Event) -> None:
        """Hands an event to whoever asked for them; losses are logged where nobody did."""
        if self._options.on_event is not None:
            self._options.on_event(event)
        elif isinstance(event, (Gap, Unrecovered)):
            LOG.warning("%s: %s", self._pattern, event)


def _look(task: asyncio.Task[HubSocket]) -> None:
    """Takes the failure of a task, for which a caller may have ceased to wait."""
    if not task.cancelled():
        task.exception()


def _abandon(socket: HubSocket, settlements: Settlements, closing: set[asyncio.Task[None]]) -> None:
    async def close() -> None:
        await settlements.close()
        await socket.close()

    task = asyncio.get_running_loop().create_task(close(), name="sealane close")
    closing.add(task)
    task.add_done_callback(closing.discard)
