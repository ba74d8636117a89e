// Elements without a framework. Text is always set as text, so no message can bring markup along.

/** Makes an element: attributes, `on…` listeners and `class` from `properties`, then children. */
export function el(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== undefined && child !== null));
  return element;
}

/** Replaces what an element holds. What had the focus has it again, if it is still there. */
export function fill(element, ...children) {
  const focused = element.contains(document.activeElement) ? keyOf(document.activeElement) : null;
  element.replaceChildren(
    ...children.flat().filter((child) => child !== undefined && child !== null),
  );
  if (focused === null) return;
  const all = [...element.querySelectorAll("a, button")];
  all.find((child) => keyOf(child) === focused)?.focus({ preventScroll: true });
}

/** What tells one link or button of a list from the others. */
const keyOf = (element) => element.dataset.key ?? element.getAttribute("href");

/** Where the page shows a stream, or a view of it. Segments are encoded, slashes stay. */
export const streamHref = (topic, view = "") =>
  `#/stream/${topic.split("/").map(encodeURIComponent).join("/")}${view && `?${view}`}`;

/** A link to a stream. */
export const streamLink = (topic) => el("a", { href: streamHref(topic) }, topic);

/** 1234567 as 1,234,567; also for the exact integers of json.js. */
export function count(value) {
  return BigInt(value).toLocaleString("en");
}

/** Messages or bytes a second, with three digits. */
export function rate(value) {
  if (!Number.isFinite(value) || value < 0.05) return "0";
  if (value < 10) return value.toFixed(1);
  if (value < 10_000) return Math.round(value).toLocaleString("en");
  return value < 1e6 ? `${(value / 1e3).toFixed(1)} k` : `${(value / 1e6).toFixed(2)} M`;
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** Bytes in binary units. */
export function bytes(value) {
  let amount = Number(value);
  let unit = 0;
  while (amount >= 1024 && unit < UNITS.length - 1) {
    amount /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || amount >= 100 ? 0 : 1;
  return `${amount.toFixed(digits)} ${UNITS[unit]}`;
}

/** The last millisecond that a date of JavaScript can be. */
const DATE_MAX = 8.64e15;

/** A time of the hub, milliseconds since 1970, in UTC. What is no date stays a number. */
export function time(ms) {
  const value = Number(ms);
  if (!(value > 0)) return "–";
  if (value > DATE_MAX) return `${ms} ms`;
  return new Date(value).toISOString().replace("T", " ");
}

/** The same as an element that says the local time when it is pointed at. */
export function moment(ms) {
  const local = Number(ms) <= DATE_MAX ? new Date(Number(ms)).toLocaleString() : undefined;
  return el("time", { title: local && `${local} local time` }, time(ms));
}

const DURATIONS = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1000, "s"],
];

/** Milliseconds in the largest unit of which there are two. */
export function lasted(ms) {
  const [size, unit] = DURATIONS.find(([size]) => ms >= 2 * size) ?? [1, "ms"];
  return `${count(Math.floor(ms / size))} ${unit}`;
}

/** A table that scrolls within the page where it is wider. */
export const table = (head, body) =>
  el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, head)), body));

/** Heads of a table, the first as text and the others as numbers. */
export const heads = (names) =>
  names.map((name, index) => el("th", { scope: "col", class: index && "number" }, name));

/** A number in a table. */
export const cell = (value, warn) =>
  el("td", { class: `number ${warn ? "warn" : ""}` }, count(value));

/** Anything else on the side of the numbers. */
export const right = (...children) => el("td", { class: "number" }, ...children);

/** A button that is not the first thing to do. */
export const button = (label, onclick, key) =>
  el("button", { type: "button", class: "quiet", onclick, "data-key": key }, label);

const SVG = "http://www.w3.org/2000/svg";

/** A line of the last values, scaled to its own highest. */
export function spark(values, width = 96, height = 22) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("class", "spark");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  const highest = Math.max(...values, 1e-9);
  svg.setAttribute("aria-label", `the last ${values.length} seconds, at most ${rate(highest)}/s`);
  const step = width / Math.max(values.length - 1, 1);
  const points = values.map(
    (value, index) =>
      `${(index * step).toFixed(1)},${(height - 1 - (value / highest) * (height - 3)).toFixed(1)}`,
  );
  const line = document.createElementNS(SVG, "polyline");
  line.setAttribute("points", points.join(" "));
  svg.append(line);
  return svg;
}
