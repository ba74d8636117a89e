// The hub's OpenAPI page through openapi-typescript: node generated.mjs HOST:PORT
// The types are made of the page as the hub serves it. A program of a user is checked against them
// by TypeScript's own compiler, and then publishes and reads.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import openapiTS, { astToString } from 'openapi-typescript';
import ts from 'typescript';

const [address] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));

// `status` tells the frames of a page's gaps apart, so that the compiler knows their fields.
const PROGRAM = `
import createClient from 'openapi-fetch';
import type { components, paths } from './hub.js';

type Status = components['schemas']['Status'];

function said(frame: Status): string {
  switch (frame.status) {
    case 'subscribed':
      return frame.codec;
    case 'joined':
      return frame.level;
    case 'gap':
      return \`\${frame.from} to \${frame.to}: \${frame.reason}\`;
  }
}

export async function run(baseUrl: string) {
  const hub = createClient<paths>({ baseUrl });
  const envelopes = [{ n: 0 }, { n: 1 }, { n: 2 }];
  const stored = await hub.POST('/v1/enqueue/batch', { body: { to: 'made', envelopes } });
  const change = { body: { before: 1 }, params: { path: { topic: 'made' } } };
  await hub.POST('/v1/purge/{topic}', change);
  const params = { path: { topic: 'made' }, query: { from: 'first' } };
  const { data, error } = await hub.GET('/v1/streams/{topic}', { params });
  if (error || !data || !('messages' in data)) throw new Error(JSON.stringify(error ?? data));
  const read = data.messages.map((message) => message.deliver.n);
  const wrong = await hub.POST('/v1/enqueue', { body: { to: 'a//b', envelope: {} } });
  const gaps = data.gaps.map(said);
  return { count: stored.data?.count, read, gaps, code: wrong.error?.error.code };
}
`;

// A program that reads a field of another frame must not pass: else the types would say nothing.
const WRONG = `
import type { components } from './hub.js';
export const said = (frame: components['schemas']['Status']) =>
  frame.status === 'gap' ? frame.codec : frame.status;
`;

const options = {
  strict: true,
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  skipLibCheck: true,
  lib: ['lib.es2022.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'],
  types: [],
};

/** What the compiler says of a file, and the JavaScript that it makes. */
function compile(file) {
  const program = ts.createProgram([file], options);
  const found = ts.getPreEmitDiagnostics(program);
  program.emit();
  return found.map((one) => ts.flattenDiagnosticMessageText(one.messageText, '\n'));
}

// The packages are found from a folder below this one.
const folder = await mkdtemp(join(here, 'node_modules', '.generated-'));
try {
  const page = await (await fetch(`http://${address}/v1/openapi.json`)).text();
  await writeFile(join(folder, 'hub.d.ts'), astToString(await openapiTS(page)));
  await writeFile(join(folder, 'package.json'), '{"type": "module"}');
  await writeFile(join(folder, 'right.ts'), PROGRAM);
  await writeFile(join(folder, 'wrong.ts'), WRONG);
  assert.deepEqual(compile(join(folder, 'right.ts')), []);
  const wrong = compile(join(folder, 'wrong.ts'));
  assert.ok(wrong.length === 1 && wrong[0].includes("'codec' does not exist"), wrong.join());
  const { run } = await import(pathToFileURL(join(folder, 'right.js')));
  const { count, read, code } = await run(`http://${address}`);
  assert.deepEqual([count, read, code], [3, [1, 2], 'InvalidTopic']);
  console.log('done');
} finally {
  await rm(folder, { recursive: true, force: true });
}
