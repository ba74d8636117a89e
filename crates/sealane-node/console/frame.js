// What a sealed message shows to a reader without a key: the header of its frame, spec/frame.md.
//
// The vectors of vectors/frame run through `read` (tests/js/frames.mjs), so that this parser and
// that of the hub say the same.

const VERSION = 2;
const CLASSES = ["A authenticated", "C group", "S signed", "P peer"];
const CODECS = ["none", "JSON", "MessagePack", "CBOR"];
const KINDS = ["message", "control", "routing", "gossip"];
const PRIORITIES = ["low", "normal", "high", "critical"];
const COMPRESSIONS = ["none", "LZ4", "Zstandard"];
const HEADER_BYTES = 64;
const TAG_BYTES = 16;
const SIGNATURE_BYTES = 64;
const SEAL_HEADER_BYTES_MAX = 9;
const SIGNED = 2;
const CLEAR = 0;
/** The sequence has 40 bits, and the key id 20. */
const COUNTER_MAX = (1n << 40n) - 1n;
const KEY_MAX = (1n << 20n) - 1n;
const EVERYBODY = "f".repeat(16);

/** Bytes that are no frame of this version: the name and the code that all programs give them. */
export class NotAFrame extends Error {
  constructor(name, ref, why) {
    super(`${name}: ${why}`);
    this.ref = ref;
  }
}

/** The bytes of base64url without padding. */
export function bytesOf(text) {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

function check(isRight, name, ref, why) {
  if (!isRight) throw new NotAFrame(name, ref, why);
}

/**
 * The fields of a frame in the full form. The checks go in the order of spec/frame.md.
 *
 * Throws NotAFrame.
 */
export function read(bytes) {
  check(bytes.length >= HEADER_BYTES, "FrameTooShort", "SL-FRAME-01", "it ends in its header");
  const version = bytes[17];
  const versions = `version ${version}, and this page reads ${VERSION}`;
  check(version === VERSION, "UnknownFrameVersion", "SL-FRAME-02", versions);
  const [kind, flags] = [bytes[18], bytes[19]];
  check(kind < KINDS.length, "UnknownFrameKind", "SL-FRAME-03", `kind ${kind}`);
  const compression = flags >> 4;
  const areFlags = compression < COMPRESSIONS.length;
  check(areFlags, "ReservedBits", "SL-FRAME-04", "flags without a meaning");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const fields = {
    class: flags & 3,
    kind,
    codec: bytes[20],
    compression,
    priority: (flags >> 2) & 3,
    dataType: view.getUint16(21, true),
    group: hex(bytes.subarray(23, 27)),
    source: hex(bytes.subarray(27, 35)),
    destination: hex(bytes.subarray(35, 43)),
    bodyBytes: view.getUint32(43, true),
    sequence: view.getBigUint64(47, true),
    context: hex(bytes.subarray(55, 63)),
    orders: bytes[63],
  };
  return { ...fields, ...readSeal(bytes, fields) };
}

/** Slot and epoch, of the SFrame header, which has to fit the frame and to say the same as it. */
function readSeal(bytes, { class: sealed, bodyBytes, sequence }) {
  const trailer = sealed === SIGNED ? SIGNATURE_BYTES + TAG_BYTES : TAG_BYTES;
  const sealBytes = bytes.length - HEADER_BYTES - bodyBytes - trailer;
  const fits = (count) => count >= 1 && count <= SEAL_HEADER_BYTES_MAX;
  const lengths = "its length is not what its header says";
  check(fits(sealBytes), "FrameLengthMismatch", "SL-FRAME-05", lengths);
  // A body of class A is not encrypted, and stands before the SFrame header.
  const seal = sealHeader(bytes.subarray(HEADER_BYTES + (sealed === CLEAR ? bodyBytes : 0)));
  const isWhole = seal !== null && seal.key <= KEY_MAX && seal.counter <= COUNTER_MAX;
  check(isWhole, "BadSealHeader", "SL-FRAME-07", "its SFrame header is malformed");
  check(seal.bytes === sealBytes, "FrameLengthMismatch", "SL-FRAME-05", lengths);
  const key = Number(seal.key);
  const agrees = ((key >> 8) & 3) === sealed && seal.counter === sequence;
  check(agrees, "HeadersDisagree", "SL-FRAME-08", "its two headers name different keys");
  return { slot: key >> 10, epochLow: key & 0xff };
}

/** RFC 9605 §4.3: a config byte, the key id, the counter; null where it is malformed. */
function sealHeader(bytes) {
  let at = 1;
  const value = (bits) => {
    if (bits < 8) return BigInt(bits);
    const digits = bytes.subarray(at, at + bits - 7);
    at += bits - 7;
    const number = digits.reduce((number, byte) => (number << 8n) | BigInt(byte), 0n);
    // A shorter encoding of the same number would make a second header of the same key.
    return number < 8n || digits[0] === 0 ? null : number;
  };
  const key = value(bytes[0] >> 4);
  const counter = value(bytes[0] & 15);
  return key === null || counter === null || at > bytes.length ? null : { key, counter, bytes: at };
}

/** The visible fields of a frame as [name, value] pairs. Throws NotAFrame. */
export function visible(bytes) {
  const frame = read(bytes);
  return [
    ["class", CLASSES[frame.class]],
    ["kind", KINDS[frame.kind]],
    ["codec", CODECS[frame.codec] ?? frame.codec],
    ["compression", COMPRESSIONS[frame.compression]],
    ["priority", PRIORITIES[frame.priority]],
    ["data type", frame.dataType],
    ["group tag", frame.group],
    ["slot", frame.slot],
    ["epoch", `${frame.epochLow}, its low 8 bits`],
    ["source", frame.source],
    ["destination", frame.destination === EVERYBODY ? "everybody" : frame.destination],
    ["body", `${frame.bodyBytes} bytes`],
    ["sequence", frame.sequence.toString()],
    ["sender context", frame.context],
    ["orders", `${frame.orders}, the low 8 bits of how many its sender had obeyed`],
  ];
}
