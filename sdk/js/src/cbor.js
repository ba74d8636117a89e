// The codec `cbor`, by the package `cbor-x`.
import { Encoder } from "cbor-x";
import { binary } from "./binary.js";

const encoder = new Encoder({ useRecords: false, variableMapSize: true, tagUint8Array: false });

export const cbor = binary({
  name: "cbor",
  contentType: "application/cbor",
  list: 0x9a,
  encode: (value) => encoder.encode(value),
  decode: (data) => encoder.decode(data),
});
