// Bytes of each entry as a page loads it, minified and compressed: node scripts/size.js
//
// Libraries of codecs are counted with their entries. Fails where the core is over its limit.
import { brotliCompressSync, gzipSync } from "node:zlib";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const CORE_BYTES_MAX = 20 << 10;
const ENTRIES = ["web.js", "msgpack.js", "cbor.js"];

console.log("entry        minified     gzip   brotli");
for (const entry of ENTRIES) {
  const entryPoint = fileURLToPath(new URL(`../src/${entry}`, import.meta.url));
  const { outputFiles } = await build({
    bundle: true,
    minify: true,
    write: false,
    platform: "browser",
    format: "esm",
    entryPoints: [entryPoint],
  });
  const { contents } = outputFiles[0];
  const sizes = [contents.length, gzipSync(contents).length, brotliCompressSync(contents).length];
  console.log(entry.padEnd(12), ...sizes.map((size) => String(size).padStart(8)));
  if (entry === "web.js" && sizes[1] > CORE_BYTES_MAX) {
    console.error(`the core is over ${CORE_BYTES_MAX} bytes`);
    process.exitCode = 1;
  }
}
