// The messages of one stream that a session has still to bring to the hub.

/**
 * @typedef {object} Item
 * @property {string} to
 * @property {string | Uint8Array} envelope encoded when it was published
 * @property {import("../types/index.d.ts").PublishOptions | undefined} options
 * @property {number} n its number, from when it is sent
 * @property {(placed: any) => void} resolve
 * @property {(error: unknown) => void} reject
 */

export class Backlog {
  /** Those that have no number yet, from `#at` on. @type {Item[]} */ #waiting = [];
  /** To shift a long list costs its length. */
  #at = 0;
  /** Those without an answer, by their numbers. @type {Map<number, Item>} */ #sent = new Map();
  /** Of those, what this connection has not sent yet. @type {Item[]} */ #again = [];
  /** Those that were refused because one before them was. @type {Item[]} */ #returned = [];
  #isHealing = false;
  /** The next message's number; none: the hub has to say it first. @type {number | undefined} */
  next;

  /** @param {number | undefined} next */
  constructor(next) {
    this.next = next;
  }

  get isEmpty() {
    return this.#left + this.#sent.size + this.#returned.length === 0;
  }

  get #left() {
    return this.#waiting.length - this.#at;
  }

  /** Whether something has no answer yet. */
  get isSent() {
    return this.#sent.size > 0;
  }

  /** @param {Item} item */
  push(item) {
    this.#waiting.push(item);
  }

  /** Whether something may be sent. */
  get isReady() {
    if (this.#again.length > 0) return true;
    return !this.#isHealing && this.next !== undefined && this.#left > 0;
  }

  /** The next one to be sent, with its number. */
  take() {
    const again = this.#again.shift();
    if (again) return again;
    if (!this.isReady || this.next === undefined) return undefined;
    const item = this.#waiting[this.#at++];
    if (this.#left === 0) [this.#waiting, this.#at] = [[], 0];
    item.n = this.next++;
    this.#sent.set(item.n, item);
    return item;
  }

  /** What was not answered is sent again, in order, on a new connection. */
  connected() {
    this.#again = [...this.#sent.values()];
  }

  /** The message of an answer; none: the hub answers what it was not sent. @param {number} n */
  answered(n) {
    const item = this.#sent.get(n);
    this.#sent.delete(n);
    return item;
  }

  /**
   * A message was refused, and those behind it will be: nothing more is sent until all are.
   *
   * @param {number} base the number that comes next now
   * @param {Item} [returned] the message, where it is to be sent again
   */
  refused(base, returned) {
    // The lowest refusal decides: answers may come in any order.
    this.next = this.#isHealing ? Math.min(base, this.next ?? base) : base;
    this.#isHealing = true;
    if (returned) this.#returned.push(returned);
  }

  /** Numbers anew what was refused behind another message, once all is answered. */
  heal() {
    if (!this.#isHealing || this.#sent.size > 0) return;
    this.#isHealing = false;
    const returned = this.#returned.sort((one, other) => one.n - other.n);
    this.#waiting = returned.concat(this.#waiting.slice(this.#at));
    [this.#returned, this.#at] = [[], 0];
  }

  /** All that is not answered, and nothing of it any more. */
  drain() {
    const waiting = this.#waiting.slice(this.#at);
    const all = [...this.#sent.values(), ...this.#returned, ...waiting];
    this.#sent.clear();
    [this.#returned, this.#waiting, this.#again, this.#at] = [[], [], [], 0];
    this.#isHealing = false;
    return all;
  }
}
