// The scripts of vectors/clients in Node.js.
import { describe, test } from "node:test";
import { Client, json } from "@sealane/client";
import { cbor } from "@sealane/client/cbor";
import { msgpack } from "@sealane/client/msgpack";
import { Hub } from "./lab/hub.js";
import { labOf, scripts } from "./lab/lab.js";
import { run } from "./lab/runner.js";

const codecs = { json, msgpack, cbor };

// Most of a script's time is waiting.
const found = await scripts("node");
describe("scripts of clients in Node.js", { concurrency: 4 }, () => {
  for (const [name, script] of found) {
    test(`${name}: ${script.promise}`, async () => {
      const hub = await Hub.begin(script.hub);
      try {
        const { address, ca, tokens } = hub;
        await run(script, { Client, codecs, address, ca, token: tokens.all, lab: labOf(hub) });
      } finally {
        await hub.remove();
      }
    });
  }
});
