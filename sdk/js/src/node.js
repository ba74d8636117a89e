// `@sealane/client` for Node.js: WebSockets by `ws` before Node 22, and an authority to trust.

import { request } from "node:https";
import { makeClient } from "./client.js";
import { failure } from "./errors.js";

/** @typedef {import("./client.js").Settings} Settings */

const NO_WS = "Install the package `ws`, or use Node.js 22 without `ca`.";

/** The package `ws`, which is needed before Node.js 22 and where `ca` is given. */
async function packageWs() {
  try {
    return (await import("ws")).WebSocket;
  } catch (cause) {
    throw failure("FeatureMissing", "there is no WebSocket here", NO_WS, cause);
  }
}

/** @param {string} address @param {string[]} protocols @param {Settings} settings */
async function socket(address, protocols, { ca }) {
  if (ca === undefined && globalThis.WebSocket) return new WebSocket(address, protocols);
  const Socket = await packageWs();
  const options = { ca, perMessageDeflate: false, maxPayload: 64 << 20 };
  return /** @type {WebSocket} */ (
    /** @type {unknown} */ (new Socket(address, protocols, options))
  );
}

/**
 * One request with an authority of its own, which the `fetch` of Node.js cannot be given.
 *
 * @param {URL} address @param {RequestInit} init @param {Settings} settings
 * @returns {Promise<Response>}
 */
function fetchTrusting(address, { method, headers, body, signal }, { ca }) {
  const options = { method, headers: /** @type {{}} */ (headers), ca, signal: signal ?? undefined };
  return new Promise((resolve, reject) => {
    const sent = request(address, options, async (reply) => {
      try {
        const parts = [];
        for await (const part of reply) parts.push(part);
        const fields = /** @type {Record<string, string>} */ (reply.headers);
        const bodyless = parts.length === 0 ? null : Buffer.concat(parts);
        resolve(new Response(bodyless, { status: reply.statusCode, headers: fields }));
      } catch (error) {
        reject(error);
      }
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

/** @type {import("./client.js").Platform} */
const platform = {
  fetch: (address, init, settings) =>
    settings.ca === undefined ? fetch(address, init) : fetchTrusting(address, init, settings),
  socket,
  drop(socket) {
    const { terminate } = /** @type {{terminate?: () => void}} */ (/** @type {unknown} */ (socket));
    if (terminate) terminate.call(socket);
    else socket.close();
  },
};

export const Client = makeClient(platform);
export { SealaneError, errors } from "./errors.js";
export { json } from "./json.js";
