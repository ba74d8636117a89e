// What the binary codecs share: frames and items put together from parts that are encoded.

const UTF8 = new TextEncoder();

/** @param {Uint8Array[]} parts */
function joined(parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** A list of `count` items with a length of 32 bits. @param {number} tag @param {number} count */
function listHead(tag, count) {
  const head = new Uint8Array(5);
  head[0] = tag;
  new DataView(head.buffer).setUint32(1, count);
  return head;
}

/**
 * A codec of maps whose first byte has the count of their entries, as those of MessagePack and
 * CBOR have it for up to 15 entries.
 *
 * @param {{name: string, contentType: string, list: number,
 *   encode(value: unknown): Uint8Array, decode(data: Uint8Array): unknown}} given
 * @returns {import("../types/codec.d.ts").Codec<Uint8Array>}
 */
export function binary({ name, contentType, list, encode, decode }) {
  // Encoders reuse their buffer: what is kept has to be copied.
  const encoded = (/** @type {unknown} */ value) => Uint8Array.from(encode(value));
  const key = encoded("envelope");
  const publish = encoded({ publish: 0 }).slice(0, -1);
  return {
    name,
    contentType,
    encode: encoded,
    decode: (data) => decode(typeof data === "string" ? UTF8.encode(data) : new Uint8Array(data)),
    item(head, envelope) {
      const map = encoded(head);
      map[0] += 1;
      return joined([map, key, envelope]);
    },
    frame: (items) => joined([publish, listHead(list, items.length), ...items]),
    size: (item) => item.length,
  };
}
