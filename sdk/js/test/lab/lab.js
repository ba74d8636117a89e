// What the steps of a script ask of the outside: the hub, and requests without a client.
import assert from "node:assert/strict";
import { request } from "node:http";
import { request as requestTls } from "node:https";
import { readFile, readdir } from "node:fs/promises";

const FOLDER = new URL("../../../../vectors/clients/", import.meta.url);

/**
 * The scripts that run in a runtime, as [name, script]; with SCRIPT those of that beginning.
 *
 * @param {string} runtime
 */
export async function scripts(runtime) {
  const { SCRIPT = "" } = process.env;
  const isMeant = (/** @type {string} */ name) => name.endsWith(".json") && name.startsWith(SCRIPT);
  const names = (await readdir(FOLDER)).filter(isMeant).sort();
  const all = names.map(async (name) => {
    const script = JSON.parse(await readFile(new URL(name, FOLDER), "utf8"));
    return /** @type {[string, any]} */ ([name.replace(".json", ""), script]);
  });
  return (await Promise.all(all)).filter(([, { not }]) => not?.[runtime] === undefined);
}

/** Does a verb of the laboratory. @param {import("./hub.js").Hub} hub */
export const labOf = (hub) => async (/** @type {string} */ verb, /** @type {any} */ fields) => {
  if (verb === "http") return http(hub, fields);
  const verbs = ["start", "kill", "stop", "freeze", "thaw", "token", "revoke", "certificate"];
  assert.ok(verbs.includes(verb), `there is no verb ${verb}`);
  return /** @type {any} */ (hub)[verb](fields);
};

/**
 * One request in JSON; the value of its answer.
 *
 * @param {import("./hub.js").Hub} hub @param {Record<string, any>} fields
 */
export async function http(hub, { method, path, query, body, headers = {}, status = 200 }) {
  const ask = hub.ca ? requestTls : request;
  const token = hub.tokens.all;
  const fields = { "content-type": "application/json", ...headers };
  if (token && !fields.authorization) fields.authorization = `Bearer ${token}`;
  const reply = await new Promise((resolve, reject) => {
    const options = { method, headers: fields, ca: hub.ca };
    const address = new URL(path, hub.address);
    for (const [name, value] of Object.entries(query ?? {})) address.searchParams.set(name, value);
    const sent = ask(address, options, resolve).on("error", reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
  if (reply.headers["content-type"] === "text/event-stream") {
    assert.equal(reply.statusCode, status);
    reply.destroy();
    return undefined;
  }
  let text = "";
  for await (const part of reply) text += part;
  assert.equal(reply.statusCode, status, text);
  return text.startsWith("{") ? JSON.parse(text) : text;
}
