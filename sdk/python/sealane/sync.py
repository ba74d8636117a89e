"""A client of one hub for plain programs, over the same core: an event loop in a thread."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from .client import HEARTBEAT_SECONDS, PAGE_MESSAGES, PATIENCE_SECONDS, AsyncClient, Page
from .endpoint import Seconds, Token, seconds
from .errors import Ended, SealaneError
from .message import Event, Message, Place, Published
from .publisher import MAX_QUEUED, Publisher, Receipt
from .subscription import DELIVERY_BATCH, Start, Subscription

if TYPE_CHECKING:
    from typing_extensions import Self

    from .protocol import (
        AccessTicket,
        Cancelled,
        ConsumerInfo,
        DelayedMessage,
        EnqueuedBatch,
        Health,
        Level,
        Purged,
        Removed,
        StreamState,
    )

Result = TypeVar("Result")
Element = TypeVar("Element")


class LoopThread:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        # It is a daemon: a program that forgets to close its client ends all the same.
        self._thread = threading.Thread(target=self._run, name="sealane", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def run(self, work: Coroutine[Any, Any, Result], timeout: Seconds | None = None) -> Result:
        """The result of the work. If the caller is interrupted, the work is cancelled."""
        if self.loop.is_closed():
            work.close()
            raise Ended("the client is closed")
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result(None if timeout is None else seconds(timeout))
        except concurrent.futures.TimeoutError as late:
            if future.done() and not future.cancelled():
                raise
            future.cancel()
            raise TimeoutError("nothing came in time") from late
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        if self.loop.is_closed():
            return
        self.run(self._finish())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    async def _finish(self) -> None:
        """Ends what is left of the loop's tasks."""
        await self.loop.shutdown_asyncgens()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class BlockingSubscription:
    """Messages as they come: `for message in subscription`. The first step of the loop connects,
    and so does `with`.
    """

    def __init__(self, thread: LoopThread, inner: Subscription) -> None:
        self._thread = thread
        self._inner = inner
        self._taken: deque[Message | Event] = deque()
        self._current: Message | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Message:
        message = self._next(None)
        if message is None:
            raise StopIteration
        return message

    def next(self, timeout: Seconds | None = None) -> Message:
        """The next message; `TimeoutError` if none comes in time."""
        message = self._next(timeout)
        if message is None:
            raise Ended("the subscription is closed")
        return message

    def _next(self, timeout: Seconds | None) -> Message | None:
        current, self._current = self._current, None
        if current is not None and self._inner.is_automatic:
            current.ack()
        while True:
            while self._taken:
                item = self._taken.popleft()
                if isinstance(item, Message):
                    self._current = item
                    return item
                self._inner.tell(item)
            more = self._thread.run(self._more(), timeout)
            if not more:
                return None
            self._taken.extend(more)

    async def _more(self) -> list[Message | Event]:
        return self._inner.take() if await self._inner.fill() else []

    def place(self, stream: str | None = None) -> Place | None:
        """Where a reader will go on in a stream, behind all that has come."""
        return self._inner.place(stream)

    def __enter__(self) -> Self:
        self._thread.run(self._inner.__aenter__())
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends it. What was acknowledged is told to the hub; all else comes again."""
        self._taken.clear()
        if not self._thread.loop.is_closed():
            self._thread.run(self._inner.close())


class BlockingReceipt:
    """The answer to come: `result(timeout)` waits for it."""

    __slots__ = ("_thread", "answer", "failure")

    def __init__(self, thread: LoopThread) -> None:
        self._thread = thread
        #: The answer in the loop, once the message was handed over there.
        self.answer: Receipt | None = None
        self.failure: SealaneError | None = None

    def result(self, timeout: Seconds | None = None) -> Published:
        """The place of the message."""
        return self._thread.run(self._wait(), timeout)

    async def _wait(self) -> Published:
        if self.failure is not None:
            raise self.failure
        assert self.answer is not None, "the message was handed over before this began"
        return await asyncio.shield(self.answer)


class BlockingPublisher:
    """Publishes by one socket. `send` waits only for room; `flush` waits for the answers."""

    def __init__(self, thread: LoopThread, inner: Publisher) -> None:
        self._thread = thread
        self._inner = inner
        self._pending: deque[tuple[str, int, bytes, BlockingReceipt]] = deque()
        self._is_due = False

    @property
    def session(self) -> str | None:
        """The name of the session, once it stands."""
        return self._inner.session

    def send(
        self,
        topic: str,
        body: Mapping[str, Any],
        *,
        delay: Seconds | None = None,
        expect: int | None = None,
    ) -> BlockingReceipt:
        """Hands a message over once there is room. A failure at which nobody looks is raised by
        `flush` and `close`.
        """
        count, fields = self._inner.encoded(topic, body, delay, expect)
        if len(self._pending) >= MAX_QUEUED or not self._inner.has_room():
            self._thread.run(self._wait_for_room())
        receipt = BlockingReceipt(self._thread)
        self._pending.append((topic, count, fields, receipt))
        if not self._is_due:
            self._is_due = True
            self._thread.loop.call_soon_threadsafe(self._hand_over)
        return receipt

    async def _wait_for_room(self) -> None:
        self._hand_over()
        await self._inner.wait_for_room()

    def _hand_over(self) -> None:
        self._is_due = False
        while self._pending:
            topic, count, fields, receipt = self._pending.popleft()
            try:
                self._inner.has_room()
                receipt.answer = self._inner.put(topic, count, fields)
            except SealaneError as ended:
                receipt.failure = ended

    def flush(self, timeout: Seconds | None = None) -> None:
        """Waits until all is answered. Raises the first failure at which nobody has looked."""
        self._thread.run(self._flush(), timeout)

    async def _flush(self) -> None:
        self._hand_over()
        await self._inner.flush()

    def next(self, topic: str) -> int:
        """The number of the session's next message in a stream."""
        self.flush()
        return self._thread.run(self._inner.next(topic))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *failure: object) -> None:
        try:
            self.close()
        except SealaneError:
            # What ended the block says more.
            if kind is None:
                raise

    def close(self) -> None:
        """Waits until all is answered, and ends it."""
        try:
            self.flush()
        finally:
            self._thread.run(self._inner.close())


class Client:
    """A hub at `host:port`, or at a URL with `https://`: `with Client() as client`.

    All is as `AsyncClient` says, without `await`. It may be used from several threads.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        token: Token = None,
        ca: str | os.PathLike[str] | None = None,
        codec: Literal["json", "msgpack", "cbor"] = "json",
        patience: Seconds = PATIENCE_SECONDS,
        heartbeat: Seconds = HEARTBEAT_SECONDS,
    ) -> None:
        self._inner = AsyncClient(
            address, token=token, ca=ca, codec=codec, patience=patience, heartbeat=heartbeat
        )
        self._thread = LoopThread()
        self._publishers: weakref.WeakSet[BlockingPublisher] = weakref.WeakSet()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *failure: object) -> None:
        try:
            self.close()
        except SealaneError:
            # What ended the block says more.
            if kind is None:
                raise

    def close(self) -> None:
        """Waits until what was published is answered, and closes all that was opened here."""
        if self._thread.loop.is_closed():
            return
        try:
            for publisher in list(self._publishers):
                publisher.flush()
        finally:
            try:
                self._thread.run(self._inner.close())
            finally:
                self._thread.stop()

    # --- reading ---

    def subscribe(
        self,
        pattern: str,
        *,
        start: Start | None = None,
        places: Mapping[str, Place] | None = None,
        consumer: str | None = None,
        ack: Literal["manual", "auto"] = "manual",
        credit: int | None = None,
        batch: int = DELIVERY_BATCH,
        max_in_flight: int | None = None,
        ack_wait: Seconds | None = None,
        max_attempts: int | None = None,
        heartbeat: Seconds | None = None,
        on_event: Callable[[Event], None] | None = None,
    ) -> BlockingSubscription:
        """Messages of a topic or pattern: `for message in client.subscribe("fleet/**",
        start="new")`. As `AsyncClient.subscribe`.
        """

        async def make() -> Subscription:
            return self._inner.subscribe(
                pattern,
                start=start,
                places=places,
                consumer=consumer,
                ack=ack,
                credit=credit,
                batch=batch,
                max_in_flight=max_in_flight,
                ack_wait=ack_wait,
                max_attempts=max_attempts,
                heartbeat=heartbeat,
                on_event=on_event,
            )

        return BlockingSubscription(self._thread, self._thread.run(make()))

    def page(self, topic: str, *, start: Start = "first", limit: int | None = None) -> Page:
        """A page of a stream."""
        return self._thread.run(self._inner.page(topic, start=start, limit=limit))

    def range(
        self, topic: str, *, start: Start = "first", stop: int | datetime | None = None
    ) -> Iterator[Message]:
        """The messages that a stream has, from `start` and before `stop`: an offset or a time."""
        while True:
            page = self.page(topic, start=start, limit=PAGE_MESSAGES)
            messages = page.before(stop)
            yield from messages
            if page.end or len(messages) < len(page.messages):
                return
            start = page.next

    # --- publishing ---

    def publish(
        self,
        topic: str,
        body: Mapping[str, Any],
        *,
        delay: Seconds | None = None,
        expect: int | None = None,
        key: str | None = None,
    ) -> Published:
        """Stores a map, and returns its place once it is stored. As `AsyncClient.publish`."""
        stored = self._inner.publish(topic, body, delay=delay, expect=expect, key=key)
        return self._thread.run(stored)

    def publish_batch(
        self,
        topic: str,
        bodies: Sequence[Mapping[str, Any]],
        *,
        expect: int | None = None,
        key: str | None = None,
    ) -> EnqueuedBatch:
        """Stores maps in one commit, all of them or none."""
        return self._thread.run(self._inner.publish_batch(topic, bodies, expect=expect, key=key))

    def publisher(self, *, session: str | None = None) -> BlockingPublisher:
        """A publisher of its own, for many messages: `with client.publisher() as publisher`. With
        the name of a session it goes on where the session ended.
        """

        async def make() -> Publisher:
            return self._inner.publisher(session=session)

        publisher = BlockingPublisher(self._thread, self._thread.run(make()))
        self._publishers.add(publisher)
        return publisher

    # --- asking and answering ---

    def request(self, topic: str, body: Mapping[str, Any], *, timeout: Seconds = 10.0) -> Message:
        """Publishes a request, and waits for its answer."""
        return self._thread.run(self._inner.request(topic, body, timeout=timeout))

    def reply(self, request: Message, body: Mapping[str, Any]) -> bool:
        """Answers a request; says whether anybody still waits for it. Else nothing is sent."""
        return self._thread.run(self._inner.reply(request, body))

    # --- streams and consumers ---

    def streams(
        self, pattern: str | None = None, *, limit: int | None = None
    ) -> Iterator[StreamState]:
        """The states of all streams that the token may read, asked for in pages of `limit`."""
        return self._each(self._inner.streams(pattern, limit=limit))

    def stream(self, topic: str) -> StreamState:
        """A stream's state."""
        return self._thread.run(self._inner.stream(topic))

    def set_stream(
        self,
        topic: str,
        *,
        level: Level | None = None,
        max_age: Seconds | None = None,
        max_count: int | None = None,
        max_bytes: int | None = None,
    ) -> StreamState:
        """Makes a stream, or changes it; 0 means no bound."""
        return self._thread.run(
            self._inner.set_stream(
                topic, level=level, max_age=max_age, max_count=max_count, max_bytes=max_bytes
            )
        )

    def remove_stream(self, topic: str) -> Removed:
        """Removes a stream with all its messages."""
        return self._thread.run(self._inner.remove_stream(topic))

    def purge(self, topic: str, before: Start) -> Purged:
        """Removes the messages before a place."""
        return self._thread.run(self._inner.purge(topic, before))

    def consumer(self, topic: str, name: str = "") -> ConsumerInfo:
        """A consumer's state; without a name, the inbox's."""
        return self._thread.run(self._inner.consumer(topic, name))

    def steer_consumer(
        self, topic: str, name: str, verb: Literal["pause", "reset", "skip", "redeliver"], to: Any
    ) -> ConsumerInfo:
        """Steers a consumer. As `AsyncClient.steer_consumer`."""
        return self._thread.run(self._inner.steer_consumer(topic, name, verb, to))

    def remove_consumer(self, topic: str, name: str) -> Removed:
        """Removes a consumer, with its place."""
        return self._thread.run(self._inner.remove_consumer(topic, name))

    def delayed(self, topic: str) -> Iterator[DelayedMessage]:
        """The messages that are held back, in the order in which they come."""
        return self._each(self._inner.delayed(topic))

    def cancel_delayed(self, topic: str, ident: str) -> Cancelled:
        """Messages of this id that are held back never come."""
        return self._thread.run(self._inner.cancel_delayed(topic, ident))

    def ticket(self) -> AccessTicket:
        """A text that stands for the token once, for the `EventSource` of a page."""
        return self._thread.run(self._inner.ticket())

    def health(self) -> Health:
        """The hub's report on itself."""
        return self._thread.run(self._inner.health())

    def _each(self, elements: AsyncIterator[Element]) -> Iterator[Element]:
        async def one() -> list[Element]:
            async for element in elements:
                return [element]
            return []

        while taken := self._thread.run(one()):
            yield taken[0]
