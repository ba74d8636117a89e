// How many bytes a message has in each codec, counted and not encoded: the forms that the hub
// writes, spec/codec.md.

const utf8 = new TextEncoder();

/** Bytes of a node (json.js) as `{json, msgpack, cbor}`. */
export function sizes(node) {
  const sum = { json: 0, msgpack: 0, cbor: 0 };
  walk(node, sum);
  return sum;
}

function add(sum, json, msgpack, cbor) {
  sum.json += json;
  sum.msgpack += msgpack;
  sum.cbor += cbor;
}

function walk(node, sum) {
  switch (node.kind) {
    case "null":
      return add(sum, 4, 1, 1);
    case "bool":
      return add(sum, node.value ? 4 : 5, 1, 1);
    case "int":
      return integer(BigInt(node.source), node.source.length, sum);
    case "float":
      return add(sum, node.source.length, 9, float(Number(node.source)));
    case "text":
      return text(node.value, sum);
    case "list":
      head(node.items.length, 2 + commas(node.items.length), [15, 0xffff], sum);
      return node.items.forEach((item) => walk(item, sum));
    case "map":
      head(node.entries.length, 2 + commas(node.entries.length), [15, 0xffff], sum);
      return node.entries.forEach(([name, item]) => {
        text(name, sum);
        add(sum, 1, 0, 0);
        walk(item, sum);
      });
  }
}

const commas = (count) => Math.max(0, count - 1);

function text(value, sum) {
  const bytes = utf8.encode(value).length;
  const json = utf8.encode(JSON.stringify(value)).length;
  const msgpack = bytes < 32 ? 1 : bytes < 0x100 ? 2 : bytes < 0x1_0000 ? 3 : 5;
  add(sum, json, msgpack + bytes, argument(BigInt(bytes)) + bytes);
}

/** The head of a list or map: in MessagePack one byte, three or five. */
function head(count, json, [one, three], sum) {
  const msgpack = count <= one ? 1 : count <= three ? 3 : 5;
  add(sum, json, msgpack, argument(BigInt(count)));
}

function integer(value, json, sum) {
  const cbor = argument(value < 0n ? -1n - value : value);
  add(sum, json, value < 0n ? negative(value) : positive(value), cbor);
}

function positive(value) {
  if (value < 0x80n) return 1;
  if (value < 0x100n) return 2;
  if (value < 0x1_0000n) return 3;
  return value < 0x1_0000_0000n ? 5 : 9;
}

function negative(value) {
  if (value >= -32n) return 1;
  if (value >= -0x80n) return 2;
  if (value >= -0x8000n) return 3;
  return value >= -0x8000_0000n ? 5 : 9;
}

/** The head of a CBOR item with this argument. */
function argument(value) {
  if (value < 24n) return 1;
  if (value < 0x100n) return 2;
  if (value < 0x1_0000n) return 3;
  return value < 0x1_0000_0000n ? 5 : 9;
}

/** The shortest CBOR float that keeps the value. */
function float(value) {
  if (Math.fround(value) !== value) return 9;
  return isHalf(value) ? 3 : 5;
}

/** Whether a single-precision value has a half-precision form. */
function isHalf(value) {
  const magnitude = Math.abs(value);
  if (magnitude === 0) return true;
  if (magnitude > 65504) return false;
  // Eleven bits of significand from 2^-14 on; below it, multiples of 2^-24.
  const exponent = Math.max(Math.floor(Math.log2(magnitude)), -14);
  return Number.isInteger(magnitude * 2 ** (10 - exponent));
}
