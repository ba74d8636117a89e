// Request and reply over streams (spec/hub.md §3): a message that asks, and one that answers.

import { failure } from "./errors.js";

/** Where answers go, and nowhere else: a requester must not choose what our rights are used for. */
const REPLIES = "reply/";
const TIMEOUT_MS = 10_000;
/** A request whose handler failed comes again after this time. */
const AGAIN_MS = 1000;

/** @typedef {import("../types/index.d.ts").Client} Client */
/** @typedef {import("./message.js").Message} Message */

/**
 * Publishes a request, and waits for its answer on a stream of its own, which is removed then.
 *
 * @param {any} client @param {string} to @param {Record<string, unknown>} envelope
 * @param {import("../types/index.d.ts").RequestOptions} options
 * @returns {Promise<Message>}
 */
export async function ask(client, to, envelope, { timeoutMs = TIMEOUT_MS, signal }) {
  const [id, replyTo] = [crypto.randomUUID(), `${REPLIES}${crypto.randomUUID()}`];
  const request = { ...envelope, id, replyTo, deadlineMs: Date.now() + timeoutMs };
  const none = failure("NoReply", `no answer from ${to} within ${timeoutMs} ms`);
  const timeout = new AbortController();
  const timer = setTimeout(() => timeout.abort(none), timeoutMs);
  const over = AbortSignal.any([timeout.signal, ...(signal ? [signal] : [])]);
  // It reads before it asks: no answer can come too early.
  const answers = client.subscribe(replyTo, { from: "first", credit: 1, signal: over });
  const answer = first(answers, id);
  const published = client.publish(to, request);
  // Only one of them is waited for where the other fails.
  for (const one of [answer, published]) one.catch(() => {});
  try {
    // The loop ends when time is over, also while the request is not stored yet.
    await Promise.race([published, answer]);
    return await answer;
  } finally {
    clearTimeout(timer);
    await answers.close();
    // A hub that was asked in vain removes the stream itself, with `--reply-ttl`.
    client.remove(replyTo).catch(() => {});
  }
}

/** @param {AsyncIterable<Message>} answers @param {string} id */
async function first(answers, id) {
  for await (const answer of answers) if (answer.envelope.inReplyTo === id) return answer;
  throw failure("Ended", "the client was closed");
}

/** Answers requests until it is closed. */
export class Replier {
  #client;
  #settings;
  #answer;
  #options;
  #requests;
  /** When it has ended; it fails with what ended it. @type {Promise<void>} */
  done;

  /**
   * @param {any} client @param {import("./client.js").Settings} settings @param {string} to
   * @param {import("../types/index.d.ts").Answer} answer
   * @param {import("../types/index.d.ts").ReplyOptions} options
   */
  constructor(client, settings, to, answer, options) {
    this.#client = client;
    this.#settings = settings;
    this.#answer = answer;
    this.#options = options;
    this.#requests = client.subscribe(to, { consumer: "reply", credit: 1, ...options });
    this.done = this.#run();
    // A program that does not look at `done` is told by `close`.
    this.done.catch(() => {});
  }

  async close() {
    await this.#requests.close();
    await this.done;
  }

  async [Symbol.asyncDispose]() {
    await this.close();
  }

  async #run() {
    try {
      for await (const request of this.#requests) await this.#handle(request);
    } finally {
      this.#settings.open.delete(this);
    }
  }

  /** @param {Message} request */
  async #handle(request) {
    const { id, replyTo, deadlineMs } = request.envelope;
    const isRequest = typeof replyTo === "string" && replyTo.startsWith(REPLIES);
    // Nobody waits for these any more, or ever did.
    if (!isRequest || deadlineMs < Date.now()) return request.ack();
    try {
      const answer = await this.#answer(request);
      await this.#client.publish(replyTo, { ...answer, inReplyTo: id });
      request.ack();
    } catch (error) {
      this.#options.onEvent?.({ type: "failed", error, message: request });
      request.nack({ delayMs: AGAIN_MS });
    }
  }
}
