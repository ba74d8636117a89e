// The console of a node. It only speaks the hub's own protocol, and asks nothing of anybody else.

import { el, fill } from "./dom.js";
import { health, token, useToken } from "./hub.js";
import { Overview } from "./overview.js";
import { PublishPage } from "./publish.js";
import { StreamPage } from "./stream.js";

const REFRESH_MS = 1000;
const overview = new Overview();
let page = overview;

const node = document.querySelector("#node");
const trouble = document.querySelector("#trouble");
const main = document.querySelector("main");

/** `#/` is the overview, `#/publish` publishes, `#/stream/TOPIC?VIEW` is a stream. */
function follow() {
  page.close?.();
  page = pageOf(location.hash);
  fill(main, page.element);
  refresh();
}

function pageOf(hash) {
  if (hash === "#/publish") return new PublishPage();
  const found = /^#\/stream\/([^?]+)(?:\?(.*))?$/.exec(hash);
  return found ? new StreamPage(topicOf(found[1]), found[2]) : overview;
}

/** The topic that stands encoded in an address, or as somebody wrote it there. */
function topicOf(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function refresh() {
  const asked = page;
  try {
    const [state] = await Promise.all([health(), page.refresh()]);
    node.textContent = `${state.version} · ${state.status} · level ${state.level}`;
    trouble.hidden = true;
  } catch (error) {
    if (asked !== page) return;
    const code = error.code ?? "Fault";
    const words = ` ${error.message}. ${error.hint ?? ""}`;
    // What stands there already is not announced again.
    if (trouble.hidden || trouble.textContent !== code + words) {
      fill(trouble, el("strong", {}, code), words);
    }
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
