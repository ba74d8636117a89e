// A hub of its own for a test: started, killed, frozen, and its tokens and certificates.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const BUILT = fileURLToPath(new URL("../../../../target/debug/sealane", import.meta.url));
const PROGRAM = process.env.SEALANE_BIN ?? BUILT;
const sealane = promisify(execFile);

/** The machine that checks is slower by half, and loaded. */
export const PATIENCE_MS = 20_000;

/** @param {number} ms */
export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Waits until `look` gives something.
 *
 * @template T @param {() => T | Promise<T>} look @param {string} what @returns {Promise<T>}
 */
export async function until(look, what) {
  const end = performance.now() + PATIENCE_MS;
  for (;;) {
    const found = await look();
    if (found) return found;
    assert.ok(performance.now() < end, `${what} did not happen`);
    await pause(10);
  }
}

/** @typedef {{flags?: string[], tokens?: boolean, tls?: boolean}} HubOptions */

export class Hub {
  #folder;
  #flags;
  #isTls;
  /** @type {import("node:child_process").ChildProcess | undefined} */ #process;
  #listen = "127.0.0.1:0";
  /** The certificates that clients trust. @type {string | undefined} */ ca;
  /** The texts of tokens by their names. @type {Record<string, string>} */ tokens = {};

  /** A hub that serves. @param {HubOptions} [options] */
  static async begin({ flags = [], tokens = false, tls = false } = {}) {
    const hub = new Hub(await mkdtemp(join(tmpdir(), "sealane-")), flags, tls);
    if (tls) await hub.#certificates();
    if (tokens) {
      const every = ["**", "dead/**"];
      await hub.token({ name: "all", read: every, publish: every, manage: every, observe: true });
    }
    await hub.start();
    return hub;
  }

  /** @param {string} folder @param {string[]} flags @param {boolean} isTls */
  constructor(folder, flags, isTls) {
    this.#folder = folder;
    this.#flags = flags;
    this.#isTls = isTls;
  }

  get address() {
    return `${this.#isTls ? "https" : "http"}://${this.#listen}`;
  }

  get pid() {
    return this.#process?.pid;
  }

  async start() {
    const files = [
      "--tls-cert",
      join(this.#folder, "cert.pem"),
      "--tls-key",
      join(this.#folder, "key.pem"),
    ];
    const flags = ["up", "--data", this.#data, "--listen", this.#listen, ...this.#flags];
    if (this.#isTls) flags.push(...files);
    const child = spawn(PROGRAM, flags, { stdio: ["ignore", "pipe", "pipe"] });
    this.#process = child;
    let said = "";
    const listens = new Promise((resolve) => {
      const hear = (/** @type {Buffer} */ data) => {
        said += data;
        const [, port] = said.match(/sealane [^ ]+ {2}https?:\/\/127\.0\.0\.1:(\d+)/) ?? [];
        if (port) resolve((this.#listen = `127.0.0.1:${port}`));
      };
      child.stdout.on("data", hear);
      child.stderr.on("data", hear);
    });
    const ended = once(child, "exit").then(() => assert.fail(`the hub has ended: ${said}`));
    ended.catch(() => {});
    const timer = setTimeout(() => child.kill("SIGKILL"), PATIENCE_MS);
    await Promise.race([listens, ended]);
    clearTimeout(timer);
  }

  async kill() {
    await this.#end("SIGKILL");
  }

  async stop() {
    await this.#end("SIGTERM");
  }

  freeze() {
    this.#process?.kill("SIGSTOP");
  }

  thaw() {
    this.#process?.kill("SIGCONT");
  }

  /** Kills it, and removes all that it had. */
  async remove() {
    await this.kill();
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** @param {{name: string, observe?: boolean} & Record<string, any>} rights */
  async token({ name, observe, ...rights }) {
    const flags = Object.entries(rights).flatMap(([right, patterns]) =>
      patterns.flatMap((/** @type {string} */ pattern) => [`--${right}`, pattern]),
    );
    if (observe) flags.push("--observe");
    const { stdout } = await sealane(PROGRAM, [
      "token",
      "new",
      name,
      "--data",
      this.#data,
      ...flags,
    ]);
    const [text] = stdout.match(/sealane_[\w-]{43}/) ?? [];
    assert.ok(text, `no token: ${stdout}`);
    this.tokens[name] = text;
    return text;
  }

  /** @param {string} name */
  async revoke(name) {
    await sealane(PROGRAM, ["token", "revoke", name, "--data", this.#data]);
  }

  /** The second certificate from now on. */
  async certificate() {
    await this.#install("second");
    this.#process?.kill("SIGHUP");
  }

  async #certificates() {
    // Of two that sign themselves under one name, OpenSSL finds the first alone.
    for (const [name, host] of [
      ["first", "127.0.0.1"],
      ["second", "localhost"],
    ]) {
      const folder = join(this.#folder, name);
      await sealane(PROGRAM, ["cert", "self-signed", host, "127.0.0.1", "--to", folder]);
    }
    const read = (/** @type {string} */ name) =>
      readFile(join(this.#folder, name, "cert.pem"), "utf8");
    this.ca = (await Promise.all(["first", "second"].map(read))).join("");
    await mkdir(this.#data, { recursive: true });
    await this.#install("first");
  }

  /** @param {string} name */
  async #install(name) {
    for (const file of ["key.pem", "cert.pem"]) {
      await copyFile(join(this.#folder, name, file), join(this.#folder, file));
    }
  }

  get #data() {
    return join(this.#folder, "data");
  }

  /** @param {NodeJS.Signals} signal */
  async #end(signal) {
    const child = this.#process;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill(signal);
    // A frozen process takes no other signal.
    if (signal !== "SIGKILL") child.kill("SIGCONT");
    await ended;
  }
}
