// Made by `cargo xtask docs` from the types of crates/sealane-protocol.
// In MessagePack and CBOR the types are the same, and bytes stay bytes.

/** A text that stands for a token once, in the query of a request: the answer to `POST /v1/ticket`. */
export type AccessTicket = {
  /** When it is worth nothing any more, in Unix milliseconds by the hub's clock. */
  expiresMs: number;
  /** The text for `?ticket=`. */
  ticket: string;
};

/** Several deliveries. */
export type Batch = {
  /** They, in order. */
  batch: Deliver[];
};

/** The result of cancelling delayed messages. */
export type Cancelled = {
  /** How many there were: ids are the publishers' own. */
  cancelled: number;
  /** The id of all of them. */
  id: string;
  /** Their stream. */
  stream: string;
};

/** The condition for storing a message. */
export type Condition = {
  /** The offset that it must get. */
  expect?: number;
};

/** A connection that reads a stream. */
export type ConnectionState = {
  /** The codec in which it reads. */
  codec: string;
  /** Its number, which no other of this run of the hub has. */
  connection: number;
  /** The consumer that it belongs to; none: it reads for itself. */
  consumer: string | null;
  /** Messages that it may still be sent. */
  credit: number;
  /** Messages that it was sent. */
  delivered: number;
  /** Messages of the stream that it was sent and has not acknowledged. */
  inFlight: number;
  /** The pattern of its subscription. */
  pattern: string;
  /** Since when it reads, in Unix milliseconds. */
  sinceMs: number;
};

/** One consumer, as `GET /v1/consumers/{topic}` shows it. */
export type ConsumerInfo = {
  /** Redeliver what was not acknowledged for so long. */
  ackWaitMs: number;
  /** The connections that share its work now; a list of consumers leaves them out. */
  connections?: ConnectionState[];
  /** Its name. */
  consumer: string;
  /** Messages that ran out of attempts and could be made no dead letter. */
  deadDropped: number;
  /** Messages that ran out of attempts and were made dead letters. */
  deadLettered: number;
  /** Of the messages in flight, those that a member has now. The others wait to come again. */
  held: number;
  /** Messages delivered and not acknowledged. */
  inFlight: number;
  /** Messages of the stream that it has not been given. */
  lag: number;
  /** For how long the oldest of those has been stored, in milliseconds; 0: there is none. */
  lagMs: number;
  /** Dead letter after so many deliveries; 0: never. */
  maxAttempts: number;
  /** Delivered and unacknowledged messages at most. */
  maxInFlight: number;
  /** Connections that share the work now. */
  members: number;
  /** The next offset that it has not been given. */
  next: number;
  /** For how long the oldest of those has been stored, in milliseconds; 0: there is none. */
  oldestMs: number;
  /** Since when it is paused, in Unix milliseconds; 0: it is not. */
  pausedMs: number;
  /** The first of its messages that are not done; a list of consumers does not say them. */
  pending?: PendingMessage[];
  /** Deliveries beyond each message's first, since the hub was opened. */
  redelivered: number;
  /** Its stream. */
  stream: string;
  /** Messages that are not done for it: those that it was not given, and those in flight. */
  unfinished: number;
};

/** A consumer's state. */
export type ConsumerState = {
  /** Its name. */
  consumer: string;
  /** Messages that ran out of attempts and could be made no dead letter. */
  deadDropped: number;
  /** Messages that ran out of attempts and were made dead letters. */
  deadLettered: number;
  /** Messages delivered and not acknowledged. */
  inFlight: number;
  /** Connections that share the work now. */
  members: number;
  /** The next offset that it has not been given. */
  next: number;
  /** Since when it is paused, in Unix milliseconds; 0: it is not. */
  pausedMs: number;
  /** Deliveries beyond each message's first, since the hub was opened. */
  redelivered: number;
};

/** A verb as it stands on the wire: the one field of a map. */
export type ConsumerVerb = {
  pause: boolean;
} | {
  /** first, new, an offset, an RFC 3339 time, or @ and Unix milliseconds */
  reset: string | number;
} | {
  skip: Skip;
} | {
  redeliver: boolean;
};

/** The consumers of one stream, by their names. */
export type Consumers = {
  /** They. */
  consumers: ConsumerInfo[];
  /** The stream. */
  stream: string;
};

/** Consumers of several streams, in the order of their topics and names. */
export type ConsumersPage = {
  /** They. */
  consumers: ConsumerInfo[];
  /** The `after` of the next page; none: this is the last. */
  next?: string;
};

/** The frames that something else than a message makes, as they stand on the wire. */
export type Control = {
  /** The hub's clock, Unix milliseconds. */
  heartbeat: number;
} | {
  /** It. */
  error: WireError;
};

/** The allowance for further publishing. */
export type Credit = {
  /** Bytes of their items. */
  bytes: number;
  /** Messages. */
  credit: number;
};

/** A message that is held back. */
export type DelayedMessage = {
  /** Bytes at rest. */
  bytes: number;
  /** When it enters its stream, in Unix milliseconds. */
  dueMs: number;
  /** Its id. */
  id: string;
};

/** Delayed messages of one stream. */
export type DelayedPage = {
  /** The messages, in the order in which they come. */
  delayed: DelayedMessage[];
  /** `ListDelayed::after` of the next page; none: this is the last. */
  next?: string;
  /** The stream. */
  stream: string;
};

/** One delivery. */
export type Deliver = {
  /** How often it has been delivered, counting this time. */
  attempt: number;
  /** The message. */
  deliver: Envelope;
  /** The generation in which it was appended. */
  generation: number;
  /** The message's offset. */
  offset: number;
  /** When it was stored, in Unix milliseconds. */
  storedMs: number;
  /** The stream. */
  stream: string;
};

/** Append one message. */
export type Enqueue = {
  /** How long it is held back; not beside `expect`. */
  delayMs?: number;
  /** The message. */
  envelope: Envelope;
  /** The offset that it must get. */
  expect?: number;
  /** The stream. */
  to: string;
};

/** Append messages: all or none. */
export type EnqueueBatch = {
  /** The messages. */
  envelopes: Envelope[];
  /** The offset that the first must get. */
  expect?: number;
  /** The stream. */
  to: string;
};

/** The message is stored: at an offset of a generation, or held back until `dueMs`. */
export type Enqueued = {
  /** When it enters the stream, Unix milliseconds. */
  dueMs?: number;
  /** The generation in which it was appended. */
  generation?: number;
  /** The message's id. */
  id: string;
  /** The level that was reached before the hub answered. */
  level: string;
  /** Its offset. */
  offset?: number;
  /** Whether it was stored before, under the same idempotency key. */
  replayed?: boolean;
  /** Its stream. */
  stream: string;
};

/** The messages are stored, one after the other. */
export type EnqueuedBatch = {
  /** How many there are. */
  count: number;
  /** The generation in which they were appended. */
  generation: number;
  /** Their ids, in order. */
  ids: string[];
  /** The level that was reached before the hub answered. */
  level: string;
  /** The offset of the first. */
  offset: number;
  /** Whether they were stored before, under the same idempotency key. */
  replayed?: boolean;
  /** Their stream. */
  stream: string;
};

/** Any map; it is delivered as it was written. */
export type Envelope = Record<string, unknown>;

/** The features that a hub lists when a subscription stands. */
export type Features = string[];

/** Offsets that will not come. */
export type Gap = {
  /** The first offset that is missing. */
  from: number;
  /** `retention` or `damaged`; a newer hub may know other reasons. */
  reason: string;
  /** The stream. */
  stream: string;
  /** The last offset that is missing. */
  to: number;
};

/** The hub's report on itself. */
export type Health = {
  /** Why it stores nothing, where it does not. */
  cause?: string;
  /** The level of streams that name none. */
  level: string;
  /** Whether all is well. */
  ok: boolean;
  /** The state of the hub, in a word: `healthy`, `storage` or `draining`; a newer one has others. */
  status: string;
  /** The id of its store, which no copy of it shares; none: an older hub has none. */
  store?: string;
  /** How many streams it has. */
  streams: number;
  /** Its version. */
  version: string;
};

/** When an enqueue is answered and its message delivered.  The order is that of strength: `Memory < Os < Disk`. */
export type Level = "memory" | "os" | "disk";

/** A message's id, one offset, or a range of offsets. */
export type Mark = string | Offsets;

/** One mark, or a list of them. */
export type Marks = Mark | Mark[];

/** The figures of a node and of some of its streams at one moment. */
export type NodeOverview = {
  /** Its counters since its start; none: the token may not observe. */
  counters?: OverviewCounters;
  /** `StreamsQuery::after` of the next page; none: this is the last. */
  next?: string;
  /** The node itself, as `GET /health` tells it. */
  node: Health;
  /** Their states. */
  streams: StreamState[];
};

/** Offsets of one stream: `{from, to}`, both included. */
export type OffsetRange = {
  /** The first. */
  from: number;
  /** The last. */
  to: number;
};

/** `{offset}`, or `{from, to}` with both ends included. */
export type Offsets = {
  /** The first. */
  from?: number;
  /** This one alone. */
  offset?: number;
  /** The stream, if the subscription names a pattern. */
  stream?: string;
  /** The last. */
  to?: number;
};

/** A client's frame as it stands on the wire. It may ask several things. */
export type Op = {
  /** These are done. */
  ack?: Marks;
  /** So many messages more may come. */
  credit?: number;
  /** Beside `nack`: after so many milliseconds. */
  delayMs?: number;
  /** Deliver these again. */
  nack?: Marks;
  /** Read on from here. */
  seek?: Seek;
};

/** Counters of a node since its start. */
export type OverviewCounters = {
  /** Acknowledgements. */
  acked: number;
  /** Deliveries. */
  delivered: number;
  /** Redeliveries. */
  redelivered: number;
  /** Messages stored. */
  stored: number;
};

/** Messages of one stream that were read without subscribing. */
export type Page = {
  /** Whether nothing is left. */
  end: boolean;
  /** The gaps between them: frames of the status `gap`. */
  gaps: Status[];
  /** The generation that is being written. */
  generation: number;
  /** The messages, in order. */
  messages: Deliver[];
  /** Where the next page begins. */
  next: number;
  /** The stream. */
  stream: string;
};

/** A message that a consumer was given and has not finished. */
export type PendingMessage = {
  /** How often it was delivered. */
  attempt: number;
  /** The connection that has it, by `ConnectionState::connection`; none: it waits to come again. */
  connection: number | null;
  /** When it comes again if it is not acknowledged before, in Unix milliseconds; 0: at once. */
  dueMs: number;
  /** Its offset. */
  offset: number;
  /** Since when somebody has it, in Unix milliseconds; 0: nobody has it. */
  sinceMs: number;
};

/** Messages of one stream: of the number `n`, or from `from` to `to`. They stand at an offset of a generation and behind it, or are held back until `dueMs`. */
export type Placed = {
  /** When they enter the stream, Unix milliseconds. */
  dueMs?: number;
  /** The first. */
  from?: number;
  /** The generation in which they were appended. */
  generation?: number;
  /** The level that was reached before the hub answered. */
  level: string;
  /** The one. */
  n?: number;
  /** Where the first stands. */
  offset?: number;
  /** True: they were stored before and came again; nothing was appended. */
  replayed?: boolean;
  /** The stream. */
  stream: string;
  /** The last. */
  to?: number;
};

/** The frames of a publishing socket as they stand on the wire, but for that of stored messages, which `StoredRange` writes. */
export type Publish = Session | Credit | {
  /** Which, and why. */
  refused: Refused;
};

/** The frames that a hub sends on a publishing socket. */
export type PublishFrame = Publish | Published | Refusal;

/** One numbered message of a session. */
export type PublishItem = {
  /** The condition for storing it. */
  condition?: Condition;
  /** How long it is held back. */
  delayMs?: number;
  /** The message. */
  envelope: Envelope;
  /** Its number in the session and the stream, from 1. */
  n: number;
  /** The stream. */
  to: string;
};

/** One item, or a list of them. */
export type PublishItems = PublishItem | PublishItem[];

/** Messages for a publishing socket. */
export type PublishRequest = {
  /** One or several. */
  publish: PublishItems;
};

/** Messages of a publishing socket are stored. */
export type Published = {
  /** Which, and where. */
  published: Placed;
};

/** The part of a stream to be removed: the body of `POST /v1/purge/{topic}`. */
export type Purge = {
  /** Everything before this place goes; `new`: all that there is. */
  before: string | number;
};

/** The result of a purge. */
export type Purged = {
  /** The lowest offset that can still be read. */
  first: number;
  /** The offset of the next message. */
  next: number;
  /** How many messages went. */
  purged: number;
  /** The stream. */
  stream: string;
};

/** Whether a node takes messages now. */
export type Ready = {
  /** Whether it does. */
  ready: boolean;
  /** `ready`, `draining` or `storage`; a newer one has others. */
  status: string;
};

/** A refusal, as an answer or the last frame of a socket. */
export type Refusal = {
  error: WireError;
};

/** Messages of one stream that are not stored: of the number `n`, or from `from` to `to`. */
export type Refused = {
  /** Why. */
  error: WireError;
  /** The first. */
  from?: number;
  /** The one. */
  n?: number;
  /** The stream, as the client wrote it. */
  stream: string;
  /** The last. */
  to?: number;
};

/** The answer to a `DELETE`. */
export type Removed = {
  /** The consumer that is no more; none: the stream is no more. */
  consumer?: string;
  /** Always true. */
  removed: boolean;
  /** The stream. */
  stream: string;
};

/** The answer to a `DELETE`. */
export type RemovedRule = {
  /** The pattern of the rule that is no more. */
  pattern: string;
  /** Always true. */
  removed: boolean;
};

/** The bounds of a stream; 0 means no bound. Whole blocks are removed, oldest first. */
export type Retention = {
  /** Messages older than this go. */
  maxAgeMs: number;
  /** So many bytes at rest stay. */
  maxBytes: number;
  /** So many messages stay. */
  maxCount: number;
};

/** A rule: the bounds of the streams whose topics match, those that are there and those that come, as far as a stream has none of its own. */
export type RetentionRule = {
  /** When it was made, in Unix milliseconds. */
  createdMs: number;
  /** The token that made it; empty: none was needed. */
  maker: string;
  /** Messages older than this go. */
  maxAgeMs: number;
  /** So many bytes at rest stay. */
  maxBytes: number;
  /** So many messages stay. */
  maxCount: number;
  /** The pattern. */
  pattern: string;
};

/** The body of a `PUT` of a rule; a bound that is left out is none. */
export type RuleBounds = {
  /** Messages older than this go; 0: no bound. */
  maxAgeMs?: number;
  /** So many bytes at rest stay; 0: no bound. */
  maxBytes?: number;
  /** So many messages stay; 0: no bound. */
  maxCount?: number;
};

/** Where to read on. */
export type Seek = {
  /** The generation in which the offset was seen. */
  generation?: number;
  /** The next offset to be delivered. */
  offset: number;
  /** The stream, if the subscription names a pattern. */
  stream?: string;
};

/** The frames that a hub sends on a subscription. */
export type ServerFrame = Status | Deliver | Batch | Control;

/** The first frame of a publishing socket. */
export type Session = {
  /** The codec of this connection. */
  codec: string;
  /** The features of the hub. */
  features: Features;
  /** The number of the session's next message in it. */
  next?: number;
  /** Its name. */
  session: string;
  /** The stream that was asked for. */
  stream?: string;
  /** The hub's clock, Unix milliseconds. */
  time: number;
};

/** Offsets as acknowledgements name them: `{offset}` or `{from, to}`. */
export type Skip = {
  /** The first. */
  from?: number;
  /** This one alone. */
  offset?: number;
  /** The last. */
  to?: number;
};

/** The frames that `status` tells apart, as they stand on the wire. */
export type Status = StatusSubscribed | StatusJoined | StatusGap;

/** Offsets will not come. */
export type StatusGap = {
  /** The first offset that is missing. */
  from: number;
  /** `retention` or `damaged`; a newer hub may know other reasons. */
  reason: string;
  status: "gap";
  /** The stream. */
  stream: string;
  /** The last offset that is missing. */
  to: number;
};

/** A stream of a pattern begins, or a seek was done. */
export type StatusJoined = {
  /** The generation that is being written. */
  generation: number;
  /** The stream's level; its name is empty where the stream is not there yet. */
  level: string;
  /** The next offset that comes. */
  offset: number;
  /** Whether everything since the offset that was asked for is still there. */
  recovered: boolean;
  /** The group whose keys open the stream's messages; none: the stream is open. */
  sealed: string | null;
  status: "joined";
  /** The stream. */
  stream: string;
};

/** The subscription stands. */
export type StatusSubscribed = {
  /** The codec of this connection. */
  codec: string;
  /** The features of the hub. */
  features: Features;
  /** The generation that is being written. */
  generation?: number;
  /** The stream's level; empty where the stream is not there yet. */
  level?: string;
  /** The next offset that comes. */
  offset?: number;
  /** Whether everything since the offset that was asked for is still there. */
  recovered?: boolean;
  /** The group whose keys open the stream's messages; null: the stream is open. */
  sealed?: string | null;
  status: "subscribed";
  /** The topic or pattern that was asked for. */
  stream: string;
  /** The hub's clock, Unix milliseconds. */
  time: number;
};

/** The changes to a stream's settings, the body of a `PUT`; a setting that is left out stays. */
export type StreamChange = {
  /** The stream forgets its own bounds, but for those that are named beside this: the rule that matches holds again, or the hub's default. */
  followRules?: boolean;
  /** When an enqueue is answered. */
  level?: Level;
  /** Messages older than this go; 0: no bound. */
  maxAgeMs?: number;
  /** So many bytes at rest stay; 0: no bound. */
  maxBytes?: number;
  /** So many messages stay; 0: no bound. */
  maxCount?: number;
  /** The group that the stream is sealed for. It is made so, and never changes. */
  sealed?: string;
};

/** Where the reading of a stream begins. */
export type StreamJoined = {
  /** The generation that is being written. */
  generation: number;
  /** The stream's level; its name is empty where the stream is not there yet. */
  level: string;
  /** The next offset that comes. */
  offset: number;
  /** Whether everything since the offset that was asked for is still there. */
  recovered: boolean;
  /** The group whose keys open the stream's messages; none: the stream is open. */
  sealed: string | null;
  /** The stream. */
  stream: string;
};

/** The rules of a hub, the most exact one first. */
export type StreamRules = {
  /** The bounds of streams that no rule matches. */
  defaults: Retention;
  /** They. */
  rules: RetentionRule[];
};

/** A stream's state. */
export type StreamState = {
  /** Bytes at rest. */
  bytes: number;
  /** The connections that read it now; a list of streams leaves them out. */
  connections?: ConnectionState[];
  /** Those who share the work; the inbox is the one named `""`. */
  consumers: ConsumerState[];
  /** Messages that are kept. */
  count: number;
  /** When the stream was made, in Unix milliseconds. */
  createdMs: number;
  /** Offsets that are damaged on disk and are not delivered. */
  damaged: OffsetRange[];
  /** The lowest offset that can still be read. */
  first: number;
  /** The generation that is being written. */
  generation: number;
  /** When its last message was appended, in Unix milliseconds; 0: never. */
  lastMs: number;
  /** When a message counts as stored. */
  level: string;
  /** Messages older than this go. */
  maxAgeMs: number;
  /** So many bytes at rest stay. */
  maxBytes: number;
  /** So many messages stay. */
  maxCount: number;
  /** The offset of the next message. */
  next: number;
  /** Connections that read for themselves. */
  readers: number;
  /** The pattern of the rule that the retention, or a part of it, is of; empty: the hub's default. None: all of it is the stream's own, or it has no bounds. */
  rule?: string;
  /** The group whose keys open the messages, which the hub cannot read; none: it can. */
  sealed: string | null;
  /** Its topic. */
  stream: string;
};

/** Streams of a hub, in the order of their topics. */
export type StreamsPage = {
  /** `StreamsQuery::after` of the next page; none: this is the last. */
  next?: string;
  /** Their states. */
  streams: StreamState[];
};

/** The first frame of a subscription. */
export type Subscribed = {
  /** The codec of this connection. */
  codec: string;
  /** The features of the hub. */
  features: Features;
  /** The generation that is being written. */
  generation?: number;
  /** The stream's level; empty where the stream is not there yet. */
  level?: string;
  /** The next offset that comes. */
  offset?: number;
  /** Whether everything since the offset that was asked for is still there. */
  recovered?: boolean;
  /** The group whose keys open the stream's messages; null: the stream is open. */
  sealed?: string | null;
  /** The topic or pattern that was asked for. */
  stream: string;
  /** The hub's clock, Unix milliseconds. */
  time: number;
};

/** An error as it stands on the wire. */
export type WireError = {
  /** The name, for example `UnknownOp`. */
  code: string;
  /** The remedy. */
  hint: string;
  /** The error, in one sentence. */
  message: string;
  /** The next offset, beside `OffsetMismatch` and `BeyondEnd`; the next `n`, beside `NumberSkipped`. */
  next?: number;
  /** The code for `sealane explain`. */
  ref: string;
};
