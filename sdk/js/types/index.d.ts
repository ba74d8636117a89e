import type { Codec } from "./codec.d.ts";
import type {
  AccessTicket,
  Cancelled,
  ConsumerInfo,
  ConsumerVerb,
  DelayedPage,
  EnqueuedBatch,
  Envelope,
  Health,
  Page,
  Purged,
  Removed,
  StreamChange,
  StreamState,
} from "./protocol.d.ts";

export type { Codec } from "./codec.d.ts";
export type * from "./protocol.d.ts";

/** A hub. Nothing is sent until something is asked for. */
export class Client {
  /** @param address `hub.example:9087`, `http://…`, or with TLS `https://…` */
  constructor(address: string, options?: ClientOptions);

  /**
   * Reads a topic or a pattern. With `from` it reads for itself; with `consumer` it shares the
   * messages with all who name it; with neither it joins the inbox of the topic.
   *
   * It reconnects by itself, and the loop ends by an error only if the hub refuses it for good.
   */
  subscribe<E extends Envelope = Envelope>(to: string, options?: SubscribeOptions): Subscription<E>;

  /**
   * Publishes a message, and waits until the hub has stored it. Messages that are published without
   * waiting in between travel together, and each is stored once, also across connections.
   */
  publish(to: string, envelope: Envelope, options?: PublishOptions): Promise<PublishedMessage>;

  /** Publishes messages in one commit: all or none. */
  publishBatch(to: string, envelopes: Envelope[], options?: BatchOptions): Promise<EnqueuedBatch>;

  /** A publisher with a session of its own: back-pressure, and repetition across programs. */
  publisher(options?: PublisherOptions): Publisher;

  /** Asks, and waits for the answer. A token needs `read` and `manage` on `reply/**`. */
  request<E extends Envelope = Envelope>(
    to: string,
    envelope: Envelope,
    options?: RequestOptions,
  ): Promise<Message<E>>;

  /** Answers requests until it is closed. A request whose `answer` fails comes again. */
  reply(to: string, answer: Answer, options?: ReplyOptions): Replier;

  /** All messages of a stream from a place on, until its end as it is then. */
  range<E extends Envelope = Envelope>(
    topic: string,
    options?: RangeOptions,
  ): AsyncIterableIterator<StoredMessage<E>>;

  /** One page of a stream. */
  page(topic: string, options?: PageOptions): Promise<Page>;

  /** The streams that the token may read. */
  streams(options?: StreamsOptions): AsyncIterableIterator<StreamState>;
  stream(topic: string): Promise<StreamState>;
  /** Makes a stream, or changes its settings. */
  configure(topic: string, change?: StreamChange): Promise<StreamState>;
  remove(topic: string): Promise<Removed>;
  /** Removes the messages before a place: an offset, a time, or `"new"`. */
  purge(topic: string, before: string | number): Promise<Purged>;

  consumers(topic: string): Promise<ConsumerInfo[]>;
  consumer(topic: string, consumer: string): Promise<ConsumerInfo>;
  /** Pauses, resets, skips or redelivers. */
  steer(topic: string, consumer: string, verb: ConsumerVerb): Promise<ConsumerInfo>;
  removeConsumer(topic: string, consumer: string): Promise<Removed>;

  /** Messages that are held back. */
  delayed(topic: string, options?: { after?: string; limit?: number }): Promise<DelayedPage>;
  cancel(topic: string, id: string): Promise<Cancelled>;

  /** Stands for the token once, in the query of an `EventSource`. */
  ticket(): Promise<AccessTicket>;
  health(): Promise<Health>;

  /** Ends all that is open, after the hub has what was published and acknowledged. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface ClientOptions {
  /** The token, or what gives one for each connection. */
  token?: string | (() => string | undefined | Promise<string | undefined>);
  /** `json` without it; `msgpack` and `cbor` are entries of their own. */
  codec?: Codec<any>;
  /** Certificates to trust and no others, PEM. Node.js only, with the package `ws`. */
  ca?: string | string[];
  /** For how long requests and messages are tried again while the hub is away (30,000). */
  patienceMs?: number;
  /** How often a quiet hub says that it is there (15,000); three times it, and it is away. */
  heartbeatMs?: number;
}

/** `first`, `new`, an offset, an RFC 3339 time or a `Date`, or `@` and Unix milliseconds. */
export type From = "first" | "new" | number | Date | (string & {});

export interface SubscribeOptions {
  from?: From;
  /** Beside an offset: the generation in which it was seen. */
  generation?: number;
  consumer?: string;
  /** `auto`: a message is finished when the loop comes back for the next one (`manual`). */
  ack?: "manual" | "auto";
  /** Messages that the hub may have sent and the loop has not finished (1024; consumers 128). */
  credit?: number;
  /** Deliveries in one frame, at most. */
  batch?: number;
  heartbeatMs?: number;
  /** Of the consumer: unfinished messages at most. */
  maxInFlight?: number;
  /** Of the consumer: what was not finished for so long comes again. */
  ackWaitMs?: number;
  /** Of the consumer: a dead letter after so many deliveries; 0: never. */
  maxAttempts?: number;
  signal?: AbortSignal;
  /** Without it, gaps and what was not recovered are written to the console. */
  onEvent?: (event: SubscriptionEvent) => void;
}

/** `joined`, `unrecovered` and `gap` are told in their place among the messages. */
export type SubscriptionEvent =
  | { type: "connected" }
  | { type: "reconnecting"; code: string; message: string }
  | { type: "draining" }
  | { type: "joined"; stream: string; offset: number; generation: number }
  | { type: "unrecovered"; stream: string; offset: number; generation: number }
  | GapEvent;

/** These offsets, both included, will not come. */
export type GapEvent = { type: "gap"; stream: string; from: number; to: number; reason: string };

export interface Subscription<E extends Envelope = Envelope> extends AsyncIterableIterator<
  Message<E>
> {
  /** Ends the loop, after the hub has what was acknowledged. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A message as it is stored. */
export interface StoredMessage<E extends Envelope = Envelope> {
  readonly stream: string;
  readonly offset: number;
  readonly generation: number;
  /** How often it has been delivered to the consumer, counting this time. */
  readonly attempt: number;
  /** When it entered its stream, by the hub's clock in Unix milliseconds. */
  readonly storedMs: number;
  readonly envelope: E;
}

export interface Message<E extends Envelope = Envelope> extends StoredMessage<E> {
  readonly id: string;
  /** The place behind it: `subscribe(topic, message.place)` goes on there. */
  readonly place: { from: number; generation: number };
  /** It is done: the consumer does not get it again. */
  ack(): void;
  /** It is to be delivered again, to any member. */
  nack(options?: { delayMs?: number }): void;
}

export interface PublishOptions {
  /** Holds it back for so long. */
  delayMs?: number;
  /** The offset that it must get. */
  expect?: number;
}

/** Where a message is stored, or when it will be. */
export interface PublishedMessage {
  /** Its number in the session and stream. */
  n: number;
  stream: string;
  level: string;
  offset?: number;
  generation?: number;
  dueMs?: number;
  /** It was stored before. */
  replayed?: true;
}

export interface BatchOptions {
  /** The offset that the first must get. */
  expect?: number;
  /** The same key stores the same batch once. */
  key?: string;
  signal?: AbortSignal;
}

export interface PublisherOptions {
  /** A session to go on with; the hub says which number comes next in each stream. */
  session?: string;
  signal?: AbortSignal;
}

export interface Publisher {
  readonly session: string;
  readonly hasEnded: boolean;
  /** Waits until the message is stored. */
  publish(to: string, envelope: Envelope, options?: PublishOptions): Promise<PublishedMessage>;
  /** Waits until there is room for more, so that a program goes no faster than the hub. */
  send(to: string, envelope: Envelope, options?: PublishOptions): Promise<void>;
  /** Waits until all is stored. Fails with the first refusal since the last time. */
  flush(): Promise<void>;
  /** The number of the session's next message in a stream, from 1. */
  next(to: string): Promise<number>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface RequestOptions {
  /** How long the answer is waited for (10,000). */
  timeoutMs?: number;
  signal?: AbortSignal;
}

/** Makes the answer to a request. */
export type Answer = (request: Message) => Envelope | Promise<Envelope>;

export interface ReplyOptions extends Omit<SubscribeOptions, "ack" | "from" | "onEvent"> {
  onEvent?: (
    event: SubscriptionEvent | { type: "failed"; error: unknown; message: Message },
  ) => void;
}

export interface Replier {
  /** When it has ended; fails with what ended it. */
  readonly done: Promise<void>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface PageOptions {
  from?: From;
  limit?: number;
  signal?: AbortSignal;
}

export interface RangeOptions {
  from?: From;
  /** The last offset. */
  to?: number;
  signal?: AbortSignal;
  onEvent?: (event: GapEvent) => void;
}

export interface StreamsOptions {
  pattern?: string;
  /** Streams in one request, at most. */
  limit?: number;
  signal?: AbortSignal;
}

/** May the same request be sent again? */
export type Retry = "never" | "later" | "reconnect";

/** All errors of this package and of the hub. */
export class SealaneError extends Error {
  /** The name of spec/hub.md §9 and spec/access.md, or one of this client's. */
  readonly code: string;
  readonly hint: string;
  /** For `sealane explain`. */
  readonly ref: string;
  /** What comes next, beside `OffsetMismatch`, `BeyondEnd` and `NumberSkipped`. */
  readonly next?: number;
  readonly retry: Retry;
}

/** A class for each code: `error instanceof errors.OffsetMismatch`. */
export const errors: Readonly<Record<string, new (message: string) => SealaneError>>;

/** The codec `json`. */
export const json: Codec<string>;
