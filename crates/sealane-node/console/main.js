// The console of a node. It only speaks the hub's own protocol, and asks nothing of anybody else.

import { el, fill } from "./dom.js";
import { health, token, useToken } from "./hub.js";
import { Overview } from "./overview.js";
import { PublishPage } from "./publish.js";
import { StreamPage } from "./stream.js";

const REFRESH_MS = 1000;
const node = document.querySelector("#node");
const trouble = document.querySelector("#trouble");
const main = document.querySelector("main");

const overview = new Overview({ told: shows, failed: troubles });
let page = overview;

/** `#/` is the overview, `#/publish` publishes, `#/stream/TOPIC?VIEW` is a stream. */
function follow() {
  page.close?.();
  page = pageOf(location.hash);
  fill(main, page.element);
  page.open?.();
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

/** Shows what the node says of itself: it is well to those who ask. */
function shows(state) {
  node.textContent = `${state.version} · ${state.status} · level ${state.level}`;
  trouble.hidden = true;
}

function troubles(error) {
  const code = error.code ?? "Fault";
  const words = ` ${error.message}. ${error.hint ?? ""}`;
  // What stands there already is not announced again.
  if (trouble.hidden || trouble.textContent !== code + words) {
    fill(trouble, el("strong", {}, code), words);
  }
  trouble.hidden = false;
}

async function refresh() {
  const asked = page;
  // To the overview the hub tells all this by itself.
  if (asked === overview) return overview.refresh();
  try {
    const [state] = await Promise.all([health(), asked.refresh()]);
    shows(state);
  } catch (error) {
    if (asked === page) troubles(error);
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
// A page that nobody sees is told nothing either.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) overview.close();
  else if (page === overview) overview.open();
});
follow();
run();
