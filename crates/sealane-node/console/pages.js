// Pages of a stream: what stands between two offsets, nothing left out, in both directions.

import { offset, range } from "./hub.js";

/** Rows of one page. */
export const PAGE_ROWS = 100;

/** A page ends early when the answers that it is made of are longer than this. */
const PAGE_BYTES = 4 << 20;

/**
 * A page is {frames, first, next, end}: frames in the order of their offsets, the offset of the
 * first, the offset behind the last, and whether nothing was left behind it.
 */
function pageOf(frames, next, end) {
  return { frames, first: frames.length > 0 ? offset(frames[0]) : next, next, end };
}

/** What stands from a place on. The hub's answers are bounded in bytes: it may take several. */
export async function pageFrom(topic, place, rows = PAGE_ROWS) {
  const frames = [];
  let [at, size] = [place, 0];
  for (;;) {
    const part = await range(topic, at, rows - frames.length);
    frames.push(...part.frames);
    size += part.size;
    at = part.next;
    if (part.end || frames.length >= rows || size > PAGE_BYTES) {
      return pageOf(frames, at, part.end);
    }
  }
}

/** What stands before the offset `place`, and not before the offset `first`. */
export async function pageBefore(topic, place, first, rows = PAGE_ROWS) {
  const parts = [];
  let [at, size] = [Math.max(first, place - rows), 0];
  while (at < place) {
    const part = await range(topic, at, place - at);
    part.frames = part.frames.filter((frame) => offset(frame) < place);
    parts.push(part);
    size += part.size;
    // What is furthest from the place goes first: the next page before this one has it.
    while (size > PAGE_BYTES && parts.length > 1) size -= parts.shift().size;
    if (part.end || part.next <= at) break;
    at = part.next;
  }
  const frames = parts.flatMap((part) => part.frames);
  return pageOf(frames, place, false);
}

const UNITS_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const AGO = /^-\s*((?:\d+\s*(?:ms|s|m|h|d)\s*)+)$/;
const DATE = /^\d{4}-\d{2}-\d{2}([T ].*)?$/;

/**
 * The hub's word for a place as people write it: `-10m` is ten minutes ago, and a time without a
 * zone is local. Everything else is for the hub to read or to refuse.
 */
export function placeOf(text, nowMs = Date.now()) {
  const ago = AGO.exec(text);
  if (ago) {
    const parts = [...ago[1].matchAll(/(\d+)\s*([a-z]+)/g)];
    const sum = parts.reduce((total, [, number, unit]) => total + number * UNITS_MS[unit], 0);
    return `@${Math.max(0, nowMs - sum)}`;
  }
  const date = DATE.exec(text);
  if (!date) return text;
  const ms = Date.parse(date[1] ? text.replace(" ", "T") : `${text}T00:00`);
  return ms >= 0 ? `@${ms}` : text;
}
