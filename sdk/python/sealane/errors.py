"""What can go wrong, as classes.

A refusal of the hub is a `HubError`, of the class that its code names in `sealane.refusals`. What
this package finds by itself has classes here. Each error has a `code` and a `hint`.
"""

from __future__ import annotations

from typing import Any


class SealaneError(Exception):
    """Something failed: `code` names it, and `hint` says what to do."""

    hint = ""

    @property
    def code(self) -> str:
        """The name of docs/reference/ERRORS.md, or of the class."""
        return type(self).__name__


class HubError(SealaneError):
    """The hub has refused something. Codes that this package does not know are of this class."""

    #: Whether the same may be asked again: `never`, `later`, or on a new connection: `reconnect`.
    retry = "never"

    def __init__(self, error: dict[str, Any], status: int | None = None) -> None:
        code = error.get("code")
        self._code = code if isinstance(code, str) else type(self).__name__
        self.message = str(error.get("message", "the hub has refused it"))
        self.hint = str(error.get("hint", ""))
        #: The code for `sealane explain`.
        self.ref = str(error.get("ref", ""))
        following = error.get("next")
        #: The offset or number that would be next, where the refusal says it.
        self.next: int | None = following if isinstance(following, int) else None
        #: The status of the reply; none: it came on a socket.
        self.status = status
        #: Seconds after which it may be asked again; none: the hub does not say.
        self.retry_after: float | None = None
        super().__init__(f"{self.message} [{self._code}]")

    @property
    def code(self) -> str:
        return self._code


class NotReachable(SealaneError, ConnectionError):
    """No connection to the hub could be made, and nobody tries again."""

    hint = "Check the address, and that a node runs there: `sealane up`."


class NoAnswer(SealaneError, ConnectionError):
    """The connection was lost before the hub answered. What was asked may have been done."""

    hint = "Ask again with the same key, so that nothing is done twice."


class Untrusted(SealaneError):
    """The hub's certificate is not trusted. Nothing was sent."""

    hint = "Give the file of its certificate, or of its issuer's: `ca=` or `SEALANE_CA`."


class NotTheProtocol(SealaneError):
    """What came is not as spec/hub.md says: a frame that is cut or changed, more than was asked
    for, or something out of its order. The connection was closed.
    """

    hint = "This is no hub of version 1, or something between changes what it says."


class Ended(SealaneError):
    """The client, publisher or subscription was closed before."""

    hint = "Use it within its `with` block."


class NoReply(SealaneError, TimeoutError):
    """No answer to a request came in time. The request may have been heard."""

    hint = "See whether somebody answers there: `sealane stream consumers`."


class NotARequest(SealaneError, ValueError):
    """A message that is to be answered asks for nothing."""

    hint = "Answer messages with an `id`, and a `replyTo` below `reply/`."


class FeatureMissing(SealaneError):
    """The hub does not list the feature that this needs."""

    hint = "Use a newer hub."
