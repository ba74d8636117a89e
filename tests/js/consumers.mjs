// Consumers and delayed messages in the console: node consumers.mjs HOST:PORT
import assert from 'node:assert/strict';
import WebSocket from 'ws';
import { button, enqueue, launch, numbered, show, watched } from './browser.mjs';

const [target] = process.argv.slice(2);
const ask = async (path) => (await fetch(`http://${target}${path}`)).json();
const billing = () => ask('/v1/consumers/work?consumer=billing');

/** A member of the consumer `billing`; `seen` are the offsets that it was given. */
async function join() {
  const socket = new WebSocket(`ws://${target}/v1/subscribe?stream=work&consumer=billing`);
  const seen = [];
  socket.on('message', (data) => {
    const { deliver, offset } = JSON.parse(data);
    if (deliver) seen.push(offset);
  });
  await new Promise((resolve, reject) => socket.on('open', resolve).on('error', reject));
  const grant = (credit) => socket.send(JSON.stringify({ credit }));
  return { seen, grant, close: () => socket.close() };
}

/** Waits until `look` says yes. */
async function until(look, what) {
  for (let tries = 0; tries < 100; tries += 1) {
    if (await look()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.fail(what);
}

/** The next question of the page is answered so. */
const answer = (page, does) =>
  page.once('dialog', (dialog) => (does ? dialog.accept() : dialog.dismiss()));

const panel = (page) => page.getByRole('region', { name: 'Consumer billing' });
const fact = (page, name) =>
  panel(page)
    .locator('.facts > div', { has: page.getByText(name, { exact: true }) })
    .locator('dd');

/** Offset and attempt of each message that is not finished. */
async function pending(page) {
  const rows = panel(page).locator('tbody tr');
  const cells = await rows.evaluateAll((all) =>
    all.map((row) => [...row.cells].slice(0, 2).map((cell) => Number(cell.innerText))),
  );
  return JSON.stringify(cells);
}

async function showsWhoHoldsWhat(page, member) {
  await show(page, target, 'work', 'readers');
  await button(page, 'billing').click();
  await panel(page).waitFor();
  await until(async () => (await pending(page)) === '[[0,1],[1,1],[2,1],[3,1],[4,1]]', 'pending');
  assert.equal(await fact(page, 'next offset').innerText(), '5');
  assert.match(await fact(page, 'lag').innerText(), /^15, /);
  const connection = await panel(page).locator('tbody tr').first().locator('td').nth(2).innerText();
  await page.getByRole('row', { name: `${connection}: member of billing` }).waitFor();
  assert.deepEqual(member.seen, [0, 1, 2, 3, 4]);
}

async function pausesAndResumes(page, member) {
  await button(page, 'Pause').click();
  await fact(page, 'state').getByText('paused since').waitFor();
  await page.locator('.chip').getByText('paused').waitFor();
  member.grant(1);
  await page.waitForTimeout(500);
  assert.equal(member.seen.length, 5, 'a paused consumer is given messages');
  await button(page, 'Resume').click();
  await until(() => member.seen.length === 6, 'a consumer that goes on is given messages');
}

async function skips(page, member) {
  await page.getByLabel('Skip from offset').fill('4');
  await page.getByLabel('Skip to offset').fill('9');
  answer(page, false);
  await button(page, 'Skip').click();
  assert.equal((await billing()).next, 6, 'what was not wanted is done');
  answer(page, true);
  await button(page, 'Skip').press('Enter');
  await until(async () => (await billing()).next === 10, 'the offsets are done');
  await until(async () => (await pending(page)) === '[[0,1],[1,1],[2,1],[3,1]]', 'pending');
  member.grant(1);
  await until(() => member.seen.at(-1) === 10, 'it goes on behind what is skipped');
}

async function redelivers(page, member) {
  member.seen.length = 0;
  await button(page, 'Redeliver').click();
  // Nobody has it until there is credit again.
  await panel(page).locator('tbody tr').getByText('nobody').first().waitFor();
  member.grant(5);
  await until(() => JSON.stringify(member.seen) === '[0,1,2,3,10]', 'what was given comes again');
  await until(async () => (await pending(page)).startsWith('[[0,2],[1,2]'), 'attempts are shown');
}

async function resets(page) {
  await page.getByLabel('Reset to').fill('99999');
  answer(page, true);
  await button(page, 'Reset').click();
  await panel(page).getByRole('status').getByText('BeyondEnd').waitFor();
  await page.getByLabel('Reset to').fill('3');
  answer(page, true);
  await button(page, 'Reset').click();
  await fact(page, 'next offset').getByText('3', { exact: true }).waitFor();
  assert.equal(await pending(page), '[]');
  await page.getByLabel('Reset to').fill('-1h');
  answer(page, true);
  await button(page, 'Reset').click();
  await fact(page, 'next offset').getByText('0', { exact: true }).waitFor();
}

async function removes(page) {
  answer(page, true);
  await button(page, 'Remove').click();
  await panel(page).waitFor({ state: 'detached' });
  const { consumers } = await ask('/v1/consumers/work');
  assert.deepEqual(consumers, []);
}

async function showsAndCancelsWhatIsHeldBack(page) {
  const headers = { 'content-type': 'application/json' };
  for (let n = 0; n < 130; n += 1) {
    const envelope = { id: `later-${String(n).padStart(3, '0')}` };
    const body = JSON.stringify({ to: 'work', envelope, delayMs: 3_600_000 + n * 1000 });
    await fetch(`http://${target}/v1/enqueue`, { method: 'POST', headers, body });
  }
  await page.getByRole('link', { name: 'Delayed' }).click();
  const ids = () => page.locator('td.mono').allInnerTexts();
  await page.getByText('later-099').waitFor();
  assert.equal((await ids()).length, 100);
  await button(page, 'Later').click();
  await page.getByText('later-129').waitFor();
  assert.equal((await ids()).length, 30);
  const row = page.getByRole('row', { name: 'later-129' });
  answer(page, false);
  await row.getByRole('button').click();
  answer(page, true);
  await page.getByRole('row', { name: 'later-128' }).getByRole('button').click();
  await page.getByRole('row', { name: 'later-128' }).waitFor({ state: 'detached' });
  assert.ok(await row.isVisible(), 'what was not wanted is done');
  const { delayed } = await ask('/v1/delayed/work');
  assert.deepEqual([delayed.length, delayed.some(({ id }) => id === 'later-128')], [129, false]);
  await button(page, 'Earlier').click();
  await page.getByText('later-000').waitFor();
}

let member;
const browser = await launch();
try {
  const { page, check } = await watched(browser, target, [404, 409]);
  page.setDefaultTimeout(15_000);
  await enqueue(target, 'work', numbered(0, 20));
  member = await join();
  member.grant(5);
  await until(() => member.seen.length === 5, 'a member is given what it granted');
  for (const test of [
    showsWhoHoldsWhat,
    pausesAndResumes,
    skips,
    redelivers,
    resets,
    removes,
    showsAndCancelsWhatIsHeldBack,
  ]) {
    await test(page, member);
    console.log(test.name);
  }
  check();
} finally {
  await browser.close();
  member?.close();
}
