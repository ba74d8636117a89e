// One stream: its state, and a view of its messages, readers, codecs, or of publishing to it.

import { bytes, count, el, fill, heads, lasted, right, streamHref, table, time } from "./dom.js";
import { range, stream } from "./hub.js";
import { entry } from "./json.js";
import { Delayed } from "./delayed.js";
import { Messages } from "./messages.js";
import { Publish } from "./publish.js";
import { Readers } from "./readers.js";
import { sizes } from "./sizes.js";

const VIEWS = {
  messages: "Messages",
  publish: "Publish",
  readers: "Readers",
  delayed: "Delayed",
  cost: "Codec cost",
};

export class StreamPage {
  #topic;
  #facts = el("dl", { class: "facts" });
  #view = null;

  constructor(topic, view) {
    this.#topic = topic;
    const name = view in VIEWS ? view : "messages";
    const links = Object.entries(VIEWS).map(([key, label]) =>
      el("a", { href: streamHref(topic, key), "aria-current": key === name && "page" }, label),
    );
    this.#view = make[name](topic);
    this.element = el(
      "section",
      {},
      el("p", {}, el("a", { href: "#/" }, "All streams")),
      el("h2", { class: "topic" }, topic),
      this.#facts,
      el("nav", { class: "views", "aria-label": "Views" }, links),
      this.#view.element,
    );
  }

  async refresh() {
    const state = await stream(this.#topic);
    fill(
      this.#facts,
      facts(state).flatMap(([name, value]) => [
        el("div", {}, el("dt", {}, name), el("dd", {}, value)),
      ]),
    );
    await this.#view.show?.(state);
  }

  close() {
    this.#view.close?.();
  }
}

function facts(state) {
  return [
    ["kind", state.sealed ? `sealed, group ${state.sealed}` : "open"],
    ["level", state.level],
    ["messages", count(state.count)],
    ["offsets", state.count > 0 ? `${count(state.first)} to ${count(state.next - 1)}` : "none"],
    ["size", bytes(state.bytes)],
    ["generation", String(state.generation)],
    ["last message", time(state.lastMs)],
    ["kept", kept(state)],
    ["damaged", state.damaged.length ? `${state.damaged.length} ranges` : "nothing"],
  ];
}

/** What at least is kept: 0 is no bound. */
function kept({ maxAgeMs, maxCount, maxBytes }) {
  const bounds = [
    maxAgeMs > 0 && lasted(maxAgeMs),
    maxCount > 0 && `${count(maxCount)} messages`,
    maxBytes > 0 && bytes(maxBytes),
  ].filter(Boolean);
  return bounds.length > 0 ? bounds.join(", ") : "everything";
}

const make = {
  messages: (topic) => new Messages(topic),
  publish: (topic) => new Publish(topic),
  readers: (topic) => new Readers(topic),
  delayed: (topic) => new Delayed(topic),
  cost: (topic) => new Cost(topic),
};

/** Messages that the comparison of codecs looks at. */
const SAMPLE = 500;
const CODECS = [
  ["json", "JSON"],
  ["msgpack", "MessagePack"],
  ["cbor", "CBOR"],
];

class Cost {
  #topic;
  #measured = false;
  #again = el(
    "button",
    {
      type: "button",
      onclick: () => {
        this.#measured = false;
      },
    },
    "Measure again",
  );

  constructor(topic) {
    this.#topic = topic;
    this.element = el("div", {});
  }

  async show(state) {
    if (this.#measured || state.count === 0) return;
    this.#measured = true;
    if (state.sealed) {
      return fill(
        this.element,
        el(
          "p",
          { class: "note" },
          "A sealed body is the same in every codec; JSON makes it a third longer, as base64url.",
        ),
      );
    }
    const from = Math.max(state.first, state.next - SAMPLE);
    const { frames } = await range(this.#topic, from, SAMPLE);
    const envelopes = frames.map((frame) => entry(frame, "deliver")).filter(Boolean);
    const all = envelopes.map(sizes);
    fill(this.element, ...this.#table(all), this.#again);
  }

  #table(all) {
    const sum = (codec) => all.reduce((total, size) => total + size[codec], 0);
    const most = Math.max(...CODECS.map(([codec]) => sum(codec)), 1);
    const rows = CODECS.map(([codec, label]) => {
      const sorted = all.map((size) => size[codec]).sort((a, b) => a - b);
      const share = (sum(codec) / most) * 100;
      return el(
        "tr",
        {},
        el("td", {}, label),
        el("td", { class: "number" }, count(Math.round(sum(codec) / Math.max(all.length, 1)))),
        el("td", { class: "number" }, count(sorted[Math.floor(sorted.length / 2)] ?? 0)),
        el("td", { class: "number" }, count(sorted.at(-1) ?? 0)),
        el("td", { class: "number" }, bytes(sum(codec))),
        el(
          "td",
          { class: "share" },
          el("meter", { min: 0, max: 100, value: share }),
          ` ${share.toFixed(0)} %`,
        ),
      );
    });
    const head = ["Codec", "Mean", "Median", "Largest", "All", "Beside the largest"].map(
      (name, index) => el("th", { scope: "col", class: index && "number" }, name),
    );
    const words = `Bytes of the last ${count(all.length)} envelopes in each codec, counted here.`;
    return [el("p", { class: "note" }, words), table(head, el("tbody", {}, rows))];
  }
}
