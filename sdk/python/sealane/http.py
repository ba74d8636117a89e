"""Requests to the hub over kept connections."""

from __future__ import annotations

import ssl
import uuid
from typing import Any
from urllib.parse import quote

import httpx

from .codec import JSON
from .endpoint import Endpoint, Outage, SocketLost, refusal, with_retry_after
from .errors import HubError, NotTheProtocol, Untrusted

REQUEST_SECONDS = 30.0


class HubRequests:
    """The hub's requests. What may be asked twice is asked again within the client's patience."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._made: httpx.AsyncClient | None = None

    @property
    def _client(self) -> httpx.AsyncClient:
        # Many programs only publish and subscribe, and this one takes long to make.
        if self._made is None:
            # Without TLS there is nothing to trust.
            trust = self._endpoint.trust or False
            self._made = httpx.AsyncClient(
                base_url=self._endpoint.http, verify=trust, timeout=REQUEST_SECONDS
            )
        return self._made

    async def close(self) -> None:
        if self._made is not None:
            await self._made.aclose()

    async def ask(
        self,
        method: str,
        path: str,
        query: dict[str, Any] | None = None,
        body: Any = None,
        key: str | None = None,
    ) -> Any:
        """The value of the reply. With a key it is done once, however often it is sent."""
        codec = self._endpoint.codec
        headers = {"Accept": codec.media, **await self._endpoint.headers()}
        if key is not None:
            headers["Idempotency-Key"] = key
        content = None
        if body is not None:
            content, headers["Content-Type"] = codec.encode(body), codec.media
        query = {name: value for name, value in (query or {}).items() if value is not None}
        may_repeat = method in ("GET", "PUT") or key is not None
        outage = Outage(self._endpoint.patience)
        while True:
            try:
                reply = await self._client.request(
                    method, path, params=query, content=content, headers=headers
                )
                return self._value(reply)
            except httpx.TransportError as failure:
                if isinstance(_cause(failure), ssl.SSLCertVerificationError):
                    raise Untrusted(f"the hub's certificate is not trusted: {failure}") from None
                cause = (
                    f"{self._endpoint.http} does not answer: {failure or type(failure).__name__}"
                )
                reached = not isinstance(failure, (httpx.ConnectError, httpx.ConnectTimeout))
                # An answer was lost: the deed may be done.
                lost = SocketLost(cause, was_made=reached)
                await outage.wait(lost, is_last=reached and not may_repeat)
            except HubError as error:
                await outage.wait(error, is_last=error.retry == "never")

    def _value(self, reply: httpx.Response) -> Any:
        codec = self._endpoint.codec
        if reply.headers.get("Content-Type", "").startswith(JSON.media):
            codec = JSON
        try:
            value = codec.read(reply.content.decode() if codec.text else reply.content)
        except (NotTheProtocol, UnicodeDecodeError):
            if reply.is_success:
                raise NotTheProtocol("the reply is not of the codec that was asked for") from None
            value = None
        if reply.is_success and value is not None:
            return value
        error = value.get("error") if isinstance(value, dict) else None
        error = error or {"message": f"the hub answers {reply.status_code}"}
        told = with_retry_after(refusal(error, reply.status_code), reply.headers)
        # A proxy says in its own words that the hub is away.
        if type(told) is HubError and reply.status_code in (429, 502, 503, 504):
            told.retry = "later"
        raise told


def _cause(failure: BaseException) -> BaseException:
    """What began it: the libraries wrap each other's failures."""
    while (below := failure.__cause__ or failure.__context__) is not None:
        failure = below
    return failure


def topic_path(topic: str) -> str:
    """A topic in a path: each segment percent-encoded."""
    return quote(topic, safe="/")


def fresh_key() -> str:
    """A text that nobody else has."""
    return uuid.uuid4().hex
