// The streams with their depth, rates and lag, page by page, and the node's own counters, as the
// hub pushes them.

import { bytes, count, el, fill, rate, spark, streamLink } from "./dom.js";
import { Figures, lag } from "./hub.js";

const HISTORY = 60;
const TREND = "Last minute";
/** Streams of one page. */
const PAGE = 200;
/** The hub is silent while nothing changes: after so long, no rate is above 0. */
const SILENT_MS = 2500;
/** A filter is taken up when nobody has typed for so long. */
const TYPED_MS = 150;
const TILES = [
  ["stored", "stored"],
  ["delivered", "delivered"],
  ["acknowledged", "acked"],
  ["redelivered", "redelivered"],
];

export class Overview {
  #seen = new Map();
  #tiles = el("div", { class: "tiles" });
  #rows = el("tbody");
  #note = el("p", { class: "note", role: "status" });
  #filter = el("input", {
    type: "search",
    placeholder: "Filter topics",
    title: "a part of the topic, or a pattern: fleet/*/location, fleet/**",
    "aria-label": "Filter topics",
    oninput: () => {
      clearTimeout(this.#typed);
      this.#typed = setTimeout(() => this.#turn([]), TYPED_MS);
    },
  });
  #previous = el(
    "button",
    { type: "button", disabled: true, onclick: () => this.#turn(this.#before.slice(0, -1)) },
    "Previous page",
  );
  #next = el(
    "button",
    {
      type: "button",
      disabled: true,
      onclick: () => this.#turn([...this.#before, this.#page.next]),
    },
    "Next page",
  );
  /** The topics behind which this page and those before it begin, but for the first. */
  #before = [];
  #page = null;
  #counters;
  #figures = null;
  #typed = 0;
  /** When something was pushed last. */
  #toldAt = 0;
  #handlers;

  /** Handlers: `told(node)`, what the node says of itself, and `failed(error)`. */
  constructor(handlers) {
    this.#handlers = handlers;
    const head = ["Topic", "Depth", "Size", "In / s", TREND, "Readers", "Lag"].map(
      (name, index) =>
        el("th", { scope: "col", class: name === TREND ? "trend" : index && "number" }, name),
    );
    this.element = el(
      "section",
      {},
      this.#tiles,
      el(
        "div",
        { class: "bar" },
        el("h2", {}, "Streams"),
        el("a", { href: "#/publish" }, "Publish"),
        this.#filter,
      ),
      el(
        "div",
        { class: "scroll streams" },
        el("table", {}, el("thead", {}, el("tr", {}, head)), this.#rows),
      ),
      el("div", { class: "bar" }, this.#previous, this.#next, this.#note),
    );
  }

  /** Has the hub push from now on. */
  open() {
    this.close();
    const told = (overview) => this.#take(overview);
    const { failed } = this.#handlers;
    const wanted = this.#filter.value.trim();
    this.#figures = new Figures(wanted, this.#before.at(-1), PAGE, { told, failed });
  }

  /** The hub is to push no more. */
  close() {
    clearTimeout(this.#typed);
    this.#figures?.close();
    this.#figures = null;
  }

  /** Each second: asks nothing, and lets the rates fall where the hub has nothing to say. */
  refresh() {
    const now = performance.now();
    if (this.#page === null || now - this.#toldAt < SILENT_MS) return;
    this.#toldAt = now;
    this.#draw(now);
  }

  /** Shows the page that begins behind the last of these topics. */
  #turn(before) {
    this.#before = before;
    if (this.#figures) this.open();
  }

  #take({ node, counters, streams, next }) {
    this.#toldAt = performance.now();
    [this.#page, this.#counters] = [{ list: streams, next }, counters];
    this.#draw(this.#toldAt);
    this.#handlers.told(node);
  }

  #draw(now) {
    for (const [, name] of TILES) this.#sample(name, this.#counters?.[name] ?? 0, now);
    const { list } = this.#page;
    for (const stream of list) this.#sample(`/${stream.stream}`, stream.next, now);
    const alive = new Set(list.map((stream) => `/${stream.stream}`));
    for (const key of this.#seen.keys()) {
      if (key.startsWith("/") && !alive.has(key)) this.#seen.delete(key);
    }
    this.#drawTiles(this.#counters);
    this.#drawStreams();
  }

  /** Keeps the rate of a counter; one that fell has begun anew. */
  #sample(key, value, now) {
    const seen = this.#seen.get(key) ?? { value, now, rates: [] };
    if (now > seen.now) {
      seen.rates.push(Math.max(0, value - seen.value) / ((now - seen.now) / 1000));
      if (seen.rates.length > HISTORY) seen.rates.shift();
    }
    this.#seen.set(key, Object.assign(seen, { value, now }));
  }

  #rates(key) {
    return this.#seen.get(key)?.rates ?? [];
  }

  #drawTiles(values) {
    if (values === undefined) {
      const words = "This token does not show the node's own figures: they take the right observe.";
      return fill(this.#tiles, el("p", { class: "note" }, words));
    }
    fill(
      this.#tiles,
      TILES.map(([label, name]) =>
        el(
          "div",
          { class: "tile" },
          el("span", { class: "label" }, `${label} / s`),
          el("strong", {}, rate(this.#rates(name).at(-1) ?? 0)),
          spark(this.#rates(name), 140, 30),
          el("span", { class: "label" }, `${count(values[name])} since the start`),
        ),
      ),
    );
  }

  #drawStreams() {
    fill(
      this.#rows,
      this.#page.list.map((stream) => this.#row(stream)),
    );
    this.#previous.disabled = this.#before.length === 0;
    this.#next.disabled = this.#page.next === undefined;
    const words = this.#words(this.#page, this.#filter.value.trim());
    if (this.#note.textContent !== words) this.#note.textContent = words;
  }

  #words({ list, next }, wanted) {
    const more = next === undefined ? "" : "; there are more";
    if (list.length > 0) {
      const [first, last] = [list[0].stream, list.at(-1).stream];
      const all = this.#before.length === 0 && !more;
      const number = list.length === 1 ? "1 stream" : `${count(list.length)} streams`;
      return all ? number : `${first} to ${last}${more}`;
    }
    if (this.#before.length > 0) return "No further stream.";
    if (wanted) return "No stream that may be read has such a topic.";
    return "No stream yet, or none that may be read. The first message makes one: Publish.";
  }

  #row(stream) {
    const lags = stream.consumers.map((consumer) => lag(consumer, stream.next));
    const behind = lags.length ? Math.max(...lags) : null;
    const rates = this.#rates(`/${stream.stream}`);
    const number = (value) => el("td", { class: "number" }, value);
    return el(
      "tr",
      {},
      el(
        "td",
        {},
        streamLink(stream.stream),
        " ",
        el(
          "span",
          { class: `chip ${stream.sealed ? "sealed" : ""}` },
          stream.sealed ? "sealed" : "open",
        ),
        " ",
        el("span", { class: "chip" }, stream.level),
      ),
      number(count(stream.count)),
      number(bytes(stream.bytes)),
      number(rate(rates.at(-1) ?? 0)),
      el("td", { class: "trend" }, spark(rates)),
      number(`${stream.readers} + ${stream.consumers.length}`),
      el(
        "td",
        { class: `number ${behind > 0 ? "warn" : ""}` },
        behind === null ? "–" : count(behind),
      ),
    );
  }
}
