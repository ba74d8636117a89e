// `@sealane/client` for browsers, Deno and Bun: what stands there already is used.

import { makeClient } from "./client.js";

/** @type {import("./client.js").Platform} */
const platform = {
  fetch: (address, init) => fetch(address, { cache: "no-store", ...init }),
  socket: async (address, protocols) => new WebSocket(address, protocols),
  // A page has no other way, and nothing that waits for it.
  drop: (socket) => socket.close(),
};

export const Client = makeClient(platform);
export { SealaneError, errors } from "./errors.js";
export { json } from "./json.js";
