// What a sealed message shows to whoever holds no key: the header of its frame, spec/frame.md.

import { time as shown } from "./dom.js";

const CLASSES = ["A authenticated", "C group", "S signed", "P peer"];
const CODECS = ["none", "JSON", "MessagePack", "CBOR"];
const KINDS = ["message", "control", "routing", "gossip"];
const PRIORITIES = ["low", "normal", "high", "critical"];
const COMPRESSIONS = ["none", "LZ4", "Zstandard", "?"];
const HEADER_BYTES = 64;

/** The bytes of base64url without padding. */
export function bytesOf(text) {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** The visible fields of a frame as [name, value] pairs, or none when it is no frame. */
export function visible(bytes) {
  if (bytes.length < HEADER_BYTES) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const flags = bytes[19];
  const time = view.getBigUint64(55, true);
  return [
    ["class", CLASSES[flags & 3]],
    ["kind", KINDS[bytes[18]] ?? bytes[18]],
    ["codec", CODECS[bytes[20]] ?? bytes[20]],
    ["compression", COMPRESSIONS[(flags >> 4) & 3]],
    ["priority", PRIORITIES[(flags >> 2) & 3]],
    ["data type", view.getUint16(21, true)],
    ["group tag", hex(bytes.subarray(23, 27))],
    ["source", hex(bytes.subarray(27, 35))],
    ["destination", hex(bytes.subarray(35, 43))],
    ["body", `${view.getUint32(43, true)} bytes`],
    ["sequence", view.getBigUint64(47, true).toString()],
    ["time", time === 0n ? "withheld" : shown(time)],
  ];
}
