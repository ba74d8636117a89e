import type { Codec } from "./codec.d.ts";

/** The codec `msgpack`; needs the package `msgpackr`. */
export const msgpack: Codec<Uint8Array>;
