// The streams with their depth, rates and lag, page by page, and the node's own counters.

import { bytes, count, el, fill, rate, spark, streamLink } from "./dom.js";
import { lag, metrics, streams } from "./hub.js";

const HISTORY = 60;
const TREND = "Last minute";
/** Streams of one page. */
const PAGE = 200;
/** A search that took several answers is repeated only so often. */
const SEARCH_AGAIN_MS = 10_000;
const TILES = [
  ["stored", "sealane_stream_stored_total"],
  ["delivered", "sealane_stream_delivered_total"],
  ["acknowledged", "sealane_stream_acked_total"],
  ["redelivered", "sealane_stream_redelivered_total"],
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
    oninput: () => this.#turn([]),
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
  #asked = { at: 0, answers: 0, count: 0 };

  constructor() {
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

  /** Asks the hub once and draws. */
  async refresh() {
    const [, values] = await Promise.all([this.#list(), metrics()]);
    const now = performance.now();
    for (const [, name] of TILES) this.#sample(name, values?.get(name) ?? 0, now);
    this.#drawTiles(values);
  }

  /** Shows the page that begins behind the last of these topics. */
  async #turn(before) {
    this.#before = before;
    this.#asked.at = 0;
    // What is refused here the next refresh says.
    await this.#list().catch(() => {});
  }

  async #list() {
    const { at, answers } = this.#asked;
    const now = performance.now();
    if (answers > 1 && at > 0 && now - at < SEARCH_AGAIN_MS) return;
    const count = ++this.#asked.count;
    const page = await streams(this.#filter.value.trim(), this.#before.at(-1), PAGE);
    // A later question has been asked meanwhile.
    if (count !== this.#asked.count) return;
    Object.assign(this.#asked, { at: now, answers: page.asked });
    const sampled = performance.now();
    for (const stream of page.list) this.#sample(`/${stream.stream}`, stream.next, sampled);
    const alive = new Set(page.list.map((stream) => `/${stream.stream}`));
    for (const key of this.#seen.keys()) {
      if (key.startsWith("/") && !alive.has(key)) this.#seen.delete(key);
    }
    this.#page = page;
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
    if (values === null) {
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
          el("span", { class: "label" }, `${count(values.get(name) ?? 0)} since the start`),
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

  #words({ list, next, asked }, wanted) {
    const more = next === undefined ? "" : "; there are more";
    if (list.length > 0) {
      const [first, last] = [list[0].stream, list.at(-1).stream];
      const all = this.#before.length === 0 && !more;
      const number = list.length === 1 ? "1 stream" : `${count(list.length)} streams`;
      return all ? number : `${first} to ${last}${more}`;
    }
    if (more) return `None in ${asked} answers of the hub; the next page looks further.`;
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
