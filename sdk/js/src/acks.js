// What a consumer has finished and the hub has not been told yet, as few ranges as possible.

/** Acknowledgements of earlier connections that are remembered. */
const MAX_LATE = 65_536;

/** @typedef {{stream: string, from: number, to: number}} Range */

export class Acks {
  /** @type {Range[]} */ #ranges = [];
  /** Messages that were finished after their connection had ended. @type {Set<string>} */
  #late = new Set();
  count = 0;

  /** @param {string} stream @param {number} offset */
  add(stream, offset) {
    this.count += 1;
    const last = this.#ranges.at(-1);
    if (last && last.to + 1 === offset && last.stream === stream) last.to = offset;
    else this.#ranges.push({ stream, from: offset, to: offset });
  }

  /** All that is to be told, and nothing of it any more. */
  take() {
    const ranges = this.#ranges;
    this.#ranges = [];
    this.count = 0;
    return ranges;
  }

  /** Finishes a message whose connection has ended: it will come again, and is done then. */
  late(/** @type {import("./message.js").Message} */ { stream, generation, offset }) {
    this.#late.add(`${generation} ${offset} ${stream}`);
    if (this.#late.size > MAX_LATE) this.#late.delete(this.#late.values().next().value ?? "");
  }

  /** Whether it was finished on an earlier connection. @param {Record<string, any>} deliver */
  isLate({ stream, generation, offset }) {
    return this.#late.size > 0 && this.#late.delete(`${generation} ${offset} ${stream}`);
  }
}
