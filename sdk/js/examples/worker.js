// Works on the jobs of a topic, and tries again where one fails:
//
//   node examples/worker.js 127.0.0.1:9087 jobs/mail
//
// A job that fails comes again after 1 s, then after 2 s, 4 s and 8 s. After five attempts it is a
// dead letter in `dead/jobs/mail`. Start as many workers as you like: they share the jobs.
import { Client } from "@sealane/client";

const [address, topic] = process.argv.slice(2);
const client = new Client(address, { token: process.env.SEALANE_TOKEN });
// One job at a time: what this worker does not hold, another one can do.
const options = { consumer: "worker", credit: 1, maxAttempts: 5, ackWaitMs: 300_000 };
const jobs = client.subscribe(topic, options);
// Jobs that are finished are told to the hub before the program ends.
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => client.close());

/** The work itself. @param {Record<string, any>} job */
async function work({ to, text }) {
  if (!to) throw new Error("the job names nobody");
  console.log(`to ${to}: ${text}`);
}

for await (const job of jobs) {
  try {
    await work(job.envelope);
    job.ack();
  } catch (error) {
    console.error(`job ${job.offset}, attempt ${job.attempt}:`, String(error));
    job.nack({ delayMs: 1000 * 2 ** (job.attempt - 1) });
  }
}
