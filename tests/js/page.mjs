// A page of the bench in a real browser: node page.mjs FILE CHARTS [FOLDER]
//
// It draws so many charts, fetches nothing and reports no fault, light and dark. With FOLDER it
// keeps pictures.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const [file, charts, folder] = process.argv.slice(2);
const BROWSERS = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'];
const address = pathToFileURL(resolve(file)).href;

async function look(browser, colorScheme) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, colorScheme });
  const fetched = [];
  const faults = [];
  page.on('request', (request) => request.url() !== address && fetched.push(request.url()));
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('console', (line) => line.type() === 'error' && faults.push(line.text()));
  await page.goto(address);
  if (folder) await page.screenshot({ path: `${folder}/${colorScheme}.png`, fullPage: true });
  assert.equal(await page.locator('svg').count(), Number(charts), 'charts are missing');
  const sizes = await page
    .locator('svg rect, svg circle')
    .evaluateAll((marks) =>
      marks.map((mark) => {
        const { width, height } = mark.getBoundingClientRect();
        return { width, height, fill: getComputedStyle(mark).fill };
      }),
    );
  assert.ok(sizes.length > Number(charts), 'the charts are empty');
  assert.ok(
    sizes.every(({ height }) => height > 0),
    'a mark has no height',
  );
  assert.ok(sizes.filter(({ width }) => width > 1).length > sizes.length / 3, 'marks are too thin');
  assert.ok(
    sizes.every(({ fill }) => fill.startsWith('rgb(') && fill !== 'rgb(0, 0, 0)'),
    'a mark has no colour',
  );
  const beyond = await page
    .locator('svg')
    .evaluateAll(
      (all) =>
        all.flatMap((svg) => {
          const edge = svg.getBoundingClientRect();
          const isBeyond = (mark) => {
            const { left, right, bottom } = mark.getBoundingClientRect();
            return left < edge.left - 1 || right > edge.right + 1 || bottom > edge.bottom + 1;
          };
          const marks = [...svg.querySelectorAll('rect, circle, text')];
          return marks.filter(isBeyond).map((mark) => mark.outerHTML);
        }),
    );
  assert.deepEqual(beyond, [], 'marks lie outside of their chart');
  const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.deepEqual(fetched, [], 'the page fetches something');
  assert.deepEqual(faults, [], 'the browser reports errors');
  await page.close();
  return ground;
}

const executablePath = process.env.CHROMIUM ?? BROWSERS.find((path) => existsSync(path));
assert.ok(executablePath, 'there is no Chromium; run as root: cargo xtask needs, or set CHROMIUM');
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
try {
  assert.notEqual(await look(browser, 'light'), await look(browser, 'dark'), 'there is no dark page');
  console.log(`${charts} charts are drawn, and nothing is fetched`);
} finally {
  await browser.close();
}
