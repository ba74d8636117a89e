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

const path = (topic) => `/v1/streams/${topic.split("/").map(encodeURIComponent).join("/")}`;

/** All streams, at most `limit`, by their topics. */
export async function streams(limit = 1000) {
  const page = JSON.parse(await call(`/v1/streams?limit=${limit}`));
  return { list: page.streams, more: page.next !== undefined };
}

/** A stream's state. */
export const stream = async (topic) => JSON.parse(await call(path(topic)));

/** Messages of a stream, up to the offset `next`, that its consumer has not been given. */
export const lag = (consumer, next) => Math.max(0, next - consumer.next);

/** The messages from an offset on: deliver frames as json.js reads them. */
export async function range(topic, from, limit) {
  const page = read(await call(`${path(topic)}?from=${encodeURIComponent(from)}&limit=${limit}`));
  return entry(page, "messages").items;
}

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

/** The node's metrics by name. */
export async function metrics() {
  const values = new Map();
  for (const line of (await call("/metrics")).split("\n")) {
    const found = /^([a-z_]+)(?:\{[^}]*\})? ([0-9.e+]+)$/.exec(line);
    if (found) values.set(found[1], (values.get(found[1]) ?? 0) + Number(found[2]));
  }
  return values;
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
    this.#socket.addEventListener("close", () => handlers.closed());
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
