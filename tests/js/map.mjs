// The map of a run of the simulator in a real browser: node map.mjs FILE MACHINES MOVING
//
// It shows so many machines, of which so many have moved by the end; it fetches nothing, reports no
// fault, is worked with the keyboard, and stands still for whoever wants no motion.
import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { button, launch } from './browser.mjs';

const [file, machines, moving] = process.argv.slice(2);
const address = pathToFileURL(resolve(file)).href;

/** Opens the map, does something with it, and wants that nothing else was fetched and no fault. */
async function look(browser, options, use) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
  const fetched = [];
  const faults = [];
  page.on('request', (request) => request.url() !== address && fetched.push(request.url()));
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('console', (line) => line.type() === 'error' && faults.push(line.text()));
  await page.goto(address);
  const seen = await use(page);
  assert.deepEqual(fetched, [], 'the page fetches something');
  assert.deepEqual(faults, [], 'the browser reports errors');
  await page.close();
  return seen;
}

/** A number that the page tells of what it shows. */
const told = (page, name) => page.evaluate((name) => Number(document.body.dataset[name]), name);

/** How many dots of the map have the colour of machines that hear. */
const dots = (page) =>
  page.locator('#map').evaluate((map) => {
    const { data } = map.getContext('2d').getImageData(0, 0, map.width, map.height);
    const [, r, g, b] = colour('--awake').match(/#(..)(..)(..)/).map((part) => parseInt(part, 16));
    const is = (n) => data[n] === r && data[n + 1] === g && data[n + 2] === b;
    return data.filter((_, n) => n % 4 === 0 && is(n)).length;
  });

const picture = (page) => page.locator('#map').evaluate((map) => map.toDataURL());

async function passes(page) {
  await page.waitForFunction(() => Number(document.body.dataset.picture) > 2);
  await button(page, 'Pause').press('Enter');
  const stopped = await told(page, 'picture');
  const time = page.getByLabel('Time');
  await time.press('Home');
  assert.equal(await told(page, 'picture'), 0);
  const first = await picture(page);
  await time.press('ArrowRight');
  assert.equal(await told(page, 'picture'), 1, 'the arrow does not lead to the next picture');
  await time.press('End');
  const last = await told(page, 'picture');
  assert.ok(last >= stopped && last === Number(await time.getAttribute('max')));
  assert.notEqual(await picture(page), first, 'the last picture is as the first');
  assert.equal(await told(page, 'shown'), Number(machines), 'machines are missing');
  assert.equal(await told(page, 'moved'), Number(moving), 'other machines have moved');
  assert.ok((await dots(page)) > Number(machines) * 40, 'the machines are not drawn');
  assert.match(await time.getAttribute('aria-valuetext'), /^\d+ s, \d+ delivered$/);
}

/** Tab leads to both and shows where one is. */
async function isWalked(page) {
  const walked = [];
  for (let n = 0; n < 2; n++) {
    await page.keyboard.press('Tab');
    walked.push(
      await page.evaluate(() => {
        const { id } = document.activeElement;
        return `${id} ${getComputedStyle(document.activeElement).outlineStyle}`;
      }),
    );
  }
  assert.deepEqual(walked, ['play solid', 'time solid']);
}

/** Whoever wants no motion sees the first picture until they ask for another. */
async function stands(page) {
  await isWalked(page);
  await button(page, 'Play').waitFor();
  const timers = await page.evaluate(() => timer);
  assert.ok(!timers, 'it plays by itself');
  await button(page, 'Play').press('Space');
  await page.waitForFunction(() => Number(document.body.dataset.picture) > 0);
}

/** On a phone, nothing is wider than the screen. */
async function isNarrow(page) {
  const [wide, seen] = await page.evaluate(() => [document.body.scrollWidth, innerWidth]);
  assert.ok(wide <= seen, `the page is ${wide} wide on ${seen}`);
  return page.evaluate(() => getComputedStyle(document.body).backgroundColor);
}

const browser = await launch();
try {
  await look(browser, { reducedMotion: 'no-preference' }, passes);
  await look(browser, { reducedMotion: 'reduce' }, stands);
  const phone = { viewport: { width: 390, height: 800 }, reducedMotion: 'reduce' };
  const light = await look(browser, { ...phone, colorScheme: 'light' }, isNarrow);
  const dark = await look(browser, { ...phone, colorScheme: 'dark' }, isNarrow);
  assert.notEqual(light, dark, 'there is no dark page');
  console.log(`${machines} machines are shown, ${moving} have moved, and nothing is fetched`);
} finally {
  await browser.close();
}
