import type { Codec } from "./codec.d.ts";

/** The codec `cbor`; needs the package `cbor-x`. */
export const cbor: Codec<Uint8Array>;
