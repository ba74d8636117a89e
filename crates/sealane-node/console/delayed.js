// The messages of a stream that are held back, in the order in which they come.

import { button, bytes, el, fill, heads, moment, right, table } from "./dom.js";
import { cancel, delayed } from "./hub.js";

/** Rows of one page. */
const PAGE = 100;

export class Delayed {
  #topic;
  /** The places behind which this page and those before it begin, but for the first. */
  #before = [];
  #next;
  #shown = "";
  #rows = el("tbody");
  #answer = el("p", { class: "note", role: "status" });
  #earlier = button("Earlier", () => this.#turn(this.#before.slice(0, -1)));
  #later = button("Later", () => this.#turn([...this.#before, this.#next]));

  constructor(topic) {
    this.#topic = topic;
    this.element = el(
      "div",
      {},
      table(heads(["Id", "Comes", "Size", ""]), this.#rows),
      el("div", { class: "bar" }, this.#earlier, this.#later, this.#answer),
    );
  }

  async show() {
    const before = this.#before;
    const page = await delayed(this.#topic, before.at(-1), PAGE);
    // Another page has been asked for meanwhile.
    if (before !== this.#before) return;
    this.#next = page.next;
    this.#earlier.disabled = before.length === 0;
    this.#later.disabled = page.next === undefined;
    const shown = JSON.stringify(page.delayed);
    if (shown === this.#shown) return;
    this.#shown = shown;
    const none = el("tr", {}, el("td", { class: "note", colspan: 4 }, "Nothing is held back."));
    fill(this.#rows, page.delayed.length > 0 ? page.delayed.map((one) => this.#row(one)) : none);
  }

  #turn(before) {
    this.#before = before;
    return this.#told(() => this.show());
  }

  #row({ id, dueMs, bytes: size }) {
    return el(
      "tr",
      {},
      el("td", { class: "mono" }, id),
      right(moment(dueMs)),
      right(bytes(size)),
      right(button("Cancel", () => this.#cancel(id), `cancel ${dueMs} ${id}`)),
    );
  }

  #cancel(id) {
    if (!confirm(`Cancel ${id}? It will never come.`)) return;
    this.#told(async () => {
      const { cancelled } = await cancel(this.#topic, id);
      this.#answer.className = "note";
      this.#answer.textContent = `${cancelled} of the id ${id} cancelled`;
      await this.show();
    });
  }

  /** Does something; a refusal is shown. */
  async #told(act) {
    try {
      await act();
    } catch (error) {
      const { code = "Fault", message, hint = "" } = error;
      this.#answer.className = "note warn";
      this.#answer.textContent = `${code}: ${message}. ${hint}`;
    }
  }
}
