"""Bodies and frames of the hub protocol. Made by `sdk/python/tests/make_protocol.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired, TypeAlias


class AccessTicket(TypedDict):
    """A text that stands for a token once, in the query of a request: the answer to `POST
    /v1/ticket`.
    """

    expiresMs: int
    ticket: str


class Batch(TypedDict):
    """Several deliveries."""

    batch: list[Deliver]


class Cancelled(TypedDict):
    """The result of cancelling delayed messages."""

    cancelled: int
    id: str
    stream: str


class Condition(TypedDict):
    """The condition for storing a message."""

    expect: NotRequired[int]


class ConnectionState(TypedDict):
    """A connection that reads a stream."""

    codec: str
    connection: int
    consumer: str | None
    credit: int
    delivered: int
    inFlight: int
    pattern: str
    sinceMs: int


class ConsumerInfo(TypedDict):
    """One consumer, as `GET /v1/consumers/{topic}` shows it."""

    ackWaitMs: int
    connections: NotRequired[list[ConnectionState]]
    consumer: str
    deadDropped: int
    deadLettered: int
    held: int
    inFlight: int
    lag: int
    lagMs: int
    maxAttempts: int
    maxInFlight: int
    members: int
    next: int
    oldestMs: int
    pausedMs: int
    pending: NotRequired[list[PendingMessage]]
    redelivered: int
    stream: str
    unfinished: int


class ConsumerState(TypedDict):
    """A consumer's state."""

    consumer: str
    deadDropped: int
    deadLettered: int
    inFlight: int
    members: int
    next: int
    pausedMs: int
    redelivered: int

ConsumerVerb: TypeAlias = 'dict[str, Any]'


class Consumers(TypedDict):
    """The consumers of one stream, by their names."""

    consumers: list[ConsumerInfo]
    stream: str


class ConsumersPage(TypedDict):
    """Consumers of several streams, in the order of their topics and names."""

    consumers: list[ConsumerInfo]
    next: NotRequired[str]

Control: TypeAlias = 'dict[str, Any]'


class Credit(TypedDict):
    """The allowance for further publishing."""

    bytes: int
    credit: int


class DelayedMessage(TypedDict):
    """A message that is held back."""

    bytes: int
    dueMs: int
    id: str


class DelayedPage(TypedDict):
    """Delayed messages of one stream."""

    delayed: list[DelayedMessage]
    next: NotRequired[str]
    stream: str


class Deliver(TypedDict):
    """One delivery."""

    attempt: int
    deliver: Envelope
    generation: int
    offset: int
    storedMs: int
    stream: str


class Enqueue(TypedDict):
    """Append one message."""

    delayMs: NotRequired[int]
    envelope: Envelope
    expect: NotRequired[int]
    to: str


class EnqueueBatch(TypedDict):
    """Append messages: all or none."""

    envelopes: list[Envelope]
    expect: NotRequired[int]
    to: str


class Enqueued(TypedDict):
    """The message is stored: at an offset of a generation, or held back until `dueMs`."""

    dueMs: NotRequired[int]
    generation: NotRequired[int]
    id: str
    level: str
    offset: NotRequired[int]
    replayed: NotRequired[bool]
    stream: str


class EnqueuedBatch(TypedDict):
    """The messages are stored, one after the other."""

    count: int
    generation: int
    ids: list[str]
    level: str
    offset: int
    replayed: NotRequired[bool]
    stream: str

Envelope: TypeAlias = 'dict[str, Any]'

Features: TypeAlias = 'list[str]'

Gap = TypedDict("Gap", {
    "from": 'int',
    "reason": 'str',
    "stream": 'str',
    "to": 'int',
})


class Health(TypedDict):
    """The hub's report on itself."""

    cause: NotRequired[str]
    level: str
    ok: bool
    status: str
    store: NotRequired[str]
    streams: int
    version: str

Level: TypeAlias = 'Literal["memory"] | Literal["os"] | Literal["disk"]'


class MadeToken(TypedDict):
    """The answer to that `POST`: the one time that the token is shown."""

    name: str
    token: str

Mark: TypeAlias = 'str | Offsets'

Marks: TypeAlias = 'Mark | list[Mark]'


class NodeOverview(TypedDict):
    """The figures of a node and of some of its streams at one moment."""

    counters: NotRequired[OverviewCounters]
    next: NotRequired[str]
    node: Health
    streams: list[StreamState]

OffsetRange = TypedDict("OffsetRange", {
    "from": 'int',
    "to": 'int',
})

Offsets = TypedDict("Offsets", {
    "from": 'NotRequired[int]',
    "offset": 'NotRequired[int]',
    "stream": 'NotRequired[str]',
    "to": 'NotRequired[int]',
})


class Op(TypedDict):
    """A client's frame as it stands on the wire. It may ask several things."""

    ack: NotRequired[Marks]
    credit: NotRequired[int]
    delayMs: NotRequired[int]
    nack: NotRequired[Marks]
    seek: NotRequired[Seek]


class OverviewCounters(TypedDict):
    """Counters of a node since its start."""

    acked: int
    delivered: int
    redelivered: int
    stored: int


class Page(TypedDict):
    """Messages of one stream that were read without subscribing."""

    end: bool
    gaps: list[Status]
    generation: int
    messages: list[Deliver]
    next: int
    stream: str


class PendingMessage(TypedDict):
    """A message that a consumer was given and has not finished."""

    attempt: int
    connection: int | None
    dueMs: int
    offset: int
    sinceMs: int

Placed = TypedDict("Placed", {
    "dueMs": 'NotRequired[int]',
    "from": 'NotRequired[int]',
    "generation": 'NotRequired[int]',
    "level": 'str',
    "n": 'NotRequired[int]',
    "offset": 'NotRequired[int]',
    "replayed": 'NotRequired[bool]',
    "stream": 'str',
    "to": 'NotRequired[int]',
})

Publish: TypeAlias = 'Session | Credit | dict[str, Any]'

PublishFrame: TypeAlias = 'Publish | Published | Refusal'


class PublishItem(TypedDict):
    """One numbered message of a session."""

    condition: NotRequired[Condition]
    delayMs: NotRequired[int]
    envelope: Envelope
    n: int
    to: str

PublishItems: TypeAlias = 'PublishItem | list[PublishItem]'


class PublishRequest(TypedDict):
    """Messages for a publishing socket."""

    publish: PublishItems


class Published(TypedDict):
    """Messages of a publishing socket are stored."""

    published: Placed


class Purge(TypedDict):
    """The part of a stream to be removed: the body of `POST /v1/purge/{topic}`."""

    before: str | int


class Purged(TypedDict):
    """The result of a purge."""

    first: int
    next: int
    purged: int
    stream: str


class Ready(TypedDict):
    """Whether a node takes messages now."""

    ready: bool
    status: str


class Refusal(TypedDict):
    """A refusal, as an answer or the last frame of a socket."""

    error: WireError

Refused = TypedDict("Refused", {
    "error": 'WireError',
    "from": 'NotRequired[int]',
    "n": 'NotRequired[int]',
    "stream": 'str',
    "to": 'NotRequired[int]',
})


class Removed(TypedDict):
    """The answer to a `DELETE`."""

    consumer: NotRequired[str]
    removed: bool
    stream: str


class RemovedRule(TypedDict):
    """The answer to a `DELETE`."""

    pattern: str
    removed: bool


class Retention(TypedDict):
    """The bounds of a stream; 0 means no bound. Whole blocks are removed, oldest first."""

    maxAgeMs: int
    maxBytes: int
    maxCount: int


class RetentionRule(TypedDict):
    """A rule: the bounds of the streams whose topics match, those that are there and those that
    come, as far as a stream has none of its own.
    """

    createdMs: int
    maker: str
    maxAgeMs: int
    maxBytes: int
    maxCount: int
    pattern: str


class RevokedToken(TypedDict):
    """The answer to a `DELETE`."""

    revoked: str


class RuleBounds(TypedDict):
    """The body of a `PUT` of a rule; a bound that is left out is none."""

    maxAgeMs: NotRequired[int]
    maxBytes: NotRequired[int]
    maxCount: NotRequired[int]


class Seek(TypedDict):
    """Where to read on."""

    generation: NotRequired[int]
    offset: int
    stream: NotRequired[str]

ServerFrame: TypeAlias = 'Status | Deliver | Batch | Control'


class Session(TypedDict):
    """The first frame of a publishing socket."""

    codec: str
    features: Features
    next: NotRequired[int]
    session: str
    stream: NotRequired[str]
    time: int

Skip = TypedDict("Skip", {
    "from": 'NotRequired[int]',
    "offset": 'NotRequired[int]',
    "to": 'NotRequired[int]',
})

Status: TypeAlias = 'StatusSubscribed | StatusJoined | StatusGap'

StatusGap = TypedDict("StatusGap", {
    "from": 'int',
    "reason": 'str',
    "status": 'Literal["gap"]',
    "stream": 'str',
    "to": 'int',
})


class StatusJoined(TypedDict):
    """A stream of a pattern begins, or a seek was done."""

    generation: int
    level: str
    offset: int
    recovered: bool
    sealed: str | None
    status: Literal["joined"]
    stream: str


class StatusSubscribed(TypedDict):
    """The subscription stands."""

    codec: str
    features: Features
    generation: NotRequired[int]
    level: NotRequired[str]
    offset: NotRequired[int]
    recovered: NotRequired[bool]
    sealed: NotRequired[str | None]
    status: Literal["subscribed"]
    stream: str
    time: int


class StreamChange(TypedDict):
    """The changes to a stream's settings, the body of a `PUT`; a setting that is left out stays.
    """

    followRules: NotRequired[bool]
    level: NotRequired[Level]
    maxAgeMs: NotRequired[int]
    maxBytes: NotRequired[int]
    maxCount: NotRequired[int]
    sealed: NotRequired[str]


class StreamJoined(TypedDict):
    """Where the reading of a stream begins."""

    generation: int
    level: str
    offset: int
    recovered: bool
    sealed: str | None
    stream: str


class StreamRules(TypedDict):
    """The rules of a hub, the most exact one first."""

    defaults: Retention
    rules: list[RetentionRule]


class StreamState(TypedDict):
    """A stream's state."""

    bytes: int
    connections: NotRequired[list[ConnectionState]]
    consumers: list[ConsumerState]
    count: int
    createdMs: int
    damaged: list[OffsetRange]
    first: int
    generation: int
    lastMs: int
    level: str
    maxAgeMs: int
    maxBytes: int
    maxCount: int
    next: int
    readers: int
    rule: NotRequired[str]
    sealed: str | None
    stream: str


class StreamsPage(TypedDict):
    """Streams of a hub, in the order of their topics."""

    next: NotRequired[str]
    streams: list[StreamState]


class Subscribed(TypedDict):
    """The first frame of a subscription."""

    codec: str
    features: Features
    generation: NotRequired[int]
    level: NotRequired[str]
    offset: NotRequired[int]
    recovered: NotRequired[bool]
    sealed: NotRequired[str | None]
    stream: str
    time: int


class TokenRequest(TypedDict):
    """The body of a `POST` that makes a token."""

    admin: bool
    expiresAfterMs: NotRequired[int]
    manage: list[str]
    observe: bool
    orders: list[str]
    publish: list[str]
    read: list[str]
    shares: dict[str, Any]


class TokenShare(TypedDict):
    """A share of what a node has."""

    chosen: bool
    held: int
    kind: str
    limit: int


class TokenState(TypedDict):
    """A token without its secret, which the node does not know either."""

    admin: bool
    expiresMs: NotRequired[int]
    manage: list[str]
    name: str
    observe: bool
    orders: list[str]
    publish: list[str]
    read: list[str]
    shares: list[TokenShare]
    valid: bool


class TokensList(TypedDict):
    """The tokens of a node."""

    guarded: bool
    tokens: list[TokenState]


class WireError(TypedDict):
    """An error as it stands on the wire."""

    code: str
    hint: str
    message: str
    next: NotRequired[int]
    ref: str
