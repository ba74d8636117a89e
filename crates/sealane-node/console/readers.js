// Who reads a stream: consumers, which share it, and connections.

import { button, cell, el, fill, heads, lasted, right, table, time } from "./dom.js";
import { ConsumerPanel } from "./consumer.js";
import { consumers } from "./hub.js";

export class Readers {
  #topic;
  #panel = null;
  #place = el("div");
  #consumers = el("tbody");
  #connections = el("tbody");
  #note = el("p", { class: "note" });

  constructor(topic) {
    this.#topic = topic;
    const shared = ["Consumer", "Members", "Next offset", "In flight", "Lag", "Unfinished", "Oldest"];
    const counted = ["Redelivered", "Dead letters"];
    const each = ["Connection", "Credit", "In flight", "Delivered", "Codec", "Since"];
    this.element = el(
      "div",
      {},
      table(heads([...shared, ...counted]), this.#consumers),
      this.#place,
      el("h3", {}, "Connections"),
      table(heads(each), this.#connections),
      this.#note,
    );
  }

  async show(state) {
    fill(this.#connections, state.connections.map(reads));
    const alone = state.readers === 1 ? "1 connection reads" : `${state.readers} connections read`;
    this.#note.textContent =
      `${alone} this stream, members of consumers included. ` +
      "Whoever has no credit left is sent nothing until it grants more.";
    const all = await consumers(this.#topic);
    fill(this.#consumers, all.map((one) => this.#shares(one)));
    if (this.#panel && !all.some((one) => one.consumer === this.#panel.name)) this.#open(null);
    await this.#panel?.refresh();
  }

  /** Those who share the messages. */
  #shares(consumer) {
    const { consumer: name, pausedMs } = consumer;
    return el(
      "tr",
      {},
      el(
        "td",
        {},
        button(named(name), () => this.#open(name), `consumer ${name}`),
        pausedMs > 0 ? [" ", el("span", { class: "chip" }, "paused")] : [],
      ),
      cell(consumer.members),
      cell(consumer.next),
      cell(consumer.inFlight),
      cell(consumer.lag, consumer.lag > 0),
      // A worker that has everything and died has no lag, and messages that nobody finishes.
      cell(consumer.unfinished, consumer.unfinished > 0 && consumer.members === 0),
      right(consumer.unfinished > 0 ? lasted(consumer.oldestMs) : "–"),
      cell(consumer.redelivered),
      cell(consumer.deadLettered, consumer.deadLettered > 0),
    );
  }

  /** Shows one consumer and what can be done to it; null: none. */
  async #open(name) {
    this.#panel = name === null ? null : new ConsumerPanel(this.#topic, name, named(name));
    fill(this.#place, this.#panel?.element);
    await this.#panel?.refresh();
  }
}

const named = (consumer) => (consumer === "" ? "inbox" : consumer);

/** One connection that reads. */
function reads({ connection, consumer, pattern, credit, inFlight, delivered, codec, sinceMs }) {
  const who = consumer === null ? "reads for itself" : `member of ${named(consumer)}`;
  const number = connection > 0 ? `${connection}: ` : "";
  return el(
    "tr",
    {},
    el("td", {}, `${number}${who}, ${pattern}`),
    cell(credit, credit === 0),
    cell(inFlight),
    cell(delivered),
    right(codec),
    right(time(sinceMs)),
  );
}
