// The hub's protocol as the console uses it: spec/hub.md. Same origin, JSON.

import { entry, plain, read } from "./json.js";

/** What the hub refused: its code, message and hint. */
export class Refused extends Error {
  constructor(code, message, hint) {
    super(message);
    this.code = code;
    this.hint = hint;
  }
}

/** Where the token is kept: as long as the tab, and for this origin alone. */
const KEPT = "sealane.token";

/** The token that requests bring; empty: none. */
export const token = () => sessionStorage.getItem(KEPT) ?? "";

/** Brings this token from now on. */
export function useToken(text) {
  if (text) sessionStorage.setItem(KEPT, text);
  else sessionStorage.removeItem(KEPT);
}

async function call(path, init) {
  let response;
  const headers = { ...init?.headers };
  if (token()) headers.authorization = `Bearer ${token()}`;
  try {
    response = await fetch(path, { cache: "no-store", ...init, headers });
  } catch {
    throw new Refused("Unreachable", "the hub does not answer", "Is the node running?");
  }
  const text = await response.text();
  if (response.ok) return text;
  let error = { code: `HTTP ${response.status}`, message: text.slice(0, 200), hint: "" };
  try {
    error = JSON.parse(text).error ?? error;
  } catch {
    // What is not the hub's own answer, of a proxy for example, is shown as it came.
  }
  throw new Refused(error.code, error.message, error.hint);
}

const path = (topic, kind = "streams") =>
  `/v1/${kind}/${topic.split("/").map(encodeURIComponent).join("/")}`;

/** A stream's state. */
export const stream = async (topic) => JSON.parse(await call(path(topic)));

/** Messages of a stream, up to the offset `next`, that its consumer has not been given. */
export const lag = (consumer, next) => Math.max(0, next - consumer.next);

/**
 * What a stream has from a place on: the frames of messages and gaps in the order of their
 * offsets, as json.js reads them, the place behind them, whether that is the end, and the length of
 * the answer.
 */
export async function range(topic, from, limit) {
  const text = await call(`${path(topic)}?from=${encodeURIComponent(from)}&limit=${limit}`);
  const page = read(text);
  const [messages, gaps] = ["messages", "gaps"].map((name) => entry(page, name)?.items ?? []);
  const frames = [...messages, ...gaps].sort((one, other) => offset(one) - offset(other));
  const next = Number(plain(entry(page, "next")));
  return { frames, next, end: plain(entry(page, "end")) === "true", size: text.length };
}

/** The first offset that a frame speaks of. */
export const offset = (frame) => Number(plain(entry(frame, "offset") ?? entry(frame, "from")));

/** Stores one envelope, given as JSON text. The answer, and how long it took in milliseconds. */
export async function enqueue(topic, envelope, { key, delayMs } = {}) {
  const delay = delayMs > 0 ? `,"delayMs":${Math.round(delayMs)}` : "";
  const body = `{"to":${JSON.stringify(topic)},"envelope":${envelope}${delay}}`;
  const headers = { "content-type": "application/json" };
  if (key) headers["idempotency-key"] = key;
  const began = performance.now();
  const answer = JSON.parse(await call("/v1/enqueue", { method: "POST", headers, body }));
  return { answer, ms: performance.now() - began };
}

const ofConsumer = (topic, consumer) =>
  `${path(topic, "consumers")}?${new URLSearchParams({ consumer })}`;

/** The consumers of a stream, by their names. */
export const consumers = async (topic) =>
  JSON.parse(await call(path(topic, "consumers"))).consumers;

/** One consumer, with the first of the messages that it was given and has not finished. */
export const consumer = async (topic, name) => JSON.parse(await call(ofConsumer(topic, name)));

/** Does something to a consumer (spec/hub.md, Steering a consumer). How it is then. */
export async function steer(topic, name, verb) {
  const headers = { "content-type": "application/json" };
  const init = { method: "POST", headers, body: JSON.stringify(verb) };
  return JSON.parse(await call(ofConsumer(topic, name), init));
}

/** Removes a consumer. */
export const removeConsumer = (topic, name) =>
  call(ofConsumer(topic, name), { method: "DELETE" });

/** Messages that are held back, from the place `after` on; `next`: where the next page begins. */
export async function delayed(topic, after, limit) {
  const query = new URLSearchParams(after === undefined ? { limit } : { after, limit });
  return JSON.parse(await call(`${path(topic, "delayed")}?${query}`));
}

/** Cancels all messages of an id that are held back. */
export async function cancel(topic, id) {
  const query = new URLSearchParams({ id });
  return JSON.parse(await call(`${path(topic, "delayed")}?${query}`, { method: "DELETE" }));
}

const POST = { method: "POST" };

/** How long the console waits before it opens a source again that has closed. */
const SOURCE_AGAIN_MS = 1000;

/**
 * The figures of the node and of a page of its streams, which the hub pushes whenever they have
 * changed. `wanted` is a pattern where it has a `*`, else a part of the topic. Handlers:
 * `told(overview)`, `failed(error)`.
 */
export class Figures {
  #source = null;
  #timer = 0;
  #closed = false;
  #query;
  #handlers;

  constructor(wanted, after, limit, handlers) {
    this.#query = new URLSearchParams({ limit });
    if (wanted) this.#query.set(wanted.includes("*") ? "pattern" : "contains", wanted);
    if (after) this.#query.set("after", after);
    this.#handlers = handlers;
    this.#open();
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#source?.close();
  }

  async #open() {
    const query = new URLSearchParams(this.#query);
    try {
      // A source can set no header, and a token must not stand in an address (spec/access.md).
      if (token()) query.set("ticket", JSON.parse(await call("/v1/ticket", POST)).ticket);
    } catch (error) {
      return this.#again(error);
    }
    if (this.#closed) return;
    const source = new EventSource(`/v1/overview?${query}`);
    this.#source = source;
    let refused = null;
    source.onmessage = ({ data }) => this.#handlers.told(JSON.parse(data));
    source.addEventListener("refused", ({ data }) => {
      const { code, message, hint } = JSON.parse(data).error;
      refused = new Refused(code, message, hint);
    });
    source.onerror = () => {
      // It would come back by itself, with a ticket that is used up.
      source.close();
      this.#again(refused);
    };
  }

  /** Opens it again, and says why it closed. A source itself says nothing of a refusal. */
  async #again(refused) {
    let error = refused;
    if (!error) {
      const query = new URLSearchParams(this.#query);
      query.delete("contains");
      query.set("limit", "1");
      error = await call(`/v1/streams?${query}`).then(
        () => null,
        (reason) => reason,
      );
    }
    if (this.#closed) return;
    if (error) this.#handlers.failed(error);
    this.#timer = setTimeout(() => this.#open(), SOURCE_AGAIN_MS);
  }
}

/** The node itself. */
export const health = async () => JSON.parse(await call("/health"));

/** How many messages the console lets the hub have on their way. */
const CREDIT = 256;

/**
 * Reads a stream for itself, from a place on. Credit is granted only while it is not paused, so
 * what a paused console does not read stays in the hub.
 */
export class Tail {
  #socket;
  #granted = 0;
  #paused = false;
  #handlers;

  /** Handlers: `begun(frame)`, `message(frame)`, `gap(frame)`, `refused(error)`, `closed()`. */
  constructor(topic, from, handlers) {
    this.#handlers = handlers;
    const query = new URLSearchParams({ stream: topic, from, codec: "json", batch: "64" });
    const address = new URL(`/v1/subscribe?${query}`, location.href);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    // A browser sets no header of a WebSocket: the token is a sub-protocol (spec/access.md).
    const protocols = token() ? ["json", `sealane.token.${token()}`] : [];
    this.#socket = new WebSocket(address, protocols);
    this.#socket.addEventListener("message", (event) => this.#take(read(event.data)));
    this.#socket.addEventListener("close", () => this.#handlers.closed());
  }

  get paused() {
    return this.#paused;
  }

  set paused(paused) {
    this.#paused = paused;
    this.#grant();
  }

  close() {
    this.#handlers = SILENT;
    this.#socket.close();
  }

  #take(frame) {
    const batch = entry(frame, "batch");
    if (batch) return (batch.items.forEach((one) => this.#one(one)), this.#grant());
    this.#one(frame);
    this.#grant();
  }

  #one(frame) {
    const status = plain(entry(frame, "status"));
    const error = entry(frame, "error");
    if (error) {
      const [code, message, hint] = ["code", "message", "hint"].map((name) =>
        plain(entry(error, name)),
      );
      this.#handlers.refused(new Refused(code, message, hint));
    } else if (status === "subscribed" || status === "joined") this.#handlers.begun(frame);
    else if (status === "gap") this.#handlers.gap(frame);
    // What is none of these only a newer hub says; it is passed over (spec/hub.md §10).
    else if (entry(frame, "deliver")) {
      this.#granted -= 1;
      this.#handlers.message(frame);
    }
  }

  /** Tops the credit up when half of it is used. */
  #grant() {
    if (this.#paused || this.#granted > CREDIT / 2) return;
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    this.#socket.send(JSON.stringify({ credit: CREDIT - this.#granted }));
    this.#granted = CREDIT;
  }
}

const SILENT = { begun() {}, message() {}, gap() {}, refused() {}, closed() {} };
