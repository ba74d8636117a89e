// One consumer: what it has not finished, and what can be done to it.

import { button, cell, count, el, fill, heads, lasted, moment, right, table } from "./dom.js";
import { consumer, removeConsumer, steer } from "./hub.js";
import { placeOf } from "./pages.js";

const PLACES = "first, new, an offset, a time (2026-11-22 08:00), or -10m for ten minutes ago";

const PENDING = ["Not finished", "Attempt", "Connection", "Has it since", "Comes again"];

const number = (label) => el("input", { type: "number", min: 0, size: 8, "aria-label": label });

export class ConsumerPanel {
  #topic;
  #label;
  #info = null;
  #facts = el("dl", { class: "facts" });
  #pause = button("Pause", () => this.#steer({ pause: !(this.#info?.pausedMs > 0) }));
  #reset = el("input", { size: 14, value: "first", "aria-label": "Reset to", title: PLACES });
  #from = number("Skip from offset");
  #to = number("Skip to offset");
  #pending = el("tbody");
  #answer = el("p", { class: "note", role: "status" });

  /** `label` is the name as it is shown. */
  constructor(topic, name, label) {
    this.#topic = topic;
    this.name = name;
    this.#label = label;
    this.element = el(
      "section",
      { "aria-label": `Consumer ${label}` },
      el("h3", {}, `Consumer ${label}`),
      this.#facts,
      el(
        "div",
        { class: "bar" },
        this.#pause,
        button("Redeliver", () => this.#steer({ redeliver: true })),
        button("Remove", () => this.#remove()),
      ),
      this.#form("Reset", () => this.#toPlace(), el("label", {}, "Reset to ", this.#reset)),
      this.#form(
        "Skip",
        () => this.#skip(),
        el("label", {}, "Skip from offset ", this.#from),
        el("label", {}, " to ", this.#to),
      ),
      this.#answer,
      table(heads(PENDING), this.#pending),
    );
  }

  #form(label, act, ...fields) {
    const onsubmit = (event) => {
      event.preventDefault();
      act();
    };
    const submit = el("button", { class: "quiet" }, label);
    return el("form", { class: "bar", onsubmit }, ...fields, submit);
  }

  async refresh() {
    this.#show(await consumer(this.#topic, this.name));
  }

  #show(info) {
    this.#info = info;
    this.#pause.textContent = info.pausedMs > 0 ? "Resume" : "Pause";
    const facts = [
      ["state", info.pausedMs > 0 ? ["paused since ", moment(info.pausedMs)] : ["running"]],
      ["next offset", [count(info.next)]],
      ["lag", [info.lag > 0 ? `${count(info.lag)}, ${lasted(info.lagMs)}` : "none"]],
      ["in flight", [`${count(info.inFlight)}, ${count(info.held)} held now`]],
      [
        "unfinished",
        [info.unfinished > 0 ? `${count(info.unfinished)}, oldest ${lasted(info.oldestMs)}` : "none"],
      ],
      ["at most in flight", [count(info.maxInFlight)]],
      ["comes again after", [lasted(info.ackWaitMs)]],
      ["attempts", [info.maxAttempts > 0 ? `at most ${count(info.maxAttempts)}` : "no bound"]],
    ];
    fill(
      this.#facts,
      facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, ...value))),
    );
    fill(this.#pending, info.pending.map(waits));
  }

  #toPlace() {
    const place = this.#reset.value.trim();
    const words = `Let ${this.#label} go on at ${place}? What it has not finished is forgotten.`;
    if (place && confirm(words)) this.#steer({ reset: placeOf(place) });
  }

  #skip() {
    if (this.#from.value === "") return this.#from.focus();
    const from = Number(this.#from.value);
    const to = this.#to.value === "" ? from : Number(this.#to.value);
    const words = `Take the offsets ${from} to ${to} as done for ${this.#label}?`;
    if (confirm(words)) this.#steer({ skip: { from, to } });
  }

  #steer(verb) {
    return this.#do(async () => {
      this.#show(await steer(this.#topic, this.name, verb));
      return "done";
    });
  }

  #remove() {
    const words = `Remove the consumer ${this.#label} of ${this.#topic}, and where it is?`;
    if (!confirm(words)) return;
    this.#do(async () => {
      await removeConsumer(this.#topic, this.name);
      return "removed";
    });
  }

  /** Does what answers with a word for it; a refusal stands where the word would. */
  async #do(act) {
    try {
      this.#answer.className = "note";
      this.#answer.textContent = await act();
    } catch (error) {
      const { code = "Fault", message, hint = "" } = error;
      this.#answer.className = "note warn";
      this.#answer.textContent = `${code}: ${message}. ${hint}`;
    }
  }
}

/** A message that is not finished. */
function waits({ offset, attempt, connection, sinceMs, dueMs }) {
  return el(
    "tr",
    {},
    el("td", {}, count(offset)),
    cell(attempt, attempt > 1),
    right(connection === null ? "nobody" : String(connection)),
    right(sinceMs > 0 ? moment(sinceMs) : "–"),
    right(dueMs > 0 ? moment(dueMs) : "at once"),
  );
}
