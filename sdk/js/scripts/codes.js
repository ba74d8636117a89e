// Writes src/codes.js from spec/errors.json: node scripts/codes.js [--check]
import { readFileSync, writeFileSync } from "node:fs";

const spec = new URL("../../../spec/errors.json", import.meta.url);
const made = new URL("../src/codes.js", import.meta.url);
/** Codes that a hub sends: those of the hub, the node, codecs and topics. */
const SENT = /^SL-(HUB|NODE|CODEC|TOPIC)-/;

/** @type {{code: string, name: string, retry: string}[]} */
const all = JSON.parse(readFileSync(spec, "utf8"));
const sent = all.filter(({ code }) => SENT.test(code));
const names = (/** @type {string} */ retry) =>
  sent.filter((one) => one.retry === retry).map(({ name }) => name);
const lines = (/** @type {string[]} */ list) => {
  const text = list.join(" ");
  return (text.match(/.{1,94}(?: |$)/g) ?? []).map((line) => `  ${line.trimEnd()}`).join("\n");
};
const list = (/** @type {string} */ name, /** @type {string} */ retry, /** @type {string} */ doc) =>
  `/** ${doc} */\nexport const ${name} = \`\n${lines(names(retry))}\n\`;\n`;
const text = `// Made by \`node scripts/codes.js\` from spec/errors.json.

${list("FINAL", "never", "Refusals that the same request always gets.")}
${list("PASSING", "later", "Refusals after which the same request may be sent again later.")}
${list("RECONNECTING", "reconnect", "What ends a connection, and not the next one.")}`;

if (process.argv.includes("--check")) {
  if (readFileSync(made, "utf8") !== text) {
    console.error("src/codes.js is old: run `node scripts/codes.js`");
    process.exitCode = 1;
  }
} else writeFileSync(made, text);
