// The package as `npm pack` makes it, in an empty project: TypeScript strict, ESM and CommonJS.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Hub } from "./lab/hub.js";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const run = promisify(execFile);

/** @type {string} */ let folder;
/** @type {Hub} */ let hub;

before(async () => {
  hub = await Hub.begin();
  folder = await mkdtemp(join(tmpdir(), "sealane-package-"));
  const { stdout } = await run("npm", ["pack", "--silent", "--pack-destination", folder], {
    cwd: ROOT,
  });
  await writeFile(join(folder, "package.json"), '{ "name": "empty", "private": true }');
  const modules = join(folder, "node_modules");
  const here = join(modules, "@sealane", "client");
  await mkdir(here, { recursive: true });
  // Installed as npm does it, without asking a registry for the packages that it goes with.
  await run("tar", ["-xzf", join(folder, stdout.trim()), "-C", here, "--strip-components=1"]);
  for (const name of ["ws", "msgpackr", "cbor-x", "@types/node", "undici-types"]) {
    await mkdir(join(modules, name, ".."), { recursive: true });
    await symlink(join(ROOT, "node_modules", name), join(modules, name));
  }
});
after(async () => {
  await hub?.remove();
  await rm(folder, { recursive: true, force: true });
});

/** @param {string} name @param {string} code */
async function runs(name, code) {
  const file = join(folder, name);
  await writeFile(file, code);
  const { stdout, stderr } = await run(process.execPath, [file, hub.address]);
  assert.equal(stdout.trim(), "7 true", stderr);
}

const USE = `
  const client = new Client(process.argv[2], { codec: msgpack });
  await client.publish("a", { seven: 7 });
  for await (const { envelope } of client.subscribe("a", { from: "first" })) {
    console.log(envelope.seven, typeof errors.Forbidden === "function");
    break;
  }
  await client.close();
`;

test("it is used as a module", () =>
  runs(
    "use.mjs",
    `import { Client, errors } from "@sealane/client";
     import { msgpack } from "@sealane/client/msgpack";
     ${USE}`,
  ));

test("it is used from CommonJS", () =>
  runs(
    "use.cjs",
    `const { Client, errors } = require("@sealane/client");
     const { msgpack } = require("@sealane/client/msgpack");
     (async () => {${USE}})();`,
  ));

const TYPED = `
  async function use(): Promise<number> {
    const client = new Client("hub:9087", { codec: cbor, token: async () => "sealane_x" });
    const { offset } = await client.publish("a", { n: 1 }, { expect: 3 });
    for await (const message of client.subscribe<{ lat: number }>("fleet/**", {
      from: "new",
      onEvent(event) {
        if (event.type === "gap") console.log(event.from + event.to, event.reason);
      },
    })) {
      const lat: number = message.envelope.lat;
      message.nack({ delayMs: lat });
    }
    const state: StreamState = await client.stream("a");
    const error = new errors.Forbidden("no");
    return (offset ?? 0) + state.next + (error.next ?? 0);
  }
  void use;
`;

const IMPORTS = `
  import { Client, errors, type StreamState } from "@sealane/client";
  import { cbor } from "@sealane/client/cbor";
`;
const WRONG = `
  // @ts-expect-error a misspelt option
  void new Client("hub", { tokn: "x" });
  // @ts-expect-error an event that there is not
  new Client("hub").subscribe("a", { onEvent: ({ type }) => type === "lost" });
`;

test("it has types for modules and for CommonJS, and they are strict", async () => {
  const files = ["use.mts", "use.cts"].map((name) => join(folder, name));
  for (const file of files) await writeFile(file, IMPORTS + TYPED + WRONG);
  const tsc = join(ROOT, "node_modules", "typescript", "bin", "tsc");
  const flags = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2022"];
  const lib = ["--lib", "es2022,esnext.disposable", "--types", "node", "--skipDefaultLibCheck"];
  await run(process.execPath, [tsc, ...flags, ...lib, ...files], { cwd: folder }).catch(
    ({ stdout }) => assert.fail(stdout),
  );
});

test("the classes of errors are those of the specification", async () => {
  await run(process.execPath, [join(ROOT, "scripts", "codes.js"), "--check"]);
});

test("it holds what it names and nothing else", async () => {
  const { files, exports: entries } = JSON.parse(
    await readFile(join(ROOT, "package.json"), "utf8"),
  );
  assert.deepEqual(files, ["src", "types", "LICENSE-MIT", "LICENSE-APACHE"]);
  for (const entry of Object.values(entries)) {
    for (const path of typeof entry === "string" ? [entry] : Object.values(entry)) {
      await readFile(join(folder, "node_modules", "@sealane", "client", path));
    }
  }
});
