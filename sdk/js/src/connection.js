// One WebSocket to the hub: opened, watched, and ended with a reason.

import { errors, failure, isMap, refusal, unreachable } from "./errors.js";
import { now } from "./waits.js";

/** How long a hub may take to open a connection and to send its first frame. */
const OPENING_MS = 10_000;
const NORMAL = 1000;

/**
 * @typedef {object} Handlers
 * @property {(frame: Record<string, any>) => void} frame a frame that is no error; it may throw
 * @property {(error: import("./errors.js").SealaneError) => void} ended once, when all is over
 */

export class Connection {
  /** @type {WebSocket} */ #socket;
  /** @type {import("./client.js").Settings} */ #settings;
  /** @type {Handlers} */ #handlers;
  #isOver = false;
  #heard = now();
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #timer;
  /** @type {(() => void) | undefined} */ #closed;

  /**
   * Opens one. What goes wrong from now on is told to `ended`.
   *
   * @param {import("./client.js").Settings} settings
   * @param {string} path
   * @param {Record<string, unknown>} query parameters; those that are undefined are left out
   * @param {Handlers} handlers
   */
  static async open(settings, path, query, handlers) {
    const token = await settings.token();
    const address = new URL(path, settings.address);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) address.searchParams.set(name, String(value));
    }
    // A browser sets no header of a WebSocket: the token is a sub-protocol (spec/access.md).
    const protocols = [settings.codec.name, ...(token ? [`sealane.token.${token}`] : [])];
    const socket = await settings.platform.socket(address.href, protocols, settings);
    return new Connection(socket, settings, handlers);
  }

  /**
   * @param {WebSocket} socket
   * @param {import("./client.js").Settings} settings
   * @param {Handlers} handlers
   */
  constructor(socket, settings, handlers) {
    this.#socket = socket;
    this.#settings = settings;
    this.#handlers = handlers;
    socket.binaryType = "arraybuffer";
    socket.addEventListener("message", ({ data }) => this.#take(data));
    socket.addEventListener("close", ({ code, reason }) => {
      this.#closed?.();
      const message = `the connection was closed: ${code} ${reason}`.trim();
      // A hub that stops says so by the reason alone.
      this.end(
        errors[reason] ? refusal({ code: reason, message }) : failure("NotReachable", message),
      );
    });
    // What a page is told of a failed connection is its close; `ws` also says why.
    socket.addEventListener("error", (event) => {
      this.end(unreachable(/** @type {{error?: Error}} */ (event).error));
    });
    this.#timer = setTimeout(() => this.end(SILENT()), OPENING_MS);
  }

  /** Ends it if nothing comes for so long. A hub sends heartbeats where it was asked for them. */
  watch(/** @type {number} */ silenceMs) {
    clearTimeout(this.#timer);
    if (this.#isOver) return;
    const step = silenceMs / 4;
    let looked = now();
    const look = () => {
      const time = now();
      // A tab that was frozen has heard nothing, and its frames may wait behind this timer.
      if (time - looked > 2 * step) this.#heard = time;
      looked = time;
      if (time - this.#heard > silenceMs) return this.end(SILENT());
      this.#timer = setTimeout(look, step);
    };
    this.#timer = setTimeout(look, step);
  }

  /** Stops watching. */
  unwatch() {
    clearTimeout(this.#timer);
  }

  get isOpen() {
    return !this.#isOver && this.#socket.readyState === 1;
  }

  /** Sends a value, encoded. @param {unknown} value */
  send(value) {
    this.sendEncoded(this.#settings.codec.encode(value));
  }

  /** @param {string | Uint8Array} data */
  sendEncoded(data) {
    if (this.isOpen) this.#socket.send(/** @type {string} */ (data));
  }

  /**
   * Closes it, and waits until the hub has answered, so that what was sent before has come there.
   *
   * @param {number} [patienceMs]
   */
  async close(patienceMs = 2000) {
    if (this.#socket.readyState === 3) return this.end(OVER());
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, patienceMs);
      this.#closed = () => {
        clearTimeout(timer);
        resolve(undefined);
      };
      this.end(OVER());
    });
    // A hub that does not answer keeps no program from ending.
    if (this.#socket.readyState !== 3) this.#settings.platform.drop(this.#socket);
  }

  /** Ends it for this reason, if it has not ended yet. @param {unknown} error */
  end(error) {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    if (this.#socket.readyState < 2) this.#socket.close(NORMAL);
    this.#handlers.ended(/** @type {import("./errors.js").SealaneError} */ (error));
  }

  /** @param {unknown} data */
  #take(data) {
    if (this.#isOver) return;
    this.#heard = now();
    try {
      this.#handlers.frame(this.#read(data));
    } catch (error) {
      this.end(error);
    }
  }

  /** @param {any} data */
  #read(data) {
    let frame;
    try {
      frame = this.#settings.codec.decode(data);
    } catch (cause) {
      // A refusal is told in JSON where no codec could be agreed.
      frame = typeof data === "string" ? parsed(data) : undefined;
      if (!isMap(frame?.error)) {
        const name = this.#settings.codec.name;
        throw failure("NotTheProtocol", `what came is no frame in ${name}`, HINT, cause);
      }
    }
    if (!isMap(frame)) throw failure("NotTheProtocol", "a frame is no map", HINT);
    if (isMap(frame.error)) throw refusal(frame.error);
    return frame;
  }
}

export const HINT = "Check that the address is that of a hub, and what stands in between.";
const SILENT = () => failure("NotReachable", "nothing came from the hub in time");
const OVER = () => failure("Ended", "the connection was closed here");

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
