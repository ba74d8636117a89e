/** How envelopes and frames are written: `json`, or what an entry of this package exports. */
export interface Codec<Encoded extends string | Uint8Array = string | Uint8Array> {
  /** Its name in spec/hub.md §2. */
  readonly name: string;
  readonly contentType: string;
  encode(value: unknown): Encoded;
  decode(data: string | ArrayBuffer): any;
  /** An item of a publishing socket: `head` with the field `envelope`, which is encoded already. */
  item(head: object, envelope: Encoded): Encoded;
  /** The frame `{publish: [item, …]}`. */
  frame(items: Encoded[]): Encoded;
  /** Bytes of an item on the wire. */
  size(item: Encoded): number;
}
