// The codec `cbor`, by the package `cbor-x`.
import { Encoder } from "cbor-x";
import { binary } from "./binary.js";

const encoder = new Encoder({ useRecords: false, variableMapSize: true, tagUint8Array: false });
const [LEAST, MOST] = [BigInt(Number.MIN_SAFE_INTEGER), BigInt(Number.MAX_SAFE_INTEGER)];

/**
 * The library makes a bigint of each integer of 64 bits, times and offsets among them. What a
 * number holds is a number, as in the other codecs.
 *
 * @param {any} value @returns {any}
 */
function plain(value) {
  if (typeof value === "bigint") return value < LEAST || value > MOST ? value : Number(value);
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return value;
  for (const key of Object.keys(value)) value[key] = plain(value[key]);
  return value;
}

export const cbor = binary({
  name: "cbor",
  contentType: "application/cbor",
  list: 0x9a,
  encode: (value) => encoder.encode(value),
  decode: (data) => plain(encoder.decode(data)),
});
