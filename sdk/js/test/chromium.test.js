// The scripts of vectors/clients in pages of another site.
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { Browser } from "./lab/chromium.js";
import { Hub } from "./lab/hub.js";
import { labOf, scripts } from "./lab/lab.js";

/** Runs in the page. @param {{script: any, address: string, token?: string}} given */
async function inPage({ script, address, token }) {
  const own = (/** @type {string} */ name) => import(name);
  const [{ Client, json }, { msgpack }, { cbor }, { run }] = await Promise.all([
    own("/src/web.js"),
    own("/src/msgpack.js"),
    own("/src/cbor.js"),
    own("/test/lab/runner.js"),
  ]);
  const { lab } = /** @type {any} */ (globalThis);
  await run(script, { Client, codecs: { json, msgpack, cbor }, address, token, lab });
}

const found = await scripts("chromium");
const browser = await Browser.launch();
after(() => browser.close());

describe("scripts of clients in Chromium", { concurrency: 4 }, () => {
  for (const [name, script] of found) {
    test(`${name}: ${script.promise}`, async () => {
      const { flags = [], ...rest } = script.hub ?? {};
      const hub = await Hub.begin({ flags: [...flags, "--origin", browser.origin], ...rest });
      const { page, faults } = await browser.page();
      try {
        await page.exposeFunction("lab", labOf(hub));
        const { address, tokens } = hub;
        await page.evaluate(inPage, { script, address, token: tokens.all });
        assert.deepEqual(faults, []);
      } finally {
        await page.close();
        await hub.remove();
      }
    });
  }
});
