// The messages of a stream as they come, or from any place on.

import { bytes, count, el, fill } from "./dom.js";
import { bytesOf, visible } from "./frame.js";
import { Tail } from "./hub.js";
import { entry, plain, write } from "./json.js";

/** Messages that the page keeps. */
const KEPT = 500;
/** Characters of a message that its row shows. */
const BRIEF = 400;

export class Messages {
  #topic;
  #tail = null;
  #waiting = [];
  #drawing = false;
  #taken = 0;
  #list = el("ol", { class: "messages", "aria-live": "off" });
  #state = el("span", { class: "note", role: "status" });
  #pause = el("button", { type: "button", onclick: () => this.#toggle() }, "Pause");
  #from = el("input", {
    value: "new",
    size: 12,
    "aria-label": "Read from",
    title: "new, first, an offset, @ and Unix milliseconds, or an RFC 3339 time",
  });

  constructor(topic) {
    this.#topic = topic;
    const bar = el(
      "form",
      { class: "bar", onsubmit: (event) => this.#restart(event) },
      el("label", {}, "From ", this.#from),
      ...["first", "new"].map((place) =>
        el("button", { type: "button", class: "quiet", onclick: () => this.#begin(place) }, place),
      ),
      el("button", {}, "Read"),
      this.#pause,
      this.#state,
    );
    this.element = el("section", {}, bar, this.#list);
    this.#begin("new");
  }

  close() {
    this.#tail?.close();
  }

  #restart(event) {
    event.preventDefault();
    this.#begin(this.#from.value.trim() || "new");
  }

  #begin(place) {
    this.close();
    this.#from.value = place;
    this.#taken = 0;
    this.#waiting = [];
    fill(this.#list);
    this.#pause.textContent = "Pause";
    this.#state.textContent = "connecting";
    this.#tail = new Tail(this.#topic, place, {
      begun: (frame) => this.#begun(frame),
      message: (frame) => this.#later(() => row(frame)),
      gap: (frame) => this.#later(() => gap(frame)),
      refused: (error) => this.#refused(error),
      closed: () => {
        this.#state.textContent = "the connection has ended";
      },
    });
  }

  #begun(frame) {
    const offset = plain(entry(frame, "offset"));
    const missing = plain(entry(frame, "recovered")) === "false" ? "; some are gone" : "";
    this.#state.textContent = `reading from offset ${offset}${missing}`;
  }

  #refused(error) {
    this.#later(() =>
      el(
        "li",
        { class: "refused" },
        el("strong", {}, error.code),
        ` ${error.message}. ${error.hint ?? ""}`,
      ),
    );
  }

  #toggle() {
    this.#tail.paused = !this.#tail.paused;
    this.#pause.textContent = this.#tail.paused ? "Go on" : "Pause";
    this.#state.textContent = this.#tail.paused
      ? "paused: no credit is granted, what comes stays in the hub"
      : `${count(this.#taken)} read`;
  }

  /** Rows are made once a picture, and only those that will be seen. */
  #later(make) {
    this.#waiting.push(make);
    this.#taken += 1;
    if (this.#waiting.length > KEPT) this.#waiting.shift();
    if (this.#drawing) return;
    this.#drawing = true;
    setTimeout(() => this.#draw(), 50);
  }

  #draw() {
    this.#drawing = false;
    const rows = this.#waiting
      .splice(0)
      .map((make) => make())
      .reverse();
    this.#list.prepend(...rows);
    while (this.#list.children.length > KEPT) this.#list.lastChild.remove();
    if (!this.#tail.paused) this.#state.textContent = `${count(this.#taken)} read`;
  }
}

function row(frame) {
  const envelope = entry(frame, "deliver");
  const sealed = plain(entry(envelope, "sealed"));
  const head = [
    el("span", { class: "offset" }, count(plain(entry(frame, "offset")))),
    el("span", { class: "id" }, plain(entry(envelope, "id")) ?? ""),
  ];
  if (sealed !== undefined && envelope.entries.length <= 2) return sealedRow(head, sealed);
  const text = write(envelope);
  const brief = text.length > BRIEF ? `${text.slice(0, BRIEF)}…` : text;
  return el(
    "li",
    {},
    el(
      "details",
      {},
      el("summary", {}, head, el("code", {}, brief)),
      el("pre", {}, write(envelope, 2)),
    ),
  );
}

function sealedRow(head, sealed) {
  const frame = bytesOf(sealed);
  const fields = visible(frame) ?? [["bytes", String(frame.length)]];
  const brief = fields
    .slice(0, 1)
    .map(([, value]) => value)
    .join();
  return el(
    "li",
    {},
    el(
      "details",
      {},
      el(
        "summary",
        {},
        head,
        el("span", { class: "chip sealed" }, "sealed"),
        el("code", {}, `${bytes(frame.length)}, class ${brief}: only the group can read it`),
      ),
      el(
        "dl",
        {},
        fields.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, String(value))]),
      ),
    ),
  );
}

function gap(frame) {
  const [from, to, reason] = ["from", "to", "reason"].map((name) => plain(entry(frame, name)));
  return el(
    "li",
    { class: "refused" },
    `offsets ${count(from)} to ${count(to)} will not come: ${reason}`,
  );
}
