"""A publishing socket: messages go out as the hub asks for them, and each is stored once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Generator, Mapping
from typing import Any

from .endpoint import (
    Endpoint,
    HubSocket,
    Outage,
    Seconds,
    SocketLost,
    milliseconds,
    passes,
    refusal,
)
from .errors import (
    Ended,
    FeatureMissing,
    HubError,
    NoAnswer,
    NotTheProtocol,
    SealaneError,
)
from .message import Published, moment
from .places import text, whole

#: So many messages wait here for the hub to ask for them; then `send` waits.
MAX_QUEUED = 4096
MAX_QUEUED_BYTES = 8 << 20
MAX_TOPICS = 1024
#: A frame takes no further message beyond this. The hub takes 1,088 KiB.
FULL_FRAME_BYTES = 48 << 10
#: The hub may say so often that numbers are missing although none is.
MAX_RENUMBERINGS = 3


class Receipt(asyncio.Future[Published]):
    """The answer to come. It knows whether somebody has looked at it."""

    is_taken = False

    def __await__(self) -> Generator[Any, None, Published]:
        self.is_taken = True
        return super().__await__()

    def result(self) -> Published:
        self.is_taken = True
        return super().result()

    def exception(self) -> BaseException | None:
        self.is_taken = True
        return super().exception()


class Item:
    """One message on its way."""

    __slots__ = ("stream", "count", "fields", "answer", "n")

    def __init__(self, stream: str, count: int, fields: bytes, answer: Receipt) -> None:
        self.stream = stream
        #: The fields but `n`, encoded, and how many they are.
        self.count, self.fields = count, fields
        self.answer = answer
        #: Its number; 0: it has none yet.
        self.n = 0


class Lane:
    """The numbers of one stream in this session."""

    __slots__ = ("next", "sent", "again", "waiting", "is_held", "renumberings")

    def __init__(self, following: int) -> None:
        #: The number of the next message.
        self.next = following
        self.sent: dict[int, Item] = {}
        #: What is to be numbered anew, by the numbers that were refused.
        self.again: dict[int, Item] = {}
        self.waiting: list[Item] = []
        #: A message was refused, and nothing more is sent until all before it is answered.
        self.is_held = False
        self.renumberings = 0

    def refused(self, number: int, error: HubError) -> Item | None:
        """A message was refused; it is returned if it is lost."""
        item = self.sent.pop(number, None)
        if item is None:
            raise NotTheProtocol(f"the hub refuses the message {number}, which was not sent")
        if error.code in ("KeyReused", "NumberForgotten"):
            return item  # Its number is taken, and the others go on behind it.
        if not self.is_held:
            self.is_held, self.next = True, number
        self.next = min(self.next, number)
        if error.code == "NumberSkipped":
            self.next = min(self.next, error.next or 1)
            self.again[number] = item
            return None
        return item

    def renumbered(self) -> list[Item]:
        """What is sent next, in order, once all is answered."""
        items = [self.again[number] for number in sorted(self.again)] + self.waiting
        self.again, self.waiting, self.is_held = {}, [], False
        for item in items:
            item.n = 0
        return items


class Publisher:
    """Publishes by one socket, over its connections. `async with client.publisher() as publisher`.

    `send` waits only for room, and gives the future of the answer. Messages of one stream are
    stored in the order in which they were sent.
    """

    def __init__(self, endpoint: Endpoint, session: str | None = None) -> None:
        self._endpoint = endpoint
        self._codec = endpoint.codec
        self._named = session
        #: The name of the session, once it stands.
        self.session = session
        self._lanes: dict[str, Lane] = {}
        #: Most messages are of few streams: their names, encoded.
        self._topics: dict[str, bytes] = {}
        #: Messages without a number, and those that go out again with theirs.
        self._queue: deque[Item] = deque()
        self._resend: deque[Item] = deque()
        self._queued_bytes = 0
        self._unanswered = 0
        self._credit = self._bytes = 0
        self._socket: HubSocket | None = None
        self._work = asyncio.Event()
        self._waiting: deque[asyncio.Future[None]] = deque()
        #: Answers that are failures.
        self._failed: list[Receipt] = []
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing = asyncio.Event()
        self._run: asyncio.Task[None] | None = None
        #: The session goes on elsewhere.
        self._over: SealaneError | None = None

    async def __aenter__(self) -> Publisher:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *failure: object) -> None:
        try:
            await self.close()
        except SealaneError:
            # What ended the block says more.
            if kind is None:
                raise

    async def send(
        self,
        stream: str,
        body: Mapping[str, Any],
        *,
        delay: Seconds | None = None,
        expect: int | None = None,
    ) -> Receipt:
        """Hands a message over once there is room; the receipt is done when the hub has answered.
        `await` it for the place of the message. A failure at which nobody looks is raised by
        `flush` and `close`.
        """
        encoded = self.encoded(stream, body, delay, expect)
        if self._waiting or not self.has_room():
            await self.wait_for_room()
        return self.put(stream, *encoded)

    def encoded(
        self, stream: str, body: Mapping[str, Any], delay: Seconds | None, expect: int | None
    ) -> tuple[int, bytes]:
        """The fields of an item but its number."""
        field, encode = self._codec.field, self._codec.encode
        to = self._topics.get(stream)
        if to is None:
            if len(self._topics) >= MAX_TOPICS:
                self._topics.clear()
            to = self._topics[stream] = field("to", encode(stream))
        fields = [to, field("envelope", encode(body if type(body) is dict else dict(body)))]
        if delay is not None:
            fields.append(field("delayMs", encode(milliseconds(delay))))
        if expect is not None:
            fields.append(field("condition", encode({"expect": expect})))
        return len(fields), self._codec.fields(fields)

    def has_room(self) -> bool:
        """Whether a message may be put."""
        if self._closing.is_set():
            raise Ended("the publisher is closed")
        if self._over is not None:
            raise self._over.with_traceback(None)
        return len(self._queue) < MAX_QUEUED and self._queued_bytes < MAX_QUEUED_BYTES

    async def wait_for_room(self) -> None:
        """Waits in line, so that messages stay in the order of their calls."""
        while self._waiting or not self.has_room():
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                self._call_next()
                raise
            if self.has_room():
                return

    def _call_next(self) -> None:
        """Lets as many callers go on as there is room for."""
        free = MAX_QUEUED - len(self._queue) if self._queued_bytes < MAX_QUEUED_BYTES else 0
        while self._waiting and (free > 0 or self._closing.is_set()):
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1

    def put(self, stream: str, count: int, fields: bytes) -> Receipt:
        """Puts a message behind the others."""
        if self._run is None or self._run.done():
            self._run = asyncio.create_task(self._serve(), name="sealane publisher")
        item = Item(stream, count, fields, Receipt())
        self._queue.append(item)
        self._queued_bytes += len(fields)
        self._unanswered += 1
        if self._unanswered == 1:
            self._idle.clear()
        if not self._work.is_set():
            self._work.set()
        return item.answer

    async def flush(self) -> None:
        """Waits until all is answered. Raises the first failure at which nobody has looked."""
        await self._idle.wait()
        failed, self._failed = self._failed, []
        unseen = [answer.exception() for answer in failed if not answer.is_taken]
        if unseen and unseen[0] is not None:
            raise unseen[0]

    async def next(self, stream: str) -> int:
        """The number of the session's next message in a stream: what it has published there,
        counted from 1.
        """
        await self.flush()
        if self._named is None and stream not in self._lanes:
            return 1
        lane = self._lanes.get(stream)
        if lane is None:
            run, self._run = self._run, None
            if run is not None:
                run.cancel()
                await asyncio.wait([run])
            lane = await self._learn(stream)
        return lane.next

    async def close(self) -> None:
        """Waits until all is answered, at most for the client's patience, and ends it."""
        try:
            await asyncio.wait_for(self._idle.wait(), self._endpoint.patience)
        except asyncio.TimeoutError:
            self._fail(NoAnswer("the hub has not answered all that was published"))
        try:
            await self.flush()
        finally:
            self._closing.set()
            self._call_next()
            self._fail(Ended("the publisher is closed"))
            if self._run is not None:
                self._run.cancel()
                await asyncio.wait([self._run])
            await self._drop()

    # --- connections ---

    async def _serve(self) -> None:
        """Keeps a connection as long as there is something to send."""
        outage = Outage(self._endpoint.patience)
        while True:
            try:
                if self._socket is None:
                    # An idle publisher does not mind that its hub is away.
                    while not self._unanswered:
                        self._work.clear()
                        await self._work.wait()
                    await self._join(None)
                while self._socket is not None:
                    await self._exchange(self._socket)
                    outage = Outage(self._endpoint.patience)
            except (SocketLost, SealaneError) as ended:
                await self._drop()
                self._take_back()
                if isinstance(ended, SealaneError) and not (
                    isinstance(ended, HubError) and passes(ended)
                ):
                    self._over = ended if ended.code == "SessionTaken" else None
                    self._fail(ended)
                elif self._unanswered:
                    try:
                        await outage.wait(ended)
                    except SealaneError as over:
                        self._fail(NoAnswer(str(over)) if self.session else over)
                        outage = Outage(self._endpoint.patience)

    async def _learn(self, stream: str) -> Lane:
        """Asks which number comes next in a stream: a connection says it of one."""
        outage = Outage(self._endpoint.patience)
        while True:
            await self._drop()
            try:
                return await self._join(stream)
            except (SocketLost, HubError) as ended:
                if isinstance(ended, HubError) and not passes(ended):
                    raise
                await outage.wait(ended)

    async def _join(self, stream: str | None) -> Lane:
        query = {"session": self.session, "stream": stream}
        socket = await self._endpoint.open("/v1/publish", query)
        try:
            frame = await socket.first("session")
            self.session = text(frame, "session")
            lane = Lane(1)
            if stream is not None:
                if "session-next" not in frame.get("features", ()):
                    raise FeatureMissing("the hub does not say the next number of a session")
                lane = self._lanes[stream] = Lane(whole(frame, "next"))
        except BaseException:
            await socket.close()
            raise
        self._socket = socket
        self._credit = self._bytes = 0
        return lane

    async def _drop(self) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close()

    def _take_back(self) -> None:
        """What was not answered goes out again, in order and with its numbers."""
        self._resend.clear()
        for lane in self._lanes.values():
            self._resend.extend(lane.sent[number] for number in sorted(lane.sent))

    def _fail(self, error: SealaneError) -> None:
        """Nothing that is not answered will be. The next message begins another session, since
        nobody knows which numbers are stored.
        """
        for lane in self._lanes.values():
            for item in (*lane.sent.values(), *lane.again.values(), *lane.waiting):
                self._lose(item, error)
        for item in self._queue:
            self._lose(item, error)
        if self._unanswered:
            self.session = self._named
            self._lanes = {}
        self._queue.clear()
        self._resend.clear()
        self._unanswered = self._queued_bytes = 0
        self._settled()

    def _lose(self, item: Item, error: SealaneError) -> None:
        if not item.answer.done():
            # The frames of the publisher's own task are none of the caller's: a debugger or a test
            # that clears them would end the task.
            item.answer.set_exception(error.with_traceback(None))
            if len(self._failed) < MAX_QUEUED:
                self._failed.append(item.answer)

    # --- frames ---

    async def _exchange(self, socket: HubSocket) -> None:
        """Sends and receives until the connection ends, or another one must be made."""
        writing = asyncio.create_task(self._write(socket), name="sealane publisher writes")
        reading = asyncio.create_task(self._read(socket), name="sealane publisher reads")
        try:
            done, _ = await asyncio.wait((writing, reading), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (writing, reading):
                task.cancel()
            await asyncio.wait((writing, reading))
        failures = [task.exception() for task in (reading, writing) if not task.cancelled()]
        for failure in failures:
            if failure is not None:
                raise failure
        # The writer has met a stream whose numbers a named session must ask for.
        stream = self._queue[0].stream
        self._take_back()
        await self._drop()
        await self._join(stream)

    async def _write(self, socket: HubSocket) -> None:
        """Sends what the hub asks for; ends where the next number of a stream is not known."""
        while True:
            self._work.clear()
            parts: list[bytes] = []
            size = 0
            while self._credit > 0 and self._bytes > 0 and size < FULL_FRAME_BYTES:
                if self._resend:
                    item = self._resend.popleft()
                elif self._queue:
                    if self._must_learn(self._queue[0].stream):
                        break
                    numbered = self._number(self._queue.popleft())
                    if numbered is None:
                        continue
                    item = numbered
                else:
                    break
                part = self._codec.item(item.n, item.count, item.fields)
                parts.append(part)
                size += len(part)
                self._credit -= 1
                self._bytes -= len(part)
            if parts:
                await socket.write(self._codec.publish(parts))
                self._call_next()
                continue
            if self._queue and not self._resend and self._must_learn(self._queue[0].stream):
                if not any(lane.sent for lane in self._lanes.values()):
                    return
            await self._work.wait()

    def _must_learn(self, stream: str) -> bool:
        return self._named is not None and stream not in self._lanes

    def _number(self, item: Item) -> Item | None:
        """Gives a message its number; none where it is not to be sent now."""
        self._queued_bytes -= len(item.fields)
        if item.answer.cancelled():
            self._answered(1)
            return None
        lane = self._lanes.get(item.stream)
        if lane is None:
            lane = self._lanes[item.stream] = Lane(1)
        if lane.is_held:
            lane.waiting.append(item)
            return None
        item.n = lane.next
        lane.next += 1
        lane.sent[item.n] = item
        return item

    async def _read(self, socket: HubSocket) -> None:
        while True:
            frame = await socket.read()
            if "published" in frame:
                self._published(frame["published"])
            elif "credit" in frame:
                self._credit += whole(frame, "credit")
                self._bytes += whole(frame, "bytes")
                self._work.set()
            elif "refused" in frame:
                self._refused(frame["refused"])

    def _numbers(self, placed: Any) -> tuple[Lane, range]:
        if type(placed) is not dict:
            raise NotTheProtocol(f"an answer is {placed!r}")
        lane = self._lanes.get(text(placed, "stream"))
        if lane is None:
            raise NotTheProtocol(f"the hub answers of {placed['stream']}, where nothing was sent")
        if "n" in placed:
            number = whole(placed, "n")
            return lane, range(number, number + 1)
        numbers = range(whole(placed, "from"), whole(placed, "to") + 1)
        if not 0 < len(numbers) <= len(lane.sent):
            raise NotTheProtocol(
                f"the hub answers the messages {numbers.start} to {numbers.stop - 1}"
            )
        return lane, numbers

    def _published(self, placed: Any) -> None:
        lane, numbers = self._numbers(placed)
        stream, level = placed["stream"], text(placed, "level")
        replayed, due, offset, generation = placed.get("replayed") is True, None, None, None
        if "dueMs" in placed:
            due = moment(whole(placed, "dueMs"))
        else:
            offset, generation = whole(placed, "offset"), whole(placed, "generation")
        for number in numbers:
            item = lane.sent.pop(number, None)
            if item is None:
                raise NotTheProtocol(f"the hub has stored the message {number}, which was not sent")
            if not item.answer.done():
                place = None if offset is None else offset + number - numbers.start
                item.answer.set_result(
                    Published(stream, place, generation, level, replayed, due, number)
                )
        lane.renumberings = 0
        self._go_on(lane)
        self._answered(len(numbers))

    def _refused(self, refused: Any) -> None:
        lane, numbers = self._numbers(refused)
        error = refusal(refused.get("error"))
        lost = [lane.refused(number, error) for number in numbers]
        for item in lost:
            if item is not None:
                self._lose(item, error)
        if any(lost):
            lane.renumberings = 0
        self._go_on(lane)
        self._answered(sum(item is not None for item in lost))

    def _go_on(self, lane: Lane) -> None:
        """A lane that was held goes on when all of it is answered."""
        if lane.is_held and not lane.sent:
            lane.renumberings += 1
            if lane.renumberings > MAX_RENUMBERINGS:
                raise NotTheProtocol("the hub says that numbers are missing, and none is")
            items = lane.renumbered()
            self._queue.extendleft(reversed(items))
            self._queued_bytes += sum(len(item.fields) for item in items)
        self._work.set()

    def _answered(self, count: int) -> None:
        self._unanswered -= count
        if self._unanswered == 0:
            self._settled()

    def _settled(self) -> None:
        self._idle.set()
        self._call_next()
