// Pages of another site, in a real browser, that have the client as it stands.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { extname } from "node:path";
import { chromium } from "playwright-core";

const BROWSERS = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"];
const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** @type {Record<string, string>} */
const TYPES = { ".js": "text/javascript", ".html": "text/html" };

/** What a page of a program without a bundler says. */
const IMPORTS = {
  imports: {
    "@sealane/client": "/src/web.js",
    "@sealane/client/msgpack": "/src/msgpack.js",
    "@sealane/client/cbor": "/src/cbor.js",
    msgpackr: "/node_modules/msgpackr/index.js",
    "cbor-x": "/node_modules/cbor-x/index.js",
  },
};
const EMPTY = `<!doctype html><title>t</title>
<script type="importmap">${JSON.stringify(IMPORTS)}</script>`;

/** A browser, and a server of this package's files for its pages. */
export class Browser {
  /** @type {import("playwright-core").Browser} */ #browser;
  #server;
  origin;

  static async launch() {
    const executablePath = process.env.CHROMIUM ?? BROWSERS.find((path) => existsSync(path));
    assert.ok(
      executablePath,
      "there is no Chromium; run `cargo xtask needs` as root, or set CHROMIUM",
    );
    const server = createServer(serve).listen(0, "localhost");
    await new Promise((resolve) => server.once("listening", resolve));
    const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
    return new Browser(browser, server);
  }

  /**
   * @param {import("playwright-core").Browser} browser
   * @param {import("node:http").Server} server
   */
  constructor(browser, server) {
    this.#browser = browser;
    this.#server = server;
    const address = /** @type {import("node:net").AddressInfo} */ (server.address());
    this.origin = `http://localhost:${address.port}`;
  }

  /** A page, and what it could not take. @param {string} [path] */
  async page(path = "/") {
    const page = await this.#browser.newPage();
    /** @type {string[]} */
    const faults = [];
    page.on("pageerror", (error) => faults.push(error.stack ?? error.message));
    await page.goto(this.origin + path);
    return { page, faults };
  }

  async close() {
    await this.#browser.close();
    this.#server.close();
  }
}

/** @type {import("node:http").RequestListener} */
async function serve({ url = "/" }, reply) {
  const { pathname } = new URL(url, "http://localhost");
  const type = TYPES[extname(pathname)] ?? "text/html";
  const read = pathname === "/" ? EMPTY : readFile(ROOT + pathname.slice(1)).catch(() => undefined);
  const body = await read;
  reply.writeHead(body === undefined ? 404 : 200, { "content-type": type }).end(body);
}
