"""The refusals of a hub, a class for each code. Made by `sdk/python/tests/make_protocol.py`."""

from .errors import HubError


class InvalidJSON(HubError):
    """The body or frame is not JSON."""


class DecodeError(HubError):
    """The body or frame is not what its codec says."""


class InvalidEnvelope(HubError):
    """The envelope cannot be carried."""


class InvalidTopic(HubError):
    """The topic or pattern is not well formed."""


class InvalidParameter(HubError):
    """A parameter has a value it cannot have."""


class UnknownOp(HubError):
    """A frame has an unknown field or a wrong type."""


class UnknownField(HubError):
    """The body of a request has an unknown field."""


class UnknownCodec(HubError):
    """The codec asked for is not known here."""


class PatternNeedsReader(HubError):
    """A pattern was subscribed to without saying who reads."""


class NotAConsumer(HubError):
    """Nack is for consumers and the inbox, seek is for readers."""


class UnknownStream(HubError):
    """There is no stream of that name."""


class UnknownConsumer(HubError):
    """The stream has no consumer of that name."""


class ConsumerRemoved(HubError):
    """The consumer was removed while it was used."""


class BeyondEnd(HubError):
    """The place that was asked for is beyond the end of the stream."""


class NotDelayed(HubError):
    """No message of that id is held back for the stream."""


class OffsetMismatch(HubError):
    """The stream is not where `expect` says."""


class KeyReused(HubError):
    """The idempotency key, or the number in its session, had another message before."""


class NumberSkipped(HubError):
    """A message's n is not the next one of its session and stream."""


class NumberForgotten(HubError):
    """A message's n is lower than what the hub remembers of its session."""


class SessionTaken(HubError):
    """Another connection has named the same publishing session."""


class CreditExceeded(HubError):
    """More was published on a connection than the hub has given credit for."""


class UnknownCondition(HubError):
    """A message is to be stored under a condition that this hub does not know."""


class NotSealed(HubError):
    """An open message was sent to a sealed stream."""


class SealMismatch(HubError):
    """The stream is open or sealed for another group."""


class FrameMalformed(HubError):
    """The bytes of a sealed message are no frame."""


class TooLarge(HubError):
    """A body, envelope or frame is over its limit."""


class TooMany(HubError):
    """A limit is reached."""

    retry = "later"


class ShareTaken(HubError):
    """A token has its share of what the hub has."""

    retry = "later"


class ConsumerNotYours(HubError):
    """Another token made the consumer, and its settings are others."""


class StorageFull(HubError):
    """The disk is full; nothing of the request was kept."""

    retry = "later"


class StorageFailed(HubError):
    """The store could not be read or written."""

    retry = "later"


class StorageBusy(HubError):
    """Another process holds the store; nothing of the request was kept."""

    retry = "later"


class FolderInUse(HubError):
    """Another node uses this data folder."""


class NotAStore(HubError):
    """The file is no store of streams, or its pages are damaged."""


class StoreTooNew(HubError):
    """The store was written by a newer program."""


class TargetExists(HubError):
    """There is a store already where one was to be made."""


class NoStore(HubError):
    """There is no store, or no backup, in the folder."""


class StreamRemoved(HubError):
    """The stream was deleted while it was used."""


class Draining(HubError):
    """The node is stopping."""

    retry = "reconnect"


class NotFound(HubError):
    """There is nothing at this path."""


class MethodNotAllowed(HubError):
    """The path exists, but not for this method."""


class UpgradeRequired(HubError):
    """A subscription is a WebSocket."""


class BodyLost(HubError):
    """The request's body did not arrive whole."""

    retry = "reconnect"


class SlowBody(HubError):
    """The body of a request came too slowly."""

    retry = "later"


class Crowded(HubError):
    """The memory for bodies of requests, or the token's share of it, is taken."""

    retry = "later"


class RuleTie(HubError):
    """Two rules of retention would hold for the same topics, and neither is more exact."""


class UnknownRule(HubError):
    """No rule of retention has that pattern."""


class RepliesUnread(HubError):
    """The memory for replies, or this client's share of it, is taken by unread ones."""

    retry = "later"


class NotHttp(HubError):
    """What was sent is no request of HTTP/1.1, or can be read as two different ones."""


class HeadTooLarge(HubError):
    """The head of a request is over MAX_HEAD_BYTES, or has more than 100 fields."""


class WebSocketProtocol(HubError):
    """A client sent what is no frame of the WebSocket protocol."""


class SilentConnection(HubError):
    """A connection was made and nothing was said on it."""


class SlowHead(HubError):
    """The head of a request did not come to its end in time."""


class Unauthorized(HubError):
    """The token is missing, unknown or expired."""


class TicketSpent(HubError):
    """The ticket is unknown, was used before, or is too old."""


class Forbidden(HubError):
    """The token does not grant this."""


class OriginRefused(HubError):
    """The request names another host, or comes from a page of another site."""


class TooManyConnections(HubError):
    """The address has as many connections as one may have."""

    retry = "later"


class TooManyGuesses(HubError):
    """The address has shown too many tokens that are not known."""


class TooFast(HubError):
    """The token has enqueued more messages than it may."""

    retry = "later"


class TlsRequired(HubError):
    """The port speaks TLS, and was sent something else."""


class TlsNotServed(HubError):
    """The port does not speak TLS, and was asked to."""


class HandshakeFailed(HubError):
    """A client did not agree on TLS, or not within MAX_HANDSHAKE_MS."""


#: The class of each code.
REFUSALS: dict[str, type[HubError]] = {
    "InvalidJSON": InvalidJSON,
    "DecodeError": DecodeError,
    "InvalidEnvelope": InvalidEnvelope,
    "InvalidTopic": InvalidTopic,
    "InvalidParameter": InvalidParameter,
    "UnknownOp": UnknownOp,
    "UnknownField": UnknownField,
    "UnknownCodec": UnknownCodec,
    "PatternNeedsReader": PatternNeedsReader,
    "NotAConsumer": NotAConsumer,
    "UnknownStream": UnknownStream,
    "UnknownConsumer": UnknownConsumer,
    "ConsumerRemoved": ConsumerRemoved,
    "BeyondEnd": BeyondEnd,
    "NotDelayed": NotDelayed,
    "OffsetMismatch": OffsetMismatch,
    "KeyReused": KeyReused,
    "NumberSkipped": NumberSkipped,
    "NumberForgotten": NumberForgotten,
    "SessionTaken": SessionTaken,
    "CreditExceeded": CreditExceeded,
    "UnknownCondition": UnknownCondition,
    "NotSealed": NotSealed,
    "SealMismatch": SealMismatch,
    "FrameMalformed": FrameMalformed,
    "TooLarge": TooLarge,
    "TooMany": TooMany,
    "ShareTaken": ShareTaken,
    "ConsumerNotYours": ConsumerNotYours,
    "StorageFull": StorageFull,
    "StorageFailed": StorageFailed,
    "StorageBusy": StorageBusy,
    "FolderInUse": FolderInUse,
    "NotAStore": NotAStore,
    "StoreTooNew": StoreTooNew,
    "TargetExists": TargetExists,
    "NoStore": NoStore,
    "StreamRemoved": StreamRemoved,
    "Draining": Draining,
    "NotFound": NotFound,
    "MethodNotAllowed": MethodNotAllowed,
    "UpgradeRequired": UpgradeRequired,
    "BodyLost": BodyLost,
    "SlowBody": SlowBody,
    "Crowded": Crowded,
    "RuleTie": RuleTie,
    "UnknownRule": UnknownRule,
    "RepliesUnread": RepliesUnread,
    "NotHttp": NotHttp,
    "HeadTooLarge": HeadTooLarge,
    "WebSocketProtocol": WebSocketProtocol,
    "SilentConnection": SilentConnection,
    "SlowHead": SlowHead,
    "Unauthorized": Unauthorized,
    "TicketSpent": TicketSpent,
    "Forbidden": Forbidden,
    "OriginRefused": OriginRefused,
    "TooManyConnections": TooManyConnections,
    "TooManyGuesses": TooManyGuesses,
    "TooFast": TooFast,
    "TlsRequired": TlsRequired,
    "TlsNotServed": TlsNotServed,
    "HandshakeFailed": HandshakeFailed,
}
