// Answers requests, as an agent with tools does:
//
//   node examples/agent.js 127.0.0.1:9087 tools/add
//   sealane request tools/add '{"numbers":[2,3]}'
//
// Several agents of one topic share its requests. A request is passed over when its time is over.
import { Client } from "@sealane/client";

const [address, topic] = process.argv.slice(2);
const client = new Client(address, { token: process.env.SEALANE_TOKEN });
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => client.close());

const agent = client.reply(topic, async ({ envelope }) => {
  const { numbers } = envelope;
  if (!Array.isArray(numbers)) return { error: "give `numbers`, a list" };
  return { sum: numbers.reduce((sum, number) => sum + number, 0) };
});
console.log(`answers ${topic}`);
await agent.done;
