// The README's snippet in a page of another site: node snippet.mjs FILE ORIGIN LAST
//
// The page is served at ORIGIN, which the hub has to let in. It runs the snippet as it stands,
// until it has written LAST as Node.js would write it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { inspect } from 'node:util';
import { launch } from './browser.mjs';

const [file, origin, last] = process.argv.slice(2);
const html = `<!doctype html><title>t</title><script type="module">${readFileSync(file)}</script>`;
const server = createServer((_, reply) => reply.setHeader('content-type', 'text/html').end(html));
server.listen(Number(new URL(origin).port), 'localhost');
const browser = await launch();
try {
  const page = await browser.newPage();
  const faults = [];
  page.on('pageerror', (error) => faults.push(error.message));
  const done = new Promise((resolve, reject) => {
    page.on('console', async (line) => {
      if (line.type() === 'error') return reject(new Error(line.text()));
      const values = await Promise.all(line.args().map((value) => value.jsonValue()));
      if (inspect(values, { depth: null }).includes(last)) resolve();
    });
  });
  await page.goto(`${origin}/`);
  await done;
  assert.deepEqual(faults, [], 'the browser reports errors');
  console.log('the snippet runs in a page');
} finally {
  await browser.close();
  server.close();
}
