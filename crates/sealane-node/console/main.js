// The console of a node. It only speaks the hub's own protocol, and asks nothing of anybody else.

import { el, fill } from "./dom.js";
import { health, token, useToken } from "./hub.js";
import { Overview } from "./overview.js";
import { StreamPage } from "./stream.js";

const REFRESH_MS = 1000;
const overview = new Overview();
let page = overview;

const node = document.querySelector("#node");
const trouble = document.querySelector("#trouble");
const main = document.querySelector("main");

/** `#/` is the overview, `#/stream/TOPIC?VIEW` a stream. */
function follow() {
  page.close?.();
  const found = /^#\/stream\/([^?]+)(?:\?(.*))?$/.exec(decodeURI(location.hash));
  page = found ? new StreamPage(found[1], found[2]) : overview;
  fill(main, page.element);
  refresh();
}

async function refresh() {
  const asked = page;
  try {
    const [state] = await Promise.all([health(), page.refresh()]);
    node.textContent = `${state.version} · ${state.status} · level ${state.level}`;
    trouble.hidden = true;
  } catch (error) {
    if (asked !== page) return;
    fill(
      trouble,
      el("strong", {}, error.code ?? "Fault"),
      ` ${error.message}. ${error.hint ?? ""}`,
    );
    trouble.hidden = false;
  }
}

async function run() {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, REFRESH_MS));
    // A page that nobody sees asks for nothing.
    if (!document.hidden) await refresh();
  }
}

const form = document.querySelector("#token");
const field = form.querySelector("input");
field.value = token();
form.addEventListener("submit", (event) => {
  event.preventDefault();
  useToken(field.value.trim());
  follow();
});

addEventListener("hashchange", follow);
follow();
run();
