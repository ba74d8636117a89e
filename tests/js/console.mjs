// The console in a real browser: node console.mjs sizes FILE | browser HOST:PORT [FOLDER]
//
// `sizes` checks what the console counts against what the codecs wrote: FILE holds lines of
// {"text", "json", "msgpack", "cbor"}. `browser` works with the console of a hub as a user does;
// with FOLDER it keeps pictures, wide and narrow, light and dark.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import WebSocket from 'ws';
import { read, write } from '../../crates/sealane-node/console/json.js';
import { sizes } from '../../crates/sealane-node/console/sizes.js';
import { enqueue, launch, readFrom, rows, watched } from './browser.mjs';

const [part, target, folder] = process.argv.slice(2);

function checkSizes() {
  const lines = readFileSync(target, 'utf8').trim().split('\n');
  for (const line of lines) {
    const { text, ...expected } = JSON.parse(line);
    const node = read(text);
    assert.deepEqual(sizes(node), expected, text);
    assert.equal(write(node).length, text.length, `${text} is not kept as it was`);
  }
  for (const broken of [
    '',
    '{',
    '{"a"}',
    '[1,]',
    '01',
    '"\u0001"',
    'nul',
    '[1] 2',
    '['.repeat(99),
  ]) {
    assert.throws(() => read(broken), SyntaxError, broken);
  }
  console.log(`${lines.length} messages have the sizes that the codecs wrote`);
}

const position = (n) => ({ id: `m-${n}`, type: 'location', lat: 48.2 + n / 1000, big: n + 0.5 });

// A member of a consumer that takes five messages and finishes two.
async function joinConsumer(to) {
  const socket = new WebSocket(`ws://${target}/v1/subscribe?stream=${to}&consumer=billing`);
  await new Promise((resolve, reject) => socket.on('open', resolve).on('error', reject));
  let seen = 0;
  const five = new Promise((resolve) =>
    socket.on('message', (data) => {
      if (JSON.parse(data).deliver && ++seen === 5) resolve();
    }),
  );
  socket.send(JSON.stringify({ credit: 5 }));
  await five;
  socket.send(JSON.stringify({ ack: { from: 0, to: 1 } }));
  return socket;
}

async function useConsole() {
  const browser = await launch();
  try {
    // The refusals that `publishes` asks for, and a stream that is not there yet, are no faults.
    const { page, check } = await watched(browser, target, [404, 422]);
    await page.goto(`http://${target}/`);
    await emptyHub(page);
    await isToldAndDoesNotAsk(page);
    await showsStreams(page);
    await readsAndPauses(page);
    await publishes(page);
    await showsReaders(page);
    await showsCost(page);
    await keepsMarkupAsText(page);
    await keepsATokenForTheTab(page);
    if (folder) await pictures(browser);
    check();
    console.log('the console does what it shows');
  } finally {
    await browser.close();
  }
}

async function emptyHub(page) {
  await page.getByText('No stream yet').waitFor();
}

// The overview opens one source, and asks for nothing while the hub pushes.
async function isToldAndDoesNotAsk(page) {
  const asked = [];
  const note = (request) => asked.push(new URL(request.url()).pathname);
  page.on('request', note);
  await page.reload();
  await page.getByText('No stream yet').waitFor();
  for (let n = 1; n <= 3; n += 1) {
    await enqueue(target, 'pushed', [{ n }]);
    const row = page.getByRole('row', { name: /^pushed/ });
    const depth = row.getByRole('cell').nth(1);
    await depth.filter({ hasText: new RegExp(`^${n}$`) }).waitFor();
  }
  await page.getByText('3 since the start').waitFor();
  const figures = asked.filter((path) => path !== '/' && !path.startsWith('/console/'));
  assert.deepEqual(figures, ['/v1/overview'], 'the overview asks for its figures');
  // Where nothing comes any more, no rate stands still above 0.
  await page.locator('.tile strong').first().filter({ hasText: /^0$/ }).waitFor();
  page.off('request', note);
}

async function showsStreams(page) {
  const positions = Array.from({ length: 20 }, (_, n) => position(n));
  await enqueue(target, 'fleet/7/location', positions);
  await enqueue(target, 'orders', [{ id: 'o-1', total: 3 }]);
  const row = page.getByRole('row', { name: /fleet\/7\/location/ });
  await row.waitFor();
  assert.equal(await row.getByRole('cell').nth(1).innerText(), '20');
  await page.getByLabel('Filter topics').fill('orders');
  await row.waitFor({ state: 'detached' });
  await page.getByLabel('Filter topics').fill('');
  await page.getByRole('link', { name: 'fleet/7/location' }).click();
}

const follows = (page, came) =>
  page.getByText(`following, newest first, ${came} came`, { exact: true }).waitFor();

async function readsAndPauses(page) {
  await follows(page, '0');
  assert.equal(await rows(page).count(), 20);
  assert.match(await rows(page).first().innerText(), /m-19/);
  await page.getByRole('button', { name: 'Pause' }).click();
  const more = Array.from({ length: 1000 }, (_, n) => position(20 + n));
  await enqueue(target, 'fleet/7/location', more);
  await page.locator('.facts').getByText('1,020', { exact: true }).waitFor();
  assert.ok((await rows(page).count()) <= 20 + 256, 'a paused console takes more than it granted');
  await page.getByRole('button', { name: 'Go on' }).click();
  await follows(page, '1,000');
  assert.equal(await rows(page).count(), 500, 'the page keeps more than it says');
  assert.equal(await readFrom(page, '1000'), 'offsets 1,000 to 1,019, oldest first, the end');
  assert.match(await rows(page).last().innerText(), /1,019/);
}

async function publishes(page) {
  await page.getByRole('link', { name: 'Publish' }).click();
  await page.getByLabel('Envelope', { exact: true }).fill('{"big": 18446744073709551615');
  await page.getByRole('button', { name: 'Publish' }).click();
  await page.getByText(/Not JSON/).waitFor();
  await page.getByLabel('Envelope', { exact: true }).fill('{"id": 1}');
  await page.getByRole('button', { name: 'Publish' }).click();
  await page.getByText(/InvalidEnvelope/).waitFor();
  await page
    .getByLabel('Envelope', { exact: true })
    .fill('{"id":"by-hand","big":18446744073709551615}');
  await page.getByRole('button', { name: 'Publish' }).click();
  await page.getByText(/stored at offset 1,020 \(disk\)/).waitFor();
  await page.getByRole('link', { name: 'Messages' }).click();
  await readFrom(page, '1020');
  // A number that JavaScript's own reader would change.
  await page
    .getByText(/18446744073709551615/)
    .first()
    .waitFor();
}

async function showsReaders(page) {
  const socket = await joinConsumer('fleet/7/location');
  await page.getByRole('link', { name: 'Readers' }).click();
  const row = page.getByRole('row', { name: /^billing/ });
  await row.waitFor();
  await page.waitForFunction(() => document.querySelector('tbody tr')?.cells[3].innerText === '3');
  assert.equal(await row.getByRole('cell').nth(1).innerText(), '1');
  // It granted five, took five, finished two.
  const member = page.getByRole('row', { name: /member of billing/ });
  await member.waitFor();
  const cells = await member.getByRole('cell').allInnerTexts();
  assert.deepEqual(cells.slice(1, 5), ['0', '3', '5', 'json']);
  socket.close();
  await member.waitFor({ state: 'detached' });
}

async function showsCost(page) {
  await page.getByRole('link', { name: 'Codec cost' }).click();
  await page.getByText('Bytes of the last 500 envelopes').waitFor();
  const mean = async (name) =>
    Number(await page.getByRole('row', { name }).getByRole('cell').nth(1).innerText());
  assert.ok((await mean(/CBOR/)) < (await mean(/JSON/)));
}

async function keepsMarkupAsText(page) {
  await enqueue(target, 'orders', [{ id: '<b>', html: '<img src=x onerror=alert(1)>' }]);
  await page.goto(`http://${target}/#/stream/orders`);
  await page.getByText('<img src=x onerror=alert(1)>').first().waitFor();
  assert.equal(await page.locator('.messages img, .messages b').count(), 0);
}

// A hub without tokens takes no notice of one; that they are brought the hub's own tests show.
async function keepsATokenForTheTab(page) {
  const brought = [];
  page.on('request', (request) => brought.push(request.headers().authorization));
  await page.getByLabel('Token').fill('sealane_x');
  await page.getByRole('button', { name: 'Use', exact: true }).click();
  await page.waitForTimeout(1500);
  assert.ok(brought.includes('Bearer sealane_x'), 'requests bring the token');
  await page.reload();
  assert.equal(await page.getByLabel('Token').inputValue(), 'sealane_x');
  await page.getByLabel('Token').fill('');
  await page.getByRole('button', { name: 'Use', exact: true }).click();
}

async function pictures(browser) {
  const sizesOfView = { wide: { width: 1280, height: 800 }, narrow: { width: 390, height: 844 } };
  for (const [name, viewport] of Object.entries(sizesOfView)) {
    for (const colorScheme of ['light', 'dark']) {
      const page = await browser.newPage({ viewport, colorScheme });
      await page.goto(`http://${target}/`);
      await page.waitForTimeout(2500);
      await page.screenshot({ path: `${folder}/overview-${name}-${colorScheme}.png` });
      for (const view of ['messages', 'publish', 'readers', 'cost']) {
        await page.goto(`http://${target}/#/stream/fleet/7/location?${view}`);
        await page.waitForTimeout(700);
        await page.screenshot({ path: `${folder}/${view}-${name}-${colorScheme}.png` });
      }
      await page.close();
    }
  }
}

if (part === 'sizes') checkSizes();
else await useConsole();
