// Requests over HTTP: repeated while the hub is away or busy, within the client's patience.

import { failure, refusal, unreachable } from "./errors.js";
import { Backoff, now, sleep } from "./waits.js";

/** A request that gets no answer for so long is sent again. */
const ANSWER_MS = 30_000;

/**
 * @typedef {object} Call
 * @property {string} method
 * @property {string} path
 * @property {Record<string, unknown>} [query]
 * @property {unknown} [body]
 * @property {Record<string, string>} [headers]
 * @property {AbortSignal} [signal]
 */

/**
 * One request, which has to mean the same when it comes twice. The value of the answer.
 *
 * @param {import("./client.js").Settings} settings
 * @param {Call} call
 * @returns {Promise<any>}
 */
export async function call(settings, call) {
  const backoff = new Backoff();
  const until = now() + settings.patienceMs;
  for (;;) {
    try {
      return await once(settings, call);
    } catch (error) {
      call.signal?.throwIfAborted();
      const { retry, waitMs = 0 } = /** @type {{retry?: string, waitMs?: number}} */ (error);
      const wait = Math.max(backoff.wait(), waitMs);
      if (retry === undefined || retry === "never" || now() + wait > until) throw error;
      await sleep(wait, call.signal);
    }
  }
}

/** @param {import("./client.js").Settings} settings @param {Call} call */
async function once(settings, { method, path, query = {}, body, headers, signal }) {
  const { codec, platform } = settings;
  const address = new URL(path, settings.address);
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) address.searchParams.set(name, String(value));
  }
  const token = await settings.token();
  /** @type {Record<string, string>} */
  const fields = { accept: codec.contentType, ...headers };
  if (token) fields.authorization = `Bearer ${token}`;
  if (body !== undefined) fields["content-type"] = codec.contentType;
  const timeout = AbortSignal.timeout(ANSWER_MS);
  const init = {
    method,
    headers: fields,
    body: body === undefined ? undefined : /** @type {BodyInit} */ (codec.encode(body)),
    signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
  };
  let response, bytes;
  try {
    response = await platform.fetch(address, init, settings);
    bytes = await response.arrayBuffer();
  } catch (cause) {
    signal?.throwIfAborted();
    throw unreachable(cause);
  }
  return answer(settings, response, bytes);
}

/**
 * @param {import("./client.js").Settings} settings
 * @param {Response} response
 * @param {ArrayBuffer} bytes
 */
function answer({ codec }, response, bytes) {
  const { status, headers } = response;
  const type = headers.get("content-type") ?? "";
  let value;
  try {
    value = type.includes("json") && codec.name !== "json" ? parsed(bytes) : codec.decode(bytes);
  } catch (cause) {
    // A proxy in between answers in its own words.
    const retry = status >= 500 ? "later" : "never";
    const error = failure("NotTheProtocol", `HTTP ${status} without the hub's words`, "", cause);
    throw Object.assign(error, { retry });
  }
  if (response.ok) return value;
  const wire = /** @type {{error?: unknown}} */ (value)?.error;
  const error = refusal(wire, status >= 500 || status === 429 ? "later" : "never");
  const waitMs = 1000 * Number(headers.get("retry-after") ?? 0) || 0;
  throw Object.assign(error, { waitMs, status });
}

/** @param {ArrayBuffer} bytes */
const parsed = (bytes) => JSON.parse(new TextDecoder().decode(bytes));
