// Pictures of the console and of the bench's pages: node pictures.mjs HOST:PORT COST BOOK FOLDER
//
// Each is taken at 390 and 1,280 pixels, light and dark, as `cargo xtask pictures` keeps them in
// results/pictures.
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { enqueue, launch } from './browser.mjs';

const [target, cost, book, folder] = process.argv.slice(2);
/** No picture is larger: they are part of every clone. */
const MAX_BYTES = 200_000;
const HEIGHT = 800;

const place = (n) => ({
  vehicle: `fleet/${n % 3}`,
  lat: (48_200 + n) / 1000,
  lon: (16_300 + 2 * n) / 1000,
  speedKmh: 40 + (n % 17),
});
for (const topic of ['fleet/7/location', 'fleet/8/location', 'jobs/mail']) {
  await enqueue(target, topic, Array.from({ length: 8 }, (_, n) => place(n)));
}

const VIEWS = [
  { name: 'console', address: `http://${target}/`, ready: 'fleet/7/location' },
  {
    name: 'messages',
    address: `http://${target}/#/stream/fleet/7/location?messages`,
    ready: 'vehicle',
  },
  { name: 'cost', address: pathToFileURL(resolve(cost)).href, ready: 'What it costs' },
  { name: 'report', address: pathToFileURL(resolve(book)).href, ready: 'triple-json' },
];

const browser = await launch();
try {
  for (const { name, address, ready } of VIEWS) {
    for (const width of [390, 1280]) {
      for (const colorScheme of ['light', 'dark']) {
        const page = await browser.newPage({ viewport: { width, height: HEIGHT }, colorScheme });
        await page.goto(address);
        await page.getByText(ready).first().waitFor({ state: 'attached' });
        await page.evaluate(() => document.fonts.ready);
        const path = `${folder}/${name}-${width}-${colorScheme}.png`;
        // The charts of the bench's pages begin below the first screen, on a phone further down.
        const bench = width === 390 ? HEIGHT * 2 : HEIGHT * 1.25;
        const height = name === 'cost' || name === 'report' ? bench : HEIGHT;
        await page.setViewportSize({ width, height });
        await page.screenshot({ path });
        const { size } = statSync(path);
        assert.ok(size < MAX_BYTES, `${path} has ${size} bytes`);
        await page.close();
      }
    }
  }
  console.log(`${VIEWS.length * 4} pictures are in ${folder}`);
} finally {
  await browser.close();
}
