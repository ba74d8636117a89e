// A hub, and a browser that looks at its console: what the tests of the console share.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';

const BROWSERS = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'];

export async function launch() {
  const executablePath = process.env.CHROMIUM ?? BROWSERS.find((path) => existsSync(path));
  assert.ok(executablePath, 'there is no Chromium; run as root: cargo xtask needs, or set CHROMIUM');
  return chromium.launch({ executablePath, args: ['--no-sandbox'] });
}

/**
 * A page that notes what it asks of others than `target` and what the browser reports; `check`
 * says whether there was any of it. Answers with one of the `statuses` are no fault.
 */
export async function watched(browser, target, statuses = []) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  const foreign = [];
  const faults = [];
  page.on('request', (request) => {
    const { protocol, host } = new URL(request.url());
    if (protocol !== 'data:' && host !== target) foreign.push(request.url());
  });
  page.on('pageerror', (error) => faults.push(error.message));
  const isMeant = (text) => statuses.some((status) => text.includes(`status of ${status}`));
  page.on('console', (line) => {
    if (line.type() === 'error' && !isMeant(line.text())) faults.push(line.text());
  });
  const check = () => {
    assert.deepEqual(foreign, [], 'the console asks somebody else');
    assert.deepEqual(faults, [], 'the browser reports errors');
  };
  return { page, check };
}

/** Sends a body to the hub and wants it taken. */
async function send(method, address, value) {
  const headers = { 'content-type': 'application/json' };
  const reply = await fetch(address, { method, headers, body: JSON.stringify(value) });
  assert.ok(reply.ok, await reply.text());
}

/** Stores envelopes in one commit. */
export const enqueue = (target, to, envelopes) =>
  send('POST', `http://${target}/v1/enqueue/batch`, { to, envelopes });

/** Makes a stream with these settings. */
export const configure = (target, topic, settings) =>
  send('PUT', `http://${target}/v1/streams/${topic}`, settings);

/** `count` envelopes numbered from `first`. */
export const numbered = (first, count) => Array.from({ length: count }, (_, n) => ({ n: first + n }));

/** Shows a view of a stream, made anew where it was shown already. */
export async function show(page, target, topic, view = 'messages') {
  await page.goto('about:blank');
  await page.goto(`http://${target}/#/stream/${topic}?${view}`);
}

export const button = (page, name) => page.getByRole('button', { name, exact: true });

/** The rows of messages, gaps and refusals in view. */
export const rows = (page) => page.locator('.messages > li');

/** The offsets of the rows in view, from top to bottom. */
export const offsets = (page) =>
  rows(page).evaluateAll((all) => all.map((row) => Number(row.dataset.offset)));

/** Waits until a page of messages is in view, and says which. */
export async function settled(page) {
  const state = page.locator('.messages').locator('..').getByRole('status');
  await page.waitForFunction(
    (text) => /^(offsets|nothing|there is no|following|refused)/.test(text.textContent),
    await state.elementHandle(),
  );
  return state.innerText();
}

/** Reads from a place. */
export async function readFrom(page, place) {
  await page.getByLabel('Read from').fill(place);
  return press(page, 'Read');
}

/** Presses a button of the messages; the words for what is in view then. */
export async function press(page, name) {
  await button(page, name).click();
  return settled(page);
}
