// Publishing one message: to any topic, or to the one of a stream's page.

import { bytes, count, el, fill, streamLink, time } from "./dom.js";
import { enqueue } from "./hub.js";
import { read } from "./json.js";

const EXAMPLE = '{"lat": 48.2, "lon": 16.37}';

/** `#/publish`: to a topic that is typed, whether there is such a stream or not. */
export class PublishPage {
  #form = new Publish();

  constructor() {
    this.element = el(
      "section",
      {},
      el("p", {}, el("a", { href: "#/" }, "All streams")),
      el("h2", {}, "Publish"),
      this.#form.element,
    );
  }

  async refresh() {}
}

/** The form. Without a topic it asks for one. */
export class Publish {
  #topic = el("input", {
    class: "wide mono",
    placeholder: "fleet/7/location",
    spellcheck: "false",
    autocomplete: "off",
    required: true,
    title: "The first message to a topic makes its stream.",
  });
  #body = el(
    "textarea",
    {
      rows: 8,
      spellcheck: "false",
      class: "mono",
      "aria-label": "Envelope",
      oninput: () => this.#check(),
    },
    EXAMPLE,
  );
  #key = el("input", { placeholder: "none", "aria-label": "Idempotency key" });
  #delay = el("input", { type: "number", min: 0, value: 0, "aria-label": "Delay in milliseconds" });
  #checked = el("p", { class: "note" });
  #sealed = el("p", { class: "note warn" });
  #answer = el("p", { class: "note", role: "status" });

  constructor(topic) {
    this.#topic.value = topic ?? "";
    this.element = el(
      "form",
      { class: "publish", onsubmit: (event) => this.#send(event) },
      topic === undefined ? el("label", {}, "Topic", this.#topic) : undefined,
      el("label", {}, "Envelope, a JSON map", this.#body),
      this.#checked,
      el(
        "div",
        { class: "bar" },
        el("label", {}, "Idempotency key ", this.#key),
        el("label", {}, "Delay in ms ", this.#delay),
        el("button", {}, "Publish"),
      ),
      this.#sealed,
      this.#answer,
    );
    this.#check();
  }

  show(state) {
    this.#sealed.textContent = state.sealed
      ? "This stream is sealed: only members of its group can write to it."
      : "";
  }

  /** Says what the envelope is while it is typed; whether it can be sent. */
  #check() {
    const { fault, words } = judged(this.#body.value);
    this.#checked.textContent = words;
    this.#checked.className = fault ? "note warn" : "note";
    this.#body.setAttribute("aria-invalid", String(fault));
    return !fault;
  }

  async #send(event) {
    event.preventDefault();
    if (!this.#check()) return this.#body.focus();
    const topic = this.#topic.value.trim();
    this.#say("note", "sending");
    try {
      const options = { key: this.#key.value.trim(), delayMs: Number(this.#delay.value) };
      const { answer, ms } = await enqueue(topic, this.#body.value, options);
      this.#say("note", told(answer, ms), " in ", streamLink(topic));
    } catch (error) {
      const { code = "Fault", message, hint = "" } = error;
      this.#say("note warn", `${code}: ${message}. ${hint}`);
    }
  }

  #say(kind, ...words) {
    this.#answer.className = kind;
    fill(this.#answer, ...words);
  }
}

/** What a text is as an envelope: whether something is wrong with it, and words for it. */
function judged(text) {
  try {
    const node = read(text);
    if (node.kind !== "map") return { fault: true, words: "An envelope is a JSON map: {…}." };
    const names = node.entries.map(([name]) => name);
    const twice = names.find((name, index) => names.indexOf(name) !== index);
    if (twice !== undefined) return { fault: true, words: `“${twice}” stands there twice.` };
    const size = bytes(new TextEncoder().encode(text).length);
    return { fault: false, words: `A map of ${count(names.length)} fields, ${size}.` };
  } catch (error) {
    return { fault: true, words: `Not JSON: ${error.message}.` };
  }
}

/** The hub's answer to an enqueue in words. */
function told(answer, ms) {
  if (answer.dueMs !== undefined) return `held back until ${time(answer.dueMs)}, id ${answer.id}`;
  const place = `stored at offset ${count(answer.offset)} (${answer.level})`;
  const earlier = answer.replayed ? ", earlier already," : "";
  return `${place}${earlier} after ${ms.toFixed(1)} ms, id ${answer.id}`;
}
