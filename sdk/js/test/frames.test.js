// What a hub must not send: frames cut, changed, out of order, beyond credit, of streams that were
// not asked for, and offsets that lie. Each ends what is open with a name, and nothing stays.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { describe, test } from "node:test";
import { WebSocketServer } from "ws";
import { Client, SealaneError, errors } from "@sealane/client";
import { msgpack } from "@sealane/client/msgpack";
import { until } from "./lab/hub.js";

const FEATURES = ["batch", "nack-delay", "seek", "sealed", "publish", "session-next"];
const SUBSCRIBED = {
  status: "subscribed",
  stream: "a",
  generation: 1,
  offset: 0,
  recovered: true,
  codec: "json",
  level: "disk",
  sealed: null,
  time: 1,
  features: FEATURES,
};
const PATTERN = { status: "subscribed", stream: "a/*", codec: "json", time: 1, features: FEATURES };
const JOINED = { status: "joined", stream: "a/1", generation: 1, offset: 0, recovered: true };

/** @param {number} offset @param {object} [changes] */
const deliver = (offset, changes) => ({
  deliver: { id: `${offset}` },
  stream: "a",
  offset,
  generation: 1,
  attempt: 1,
  storedMs: 1,
  ...changes,
});

/**
 * A hub that says what it is told to. `says` is given what a client sends, and how to answer.
 *
 * @param {(frame: any, say: (frame: unknown) => void, query: URLSearchParams) => void} says
 */
async function fakeHub(says) {
  const http = createServer().listen(0, "127.0.0.1");
  const handleProtocols = (/** @type {Set<string>} */ [first]) => first;
  const sockets = new WebSocketServer({ server: http, handleProtocols });
  await once(http, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (http.address());
  let connections = 0;
  sockets.on("connection", (socket, { url }) => {
    connections += 1;
    const query = new URL(url ?? "", "http://hub").searchParams;
    const say = (/** @type {any} */ frame) =>
      socket.send(
        typeof frame === "string" || Buffer.isBuffer(frame) ? frame : JSON.stringify(frame),
      );
    says(null, say, query);
    socket.on("message", (data) => says(JSON.parse(String(data)), say, query));
  });
  return {
    address: `127.0.0.1:${port}`,
    sockets: sockets.clients,
    get connections() {
      return connections;
    },
    async close() {
      for (const client of sockets.clients) client.terminate();
      sockets.close();
      http.close();
      await once(http, "close");
    },
  };
}

/**
 * A hub that says `first` at once and `rest` at the first credit.
 *
 * @param {any} first @param {any[]} rest
 */
const saying = (first, rest) => {
  /** @type {Parameters<typeof fakeHub>[0]} */
  const says = (frame, say) => {
    if (frame === null) say(first);
    else if (frame.credit) for (const one of rest) say(one);
  };
  return fakeHub(says);
};

/**
 * Each: what, topic, first frame, others, messages before.
 *
 * @type {[string, string, any, any[], number][]}
 */
const LIES = [
  ["a frame that is cut", "a", SUBSCRIBED, [deliver(0), '{"deliver":{"id"'], 1],
  ["a frame that is empty", "a", SUBSCRIBED, [""], 0],
  ["a frame that is no map", "a", SUBSCRIBED, ["[]"], 0],
  ["a frame that is a number", "a", SUBSCRIBED, ["7"], 0],
  ["a binary frame in a text codec", "a", SUBSCRIBED, [Buffer.from([0x81, 0xff, 0])], 0],
  ["a delivery before the subscription stands", "a", deliver(0), [], 0],
  ["a batch that is no list", "a", SUBSCRIBED, [{ batch: 7 }], 0],
  ["an envelope that is a text", "a", SUBSCRIBED, [deliver(0, { deliver: "x" })], 0],
  ["an envelope that is null", "a", SUBSCRIBED, [deliver(0, { deliver: null })], 0],
  ["a stream that is no text", "a", SUBSCRIBED, [deliver(0, { stream: 7 })], 0],
  ["an offset that is a text", "a", SUBSCRIBED, [deliver(0, { offset: "0" })], 0],
  ["an offset that is negative", "a", SUBSCRIBED, [deliver(-1)], 0],
  ["an offset that is a fraction", "a", SUBSCRIBED, [deliver(0.5)], 0],
  ["an offset beyond all numbers", "a", SUBSCRIBED, [deliver(2 ** 60)], 0],
  ["no attempt", "a", SUBSCRIBED, [deliver(0, { attempt: undefined })], 0],
  ["no time", "a", SUBSCRIBED, [deliver(0, { storedMs: null })], 0],
  ["an offset that is left out", "a", SUBSCRIBED, [deliver(0), deliver(2)], 1],
  ["an offset that comes again", "a", SUBSCRIBED, [deliver(0), deliver(0)], 1],
  ["offsets in another order", "a", SUBSCRIBED, [deliver(1), deliver(0)], 0],
  ["an offset before the beginning", "a", { ...SUBSCRIBED, offset: 5 }, [deliver(4)], 0],
  ["a beginning at no offset", "a", { ...SUBSCRIBED, offset: "x" }, [], 0],
  ["a gap that is no range", "a", SUBSCRIBED, [{ status: "gap", stream: "a", from: 3, to: 1 }], 0],
  ["a gap that begins later", "a", SUBSCRIBED, [{ status: "gap", stream: "a", from: 3, to: 5 }], 0],
  ["a stream that was not asked for", "a", SUBSCRIBED, [deliver(0, { stream: "b" })], 0],
  ["a stream of another pattern", "a/*", PATTERN, [{ ...JOINED, stream: "a/1/2" }], 0],
  ["a stream that did not begin", "a/*", PATTERN, [deliver(0, { stream: "a/1" })], 0],
  ["more than was asked for", "a", SUBSCRIBED, [0, 1, 2, 3, 4].map((n) => deliver(n)), 4],
];

describe("subscriptions", { concurrency: 8 }, () => {
  for (const [what, topic, first, rest, before] of LIES) {
    test(`${what} ends the loop as no frame of the protocol`, async () => {
      const hub = await saying(first, rest);
      const client = new Client(hub.address);
      let count = 0;
      const reading = async () => {
        const options = { from: "first", credit: 4 };
        for await (const { offset } of client.subscribe(topic, options)) {
          assert.equal(offset, count);
          count += 1;
          // The queue is not looked at, so that no further credit is given.
          if (what.startsWith("more")) await until(() => hub.sockets.size === 0, "the end");
        }
      };
      await assert.rejects(reading, { code: "NotTheProtocol", name: "NotTheProtocol" });
      assert.equal(count, before);
      assert.equal(hub.connections, 1, "it is not tried again");
      await until(() => hub.sockets.size === 0, "the connection is closed");
      await client.close();
      await hub.close();
    });
  }

  test("a stream that was not asked for ends the loop of a consumer", async () => {
    const hub = await saying(SUBSCRIBED, [deliver(0, { stream: "b" })]);
    const client = new Client(hub.address);
    const subscription = client.subscribe("a", { consumer: "w" });
    await assert.rejects(subscription.next(), { code: "NotTheProtocol" });
    await client.close();
    await hub.close();
  });

  test("frames of a newer hub are passed over", async () => {
    const newer = [{ status: "moved" }, { weather: "fine" }, { batch: [{ weather: "fine" }] }];
    const hub = await saying(SUBSCRIBED, [...newer, deliver(0, { colour: "red" })]);
    const client = new Client(hub.address);
    const { value } = await client.subscribe("a", { from: "first" }).next();
    assert.equal(value.offset, 0);
    await client.close();
    await hub.close();
  });

  test("a code of a newer hub ends the loop with its words", async () => {
    const error = { code: "Tired", message: "the hub is tired", hint: "Sleep.", ref: "SL-HUB-99" };
    const hub = await saying({ error }, []);
    const client = new Client(hub.address);
    const end = await client
      .subscribe("a", { from: "first" })
      .next()
      .catch((told) => told);
    assert.ok(end instanceof SealaneError);
    const { code, message, hint, ref } = end;
    assert.deepEqual({ code, message, hint, ref }, error);
    await client.close();
    await hub.close();
  });

  test("a hub without `seek` is read again, and nothing comes twice", async () => {
    const first = { ...PATTERN, features: ["batch"] };
    const one = (/** @type {number} */ n) => deliver(n, { stream: "a/1" });
    let begun = 0;
    const hub = await fakeHub((frame, say) => {
      if (frame === null) return say(first);
      if (!frame.credit) return undefined;
      begun += 1;
      // The second connection has one message more.
      for (const each of [JOINED, one(0), one(1), ...(begun > 1 ? [one(2)] : [])]) say(each);
    });
    const client = new Client(hub.address);
    const subscription = client.subscribe("a/*", { from: "first", onEvent() {} });
    assert.equal((await subscription.next()).value.offset, 0);
    assert.equal((await subscription.next()).value.offset, 1);
    for (const socket of hub.sockets) socket.terminate();
    assert.equal((await subscription.next()).value.offset, 2);
    await client.close();
    await hub.close();
  });

  test("a hub that answers in another codec is named", async () => {
    const hub = await saying(SUBSCRIBED, []);
    const client = new Client(hub.address, { codec: msgpack });
    await assert.rejects(client.subscribe("a", { from: "first" }).next(), {
      code: "NotTheProtocol",
    });
    await client.close();
    await hub.close();
  });

  test("what was finished while the hub was away is not given again", async () => {
    let acked = 0;
    const hub = await fakeHub((frame, say) => {
      if (frame === null) say(SUBSCRIBED);
      if (frame?.credit) say({ batch: [deliver(0), deliver(1)] });
      if (frame?.ack) acked += 1;
    });
    const client = new Client(hub.address);
    /** @type {import("@sealane/client").Message | undefined} */
    let given;
    const subscription = client.subscribe("a", {
      consumer: "w",
      onEvent: ({ type }) => type === "reconnecting" && given?.ack(),
    });
    given = (await subscription.next()).value;
    for (const socket of hub.sockets) socket.terminate();
    const again = await subscription.next();
    assert.equal(again.value.offset, 1);
    await until(() => acked > 0, "it is acknowledged on the new connection");
    await client.close();
    await hub.close();
  });
});

const SESSION = { codec: "json", time: 1, features: FEATURES };
const CREDIT = { credit: 8, bytes: 4096 };

/** @type {[string, any[]][]} what, and the answers to the first message */
const ANSWERS = [
  ["an answer that is cut", ['{"published":{"n":1']],
  ["an answer to a number that was not sent", [{ published: { n: 2, stream: "a", offset: 0 } }]],
  ["an answer of another stream", [{ published: { n: 1, stream: "b", offset: 0 } }]],
  ["an answer to no number", [{ published: { stream: "a", offset: 0 } }]],
  ["an answer to a range that is none", [{ published: { from: 3, to: 1, stream: "a" } }]],
  ["an answer to more than was sent", [{ published: { from: 1, to: 9, stream: "a", offset: 0 } }]],
  ["a credit that is no number", [{ credit: "many", bytes: 1 }]],
];

describe("publishing", { concurrency: 8 }, () => {
  for (const [what, answers] of ANSWERS) {
    test(`${what} ends the publisher as no frame of the protocol`, async () => {
      const hub = await fakeHub((frame, say, query) => {
        if (frame?.publish) return answers.forEach(say);
        say({ ...SESSION, session: query.get("session") });
        say(CREDIT);
      });
      const client = new Client(hub.address);
      const publisher = client.publisher();
      const sent = publisher.publish("a", {}).catch((error) => error.code);
      const outcome = await sent;
      // The first of several may have been answered before the lie.
      assert.ok(outcome === "NotTheProtocol" || what.includes("more than"), outcome);
      await assert.rejects(publisher.publish("a", {}), { code: "NotTheProtocol" });
      await until(() => hub.sockets.size === 0, "the connection is closed");
      await client.close();
      await hub.close();
    });
  }

  test("a publisher keeps to the credit", async () => {
    let got = 0;
    const hub = await fakeHub((frame, say, query) => {
      if (frame?.publish) got += frame.publish.length;
      else (say({ ...SESSION, session: query.get("session") }), say({ credit: 3, bytes: 4096 }));
    });
    const client = new Client(hub.address, { patienceMs: 100 });
    const all = Array.from({ length: 20 }, () => client.publish("a", {}).catch(() => {}));
    await until(() => got === 3, "what was asked for comes");
    await new Promise((resolve) => setTimeout(resolve, 100));
    assert.equal(got, 3);
    await hub.close();
    await Promise.all(all);
    await client.close();
  });

  test("what was not answered is sent again with the same numbers", async () => {
    /** @type {any[]} */
    const seen = [];
    const hub = await fakeHub((frame, say, query) => {
      const session = query.get("session");
      if (!frame) return (say({ ...SESSION, session }), say(CREDIT));
      for (const item of frame.publish) {
        seen.push([session, item.n, item.envelope.v]);
        if (seen.length > 3)
          say({
            published: { n: item.n, stream: "a", offset: item.n, generation: 1, level: "disk" },
          });
      }
      if (seen.length === 3) for (const socket of hub.sockets) socket.terminate();
    });
    const client = new Client(hub.address);
    await Promise.all(["x", "y", "z"].map((v) => client.publish("a", { v })));
    assert.deepEqual(seen.slice(0, 3), seen.slice(3));
    assert.deepEqual(
      seen.map(([, n]) => n),
      [1, 2, 3, 1, 2, 3],
    );
    await client.close();
    await hub.close();
  });
});

test("no hub at all: requests and messages are given up, and say why", async () => {
  const client = new Client("127.0.0.1:1", { patienceMs: 100 });
  await assert.rejects(client.health(), (error) => error instanceof errors.NotReachable);
  await assert.rejects(client.publish("a", {}), { code: "NoAnswer" });
  await client.close();
  await assert.rejects(client.publish("a", {}), { code: "Ended" });
  assert.throws(() => client.subscribe("a"), { code: "Ended" });
});

test("an address that is none is refused at once", () => {
  for (const address of ["ftp://hub", "http://", "a b"]) {
    assert.throws(() => new Client(address), { code: "InvalidAddress" }, address);
  }
});

test("a signal ends a loop with its reason", async () => {
  const hub = await saying(SUBSCRIBED, [deliver(0)]);
  const client = new Client(hub.address);
  const controller = new AbortController();
  const subscription = client.subscribe("a", { from: "first", signal: controller.signal });
  assert.equal((await subscription.next()).value.offset, 0);
  const waiting = subscription.next();
  controller.abort(new Error("enough"));
  await assert.rejects(waiting, { message: "enough" });
  assert.deepEqual(await subscription.next(), { value: undefined, done: true });
  await until(() => hub.sockets.size === 0, "the connection is closed");
  await hub.close();
});
