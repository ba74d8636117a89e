// How far a reader has come in each of its streams: what it resumes from, and by what it sees that
// the hub's offsets are the next ones.

import { failure } from "./errors.js";
import { HINT } from "./connection.js";

/** @typedef {{generation: number, next: number}} Place */

/** Highest integer that JavaScript holds exactly. */
const isCount = (/** @type {unknown} */ value) =>
  Number.isSafeInteger(value) && /** @type {number} */ (value) >= 0;

const lie = (/** @type {string} */ message) => failure("NotTheProtocol", message, HINT);

export class Places {
  #isSingle;
  /** @type {string | number} */ #from;
  /** @type {number | undefined} */ #generation;
  /** @type {Map<string, Place>} */ #streams = new Map();
  /** Whether streams are read again from where they began, which only an older hub makes us do. */
  #rereads = false;

  /**
   * @param {string | number} from @param {number | undefined} generation
   * @param {boolean} isSingle whether it is one stream, and no pattern
   */
  constructor(from, generation, isSingle) {
    this.#from = from;
    this.#generation = generation;
    this.#isSingle = isSingle;
  }

  /**
   * Where a new connection begins. A pattern begins where it began at first, so that a stream of
   * which nothing has come yet is read whole; the others are put in place by `seeks`.
   */
  start() {
    const [place] = this.#isSingle ? this.#streams.values() : [];
    if (place) return { from: place.next, generation: place.generation };
    return { from: this.#from, generation: this.#generation };
  }

  /** The operations that a new connection of a pattern sends before its first credit. */
  seeks() {
    if (this.#isSingle) return [];
    return Array.from(this.#streams, ([stream, { next, generation }]) => ({
      seek: { stream, offset: next, generation },
    }));
  }

  /**
   * A connection stands.
   *
   * @param {number} timeMs the hub's clock then @param {boolean} canSeek
   */
  connected(timeMs, canSeek) {
    // "new" means new since the first connection, also for streams that nothing has come of yet.
    if (!this.#isSingle && this.#from === "new") this.#from = `@${timeMs}`;
    this.#rereads = !canSeek && !this.#isSingle && this.#streams.size > 0;
  }

  /** @param {Record<string, any>} joined of `joined`, or of `subscribed` for one stream */
  joined({ stream, generation, offset }) {
    if (!isCount(generation) || !isCount(offset)) throw lie(`${stream} begins at no offset`);
    if (this.#rereads && this.#streams.has(stream)) return;
    this.#streams.set(stream, { generation, next: offset });
  }

  /** Goes on behind a gap. @param {Record<string, any>} gap */
  skipped({ stream, from, to }) {
    if (!isCount(from) || !isCount(to) || from > to) throw lie(`a gap of ${stream} is no range`);
    const place = this.#streams.get(stream);
    if (!place) return;
    if (from > place.next) throw lie(`a gap of ${stream} is at ${from}, behind ${place.next}`);
    place.next = Math.max(place.next, to + 1);
  }

  /** Goes on behind a delivery. Whether it is new. @param {Record<string, any>} deliver */
  advance({ stream, offset, generation }) {
    const place = this.#streams.get(stream);
    if (!place) throw lie(`a message of ${stream} came before the stream was begun`);
    if (offset !== place.next) {
      if (this.#rereads && offset < place.next) return false;
      throw lie(`offset ${offset} of ${stream} came in the place of ${place.next}`);
    }
    place.next += 1;
    place.generation = generation;
    return true;
  }
}

/**
 * Checks the fields of a delivery.
 *
 * @param {Record<string, any>} deliver @param {(topic: string) => boolean} isAsked
 */
export function checkDelivery(deliver, isAsked) {
  const { stream, offset, generation, attempt, storedMs, deliver: envelope } = deliver;
  const isWhole =
    typeof stream === "string" &&
    isCount(offset) &&
    isCount(generation) &&
    isCount(attempt) &&
    isCount(storedMs) &&
    typeof envelope === "object" &&
    envelope !== null;
  if (!isWhole) throw lie("a delivery lacks a field, or has it in another type");
  if (!isAsked(stream)) throw lie(`a message of ${stream}, which was not subscribed`);
}
