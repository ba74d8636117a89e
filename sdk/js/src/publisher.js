// Publishes over a socket: numbers what it sends, keeps to the hub's credit, and sends again what
// was not answered (spec/hub.md §11).

import { Backlog } from "./backlog.js";
import { Connection } from "./connection.js";
import { failure, refusal } from "./errors.js";
import { Backoff, now, sleep } from "./waits.js";

/** Messages and bytes that wait for their answers before `send` waits. */
const MAX_QUEUED = 8192;
const MAX_QUEUED_BYTES = 8 << 20;
/** Bytes at which a frame is full; with one item more it is within a hub's limit. */
const FULL_FRAME_BYTES = 32 << 10;
/** Messages that are worth a frame at once. */
const FULL_FRAME = 256;
/** An answer that does not come for so long is waited for on another connection. */
const ANSWER_MS = 30_000;
/** How long the hub may be busy before a message is offered again. */
const BUSY_MS = 500;
/** No session comes so far: the hub says by its refusal which number comes next. */
const FAR = Number.MAX_SAFE_INTEGER;

/** @typedef {import("./backlog.js").Item} Item */
/** @typedef {{resolve(next: number): void, reject(error: unknown): void}} Caller */
/** @typedef {import("../types/index.d.ts").PublishOptions} PublishOptions */
/** @typedef {import("./errors.js").SealaneError} SealaneError */

export class Publisher {
  #settings;
  #session;
  /** Whether the session may have been used before, so that only the hub knows its numbers. */
  #isOld;
  /** @type {Map<string, Backlog>} */ #streams = new Map();
  /** Streams that have something to be sent. @type {Set<Backlog>} */ #ready = new Set();
  /** Streams whose next number the hub is to say, and to whom. @type {Map<string, Caller[]>} */
  #asked = new Map();
  /** Those of them that this connection has been asked for. @type {Set<string>} */
  #probed = new Set();
  #count = 0;
  #bytes = 0;
  /** What the hub has asked for on this connection. */
  #credit = { messages: 0, bytes: 0 };
  /** @type {Connection | undefined} */ #connection;
  #stands = false;
  /** What has come since frames were filled last. */ #fresh = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #looking;
  /** Callers of `send` that wait for room, and of `flush`. @type {(() => void)[]} */ #rooms = [];
  /** @type {(() => void)[]} */ #flushes = [];
  /** @type {unknown} */ #failed;
  #closing = new AbortController();
  #interrupt = () => {};
  #wake = () => {};
  #backoff = new Backoff();
  /** When nothing was answered last, while something was to be. */ #since = now();
  /** @type {Promise<void> | undefined} */ #running;
  /** @type {unknown} */ #error;

  /**
   * @param {import("./client.js").Settings} settings
   * @param {import("../types/index.d.ts").PublisherOptions} options
   */
  constructor(settings, { session, signal }) {
    this.#settings = settings;
    this.#session = session ?? crypto.randomUUID();
    this.#isOld = session !== undefined;
    const abort = () => this.#stop(signal?.reason);
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort, { once: true });
    this.#closing.signal.addEventListener("abort", () =>
      signal?.removeEventListener("abort", abort),
    );
  }

  get session() {
    return this.#session;
  }

  get hasEnded() {
    return this.#closing.signal.aborted;
  }

  /**
   * @param {string} to @param {Record<string, unknown>} envelope @param {PublishOptions} [options]
   * @returns {Promise<any>}
   */
  publish(to, envelope, options) {
    return new Promise((resolve, reject) => this.#queue(to, envelope, options, resolve, reject));
  }

  /**
   * @param {string} to @param {Record<string, unknown>} envelope @param {PublishOptions} [options]
   */
  async send(to, envelope, options) {
    while (this.#isFull && !this.hasEnded) await told(this.#rooms);
    this.#queue(to, envelope, options, ANSWERED, this.#note);
  }

  #note = (/** @type {unknown} */ error) => {
    this.#failed ??= error;
  };

  async flush() {
    if (this.#count > 0) await told(this.#flushes);
    const failed = this.#failed;
    this.#failed = undefined;
    if (failed !== undefined) throw failed;
  }

  /**
   * The number of the session's next message in a stream, behind all that was published here.
   *
   * @param {string} to @returns {Promise<number>}
   */
  async next(to) {
    await this.flush();
    this.#check();
    const backlog = this.#backlog(to);
    if (backlog.next !== undefined) return backlog.next;
    return new Promise((resolve, reject) => {
      this.#asked.get(to)?.push({ resolve, reject });
      this.#ready.add(backlog);
      this.#schedule();
    });
  }

  /** Waits until all is answered, and ends. */
  async close() {
    if (!this.hasEnded && this.#count > 0) await told(this.#flushes);
    this.#stop(failure("Ended", "the publisher was closed"));
    await this.#running;
  }

  async [Symbol.asyncDispose]() {
    await this.close();
  }

  #check() {
    if (this.hasEnded) throw this.#error;
  }

  get #isFull() {
    return this.#count >= MAX_QUEUED || this.#bytes >= MAX_QUEUED_BYTES;
  }

  /** @param {string} to */
  #backlog(to) {
    let backlog = this.#streams.get(to);
    if (!backlog) {
      backlog = new Backlog(this.#isOld ? undefined : 1);
      this.#streams.set(to, backlog);
      if (this.#isOld) this.#asked.set(to, []);
    }
    return backlog;
  }

  /**
   * @param {string} to @param {Record<string, unknown>} envelope
   * @param {PublishOptions | undefined} options
   * @param {(placed: any) => void} resolve @param {(error: unknown) => void} reject
   */
  #queue(to, envelope, options, resolve, reject) {
    this.#check();
    const encoded = this.#settings.codec.encode(envelope);
    const backlog = this.#backlog(to);
    backlog.push({ to, envelope: encoded, options, n: 0, resolve, reject });
    if (this.#count === 0) this.#since = now();
    this.#count += 1;
    this.#bytes += encoded.length;
    this.#ready.add(backlog);
    this.#schedule();
  }

  /** Fills frames once the program has published all that it publishes now, or much. */
  #schedule() {
    this.#running ??= this.#run();
    this.#wake();
    if (!this.#stands) return;
    this.#fresh += 1;
    if (this.#fresh >= FULL_FRAME) return this.#fill();
    // A loop that awaits each message goes on within one turn, so that a microtask is too early.
    if (this.#fresh === 1) soon(() => this.#fill());
  }

  /** Sends what the hub has asked for. */
  #fill() {
    this.#fresh = 0;
    if (!this.#stands || !this.#connection) return;
    this.#ask();
    const { codec } = this.#settings;
    /** @type {(string | Uint8Array)[]} */
    let items = [];
    let full = 0;
    for (const backlog of this.#ready) {
      // The stream that used the credit up is the last one to get of the next.
      this.#ready.delete(backlog);
      if (this.#hasCredit || backlog.isReady) this.#ready.add(backlog);
      if (!this.#hasCredit) break;
      while (this.#hasCredit) {
        const item = backlog.take();
        if (!item) {
          this.#ready.delete(backlog);
          break;
        }
        const encoded = codec.item(headOf(item), item.envelope);
        const size = codec.size(encoded);
        this.#credit.messages -= 1;
        this.#credit.bytes -= size;
        full += size;
        items.push(encoded);
        if (full < FULL_FRAME_BYTES) continue;
        this.#connection.sendEncoded(codec.frame(items));
        [items, full] = [[], 0];
      }
    }
    if (items.length > 0) this.#connection.sendEncoded(codec.frame(items));
  }

  get #hasCredit() {
    return this.#credit.messages > 0 && this.#credit.bytes > 0;
  }

  /** Asks for the next numbers of streams that only the hub knows. */
  #ask() {
    const { codec } = this.#settings;
    for (const to of this.#asked.keys()) {
      if (this.#probed.has(to) || !this.#hasCredit) continue;
      this.#probed.add(to);
      const probe = codec.item({ to, n: FAR }, codec.encode({}));
      this.#credit.messages -= 1;
      this.#credit.bytes -= codec.size(probe);
      this.#connection?.sendEncoded(codec.frame([probe]));
    }
  }

  async #run() {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      if (this.#count === 0 && this.#asked.size === 0) {
        // An idle publisher does not mind that its hub is away.
        await new Promise((/** @type {(none?: unknown) => void} */ wake) => {
          this.#wake = wake;
          this.#interrupt = wake;
        });
        continue;
      }
      const error = await this.#serve();
      if (signal.aborted) break;
      if (error.retry === "never") this.#stop(error);
      else if (this.#count + this.#asked.size > 0) await this.#wait(error);
    }
    this.#settings.open.delete(this);
  }

  /** Waits for the next attempt, or gives up what is not answered. @param {SealaneError} error */
  async #wait(error) {
    const patience = this.#settings.patienceMs - (now() - this.#since);
    const wait = this.#backoff.wait();
    if (wait <= patience) return sleep(wait, this.#closing.signal);
    const hint = "They may be stored: publish them again only if twice is harmless.";
    this.#fail(failure("NoAnswer", `the hub has not answered: ${error.message}`, hint, error));
  }

  /** One connection, from its beginning to its end. Why it ended. */
  async #serve() {
    const { signal } = this.#closing;
    /** @type {Connection | undefined} */
    let connection;
    try {
      return await new Promise((/** @type {(error: SealaneError) => void} */ ended, failed) => {
        const handlers = { ended, frame: (/** @type {{}} */ frame) => this.#take(frame) };
        this.#interrupt = () => ended(failure("Ended", "the publisher was closed"));
        const query = { codec: this.#settings.codec.name, session: this.#session };
        const opening = Connection.open(this.#settings, "/v1/publish", query, handlers);
        opening.then((made) => {
          if (signal.aborted) return made.close();
          connection = this.#connection = made;
        }, failed);
      });
    } catch (error) {
      return /** @type {SealaneError} */ (error);
    } finally {
      if (this.#stands) this.#since = now();
      this.#stands = false;
      this.#connection = undefined;
      this.#credit = { messages: 0, bytes: 0 };
      this.#probed.clear();
      const closed = connection?.close();
      if (signal.aborted) await closed;
    }
  }

  /** @param {Record<string, any>} frame */
  #take(frame) {
    if (!this.#stands) return this.#begin(frame);
    const { credit, bytes, published, refused } = frame;
    if (published !== undefined) this.#published(published);
    else if (refused !== undefined) this.#refused(refused);
    else if (credit !== undefined) {
      if (!(credit >= 0) || !(bytes >= 0)) throw failure("NotTheProtocol", "a credit is no number");
      this.#credit.messages += credit;
      this.#credit.bytes += bytes;
      this.#fill();
    }
  }

  /** @param {Record<string, any>} frame */
  #begin({ session, published, refused }) {
    if (session === undefined) {
      if (published === undefined && refused === undefined) return;
      throw failure("NotTheProtocol", "the first frame is not `session`");
    }
    if (session !== this.#session) throw failure("NotTheProtocol", "it is of another session");
    this.#stands = true;
    this.#connection?.unwatch();
    for (const backlog of this.#streams.values()) {
      backlog.connected();
      this.#ready.add(backlog);
    }
    this.#look();
  }

  /** Goes to another connection where an answer does not come. */
  #look() {
    const connection = this.#connection;
    const look = () => {
      if (connection !== this.#connection) return;
      const isSent = [...this.#streams.values()].some((backlog) => backlog.isSent);
      const isLate = isSent && now() - this.#since > ANSWER_MS;
      if (isLate) connection?.end(failure("NotReachable", "no answer came in time"));
      else if (!this.hasEnded) this.#looking = setTimeout(look, ANSWER_MS / 4);
    };
    clearTimeout(this.#looking);
    this.#looking = setTimeout(look, ANSWER_MS / 4);
  }

  /** The numbers of an answer. @param {Record<string, any>} answer */
  #numbers({ n, from = n, to = n, stream }) {
    const backlog = this.#streams.get(stream);
    const isRange = Number.isSafeInteger(from) && Number.isSafeInteger(to) && from <= to;
    if (!backlog || !isRange) throw failure("NotTheProtocol", "an answer names no message");
    return { backlog, from, to };
  }

  /** @param {Record<string, any>} placed */
  #published(placed) {
    const { backlog, from, to } = this.#numbers(placed);
    const { stream, offset, generation, dueMs, level, replayed } = placed;
    for (let n = from; n <= to; n += 1) {
      const item = this.#answered(backlog, n);
      const place = offset === undefined ? { dueMs } : { offset: offset + n - from, generation };
      item.resolve({ n, stream, level, ...place, ...(replayed && { replayed }) });
    }
    this.#settle(backlog);
  }

  /** @param {Record<string, any>} refused */
  #refused(refused) {
    const { backlog, from, to } = this.#numbers(refused);
    const error = refusal(refused.error);
    if (from === FAR) return this.#told(refused.stream, backlog, error);
    for (let n = from; n <= to; n += 1) {
      const { code, next } = error;
      const item = this.#answered(backlog, n, code === "NumberSkipped" || code === "StorageBusy");
      if (code === "NumberSkipped") backlog.refused(next ?? n, item);
      else if (code === "StorageBusy") backlog.refused(n, item);
      // It says that the message was stored, and no more where.
      else if (code === "NumberForgotten") item.resolve({ n, stream: item.to, replayed: true });
      else {
        backlog.refused(from);
        item.reject(error);
      }
    }
    if (error.code === "StorageBusy") setTimeout(() => this.#settle(backlog), BUSY_MS);
    else this.#settle(backlog);
  }

  /**
   * The hub has said which number comes next in a stream, or why none may.
   *
   * @param {string} stream @param {Backlog} backlog @param {SealaneError} error
   */
  #told(stream, backlog, error) {
    const callers = this.#asked.get(stream) ?? [];
    this.#asked.delete(stream);
    this.#probed.delete(stream);
    const { next } = error;
    if (error.code === "NumberSkipped" && next !== undefined) {
      backlog.next = next;
      for (const { resolve } of callers) resolve(next);
    } else {
      this.#streams.delete(stream);
      for (const item of backlog.drain()) this.#reject(item, error);
      for (const { reject } of callers) reject(error);
    }
    this.#settle(backlog);
  }

  /**
   * Takes a message out, whose answer has come. One that stays is to be sent again.
   *
   * @param {Backlog} backlog @param {number} n @param {boolean} [stays]
   */
  #answered(backlog, n, stays = false) {
    const item = backlog.answered(n);
    if (!item) throw failure("NotTheProtocol", `the hub answers ${n}, which was not sent`);
    if (!stays) this.#count -= 1;
    if (!stays) this.#bytes -= item.envelope.length;
    this.#since = now();
    this.#backoff.reset();
    return item;
  }

  /** @param {Item} item @param {unknown} error */
  #reject(item, error) {
    this.#count -= 1;
    this.#bytes -= item.envelope.length;
    item.reject(error);
  }

  /** Goes on with a stream of which something was answered. @param {Backlog} backlog */
  #settle(backlog) {
    backlog.heal();
    if (backlog.isReady) {
      this.#ready.add(backlog);
      this.#schedule();
    }
    this.#answers();
  }

  /** Tells those who wait for room, and for all answers. */
  #answers() {
    if (!this.#isFull || this.hasEnded) for (const room of this.#rooms.splice(0)) room();
    if (this.#count === 0) for (const done of this.#flushes.splice(0)) done();
  }

  /** Gives up all that is not answered. @param {unknown} error */
  #fail(error) {
    for (const backlog of this.#streams.values()) {
      for (const item of backlog.drain()) this.#reject(item, error);
    }
    this.#streams.clear();
    this.#ready.clear();
    for (const { reject } of [...this.#asked.values()].flat()) reject(error);
    this.#asked.clear();
    // What was sent may be stored or not: in another session the numbers begin anew.
    if (!this.#isOld) this.#session = crypto.randomUUID();
    this.#answers();
  }

  /** @param {unknown} error */
  #stop(error) {
    if (this.hasEnded) return;
    this.#error = error;
    clearTimeout(this.#looking);
    this.#closing.abort();
    this.#fail(error);
    this.#interrupt();
  }
}

/** Waits until it is told. @param {(() => void)[]} list */
const told = (list) => new Promise((/** @type {(none?: any) => void} */ done) => list.push(done));

/** Runs it when this turn of the program is over. @type {(run: () => void) => void} */
const soon = globalThis.setImmediate ?? ((run) => setTimeout(run, 0));

const ANSWERED = () => {};

/** The fields of an item but for its envelope. @param {Item} item */
function headOf({ to, n, options }) {
  if (options === undefined) return { to, n };
  const { delayMs, expect } = options;
  const condition = expect === undefined ? undefined : { condition: { expect } };
  return { to, n, ...(delayMs && { delayMs }), ...condition };
}
