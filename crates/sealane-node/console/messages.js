// The messages of a stream: page by page from any place, or as they come.

import { button, count, el, fill } from "./dom.js";
import { offset, stream, Tail } from "./hub.js";
import { pageBefore, pageFrom, placeOf } from "./pages.js";
import { refusal, row } from "./rows.js";

/** Messages that are kept in view while they are followed. */
const KEPT = 500;

const PLACES =
  "first, new, an offset, @ and Unix milliseconds, a time (2026-11-22 08:00), or -10m for ten " +
  "minutes ago";

export class Messages {
  #topic;
  /** Counts what was asked for: an answer that came too late for its question is dropped. */
  #asked = 0;
  /** What is in view while nothing is followed. */
  #page = null;
  #tail = null;
  #waiting = [];
  #drawing = false;
  #taken = 0;
  /** The offsets that the stream has. */
  #bounds = { first: 0, next: 0 };
  #list = el("ol", { class: "messages", "aria-label": "Messages" });
  #state = el("span", { class: "note", role: "status" });
  #from = el("input", { value: "new", size: 14, "aria-label": "Read from", title: PLACES });
  #oldest = button("Oldest", () => this.#go("first"));
  #older = button("Older", () => this.#goOlder());
  #newer = button("Newer", () => this.#open(() => pageFrom(this.#topic, this.#page.next)));
  #newest = button("Newest", () => this.#goNewest());
  #follow = button("Follow", () => this.#begin());
  #pause = button("Pause", () => this.#toggle());

  constructor(topic) {
    this.#topic = topic;
    const bar = el(
      "form",
      {
        class: "bar",
        onsubmit: (event) => {
          event.preventDefault();
          this.#go(this.#from.value.trim() || "first");
        },
      },
      el("label", {}, "From ", this.#from),
      el("button", {}, "Read"),
      this.#oldest,
      this.#older,
      this.#newer,
      this.#newest,
      this.#follow,
      this.#pause,
      this.#state,
    );
    this.element = el("section", {}, bar, this.#list);
    this.#begin();
  }

  close() {
    this.#asked += 1;
    this.#stop();
  }

  show({ first, next }) {
    this.#bounds = { first, next };
    this.#steer();
  }

  /** What each button can do now. */
  #steer() {
    const { first, next } = this.#bounds;
    const begins = this.#begins();
    this.#older.disabled = begins === undefined || begins <= first;
    this.#newer.disabled = this.#page === null || (this.#page.end && this.#page.next >= next);
    this.#follow.hidden = this.#tail !== null;
    this.#pause.hidden = this.#tail === null;
  }

  /** The oldest offset in view. */
  #begins() {
    if (this.#page) return this.#page.first;
    const last = this.#list.lastChild?.dataset.offset;
    return last === undefined ? undefined : Number(last);
  }

  #go(text) {
    this.#from.value = text;
    if (text === "new") return this.#begin();
    this.#open(async () => {
      const page = await pageFrom(this.#topic, placeOf(text));
      page.isBeyond = /^\d+$/.test(text) && Number(text) > page.next;
      return page;
    });
  }

  #goOlder() {
    const [begins, { first }] = [this.#begins(), this.#bounds];
    this.#open(() => pageBefore(this.#topic, begins, first));
  }

  #goNewest() {
    this.#open(async () => {
      const { first, next } = await stream(this.#topic);
      return Object.assign(await pageBefore(this.#topic, next, first), { end: true });
    });
  }

  /** Shows the page that `make` brings, and follows nothing any more. */
  async #open(make) {
    this.#stop();
    const asked = ++this.#asked;
    this.#state.textContent = "reading";
    try {
      const page = await make();
      if (asked !== this.#asked) return;
      this.#page = page;
      fill(this.#list, page.frames.map(row));
      this.#state.textContent = told(page);
    } catch (error) {
      if (asked === this.#asked) this.#refuse(error);
    }
    this.#steer();
  }

  /** Follows from the end on, below which the last page stays in view: nothing lies between. */
  async #begin() {
    this.#stop();
    const asked = ++this.#asked;
    this.#from.value = "new";
    this.#page = null;
    this.#taken = 0;
    this.#state.textContent = "connecting";
    try {
      const page = await lastPage(this.#topic);
      if (asked !== this.#asked) return;
      fill(this.#list, page.frames.map(row).reverse());
      this.#tail = new Tail(this.#topic, String(page.next), {
        begun: () => this.#tellFollowed(),
        message: (frame) => {
          this.#taken += 1;
          this.#later(frame);
        },
        gap: (frame) => this.#later(frame),
        refused: (error) => this.#refuse(error),
        closed: () => this.#ended(),
      });
    } catch (error) {
      if (asked === this.#asked) this.#refuse(error);
    }
    this.#steer();
  }

  #stop() {
    this.#tail?.close();
    this.#tail = null;
    this.#waiting = [];
    this.#pause.textContent = "Pause";
  }

  #ended() {
    this.#draw();
    this.#tail = null;
    this.#state.textContent = "the connection has ended; Follow connects again";
    this.#steer();
  }

  #refuse(error) {
    this.#list.prepend(refusal(error));
    this.#state.textContent = `refused: ${error.code ?? "Fault"}`;
  }

  #toggle() {
    this.#tail.paused = !this.#tail.paused;
    this.#pause.textContent = this.#tail.paused ? "Go on" : "Pause";
    this.#tellFollowed();
  }

  #tellFollowed() {
    this.#state.textContent = this.#tail.paused
      ? "paused: no credit is granted, what comes stays in the hub"
      : `following, newest first, ${count(this.#taken)} came`;
  }

  /** Rows are made once a picture, and only those that will be seen. */
  #later(frame) {
    this.#waiting.push(frame);
    if (offset(frame) >= this.#bounds.next) this.#bounds.next = offset(frame) + 1;
    if (this.#waiting.length > KEPT) this.#waiting.shift();
    if (this.#drawing) return;
    this.#drawing = true;
    setTimeout(() => this.#draw(), 50);
  }

  #draw() {
    this.#drawing = false;
    if (!this.#tail || this.#waiting.length === 0) return;
    this.#list.prepend(...this.#waiting.splice(0).map(row).reverse());
    while (this.#list.children.length > KEPT) this.#list.lastChild.remove();
    this.#tellFollowed();
    this.#steer();
  }
}

/** The last page of a stream; of one that is not there yet, the place where it will begin. */
async function lastPage(topic) {
  try {
    const { first, next } = await stream(topic);
    return await pageBefore(topic, next, first);
  } catch (error) {
    if (error.code !== "UnknownStream") throw error;
    return { frames: [], first: 0, next: 0 };
  }
}

/** Where a page stands. */
function told({ frames, first, next, end, isBeyond }) {
  if (isBeyond) return `there is no such offset yet; the next one will be ${count(next)}`;
  if (frames.length === 0) return `nothing from there on; the next offset will be ${count(next)}`;
  const rest = end ? ", the end" : "";
  return `offsets ${count(first)} to ${count(next - 1)}, oldest first${rest}`;
}
