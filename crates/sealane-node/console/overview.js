// All streams with their depth, rates and lag, and the node's own counters.

import { bytes, count, el, fill, rate, spark } from "./dom.js";
import { lag, metrics, streams } from "./hub.js";

const HISTORY = 60;
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
  #note = el("p", { class: "note" });
  #filter = el("input", {
    type: "search",
    placeholder: "Filter topics",
    "aria-label": "Filter topics",
  });
  #last = null;

  constructor() {
    this.#filter.addEventListener("input", () => this.#last && this.#draw(this.#last));
    const head = ["Topic", "Depth", "Size", "In / s", "", "Readers", "Lag"].map((name, index) =>
      el("th", { scope: "col", class: index && "number" }, name),
    );
    this.element = el(
      "section",
      {},
      this.#tiles,
      el("div", { class: "bar" }, el("h2", {}, "Streams"), this.#filter),
      el(
        "div",
        { class: "scroll" },
        el("table", {}, el("thead", {}, el("tr", {}, head)), this.#rows),
      ),
      this.#note,
    );
  }

  /** Asks the hub once and draws. */
  async refresh() {
    const [page, values] = await Promise.all([streams(), metrics()]);
    const now = performance.now();
    for (const [, name] of TILES) this.#sample(name, values.get(name) ?? 0, now);
    for (const stream of page.list) this.#sample(`/${stream.stream}`, stream.next, now);
    const alive = new Set(page.list.map((stream) => `/${stream.stream}`));
    for (const key of this.#seen.keys()) {
      if (key.startsWith("/") && !alive.has(key)) this.#seen.delete(key);
    }
    this.#last = { page, values };
    this.#draw(this.#last);
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

  #draw({ page, values }) {
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
    const wanted = this.#filter.value.trim();
    const shown = page.list.filter((stream) => stream.stream.includes(wanted));
    fill(
      this.#rows,
      shown.map((stream) => this.#row(stream)),
    );
    this.#note.textContent = this.#words(page, shown.length, wanted);
  }

  #words(page, shown, wanted) {
    if (page.list.length === 0) {
      const command = `sealane pub fleet/7/location '{"lat": 48.2}'`;
      return `No stream yet. The first message makes one: ${command}`;
    }
    if (page.more) return `The first ${page.list.length} streams; narrow them by their topics.`;
    return wanted ? `${shown} of ${page.list.length} streams` : "";
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
        el("a", { href: `#/stream/${stream.stream}` }, stream.stream),
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
      el("td", {}, spark(rates)),
      number(`${stream.readers} + ${stream.consumers.length}`),
      el(
        "td",
        { class: `number ${behind > 0 ? "warn" : ""}` },
        behind === null ? "–" : count(behind),
      ),
    );
  }
}
