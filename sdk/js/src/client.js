// A hub, as a program sees it.

import { failure } from "./errors.js";
import { call } from "./http.js";
import { json } from "./json.js";
import { Publisher } from "./publisher.js";
import { Replier, ask } from "./request.js";
import { Subscription } from "./subscription.js";
import { inPath } from "./topic.js";

/** How long a request or a message is tried again while the hub is away. */
const PATIENCE_MS = 30_000;

/**
 * @typedef {object} Platform
 * @property {(address: URL, init: RequestInit, settings: Settings) => Promise<Response>} fetch
 * @property {(address: string, protocols: string[], of: Settings) => Promise<WebSocket>} socket
 * @property {(socket: WebSocket) => void} drop ends a socket whose other side does not answer
 */

/**
 * What a client's parts share.
 *
 * @typedef {object} Settings
 * @property {URL} address
 * @property {() => string | undefined | Promise<string | undefined>} token
 * @property {import("../types/codec.d.ts").Codec<any>} codec
 * @property {string | string[] | undefined} ca
 * @property {number} patienceMs
 * @property {number | undefined} heartbeatMs
 * @property {Platform} platform
 * @property {Set<{close(): Promise<void>}>} open what ends with the client
 */

/** @typedef {import("../types/index.d.ts").ClientOptions} ClientOptions */
/** @typedef {import("../types/index.d.ts").SubscribeOptions} SubscribeOptions */
/** @typedef {import("../types/index.d.ts").PublishOptions} PublishOptions */
/** @typedef {Record<string, unknown>} Envelope */

/** @param {string} text */
function addressOf(text) {
  const hint = "Write HOST:PORT, or http://HOST:PORT, or https:// for TLS.";
  try {
    const address = new URL(text.includes("://") ? text : `http://${text}`);
    if (address.protocol === "http:" || address.protocol === "https:") return address;
  } catch (cause) {
    throw failure("InvalidAddress", `\`${text}\` is no address of a hub`, hint, cause);
  }
  throw failure("InvalidAddress", `\`${text}\` is neither http:// nor https://`, hint);
}

/** The class of clients on a platform. @param {Platform} platform */
export function makeClient(platform) {
  return class Client {
    /** @type {Settings} */ #settings;
    /** @type {Publisher | undefined} */ #publisher;
    #isClosed = false;

    /** @param {string} address @param {ClientOptions} [options] */
    constructor(address, options = {}) {
      const { token, codec = json, ca, patienceMs = PATIENCE_MS, heartbeatMs } = options;
      this.#settings = {
        address: addressOf(address),
        token: typeof token === "function" ? token : () => token,
        codec,
        ca,
        patienceMs,
        heartbeatMs,
        platform,
        open: new Set(),
      };
    }

    /** @param {string} to @param {SubscribeOptions} [options] */
    subscribe(to, options = {}) {
      return this.#opened(new Subscription(this.#usable, to, options));
    }

    /** @param {import("../types/index.d.ts").PublisherOptions} [options] */
    publisher(options = {}) {
      return this.#opened(new Publisher(this.#usable, options));
    }

    /** @param {string} to @param {Envelope} envelope @param {PublishOptions} [options] */
    async publish(to, envelope, options) {
      if (!this.#publisher || this.#publisher.hasEnded) this.#publisher = this.publisher();
      return this.#publisher.publish(to, envelope, options);
    }

    /**
     * @param {string} to @param {Envelope[]} envelopes
     * @param {import("../types/index.d.ts").BatchOptions} [options]
     */
    async publishBatch(to, envelopes, { expect, key = crypto.randomUUID(), signal } = {}) {
      const body = { to, envelopes, ...(expect !== undefined && { expect }) };
      const headers = { "idempotency-key": key };
      const path = "/v1/enqueue/batch";
      return call(this.#usable, { method: "POST", path, body, headers, signal });
    }

    /**
     * @param {string} to @param {Envelope} envelope
     * @param {import("../types/index.d.ts").RequestOptions} [options]
     */
    async request(to, envelope, options = {}) {
      return ask(this, to, envelope, options);
    }

    /**
     * @param {string} to @param {import("../types/index.d.ts").Answer} answer
     * @param {import("../types/index.d.ts").ReplyOptions} [options]
     */
    reply(to, answer, options = {}) {
      return this.#opened(new Replier(this, this.#usable, to, answer, options));
    }

    /** @param {string} topic @param {import("../types/index.d.ts").PageOptions} [options] */
    page(topic, { from = "first", limit, signal } = {}) {
      const place = from instanceof Date ? `@${from.getTime()}` : from;
      return this.#call("GET", path("streams", topic), { from: place, limit }, undefined, signal);
    }

    /** @param {string} topic @param {import("../types/index.d.ts").RangeOptions} [options] */
    async *range(topic, { from = "first", to = Infinity, signal, onEvent } = {}) {
      for (;;) {
        const page = await this.page(topic, { from, signal });
        for (const { status, ...gap } of page.gaps) onEvent?.({ type: "gap", ...gap });
        for (const { deliver, ...rest } of page.messages) {
          if (rest.offset > to) return;
          yield { ...rest, envelope: deliver };
        }
        if (page.end || page.next > to) return;
        from = page.next;
      }
    }

    /** @param {import("../types/index.d.ts").StreamsOptions} [options] */
    async *streams({ pattern, limit, signal } = {}) {
      let after;
      do {
        const query = { pattern, after, limit };
        const page = await this.#call("GET", "/v1/streams", query, undefined, signal);
        yield* page.streams;
        after = page.next;
      } while (after !== undefined);
    }

    stream(/** @type {string} */ topic) {
      return this.#call("GET", path("streams", topic));
    }

    /** @param {string} topic @param {{}} [change] */
    configure(topic, change = {}) {
      return this.#call("PUT", path("streams", topic), {}, change);
    }

    remove(/** @type {string} */ topic) {
      return this.#call("DELETE", path("streams", topic));
    }

    /** @param {string} topic @param {string | number} before */
    purge(topic, before) {
      return this.#call("POST", path("purge", topic), {}, { before });
    }

    async consumers(/** @type {string} */ topic) {
      return (await this.#call("GET", path("consumers", topic))).consumers;
    }

    /** @param {string} topic @param {string} consumer */
    consumer(topic, consumer) {
      return this.#call("GET", path("consumers", topic), { consumer });
    }

    /** @param {string} topic @param {string} consumer @param {{}} verb */
    steer(topic, consumer, verb) {
      return this.#call("POST", path("consumers", topic), { consumer }, verb);
    }

    /** @param {string} topic @param {string} consumer */
    removeConsumer(topic, consumer) {
      return this.#call("DELETE", path("consumers", topic), { consumer });
    }

    /** @param {string} topic @param {{after?: string, limit?: number}} [options] */
    delayed(topic, { after, limit } = {}) {
      return this.#call("GET", path("delayed", topic), { after, limit });
    }

    /** @param {string} topic @param {string} id */
    cancel(topic, id) {
      return this.#call("DELETE", path("delayed", topic), { id });
    }

    ticket() {
      return this.#call("POST", "/v1/ticket");
    }

    health() {
      return this.#call("GET", "/health");
    }

    /** Ends all that is open, and waits until the hub has what was published and acknowledged. */
    async close() {
      this.#isClosed = true;
      await Promise.all(Array.from(this.#settings.open, (one) => one.close()));
    }

    async [Symbol.asyncDispose]() {
      await this.close();
    }

    get #usable() {
      if (this.#isClosed) throw failure("Ended", "the client was closed");
      return this.#settings;
    }

    /** @template {{close(): Promise<void>}} T @param {T} one */
    #opened(one) {
      this.#settings.open.add(one);
      return one;
    }

    /**
     * @param {string} method @param {string} path @param {Record<string, unknown>} [query]
     * @param {unknown} [body] @param {AbortSignal} [signal] @returns {Promise<any>}
     */
    async #call(method, path, query, body, signal) {
      return call(this.#usable, { method, path, query, body, signal });
    }
  };
}

/** @param {string} kind @param {string} topic */
const path = (kind, topic) => `/v1/${kind}/${inPath(topic)}`;
