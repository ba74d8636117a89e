"""A client of one hub, for asyncio."""

from __future__ import annotations

import asyncio
import os
import time
import weakref
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from .endpoint import Endpoint, Seconds, Token, seconds
from .errors import Ended, NoReply, NotARequest, NotTheProtocol, SealaneError
from .http import HubRequests, fresh_key, topic_path
from .message import Event, Gap, Message, Place, Published, moment
from .places import read_gap
from .publisher import Publisher
from .subscription import DELIVERY_BATCH, Start, Subscription, SubscriptionOptions, start_text

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

#: Where answers go, and nowhere else: who asks must not choose what the rights of who answers are
#: used for.
REPLIES = "reply/"
PATIENCE_SECONDS = 30.0
HEARTBEAT_SECONDS = 20.0
PAGE_MESSAGES = 1000
CLOSE_SECONDS = 2.0


class Page:
    """Messages of one stream that were read without subscribing."""

    def __init__(self, reply: dict[str, Any]) -> None:
        try:
            self.messages = [Message(frame) for frame in reply["messages"]]
            self.gaps: list[Gap] = [read_gap(frame) for frame in reply["gaps"]]
            #: Where the next page begins.
            self.next = Place(reply["next"], reply["generation"])
            #: Whether nothing is left.
            self.end: bool = reply["end"]
        except (KeyError, TypeError) as lacking:
            raise NotTheProtocol(f"a page of a stream lacks {lacking}") from None

    def before(self, stop: int | datetime | None) -> list[Message]:
        """The messages before an offset or time."""
        if isinstance(stop, datetime):
            return [one for one in self.messages if one.stored < stop]
        return [one for one in self.messages if stop is None or one.offset < stop]


class AsyncClient:
    """A hub at `host:port`, or at a URL with `https://`: `async with AsyncClient() as client`.

    What is not given comes from the environment, as for the command line: `SEALANE_SERVER`,
    `SEALANE_TOKEN`, and `SEALANE_CA`, a file of certificates of which the hub must have one.
    `token` may be a function, which is asked on each connection. For `patience` something is tried
    again before it fails; a subscription that has stood is tried again without end.
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
        self._endpoint = Endpoint(address, token, ca, codec, patience, heartbeat)
        self._http = HubRequests(self._endpoint)
        self._publisher: Publisher | None = None
        self._answers: Answers | None = None
        self._open: weakref.WeakSet[Subscription | Publisher] = weakref.WeakSet()
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *failure: object) -> None:
        try:
            await self.close()
        except SealaneError:
            # What ended the block says more.
            if kind is None:
                raise

    async def close(self) -> None:
        """Waits until what was published is answered, and closes all that was opened here."""
        self._is_closed = True
        failure: BaseException | None = None
        if self._answers is not None:
            await self._answers.close()
        for opened in list(self._open):
            try:
                await opened.close()
            except SealaneError as error:
                failure = failure or error
        if self._endpoint.closing:
            await asyncio.wait(self._endpoint.closing)
        await self._http.close()
        if failure is not None:
            raise failure

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
    ) -> Subscription:
        """Messages of a topic or pattern: `async for message in client.subscribe("fleet/**",
        start="new")`.

        With `start` alone every message comes from there on: `"first"`, `"new"`, an offset, a
        time, or a `Place`; streams that are named in `places` go on there, as after a restart. With `consumer` all who give the same name share the messages, and each
        comes again until it is acknowledged; with neither, the inbox does so. `ack="auto"`
        acknowledges a message when the loop's body has ended without an exception or a `break`.
        Of messages that the loop has not taken, at most `credit` are under way. A hub that does
        not answer for `heartbeat` is left.
        """
        options = SubscriptionOptions(
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
        self._check()
        subscription = Subscription(self._endpoint, pattern, options)
        self._open.add(subscription)
        return subscription

    async def page(self, topic: str, *, start: Start = "first", limit: int | None = None) -> Page:
        """A page of a stream."""
        query = {"from": start_text(start), "limit": limit}
        return Page(await self._ask("GET", f"/v1/streams/{topic_path(topic)}", query))

    async def range(
        self, topic: str, *, start: Start = "first", stop: int | datetime | None = None
    ) -> AsyncIterator[Message]:
        """The messages that a stream has, from `start` and before `stop`: an offset or a time."""
        while True:
            page = await self.page(topic, start=start, limit=PAGE_MESSAGES)
            messages = page.before(stop)
            for message in messages:
                yield message
            if page.end or len(messages) < len(page.messages):
                return
            start = page.next

    # --- publishing ---

    async def publish(
        self,
        topic: str,
        body: Mapping[str, Any],
        *,
        delay: Seconds | None = None,
        expect: int | None = None,
        key: str | None = None,
    ) -> Published:
        """Stores a map, and returns its place once it is stored; it is stored once, whatever
        happens to the connection. Many may be under way at once.

        `expect` is the offset that it must get. With a `key` of your own another program may
        repeat it.
        """
        if key is None:
            self._check()
            if self._publisher is None:
                self._publisher = self.publisher()
            receipt = await self._publisher.send(topic, body, delay=delay, expect=expect)
            return await receipt
        request: dict[str, Any] = {"to": topic, "envelope": dict(body), "expect": expect}
        request["delayMs"] = None if delay is None else round(seconds(delay) * 1000)
        request = {name: value for name, value in request.items() if value is not None}
        stored = await self._ask("POST", "/v1/enqueue", body=request, key=key)
        return Published(
            stored["stream"],
            stored.get("offset"),
            stored.get("generation"),
            stored["level"],
            stored.get("replayed", False),
            moment(stored["dueMs"]) if "dueMs" in stored else None,
            id=stored["id"],
        )

    async def publish_batch(
        self,
        topic: str,
        bodies: Sequence[Mapping[str, Any]],
        *,
        expect: int | None = None,
        key: str | None = None,
    ) -> EnqueuedBatch:
        """Stores maps in one commit, all of them or none."""
        request: dict[str, Any] = {"to": topic, "envelopes": list(bodies)}
        if expect is not None:
            request["expect"] = expect
        stored: EnqueuedBatch = await self._ask(
            "POST", "/v1/enqueue/batch", body=request, key=key or fresh_key()
        )
        return stored

    def publisher(self, *, session: str | None = None) -> Publisher:
        """A publisher of its own, for many messages: `async with client.publisher() as publisher`.
        With the name of a session it goes on where the session ended.
        """
        self._check()
        publisher = Publisher(self._endpoint, session)
        self._open.add(publisher)
        return publisher

    # --- asking and answering ---

    async def request(
        self, topic: str, body: Mapping[str, Any], *, timeout: Seconds = 10.0
    ) -> Message:
        """Publishes a request, and waits for its answer. A token needs the rights to publish there,
        and to read and manage `reply/**`.
        """
        self._check()
        if self._answers is None:
            self._answers = Answers(self)
        return await self._answers.ask(topic, dict(body), seconds(timeout))

    async def reply(self, request: Message, body: Mapping[str, Any]) -> bool:
        """Answers a request; says whether anybody still waits for it. Else nothing is sent."""
        asked = request.body
        to, ident = asked.get("replyTo"), asked.get("id")
        if not isinstance(to, str) or not isinstance(ident, str) or not to.startswith(REPLIES):
            raise NotARequest(f"the message asks for no answer below `{REPLIES}`")
        if not is_awaited(request):
            return False
        await self.publish(to, {**body, "id": fresh_key(), "inReplyTo": ident})
        return True

    # --- streams and consumers ---

    async def streams(
        self, pattern: str | None = None, *, limit: int | None = None
    ) -> AsyncIterator[StreamState]:
        """The states of all streams that the token may read, asked for in pages of `limit`."""
        after: str | None = None
        while True:
            query = {"pattern": pattern, "after": after, "limit": limit}
            page = await self._ask("GET", "/v1/streams", query)
            for state in page["streams"]:
                yield state
            after = page.get("next")
            if after is None:
                return

    async def stream(self, topic: str) -> StreamState:
        """A stream's state."""
        state: StreamState = await self._ask("GET", f"/v1/streams/{topic_path(topic)}")
        return state

    async def set_stream(
        self,
        topic: str,
        *,
        level: Level | None = None,
        max_age: Seconds | None = None,
        max_count: int | None = None,
        max_bytes: int | None = None,
    ) -> StreamState:
        """Makes a stream, or changes it; 0 means no bound."""
        change: dict[str, Any] = {"level": level, "maxCount": max_count, "maxBytes": max_bytes}
        change["maxAgeMs"] = None if max_age is None else round(seconds(max_age) * 1000)
        change = {name: value for name, value in change.items() if value is not None}
        path = f"/v1/streams/{topic_path(topic)}"
        state: StreamState = await self._ask("PUT", path, body=change)
        return state

    async def remove_stream(self, topic: str) -> Removed:
        """Removes a stream with all its messages."""
        removed: Removed = await self._ask("DELETE", f"/v1/streams/{topic_path(topic)}")
        return removed

    async def purge(self, topic: str, before: Start) -> Purged:
        """Removes the messages before a place."""
        at = start_text(before)
        body = {"before": int(at) if at.isdecimal() else at}
        purged: Purged = await self._ask("POST", f"/v1/purge/{topic_path(topic)}", body=body)
        return purged

    async def consumer(self, topic: str, name: str = "") -> ConsumerInfo:
        """A consumer's state; without a name, the inbox's."""
        info: ConsumerInfo = await self._ask(
            "GET", f"/v1/consumers/{topic_path(topic)}", {"consumer": name}
        )
        return info

    async def steer_consumer(
        self, topic: str, name: str, verb: Literal["pause", "reset", "skip", "redeliver"], to: Any
    ) -> ConsumerInfo:
        """Steers a consumer: `"pause", True`, `"reset", "first"`, `"skip", {"offset": 3}`, or
        `"redeliver", True`.
        """
        info: ConsumerInfo = await self._ask(
            "POST", f"/v1/consumers/{topic_path(topic)}", {"consumer": name}, {verb: to}
        )
        return info

    async def remove_consumer(self, topic: str, name: str) -> Removed:
        """Removes a consumer, with its place."""
        removed: Removed = await self._ask(
            "DELETE", f"/v1/consumers/{topic_path(topic)}", {"consumer": name}
        )
        return removed

    async def delayed(self, topic: str) -> AsyncIterator[DelayedMessage]:
        """The messages that are held back, in the order in which they come."""
        after: str | None = None
        while True:
            page = await self._ask("GET", f"/v1/delayed/{topic_path(topic)}", {"after": after})
            for message in page["delayed"]:
                yield message
            after = page.get("next")
            if after is None:
                return

    async def cancel_delayed(self, topic: str, ident: str) -> Cancelled:
        """Messages of this id that are held back never come."""
        path = f"/v1/delayed/{topic_path(topic)}"
        cancelled: Cancelled = await self._ask("DELETE", path, {"id": ident})
        return cancelled

    async def ticket(self) -> AccessTicket:
        """A text that stands for the token once, for the `EventSource` of a page."""
        ticket: AccessTicket = await self._ask("POST", "/v1/ticket")
        return ticket

    async def health(self) -> Health:
        """The hub's report on itself."""
        health: Health = await self._ask("GET", "/health")
        return health

    async def _ask(
        self,
        method: str,
        path: str,
        query: dict[str, Any] | None = None,
        body: Any = None,
        key: str | None = None,
    ) -> Any:
        self._check()
        return await self._http.ask(method, path, query, body, key)

    def _check(self) -> None:
        if self._is_closed:
            raise Ended("the client is closed")


def is_awaited(request: Message) -> bool:
    """Whether somebody still waits for the answer to a request."""
    deadline = request.body.get("deadlineMs")
    return not isinstance(deadline, (int, float)) or deadline >= time.time() * 1000


class Answers:
    """The stream on which the answers to a client's requests come. It is removed at the end."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._topic = REPLIES + fresh_key()
        self._waiting: dict[str, asyncio.Future[Message]] = {}
        self._reader: asyncio.Task[None] | None = None
        self._stands: asyncio.Future[None] | None = None

    async def ask(self, topic: str, body: dict[str, Any], timeout: float) -> Message:
        ident = fresh_key()
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[ident] = answer
        deadline = round((time.time() + timeout) * 1000)
        fields = {"id": ident, "replyTo": self._topic, "deadlineMs": deadline}
        try:
            return await asyncio.wait_for(self._ask(topic, {**body, **fields}, answer), timeout)
        except asyncio.TimeoutError:
            raise NoReply(f"no answer came on {topic} within {timeout:g} s") from None
        finally:
            del self._waiting[ident]

    async def _ask(
        self, topic: str, body: dict[str, Any], answer: asyncio.Future[Message]
    ) -> Message:
        # It reads before it asks: no answer can come too early.
        if self._reader is None or self._reader.done():
            self._stands = asyncio.get_running_loop().create_future()
            self._reader = asyncio.create_task(self._read(self._stands), name="sealane answers")
        if self._stands is not None:
            await asyncio.shield(self._stands)
        await self._client.publish(topic, body)
        return await answer

    async def _read(self, stands: asyncio.Future[None]) -> None:
        try:
            async with self._client.subscribe(self._topic, start="first") as answers:
                stands.set_result(None)
                async for message in answers:
                    waiting = self._waiting.get(str(message.body.get("inReplyTo")))
                    if waiting is not None and not waiting.done():
                        waiting.set_result(message)
        except SealaneError as failure:
            told: list[asyncio.Future[Any]] = [stands, *self._waiting.values()]
            for future in told:
                if not future.done():
                    future.set_exception(failure)
                    # A caller that has gone misses nothing.
                    future.exception()

    async def close(self) -> None:
        if self._reader is None:
            return
        self._reader.cancel()
        await asyncio.wait([self._reader])
        removal = self._client._http.ask("DELETE", f"/v1/streams/{topic_path(self._topic)}")
        try:
            # A token may lack the right, and the hub may be away: then `--reply-ttl` removes it.
            await asyncio.wait_for(removal, CLOSE_SECONDS)
        except (SealaneError, asyncio.TimeoutError):
            pass
