// The examples, and the programs of the README as they stand, against a real hub.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Client } from "@sealane/client";
import { Browser } from "./lab/chromium.js";
import { Hub, until } from "./lab/hub.js";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** A program of Node.js, and what it has said. */
class Program {
  said = "";

  /** @param {string[]} words */
  constructor(words) {
    this.process = spawn(process.execPath, words, { cwd: ROOT });
    for (const stream of [this.process.stdout, this.process.stderr]) {
      stream.on("data", (data) => {
        this.said += data;
      });
    }
  }

  /** @param {string} text */
  async says(text) {
    await until(() => {
      const hasFailed = this.process.exitCode !== null && this.process.exitCode !== 0;
      assert.ok(!hasFailed, this.said);
      return this.said.includes(text);
    }, `${text} is not said, but ${this.said};`);
  }

  /** Ends it as a terminal does; the code with which it ended. */
  async stop() {
    if (this.process.exitCode !== null) return this.process.exitCode;
    const ended = once(this.process, "exit");
    this.process.kill("SIGTERM");
    return (await ended)[0];
  }
}

/** @type {Hub} */ let hub;
/** @type {Browser} */ let browser;
/** @type {Client} */ let client;

before(async () => {
  browser = await Browser.launch();
  hub = await Hub.begin({ flags: ["--origin", browser.origin] });
  client = new Client(hub.address);
});
after(async () => {
  await client?.close();
  await hub?.remove();
  await browser?.close();
});

test("the programs of the README run as they stand", async () => {
  const text = await readFile(`${ROOT}README.md`, "utf8");
  const programs = text.matchAll(/<!-- says (.+) -->\n```js\n([^]+?)```/g);
  let count = 0;
  for (const [, said, code] of programs) {
    count += 1;
    const own = code.replaceAll("http://127.0.0.1:9087", hub.address);
    assert.notEqual(own, code, "a program names the hub");
    const program = new Program(["--input-type=module", "--eval", own]);
    await program.says(said);
    await program.stop();
  }
  assert.ok(count >= 4, `${count} programs`);
});

test("a worker finishes what it can, and the rest becomes dead letters", async () => {
  const worker = new Program(["examples/worker.js", hub.address, "jobs/mail"]);
  await client.publish("jobs/mail", { to: "ada", text: "hello" });
  await client.publish("jobs/mail", { text: "to nobody" });
  await client.publish("jobs/mail", { to: "bob", text: "bye" });
  await worker.says("to ada: hello");
  await worker.says("to bob: bye");
  await worker.says("job 1, attempt 2");
  assert.equal(await worker.stop(), 0, worker.said);
  const { unfinished } = await client.consumer("jobs/mail", "worker");
  assert.equal(unfinished, 1);
});

test("an agent answers, also what it cannot do", async () => {
  const agent = new Program(["examples/agent.js", hub.address, "tools/add"]);
  const { envelope } = await client.request("tools/add", { numbers: [2, 3] });
  assert.equal(envelope.sum, 5);
  const refused = await client.request("tools/add", { numbers: "many" });
  assert.match(String(refused.envelope.error), /numbers/);
  assert.equal(await agent.stop(), 0, agent.said);
});

test("a page shows where a fleet is, and goes on after a kill", async () => {
  await client.publish("fleet/red/location", { lat: 48, lon: 16 });
  const { page, faults } = await browser.page(`/examples/map.html#${hub.address}`);
  const place = (/** @type {string} */ name) =>
    page.locator("g", { hasText: name }).getAttribute("transform");
  await until(async () => (await place("red")) === "translate(16 -48)", "red is shown");
  await hub.kill();
  await hub.start();
  await client.publish("fleet/red/location", { lat: 47, lon: 15 });
  await client.publish("fleet/blue/location", { lat: -1, lon: 2 });
  await until(async () => (await place("red")) === "translate(15 -47)", "red moves");
  await until(async () => (await place("blue")) === "translate(2 1)", "blue is shown");
  assert.deepEqual(faults, []);
  await page.close();
});
