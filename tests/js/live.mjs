// The page of a live run in a real browser: node live.mjs URL MACHINES
//
// It shows so many machines, obeys its buttons and the pointer, asks nobody but the run, and says so
// where it has no key. The first two machines are killed, started, put elsewhere and cut apart.
import assert from 'node:assert/strict';
import { button, launch, watched } from './browser.mjs';

const [address, machines, folder] = process.argv.slice(2);
const { host } = new URL(address);

/** The cells of a machine's row. */
const row = (page, name) => page.locator('#rows tr', { hasText: name }).locator('td').allInnerTexts();

/** Waits until a machine's row is so. */
async function until(page, name, column, is) {
  await page.waitForFunction(
    ({ name, column, is }) =>
      [...document.querySelectorAll('#rows tr')].some(
        ({ cells }) => cells[0].textContent === name && cells[column].textContent === is,
      ),
    { name, column, is },
  );
}

async function obeys(browser) {
  const { page, check } = await watched(browser, host, [422]);
  await page.goto(address);
  await page.waitForFunction((n) => document.querySelectorAll('#rows tr').length === n, Number(machines));
  const [first, second] = await page.locator('#rows td:first-child').allInnerTexts();
  await page.locator('#who').selectOption(second);
  await button(page, 'Kill').click();
  await until(page, second, 1, 'away');
  await button(page, 'Start').press('Enter');
  await until(page, second, 1, 'awake');
  await page.getByLabel('East, m').fill('-12.5');
  await button(page, 'Move').click();
  await until(page, second, 2, '-12.5');
  await page.locator('#other').selectOption(first);
  await button(page, 'Cut').click();
  await page.getByRole('status').filter({ hasText: 'done' }).waitFor();
  // The pointer takes the first machine to another place.
  const places = await page.evaluate((name) => view.at(machines.find((one) => one.name === name)), first);
  const box = await page.locator('#map').boundingBox();
  const [x, y] = [box.x + 1 + places[0], box.y + 1 + places[1]];
  const before = await row(page, first);
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x + 20, y - 60, { steps: 4 });
  await page.mouse.up();
  await page.waitForFunction(
    ({ first, north }) =>
      [...document.querySelectorAll('#rows tr')].some(
        ({ cells }) => cells[0].textContent === first && Number(cells[3].textContent) > north + 1,
      ),
    { first, north: Number(before[3]) },
  );
  await page.getByLabel('East, m').fill('1e12');
  await button(page, 'Move').click();
  await page.getByRole('status').filter({ hasText: 'is not from' }).waitFor();
  const wide = await page.evaluate(() => [document.body.scrollWidth, innerWidth]);
  assert.ok(wide[0] <= wide[1], `the page is ${wide}`);
  check();
  await page.close();
}

async function refuses(browser) {
  const { page, check } = await watched(browser, host, [401]);
  await page.goto(address.split('#')[0]);
  await page.getByRole('status').filter({ hasText: 'the key' }).waitFor();
  assert.equal(await page.locator('#rows tr').count(), 0);
  check();
  await page.close();
}

async function shows(browser) {
  for (const width of [390, 1280]) {
    for (const colorScheme of ['light', 'dark']) {
      const page = await browser.newPage({ viewport: { width, height: 800 }, colorScheme });
      await page.goto(address);
      await page.waitForFunction(() => document.querySelectorAll('#rows tr').length > 0);
      await page.screenshot({ path: `${folder}/live-${width}-${colorScheme}.png` });
      await page.close();
    }
  }
}

const browser = await launch();
try {
  await obeys(browser);
  await refuses(browser);
  if (folder) await shows(browser);
  console.log(`${machines} machines are shown, and obey`);
} finally {
  await browser.close();
}
