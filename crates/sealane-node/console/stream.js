// One stream: its state, and a view of its messages, consumers, codecs, or of publishing to it.

import { bytes, count, el, fill, time } from "./dom.js";
import { enqueue, lag, range, stream } from "./hub.js";
import { entry, read } from "./json.js";
import { sizes } from "./sizes.js";
import { Messages } from "./tail.js";

const VIEWS = { messages: "Messages", publish: "Publish", readers: "Readers", cost: "Codec cost" };

export class StreamPage {
  #topic;
  #facts = el("dl", { class: "facts" });
  #view = null;

  constructor(topic, view) {
    this.#topic = topic;
    const name = view in VIEWS ? view : "messages";
    const links = Object.entries(VIEWS).map(([key, label]) =>
      el("a", { href: `#/stream/${topic}?${key}`, "aria-current": key === name && "page" }, label),
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
    this.#view.show?.(state);
  }

  close() {
    this.#view.close?.();
  }
}

function facts(state) {
  const bound = (value, text) => (value > 0 ? text : "no bound");
  return [
    ["kind", state.sealed ? `sealed, group ${state.sealed}` : "open"],
    ["level", state.level],
    ["messages", count(state.count)],
    ["offsets", `${count(state.first)} to ${count(state.next)}`],
    ["size", bytes(state.bytes)],
    ["generation", String(state.generation)],
    ["last message", time(state.lastMs)],
    ["kept for", bound(state.maxAgeMs, `${Math.round(state.maxAgeMs / 1000)} s`)],
    ["damaged", state.damaged.length ? `${state.damaged.length} ranges` : "nothing"],
  ];
}

const make = {
  messages: (topic) => new Messages(topic),
  publish: (topic) => new Publish(topic),
  readers: () => new Readers(),
  cost: (topic) => new Cost(topic),
};

/** A table that scrolls within the page where it is wider. */
function table(head, body) {
  return el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, head)), body));
}

class Publish {
  #topic;
  #body = el(
    "textarea",
    { rows: 8, spellcheck: "false", "aria-label": "Envelope" },
    '{"lat": 48.2, "lon": 16.37}',
  );
  #key = el("input", { placeholder: "none", "aria-label": "Idempotency key" });
  #delay = el("input", { type: "number", min: 0, value: 0, "aria-label": "Delay in milliseconds" });
  #answer = el("p", { class: "note", role: "status" });

  constructor(topic) {
    this.#topic = topic;
    this.element = el(
      "form",
      { class: "publish", onsubmit: (event) => this.#send(event) },
      el("label", {}, "Envelope, a JSON map", this.#body),
      el(
        "div",
        { class: "bar" },
        el("label", {}, "Idempotency key ", this.#key),
        el("label", {}, "Delay in ms ", this.#delay),
        el("button", {}, "Publish"),
      ),
      this.#answer,
    );
  }

  show(state) {
    if (state.sealed)
      this.#answer.textContent =
        "This stream is sealed: only members of its group can write to it.";
  }

  async #send(event) {
    event.preventDefault();
    this.#answer.className = "note";
    try {
      read(this.#body.value);
      const options = { key: this.#key.value.trim(), delayMs: Number(this.#delay.value) };
      const { answer, ms } = await enqueue(this.#topic, this.#body.value, options);
      this.#answer.textContent = told(answer, ms);
    } catch (error) {
      this.#answer.className = "note warn";
      const { code = "Not JSON", message, hint = "" } = error;
      this.#answer.textContent = `${code}: ${message}. ${hint}`;
    }
  }
}

/** The hub's answer to an enqueue in words. */
function told(answer, ms) {
  if (answer.dueMs !== undefined) return `held back until ${time(answer.dueMs)}, id ${answer.id}`;
  const place = `stored at offset ${count(answer.offset)} (${answer.level})`;
  const earlier = answer.replayed ? ", earlier already" : "";
  return `${place} in ${ms.toFixed(1)} ms${earlier}, id ${answer.id}`;
}

/** Heads of a table, the first as text and the others as numbers. */
const heads = (names) =>
  names.map((name, index) => el("th", { scope: "col", class: index && "number" }, name));

const cell = (value, warn) => el("td", { class: `number ${warn ? "warn" : ""}` }, count(value));

class Readers {
  #consumers = el("tbody");
  #connections = el("tbody");
  #note = el("p", { class: "note" });

  constructor() {
    const shared = ["Consumer", "Members", "Next offset", "In flight", "Lag", "Redelivered"];
    const each = ["Connection", "Credit", "In flight", "Delivered", "Codec", "Since"];
    this.element = el(
      "div",
      {},
      table(heads([...shared, "Dead letters"]), this.#consumers),
      el("h3", {}, "Connections"),
      table(heads(each), this.#connections),
      this.#note,
    );
  }

  show(state) {
    fill(this.#consumers, state.consumers.map((consumer) => shares(consumer, state.next)));
    fill(this.#connections, state.connections.map(reads));
    const alone = state.readers === 1 ? "1 connection reads" : `${state.readers} connections read`;
    this.#note.textContent =
      `${alone} this stream, members of consumers included. ` +
      "Whoever has no credit left is sent nothing until it grants more.";
  }
}

const named = (consumer) => (consumer === "" ? "inbox" : consumer);

/** Those who share the messages. */
function shares(consumer, next) {
  const behind = lag(consumer, next);
  return el(
    "tr",
    {},
    el("td", {}, named(consumer.consumer)),
    cell(consumer.members),
    cell(consumer.next),
    cell(consumer.inFlight),
    cell(behind, behind > 0),
    cell(consumer.redelivered),
    cell(consumer.deadLettered, consumer.deadLettered > 0),
  );
}

/** One connection that reads. */
function reads({ consumer, pattern, credit, inFlight, delivered, codec, sinceMs }) {
  const who = consumer === null ? "reads for itself" : `member of ${named(consumer)}`;
  return el(
    "tr",
    {},
    el("td", {}, `${who}, ${pattern}`),
    cell(credit, credit === 0),
    cell(inFlight),
    cell(delivered),
    el("td", { class: "number" }, codec),
    el("td", { class: "number" }, time(sinceMs)),
  );
}

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
    const frames = await range(this.#topic, from, SAMPLE);
    const all = frames.map((frame) => sizes(entry(frame, "deliver")));
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
