// Waiting: with jitter, and until somebody does not want to wait any more.

const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 5000;

/**
 * Waits that double from 50 ms to 5 s, each shortened by up to a half at random, so that many
 * clients of one hub do not come back in step.
 */
export class Backoff {
  #next = FIRST_WAIT_MS;

  reset() {
    this.#next = FIRST_WAIT_MS;
  }

  /** The next wait in milliseconds. */
  wait() {
    const full = this.#next;
    this.#next = Math.min(full * 2, LONGEST_WAIT_MS);
    return full - (full / 2) * Math.random();
  }
}

/**
 * Waits, or until the signal is aborted.
 *
 * @param {number} ms @param {AbortSignal} [signal]
 * @returns {Promise<void>}
 */
export function sleep(ms, signal) {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done, { once: true });
  });
}

/** Milliseconds on a clock that nobody sets. */
export const now = () => performance.now();
