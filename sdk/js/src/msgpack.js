// The codec `msgpack`, by the package `msgpackr`.
import { Packr } from "msgpackr";
import { binary } from "./binary.js";

// Times are beyond 32 bits: as `auto` they are numbers, and only what no number holds is a bigint.
const options = { useRecords: false, variableMapSize: true, int64AsType: "auto" };
const packr = new Packr(/** @type {{}} */ (options));

export const msgpack = binary({
  name: "msgpack",
  contentType: "application/msgpack",
  list: 0xdd,
  encode: (value) => packr.pack(value),
  decode: (data) => packr.unpack(data),
});
