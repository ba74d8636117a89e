// Errors of the hub and of this client. Each code has a class of its own, made from its name, so
// that `error instanceof errors.OffsetMismatch` and `error.code === "OffsetMismatch"` say the same.

import { FINAL, PASSING, RECONNECTING } from "./codes.js";

/** @typedef {import("../types/index.d.ts").Retry} Retry */

/** All that this package throws. */
export class SealaneError extends Error {
  /**
   * @param {string} code
   * @param {string} message
   * @param {{hint?: string, ref?: string, next?: number, retry?: Retry, cause?: unknown}} [more]
   */
  constructor(code, message, { hint = "", ref = "", next, retry = "never", cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = code;
    this.code = code;
    this.hint = hint;
    this.ref = ref;
    this.next = next;
    /** @type {Retry} */
    this.retry = retry;
  }
}

/** @typedef {new (message: string, more?: object) => SealaneError} ErrorClass */

/** @type {Map<string, ErrorClass>} */
const classes = new Map();

/** @param {string} code @param {Retry} retry */
function define(code, retry) {
  // The computed key gives the class its name.
  const made = {
    [code]: class extends SealaneError {
      /** @param {string} message @param {object} [more] */
      constructor(message, more) {
        super(code, message, { retry, ...more });
      }
    },
  };
  classes.set(code, made[code]);
}

const words = (/** @type {string} */ text) => text.trim().split(/\s+/);
for (const code of words(FINAL)) define(code, "never");
for (const code of words(PASSING)) define(code, "later");
for (const code of words(RECONNECTING)) define(code, "reconnect");
define("NotReachable", "reconnect");
define("NoAnswer", "reconnect");
define("Untrusted", "never");
define("NotTheProtocol", "never");
define("Ended", "never");
define("NoReply", "later");
define("NotARequest", "never");
define("FeatureMissing", "never");
define("InvalidAddress", "never");

/** The classes by their codes. */
export const errors = Object.freeze(Object.fromEntries(classes));

/**
 * An error of this client.
 *
 * @param {string} code @param {string} message @param {string} [hint] @param {unknown} [cause]
 */
export function failure(code, message, hint, cause) {
  const Class = classes.get(code);
  return Class ? new Class(message, { hint, cause }) : new SealaneError(code, message, { hint });
}

/**
 * An error that the hub has sent. Its fields are read as far as they are there: a newer hub may
 * have other codes, which count as final.
 *
 * @param {unknown} wire @param {Retry} [retry] what holds for a code that is not known
 */
export function refusal(wire, retry = "never") {
  const map = /** @type {Record<string, unknown>} */ (isMap(wire) ? wire : {});
  const text = (/** @type {string} */ name) => (typeof map[name] === "string" ? map[name] : "");
  const next = typeof map.next === "number" ? map.next : undefined;
  const more = { hint: text("hint"), ref: text("ref"), next };
  const Class = classes.get(text("code"));
  if (Class) return new Class(text("message"), more);
  return new SealaneError(text("code") || "Refused", text("message"), { ...more, retry });
}

/** @param {unknown} value @returns {value is Record<string, any>} */
export const isMap = (value) =>
  typeof value === "object" &&
  value !== null &&
  !Array.isArray(value) &&
  !ArrayBuffer.isView(value);

const UNTRUSTED = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ALTNAME/;

/**
 * Why no connection could be made.
 *
 * @param {any} cause what the platform says
 */
export function unreachable(cause) {
  const inner = cause?.cause ?? cause;
  const why = inner?.message || "the hub does not answer";
  if (UNTRUSTED.test(inner?.code)) {
    const hint = "Give the hub's certificate, or its authority's, as `ca`.";
    return failure("Untrusted", `the hub's certificate is not trusted: ${why}`, hint, cause);
  }
  return failure("NotReachable", why, "Is the hub running?", cause);
}
