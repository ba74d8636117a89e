// A subscription: an async iterator whose loop drives the credit, over connections that are made
// again when they end.

import { Acks } from "./acks.js";
import { Connection } from "./connection.js";
import { failure } from "./errors.js";
import { Message } from "./message.js";
import { Places, checkDelivery } from "./places.js";
import { isPattern, matcher } from "./topic.js";
import { Backoff, sleep } from "./waits.js";

const READER_CREDIT = 1024;
/** Less than a reader's: what one member holds, no other member can work on. */
const CONSUMER_CREDIT = 128;
const MAX_BATCH = 256;
/** Acknowledgements that are told at once; fewer wait a moment for others. */
const FULL_ACKS = 512;
const HEARTBEAT_MS = 15_000;
/** So many heartbeats may be missed. */
const MISSED = 3;
/** A hub that does not send its features has these (spec/hub.md §5). */
const OLD_FEATURES = ["batch", "nack-delay", "seek", "sealed"];

/** @typedef {import("../types/index.d.ts").SubscribeOptions} Options */
/** @typedef {import("../types/index.d.ts").SubscriptionEvent} Event */
/** @typedef {import("./errors.js").SealaneError} SealaneError */
/** @typedef {IteratorResult<Message>} Result */
/** @typedef {{resolve(result: Result): void, reject(error: unknown): void}} Waiter */

export class Subscription {
  #settings;
  #to;
  #isAsked;
  /** Asked for: most messages are of the stream of the one before. */ #lastStream = "";
  /** @type {Options} */ #options;
  #isReader;
  /** @type {Places | undefined} */ #places;
  #acks = new Acks();
  /** Messages, and events that are told in their place. @type {(Message | Event)[]} */ #queue = [];
  #head = 0;
  #messages = 0;
  /** @type {Waiter[]} */ #waiters = [];
  /** @type {Message | undefined} */ #given;
  #window;
  /** Messages that the hub may still send on this connection. */
  #granted = 0;
  /** @type {Connection | undefined} */ #connection;
  #number = 0;
  #stands = false;
  #features = new Set(OLD_FEATURES);
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #flush;
  #closing = new AbortController();
  #interrupt = () => {};
  /** @type {unknown} */ #error;
  #isOver = false;
  #backoff = new Backoff();
  /** @type {Promise<void>} */ #running;

  /**
   * @param {import("./client.js").Settings} settings
   * @param {string} to a topic or a pattern
   * @param {Options} options
   */
  constructor(settings, to, options) {
    this.#settings = settings;
    this.#to = to;
    this.#isAsked = matcher(to);
    this.#options = options;
    const { from, generation, consumer, credit } = options;
    this.#isReader = from !== undefined && consumer === undefined;
    if (this.#isReader) {
      const start = from instanceof Date ? `@${from.getTime()}` : (from ?? "new");
      this.#places = new Places(start, generation, !isPattern(to));
    }
    this.#window = credit ?? (this.#isReader ? READER_CREDIT : CONSUMER_CREDIT);
    const abort = () => this.#stop(options.signal?.reason);
    if (options.signal?.aborted) abort();
    options.signal?.addEventListener("abort", abort, { once: true });
    this.#closing.signal.addEventListener("abort", () =>
      options.signal?.removeEventListener("abort", abort),
    );
    this.#running = this.#run();
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  /** @returns {Promise<IteratorResult<Message>>} */
  next() {
    if (this.#given && this.#options.ack === "auto") this.#given.ack();
    this.#given = undefined;
    while (this.#head < this.#queue.length) {
      const item = this.#queue[this.#head++];
      if (this.#head === this.#queue.length) {
        this.#queue = [];
        this.#head = 0;
      }
      if (item instanceof Message) {
        this.#messages -= 1;
        this.#given = item;
        this.#grant();
        return Promise.resolve({ value: item, done: false });
      }
      this.#tell(item);
    }
    if (this.#isOver) return this.#end();
    this.#grant();
    return new Promise((resolve, reject) => this.#waiters.push({ resolve, reject }));
  }

  /** @returns {Promise<IteratorResult<Message>>} */
  async return() {
    await this.close();
    return { value: undefined, done: true };
  }

  /** Ends the loop, tells the hub what was acknowledged, and waits until it has come there. */
  async close() {
    this.#stop(undefined);
    await this.#running;
  }

  async [Symbol.asyncDispose]() {
    await this.close();
  }

  /** @param {Message} message @param {number} connection */
  finish(message, connection) {
    if (this.#isReader) return;
    if (connection !== this.#number || !this.#stands) return this.#acks.late(message);
    this.#acknowledge(message);
  }

  /** @param {Message} message @param {number} connection @param {number} delayMs */
  refuse(message, connection, delayMs) {
    if (this.#isReader) throw failure("NotAConsumer", "a reader refuses no message");
    if (this.#given === message) this.#given = undefined;
    // A message of a connection that has ended comes again anyway.
    if (connection !== this.#number || !this.#stands) return;
    const { stream, offset } = message;
    const nack = { stream, offset };
    if (delayMs === 0) this.#connection?.send({ nack });
    else if (this.#features.has("nack-delay")) this.#connection?.send({ nack, delayMs });
    else setTimeout(() => connection === this.#number && this.#connection?.send({ nack }), delayMs);
  }

  /** @param {{stream: string, offset: number}} message */
  #acknowledge({ stream, offset }) {
    this.#acks.add(stream, offset);
    if (this.#acks.count >= FULL_ACKS) this.#sendAcks();
    else this.#flush ??= setTimeout(() => this.#sendAcks(), 0);
  }

  #sendAcks() {
    clearTimeout(this.#flush);
    this.#flush = undefined;
    if (this.#acks.count > 0) this.#connection?.send({ ack: this.#acks.take() });
  }

  /**
   * Tops the credit up when half of it is used, together with what was acknowledged. The message
   * that the loop works on counts too, so that a credit of 1 means one at a time.
   */
  #grant() {
    if (!this.#stands || this.#closing.signal.aborted) return;
    const under = this.#granted + this.#messages + (this.#given ? 1 : 0);
    if (under > this.#window / 2) return;
    const credit = this.#window - under;
    this.#granted += credit;
    if (this.#acks.count > 0) this.#connection?.send({ credit, ack: this.#acks.take() });
    else this.#connection?.send({ credit });
  }

  async #run() {
    while (!this.#closing.signal.aborted) {
      const error = await this.#serve();
      if (this.#closing.signal.aborted) break;
      if (!this.#passes(error)) {
        this.#error = error;
        break;
      }
      if (error.code === "Draining") this.#tell({ type: "draining" });
      this.#tell({ type: "reconnecting", code: error.code, message: error.message });
      await sleep(this.#backoff.wait(), this.#closing.signal);
    }
    this.#finish();
  }

  /** One connection, from its beginning to its end. Why it ended. */
  async #serve() {
    const { signal } = this.#closing;
    /** @type {Connection | undefined} */
    let connection;
    try {
      return await new Promise((/** @type {(error: SealaneError) => void} */ ended, failed) => {
        const handlers = { ended, frame: (/** @type {{}} */ frame) => this.#take(frame) };
        this.#interrupt = () => ended(failure("Ended", "the subscription was closed"));
        const opening = Connection.open(this.#settings, "/v1/subscribe", this.#query(), handlers);
        opening.then((made) => {
          if (signal.aborted) return made.close();
          connection = this.#connection = made;
          this.#number += 1;
        }, failed);
      });
    } catch (error) {
      return /** @type {SealaneError} */ (error);
    } finally {
      if (signal.aborted) this.#sendAcks();
      const closed = connection?.close();
      this.#lost();
      // A hub that is slow to answer delays the end, but not the next connection.
      if (signal.aborted) await closed;
    }
  }

  #query() {
    const { from, consumer, maxInFlight, ackWaitMs, maxAttempts, heartbeatMs } = this.#options;
    return {
      stream: this.#to,
      from: from instanceof Date ? `@${from.getTime()}` : from,
      ...this.#places?.start(),
      codec: this.#settings.codec.name,
      consumer,
      batch: this.#options.batch ?? Math.max(1, Math.min(this.#window, MAX_BATCH)),
      heartbeat_ms: heartbeatMs ?? this.#settings.heartbeatMs ?? HEARTBEAT_MS,
      max_in_flight: maxInFlight,
      ack_wait_ms: ackWaitMs,
      max_attempts: maxAttempts,
    };
  }

  /** What belonged to a connection goes with it. */
  #lost() {
    this.#connection = undefined;
    this.#stands = false;
    this.#granted = 0;
    this.#acks.take();
    if (this.#isReader) return;
    // What the loop was not given yet comes again, here or at another member.
    this.#queue = this.#queue.slice(this.#head).filter((item) => !(item instanceof Message));
    this.#head = 0;
    this.#messages = 0;
  }

  /** Whether another connection may do better. @param {{code?: string, retry?: string}} error */
  #passes({ code, retry }) {
    if (code === "StreamRemoved") return isPattern(this.#to);
    return retry !== undefined && retry !== "never";
  }

  /** @param {Record<string, any>} frame */
  #take(frame) {
    if (!this.#stands) return this.#begin(frame);
    if (frame.batch !== undefined) {
      if (!Array.isArray(frame.batch)) throw failure("NotTheProtocol", "a batch is no list");
      for (const one of frame.batch) if (one?.deliver !== undefined) this.#deliver(one);
      this.#wake();
    } else if (frame.deliver !== undefined) {
      this.#deliver(frame);
      this.#wake();
    } else if (frame.status === "joined") this.#joined(frame);
    else if (frame.status === "gap") this.#gap(frame);
    // What is none of these only a newer hub says, or a heartbeat, which has done its work.
  }

  /** The first frame. @param {Record<string, any>} frame */
  #begin(frame) {
    // A frame that is not known here may come first (spec/hub.md §10).
    if (frame.status !== "subscribed") {
      if (frame.deliver === undefined && frame.batch === undefined) return;
      throw failure("NotTheProtocol", "the first frame is not `subscribed`");
    }
    const connection = this.#connection;
    if (!connection) return;
    const { features = OLD_FEATURES, time } = frame;
    this.#features = new Set(Array.isArray(features) ? features : OLD_FEATURES);
    this.#stands = true;
    connection.watch(MISSED * (this.#query().heartbeat_ms ?? HEARTBEAT_MS));
    const canSeek = this.#features.has("seek");
    if (canSeek) for (const seek of this.#places?.seeks() ?? []) connection.send(seek);
    this.#places?.connected(time, canSeek);
    this.#tell({ type: "connected" });
    if (this.#places && !isPattern(this.#to)) this.#places.joined({ ...frame, stream: this.#to });
    if (frame.recovered === false) this.#unrecovered(frame);
    this.#grant();
  }

  /** @param {Record<string, any>} deliver */
  #deliver(deliver) {
    checkDelivery(deliver, deliver.stream === this.#lastStream ? () => true : this.#isAsked);
    this.#lastStream = deliver.stream;
    if (this.#granted === 0) {
      throw failure("NotTheProtocol", "more messages came than were asked for");
    }
    this.#granted -= 1;
    this.#backoff.reset();
    if (this.#places && !this.#places.advance(deliver)) return;
    if (this.#acks.isLate(deliver)) {
      const { stream, offset } = deliver;
      return this.#acknowledge({ stream, offset });
    }
    this.#queue.push(new Message(deliver, this, this.#number));
    this.#messages += 1;
  }

  /** @param {Record<string, any>} joined */
  #joined(joined) {
    const { stream, offset, generation, recovered } = joined;
    if (typeof stream !== "string" || !this.#isAsked(stream)) {
      throw failure("NotTheProtocol", `the stream ${stream} begins, which was not subscribed`);
    }
    this.#places?.joined(joined);
    this.#inPlace({ type: "joined", stream, offset, generation });
    if (recovered === false) this.#unrecovered(joined);
  }

  /** @param {Record<string, any>} frame */
  #unrecovered({ stream, offset, generation }) {
    this.#inPlace({ type: "unrecovered", stream, offset, generation });
  }

  /** @param {Record<string, any>} gap */
  #gap(gap) {
    this.#places?.skipped(gap);
    const { stream, from, to, reason } = gap;
    this.#inPlace({ type: "gap", stream, from, to, reason });
  }

  /** Tells it when the loop has come there. @param {Event} event */
  #inPlace(event) {
    if (this.#waiters.length > 0) this.#tell(event);
    else this.#queue.push(event);
  }

  /** @param {Event} event */
  #tell(event) {
    const { onEvent } = this.#options;
    if (onEvent) onEvent(event);
    else if (event.type === "gap" || event.type === "unrecovered") {
      // No loss goes by unseen where a program does not listen.
      console.warn(`sealane: ${event.type} in ${event.stream}`, event);
    }
  }

  /** Gives waiting loops what there is. */
  #wake() {
    while (this.#waiters.length > 0 && this.#messages > 0) {
      const { resolve, reject } = /** @type {Waiter} */ (this.#waiters.shift());
      this.next().then(resolve, reject);
    }
    this.#grant();
  }

  /** @param {unknown} reason */
  #stop(reason) {
    if (this.#closing.signal.aborted) return;
    this.#error = reason;
    this.#queue = [];
    this.#head = 0;
    this.#messages = 0;
    this.#closing.abort();
    this.#interrupt();
  }

  #finish() {
    this.#isOver = true;
    clearTimeout(this.#flush);
    this.#settings.open.delete(this);
    this.#closing.abort();
    for (const { resolve, reject } of this.#waiters.splice(0)) this.next().then(resolve, reject);
  }

  /** The end, told once with its reason. @returns {Promise<IteratorResult<Message>>} */
  #end() {
    const error = this.#error;
    this.#error = undefined;
    if (error !== undefined) return Promise.reject(error);
    return Promise.resolve({ value: undefined, done: true });
  }
}
