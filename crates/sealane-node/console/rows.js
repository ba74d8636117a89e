// One row for each message, gap and refusal.

import { bytes, count, el, moment } from "./dom.js";
import { NotAFrame, bytesOf, visible } from "./frame.js";
import { offset } from "./hub.js";
import { entry, plain, write } from "./json.js";

/** Characters of a message that its row shows. */
const BRIEF = 400;

/**
 * The row of a frame. A frame that cannot be shown, of whoever wrote it, keeps its place and says
 * so: the others of the page are shown.
 */
export function row(frame) {
  try {
    return entry(frame, "deliver") ? message(frame) : gap(frame);
  } catch (error) {
    const where = plain(entry(frame, "offset")) ?? "?";
    return warning(offset(frame), `offset ${where} cannot be shown: ${error.message}`);
  }
}

/** The row of a refusal. */
export const refusal = ({ code = "Fault", message, hint = "" }) =>
  warning(undefined, el("strong", {}, code), ` ${message}. ${hint}`);

const warning = (at, ...words) => el("li", { class: "refused", "data-offset": at }, ...words);

function gap(frame) {
  const [from, to, reason] = ["from", "to", "reason"].map((name) => plain(entry(frame, name)));
  const words = `offsets ${count(from)} to ${count(to)} will not come: ${reason}`;
  return warning(offset(frame), words);
}

function message(frame) {
  const envelope = entry(frame, "deliver");
  const sealed = plain(entry(envelope, "sealed"));
  const stored = plain(entry(frame, "storedMs"));
  const id = plain(entry(envelope, "id")) ?? "";
  const head = [
    el("span", { class: "offset" }, count(plain(entry(frame, "offset")))),
    stored === undefined ? undefined : moment(stored),
    el("span", { class: "id", title: id }, id),
  ];
  const isSealed = sealed !== undefined && envelope.entries.length <= 2;
  const [summary, whole] = isSealed ? sealedParts(sealed) : openParts(envelope);
  return el(
    "li",
    { "data-offset": offset(frame) },
    el("details", {}, el("summary", {}, head, summary), whole),
  );
}

function openParts(envelope) {
  // The id stands before it.
  const entries = envelope.entries.filter(([name]) => name !== "id");
  const text = write({ kind: "map", entries });
  const brief = text.length > BRIEF ? `${text.slice(0, BRIEF)}…` : text;
  return [[el("code", {}, brief)], el("pre", {}, write(envelope, 2))];
}

function sealedParts(sealed) {
  const frame = bytesOf(sealed);
  const chip = el("span", { class: "chip sealed" }, "sealed");
  let fields;
  try {
    fields = visible(frame);
  } catch (error) {
    if (!(error instanceof NotAFrame)) throw error;
    // Its bytes may mean anything, so that no field of them is shown.
    return [[chip, el("code", {}, `${bytes(frame.length)}, no frame`)], el("p", {}, error.message)];
  }
  const [[, kind]] = fields;
  const words = `${bytes(frame.length)}, class ${kind}: only the group can read it`;
  const list = fields.flatMap(([name, value]) => [
    el("dt", {}, name),
    el("dd", {}, String(value)),
  ]);
  return [[chip, el("code", {}, words)], el("dl", {}, list)];
}
