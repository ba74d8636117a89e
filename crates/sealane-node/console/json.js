// JSON as the hub writes it, read without losing what JavaScript's own reader loses: 64-bit
// integers, and the difference between 1 and 1.0. spec/codec.md is the specification.
//
// A node is {kind, …}: `null`; `bool` {value}; `int` and `float` {source}; `text` {value};
// `list` {items}; `map` {entries: [[name, node], …]}.

/** Reads one JSON text. Throws a SyntaxError that names the place. */
export function read(text) {
  const reader = new Reader(text);
  const node = reader.value();
  reader.blank();
  if (reader.at < text.length) reader.fail("nothing more");
  return node;
}

/** The node of an entry of a map, if it has one. */
export function entry(node, name) {
  return node?.kind === "map" ? node.entries.find(([key]) => key === name)?.[1] : undefined;
}

/** The text or the exact number of a node, as a string. */
export function plain(node) {
  if (!node) return undefined;
  if (node.kind === "text") return node.value;
  return node.source ?? write(node);
}

/** Writes a node: compact, or in lines where `indent` is more than 0. */
export function write(node, indent = 0, depth = 0) {
  const [open, close, parts] = shape(node, indent, depth);
  if (parts === null) return open;
  if (indent === 0 || parts.length === 0) return open + parts.join(",") + close;
  const pad = " ".repeat(indent * (depth + 1));
  const end = " ".repeat(indent * depth);
  return `${open}\n${parts.map((part) => pad + part).join(",\n")}\n${end}${close}`;
}

function shape(node, indent, depth) {
  switch (node.kind) {
    case "list":
      return ["[", "]", node.items.map((item) => write(item, indent, depth + 1))];
    case "map":
      return [
        "{",
        "}",
        node.entries.map(
          ([name, item]) =>
            `${JSON.stringify(name)}:${indent ? " " : ""}${write(item, indent, depth + 1)}`,
        ),
      ];
    case "text":
      return [JSON.stringify(node.value), "", null];
    case "null":
      return ["null", "", null];
    default:
      return [node.source ?? String(node.value), "", null];
  }
}

const NUMBER = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?/y;
const TEXT = /"(?:[^"\\\u0000-\u001f]|\\.)*"/y;
const BLANK = /[ \t\r\n]*/y;
const DEPTH_MAX = 64;

class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
    this.depth = 0;
  }

  fail(expected) {
    throw new SyntaxError(`at byte ${this.at} of the JSON, ${expected} should stand`);
  }

  match(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found) this.at = pattern.lastIndex;
    return found;
  }

  blank() {
    this.match(BLANK);
  }

  value() {
    this.blank();
    const first = this.text[this.at];
    if (first === "{") return this.nested(() => this.map());
    if (first === "[") return this.nested(() => this.list());
    if (first === '"') return { kind: "text", value: this.string() };
    for (const [word, node] of WORDS) {
      if (this.text.startsWith(word, this.at)) {
        this.at += word.length;
        return node;
      }
    }
    return this.number();
  }

  number() {
    const found = this.match(NUMBER);
    if (!found) this.fail("a value");
    const isFloat = found[1] !== undefined || found[2] !== undefined || found[0] === "-0";
    return { kind: isFloat ? "float" : "int", source: found[0] };
  }

  nested(body) {
    if (++this.depth > DEPTH_MAX) this.fail(`at most ${DEPTH_MAX} levels`);
    const node = body();
    this.depth -= 1;
    return node;
  }

  string() {
    const found = this.match(TEXT);
    if (!found) this.fail("a text");
    return JSON.parse(found[0]);
  }

  map() {
    const entries = [];
    this.items("}", () => {
      this.blank();
      const name = this.string();
      this.blank();
      if (this.text[this.at] !== ":") this.fail("a colon");
      this.at += 1;
      entries.push([name, this.value()]);
    });
    return { kind: "map", entries };
  }

  list() {
    const items = [];
    this.items("]", () => items.push(this.value()));
    return { kind: "list", items };
  }

  /** What stands between the bracket that is next and `close`, with commas. */
  items(close, one) {
    this.at += 1;
    this.blank();
    if (this.text[this.at] === close) {
      this.at += 1;
      return;
    }
    for (;;) {
      one();
      this.blank();
      const mark = this.text[this.at];
      if (mark !== "," && mark !== close) this.fail(`a comma or ${close}`);
      this.at += 1;
      if (mark === close) return;
    }
  }
}

const WORDS = [
  ["null", { kind: "null" }],
  ["true", { kind: "bool", value: true }],
  ["false", { kind: "bool", value: false }],
];
