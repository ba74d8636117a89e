"""Where the hub is, and how a socket to it is opened."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import random
import ssl
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Union
from urllib.parse import urlencode, urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI

from .codec import JSON, codec
from .errors import HubError, NoAnswer, NotReachable, NotTheProtocol, Untrusted
from .refusals import REFUSALS

#: A token, or a function that gives the one that holds now.
Token = Union[str, Callable[[], Union[str, Awaitable[str]]], None]
#: Seconds, or a `timedelta`.
Seconds = Union[float, timedelta]

DEFAULT_ADDRESS = "127.0.0.1:9087"
# A batch of deliveries is at most 256 KiB, or one message of 1 MiB; JSON may write it six times
# as long.
MAX_FRAME_BYTES = 8 << 20
#: No hub that keeps to the credit has so many frames on the way.
MAX_FRAMES = 4096
OPEN_SECONDS = 10.0
CLOSE_SECONDS = 2.0
FIRST_WAIT_SECONDS = 0.05
MAX_WAIT_SECONDS = 5.0


class SocketLost(Exception):
    """The connection is gone, or cannot be made; another one may do better."""

    def __init__(self, cause: str, *, was_made: bool = True) -> None:
        super().__init__(cause)
        self._was_made = was_made

    def failure(self) -> NoAnswer | NotReachable:
        """What it is where no other one is made."""
        return NoAnswer(str(self)) if self._was_made else NotReachable(str(self))


def seconds(duration: Seconds) -> float:
    """The seconds of a duration."""
    return duration.total_seconds() if isinstance(duration, timedelta) else float(duration)


def milliseconds(duration: Seconds) -> int:
    """The whole milliseconds of a duration."""
    return round(seconds(duration) * 1000)


def refusal(error: object, status: int | None = None) -> HubError:
    """The error of a reply or frame."""
    fields = error if isinstance(error, dict) else {}
    return REFUSALS.get(str(fields.get("code")), HubError)(fields, status)


def passes(error: HubError) -> bool:
    """Whether another connection may do better."""
    return error.retry != "never"


class Outage:
    """The failures since all was well, and the waits between the attempts: each doubles, and is
    shortened by up to a half at random, so that many clients do not come back in step.
    """

    def __init__(self, patience: float | None, ending: asyncio.Event | None = None) -> None:
        self._began: float | None = None
        self._ending = ending
        self._patience = patience
        self._next = FIRST_WAIT_SECONDS

    async def wait(self, cause: Exception, *, is_last: bool = False) -> None:
        """Waits before the next attempt; raises the cause where there is none."""
        now = time.monotonic()
        if self._began is None:
            self._began = now
        wait = self._next * (1 - random.random() / 2)
        self._next = min(self._next * 2, MAX_WAIT_SECONDS)
        if isinstance(cause, HubError) and cause.retry_after is not None:
            wait = max(wait, cause.retry_after)
        is_over = self._patience is not None and now + wait > self._began + self._patience
        if is_last or is_over:
            raise cause.failure() if isinstance(cause, SocketLost) else cause
        if self._ending is None:
            await asyncio.sleep(wait)
            return
        try:
            await asyncio.wait_for(self._ending.wait(), wait)
        except asyncio.TimeoutError:
            pass


class HubSocket:
    """A WebSocket of the hub, in the client's codec."""

    def __init__(self, connection: ClientConnection, endpoint: Endpoint) -> None:
        self._connection = connection
        self._codec = endpoint.codec
        #: The bytes of the frame that was read last.
        self.size = 0

    async def read(self) -> dict[str, Any]:
        """The next frame. An error frame is raised."""
        try:
            data = await self._connection.recv()
        except ConnectionClosed as closed:
            # A hub that stops has no time for an error frame.
            reason = "" if closed.rcvd is None else closed.rcvd.reason
            if reason in REFUSALS:
                raise refusal({"code": reason, "message": "the hub has closed it"}) from None
            raise SocketLost(f"the connection ended: {closed}") from None
        except UnicodeDecodeError:
            raise NotTheProtocol("a text frame is no UTF-8") from None
        self.size = len(data)
        # The hub tells in JSON of a codec that it does not know.
        read = JSON if isinstance(data, str) else self._codec
        frame = read.read_map(data)
        if "error" in frame:
            raise refusal(frame["error"])
        if read is not self._codec:
            raise NotTheProtocol(f"a frame of {self._codec.name} came as text")
        return frame

    async def first(self, field: str) -> dict[str, Any]:
        """The first frame, which has this field."""
        try:
            frame = await asyncio.wait_for(self.read(), OPEN_SECONDS)
        except asyncio.TimeoutError:
            raise SocketLost("the hub does not answer") from None
        if field not in frame:
            raise NotTheProtocol(f"the first frame has no `{field}`")
        return frame

    async def write(self, frame: bytes) -> None:
        """Sends a frame. If the connection has ended, `read` says so, behind all that came."""
        with contextlib.suppress(ConnectionClosed):
            await self._connection.send(frame, text=self._codec.text)

    async def close(self) -> None:
        await self._connection.close()


class Endpoint:
    """A hub's address, and how a client shows and checks there who it is."""

    def __init__(
        self,
        address: str | None,
        token: Token,
        ca: str | os.PathLike[str] | None,
        codec_name: str,
        patience: Seconds,
        heartbeat: Seconds,
    ) -> None:
        address = address or os.environ.get("SEALANE_SERVER") or DEFAULT_ADDRESS
        parts = urlsplit(address if "://" in address else f"http://{address}")
        secure = {"http": False, "ws": False, "https": True, "wss": True}.get(parts.scheme)
        if secure is None or not parts.hostname:
            raise ValueError(f"{address!r} is no address of a hub, as `host:port` or a URL")
        place = parts.netloc.rpartition("@")[2]
        if parts.port is None and "://" not in address:
            place += ":9087"
        self.http = f"{'https' if secure else 'http'}://{place}"
        self._socket = f"{'wss' if secure else 'ws'}://{place}"
        self._token = token if token is not None else os.environ.get("SEALANE_TOKEN")
        self.trust = _trust(ca or os.environ.get("SEALANE_CA")) if secure else None
        self.codec = codec(codec_name)
        self.patience = seconds(patience)
        self.heartbeat = seconds(heartbeat)
        #: What closes the connections of loops that were left.
        self.closing: set[asyncio.Task[None]] = set()

    async def headers(self) -> dict[str, str]:
        """The headers that show the token."""
        token = self._token
        if callable(token):
            given = token()
            token = await given if inspect.isawaitable(given) else given
        return {"Authorization": f"Bearer {token}"} if token else {}

    async def open(
        self, path: str, query: dict[str, Any], heartbeat: Seconds | None = None
    ) -> HubSocket:
        """A socket at this path. A hub that does not answer for so long is left."""
        patience = self.heartbeat if heartbeat is None else seconds(heartbeat)
        query = {key: value for key, value in query.items() if value is not None}
        url = f"{self._socket}{path}?{urlencode({**query, 'codec': self.codec.name})}"
        try:
            connection = await connect(
                url,
                additional_headers=await self.headers(),
                ssl=self.trust,
                compression=None,
                max_size=MAX_FRAME_BYTES,
                # Credit bounds what comes, and a slow loop must not keep pongs waiting.
                max_queue=MAX_FRAMES,
                open_timeout=OPEN_SECONDS,
                close_timeout=CLOSE_SECONDS,
                ping_interval=patience,
                ping_timeout=patience,
            )
        except InvalidStatus as told:
            raise _refused(told) from None
        except ssl.SSLCertVerificationError as failure:
            raise Untrusted(f"the hub's certificate is not trusted: {failure}") from None
        except InvalidURI as failure:
            raise ValueError(str(failure)) from None
        except (OSError, InvalidHandshake, asyncio.TimeoutError, EOFError) as failure:
            cause = str(failure) or type(failure).__name__
            cause = f"{self.http} cannot be reached: {cause}"
            raise SocketLost(cause, was_made=False) from None
        return HubSocket(connection, self)


def _trust(ca: str | os.PathLike[str] | None) -> ssl.SSLContext:
    """The certificates of the file and no others, or those that the system trusts."""
    context = ssl.create_default_context(cafile=ca)
    if ca is not None:
        # Each of the file is trusted as it stands: that of a node may have signed itself, and its
        # successor has the same name.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def _refused(told: InvalidStatus) -> Exception:
    """What a reply says that is no upgrade; a proxy may have said something else than a hub."""
    response = told.response
    try:
        error = JSON.read_map((response.body or b"").decode())["error"]
    except (NotTheProtocol, KeyError, UnicodeDecodeError):
        if response.status_code in (429, 502, 503, 504):
            return SocketLost(f"the hub answers {response.status_code}", was_made=False)
        error = {"message": f"the hub answers {response.status_code}"}
    return with_retry_after(refusal(error, response.status_code), response.headers)


def with_retry_after(error: HubError, headers: Any) -> HubError:
    """The error, with the seconds that the reply asks to wait."""
    try:
        error.retry_after = min(float(headers["Retry-After"]), 3600.0)
    except (KeyError, ValueError):
        pass
    return error
