// Pictures of maps of the simulator: node maps.mjs FOLDER FILE...
//
// Each map is kept in FOLDER under the name of its file, at the middle of its run, at 390 and 1,280
// pixels, light and dark.
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { launch } from './browser.mjs';

const [folder, ...files] = process.argv.slice(2);
/** No picture is larger: they are part of every clone. */
const MAX_BYTES = 200_000;
const HEIGHT = 800;

/** Goes to the middle of the run, as somebody does who drags the slider there. */
function halve(time) {
  time.value = Math.floor(time.max / 2);
  time.dispatchEvent(new Event('input'));
}

const browser = await launch();
try {
  for (const file of files) {
    for (const width of [390, 1280]) {
      for (const colorScheme of ['light', 'dark']) {
        const options = { viewport: { width, height: HEIGHT }, colorScheme };
        const page = await browser.newPage({ ...options, reducedMotion: 'reduce' });
        await page.goto(pathToFileURL(resolve(file)).href);
        await page.locator('#time').evaluate(halve);
        const path = `${folder}/${basename(file, '.html')}-${width}-${colorScheme}.png`;
        await page.screenshot({ path });
        const { size } = statSync(path);
        assert.ok(size < MAX_BYTES, `${path} has ${size} bytes`);
        await page.close();
      }
    }
  }
  console.log(`${files.length * 4} pictures of maps are in ${folder}`);
} finally {
  await browser.close();
}
