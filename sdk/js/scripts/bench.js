// Rates of the client beside the plain protocol by hand, in the same runtime and run:
//
//   node scripts/bench.js [MESSAGES] [ROUNDS]
//
// Both take turns, after a round that warms up. Each line has the median and the spread of both.
import { WebSocket } from "ws";
import { Client } from "@sealane/client";
import { Hub } from "../test/lab/hub.js";

const [messages = 100_000, rounds = 5] = process.argv.slice(2).map(Number);
/** An envelope of about 100 bytes. */
const BODY = {
  kind: "location",
  lat: 48.208176,
  lon: 16.373819,
  speed: 13.5,
  note: "x".repeat(20),
};
const WINDOW = 1024;
const BATCH = 256;
const ITEMS = 64;

const hub = await Hub.begin();
const client = new Client(hub.address);

/** @param {string} path @param {string} query */
function socketOf(path, query) {
  const address = `${hub.address.replace("http", "ws")}${path}?${query}`;
  return new WebSocket(address, ["json"], { perMessageDeflate: false });
}

/** Reads all messages as a program without a client does. */
async function readByHand() {
  const socket = socketOf("/v1/subscribe", `stream=bench&from=first&batch=${BATCH}`);
  let [count, granted] = [0, WINDOW];
  socket.on("open", () => socket.send(JSON.stringify({ credit: WINDOW })));
  await new Promise((/** @type {(none?: any) => void} */ done) => {
    socket.on("message", (data) => {
      const frame = JSON.parse(data.toString());
      for (const { offset } of frame.batch ?? (frame.deliver ? [frame] : [])) {
        if (offset !== count) throw new Error("a message is missing");
        count += 1;
        granted -= 1;
      }
      if (count === messages) done();
      else if (granted <= WINDOW / 2) {
        socket.send(JSON.stringify({ credit: WINDOW - granted }));
        granted = WINDOW;
      }
    });
  });
  socket.terminate();
}

async function readByClient() {
  let count = 0;
  for await (const { offset } of client.subscribe("bench", { from: "first" })) {
    if (offset !== count) throw new Error("a message is missing");
    count += 1;
    if (count === messages) break;
  }
}

/** Publishes as many over a socket, as the hub asks for them. @param {string} to */
async function publishByHand(to) {
  const socket = socketOf("/v1/publish", "");
  let [n, answered] = [0, 0];
  const credit = { messages: 0, bytes: 0 };
  await new Promise((/** @type {(none?: any) => void} */ done) => {
    const fill = () => {
      while (credit.messages > 0 && credit.bytes > 0 && n < messages) {
        const items = [];
        while (items.length < ITEMS && credit.messages > 0 && credit.bytes > 0 && n < messages) {
          n += 1;
          const item = JSON.stringify({ to, n, envelope: BODY });
          credit.messages -= 1;
          credit.bytes -= item.length;
          items.push(item);
        }
        socket.send(`{"publish":[${items.join(",")}]}`);
      }
    };
    socket.on("message", (data) => {
      const { credit: more, bytes, published } = JSON.parse(data.toString());
      if (more !== undefined) {
        credit.messages += more;
        credit.bytes += bytes;
        fill();
      } else if (published) {
        const { from = published.n, to: last = published.n } = published;
        answered += last - from + 1;
        if (answered === messages) done();
      }
    });
  });
  socket.terminate();
}

/** @param {string} to */
async function publishByClient(to) {
  const publisher = client.publisher();
  for (let n = 0; n < messages; n += 1) await publisher.send(to, BODY);
  await publisher.flush();
  await publisher.close();
}

/** Messages in a second. @param {() => Promise<void>} work */
async function rate(work) {
  const began = performance.now();
  await work();
  return (messages / (performance.now() - began)) * 1000;
}

/** @param {number[]} rates */
function summary(rates) {
  const sorted = [...rates].sort((one, other) => one - other);
  const middle = sorted[Math.floor(sorted.length / 2)];
  const spread = (100 * (sorted[sorted.length - 1] - sorted[0])) / middle;
  return { middle, text: `${Math.round(middle).toLocaleString("en")}/s ±${spread.toFixed(0)} %` };
}

/**
 * @param {string} what
 * @param {(round: number) => Promise<void>} byHand
 * @param {(round: number) => Promise<void>} byClient
 */
async function compare(what, byHand, byClient) {
  /** @type {[number[], number[]]} */
  const rates = [[], []];
  for (let round = 0; round <= rounds; round += 1) {
    for (const [at, work] of [byHand, byClient].entries()) {
      const one = await rate(() => work(round));
      if (round > 0) rates[at].push(one);
    }
  }
  const [hand, ours] = rates.map(summary);
  const ratio = (ours.middle / hand.middle).toFixed(2);
  console.log(
    `${what.padEnd(10)} by hand ${hand.text.padEnd(20)} client ${ours.text.padEnd(20)} ${ratio}`,
  );
}

try {
  await client.configure("bench", { level: "memory" });
  await publishByHand("bench");
  await compare("deliveries", readByHand, readByClient);
  await compare(
    "publishing",
    (round) => publishByHand(`hand/${round}`),
    (round) => publishByClient(`client/${round}`),
  );
} finally {
  await client.close();
  await hub.remove();
}
