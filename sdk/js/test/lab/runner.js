// Runs a script of vectors/clients: its README says what each verb does. It imports nothing, so
// that a page can run it too; `lab` does what only the outside can.

const PATIENCE_MS = 20_000;
const END_MS = 5000;
const NOTHING = Symbol("nothing");

const pause = (/** @type {number} */ ms) => new Promise((done) => setTimeout(done, ms));

/** @typedef {Record<string, any>} Fields */

/**
 * @param {Fields} script
 * @param {{Client: any, codecs: Fields, address: string, ca?: string, token?: string,
 *   lab: (verb: string, fields: any) => Promise<any>}} around
 */
export async function run(script, around) {
  const runner = new Runner(around);
  try {
    await runner.steps(script.steps);
  } catch (error) {
    // How it ends after a fault says nothing more.
    within(END_MS, runner.end(), "the end").catch(() => {});
    throw error;
  }
  await within(END_MS, runner.end(), "the end");
}

/** @template T @param {number} ms @param {Promise<T>} promise @param {string} what */
async function within(ms, promise, what) {
  /** @type {any} */
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} takes longer than ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Whether a value is as expected, by parts.
 *
 * @param {any} is @param {any} value @returns {boolean}
 */
function matches(is, value) {
  if (is === "$any") return value !== undefined;
  if (typeof is !== "object" || is === null) return is === value;
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(is) && is.length !== value.length) return false;
  return Object.keys(is).every((key) => matches(is[key], value[key]));
}

/** @param {boolean} holds @param {string} what @param {any} [value] */
function check(holds, what, value) {
  if (!holds) throw new Error(`${what}${value === undefined ? "" : `: ${JSON.stringify(value)}`}`);
}

/** A loop over a subscription that can be left and gone on with. */
class Taker {
  #iterator;
  /** @type {Promise<any> | undefined} */ #next;
  /** @type {any[]} */ #kept = [];
  /** @type {Fields[]} */ events = [];
  /** The numbers taken last. @type {any[]} */ last = [];
  /** The next number of each topic. @type {Map<string, number>} */ next = new Map();
  /** Numbers taken, by topic. @type {Map<string, Set<number>>} */ seen = new Map();
  /** All messages taken, the newest of each number. @type {Map<number, any>} */ messages =
    new Map();

  /** @param {(onEvent: (event: Fields) => void) => any} subscribe */
  constructor(subscribe) {
    this.subscription = subscribe((event) => this.events.push(event));
    this.#iterator = this.subscription[Symbol.asyncIterator]();
  }

  /** The next message, or NOTHING where none comes for so long. @param {number} [ms] */
  async take(ms = PATIENCE_MS) {
    if (this.#kept.length > 0) return this.#kept.shift();
    this.#next ??= this.#iterator.next();
    /** @type {any} */
    let timer;
    const late = new Promise((resolve) => {
      timer = setTimeout(() => resolve(NOTHING), ms);
    });
    const result = await Promise.race([this.#next, late]);
    clearTimeout(timer);
    if (result === NOTHING) return NOTHING;
    this.#next = undefined;
    check(!result.done, "the loop has ended");
    return result.value;
  }

  /** @param {any} message */
  keep(message) {
    this.#kept.push(message);
  }

  /** @param {any} message */
  note(message) {
    const { stream, envelope } = message;
    const seen = this.seen.get(stream) ?? new Set();
    this.seen.set(stream, seen.add(envelope.n));
    this.messages.set(envelope.n, message);
    this.last.push(message);
  }

  /** Waits for the end. */
  async ends() {
    for (;;) {
      const { done } = await (this.#next ?? this.#iterator.next());
      this.#next = undefined;
      if (done) return;
    }
  }
}

class Runner {
  #around;
  /** @type {Fields} */ #saved = {};
  /** What is open, by its name. @type {Map<string, any>} */ #open = new Map();
  /** @type {Map<string, Taker>} */ #takers = new Map();
  /** @type {Map<string, Promise<any>>} */ #background = new Map();
  /** The next number to be published, by topic. @type {Map<string, number>} */ #published =
    new Map();

  /** @param {Fields} around */
  constructor(around) {
    this.#around = around;
  }

  /** @param {Fields[]} steps */
  async steps(steps) {
    for (const [at, step] of steps.entries()) {
      try {
        await this.#step(step);
      } catch (cause) {
        const why = cause instanceof Error ? cause.message : cause;
        throw new Error(`step ${at + 1}, ${JSON.stringify(step)}: ${why}`, { cause });
      }
    }
  }

  async end() {
    for (const one of this.#open.values()) await one.close();
    await Promise.all(this.#background.values());
  }

  /** @param {Fields} step */
  async #step({ error, background, save, ...rest }) {
    const [[verb, fields]] = Object.entries(rest);
    const ms = verb === "repeat" ? 60 * PATIENCE_MS : PATIENCE_MS;
    const done = within(ms, this.#do(verb, fields), verb);
    const judged = error === undefined ? done : this.#refused(done, error);
    if (background !== undefined) return void this.#background.set(background, judged);
    const result = await judged;
    if (save !== undefined) this.#saved[save] = result;
  }

  /** @param {Promise<any>} done @param {string} code */
  async #refused(done, code) {
    try {
      await done;
    } catch (error) {
      const told = /** @type {{code?: string}} */ (error).code;
      if (told === undefined) throw error;
      return check(told === code, `it is refused with ${told}`);
    }
    check(false, "it is not refused");
  }

  /** @param {string} verb @param {any} given */
  async #do(verb, given) {
    const own = /** @type {any} */ (this);
    if (verb === "repeat" || verb === "join") return own[verb](given);
    const fields = this.#filled(given);
    if (typeof own[verb] === "function") return own[verb](fields);
    const result = await this.#around.lab(verb, fields);
    if (verb === "token") this.#saved[fields.name] = result;
    if (verb === "http" && fields.is) check(matches(fields.is, result), "it is", result);
    return result;
  }

  /** With what was saved in the place of its name. @param {any} value @returns {any} */
  #filled(value) {
    if (typeof value === "string" && value.startsWith("$") && value !== "$any") {
      const found = value
        .slice(1)
        .split(".")
        .reduce((at, name) => at?.[name], this.#saved);
      check(found !== undefined, `nothing is saved as ${value}`);
      return found;
    }
    if (typeof value !== "object" || value === null) return value;
    if (Array.isArray(value)) return value.map((one) => this.#filled(one));
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, this.#filled(one)]));
  }

  /** @param {string} [name] */
  #client(name = "main") {
    if (!this.#open.has(name)) this.client({ as: name });
    return this.#open.get(name);
  }

  /** @param {string} name */
  #taker(name) {
    const taker = this.#takers.get(name);
    check(taker !== undefined, `there is no subscription ${name}`);
    return /** @type {Taker} */ (taker);
  }

  /** The next numbered messages of a topic. @param {string} to @param {number} count */
  #numbered(to, count) {
    const first = this.#published.get(to) ?? 0;
    this.#published.set(to, first + count);
    return Array.from({ length: count }, (_, at) => ({ id: `${to}-${first + at}`, n: first + at }));
  }

  async wait(/** @type {number} */ ms) {
    await pause(ms);
  }

  /** @param {Fields} fields */
  async repeat({ times, steps }) {
    for (let time = 0; time < times; time += 1) await this.steps(steps);
  }

  async join(/** @type {string} */ name) {
    await this.#background.get(name);
    this.#background.delete(name);
  }

  /** @param {Fields} fields */
  client({ as, codec = "json", ca: trusts = true, ...options }) {
    const { Client, codecs, address, token, ...around } = this.#around;
    const ca = trusts ? around.ca : undefined;
    const made = new Client(address, { ca, token, codec: codecs[codec], ...options });
    this.#open.set(as, made);
  }

  /** @param {Fields} fields */
  async publish({ to, count = 1, envelope, by, is, ...options }) {
    const all = envelope ? [envelope] : this.#numbered(to, count);
    const client = this.#client(by);
    const answers = await Promise.all(all.map((one) => client.publish(to, one, options)));
    if (is) check(matches(is, answers.at(-1)), "it is", answers.at(-1));
    return answers.at(-1);
  }

  /** @param {Fields} fields */
  async batch({ to, count, envelopes, by, is, ...options }) {
    const all = envelopes ?? this.#numbered(to, count);
    const answer = await this.#client(by).publishBatch(to, all, options);
    if (is) check(matches(is, answer), "it is", answer);
    return answer;
  }

  /** @param {Fields} fields */
  publisher({ as, by, ...options }) {
    this.#open.set(as, this.#client(by).publisher(options));
  }

  /** @param {Fields} fields */
  async send({ of, to, count = 1, envelope, ...options }) {
    const all = envelope ? [envelope] : this.#numbered(to, count);
    for (const one of all) await this.#open.get(of).send(to, one, options);
  }

  /** @param {Fields} fields */
  async flush({ of }) {
    await this.#open.get(of).flush();
  }

  /** @param {Fields} fields */
  async next({ of, to, is }) {
    const next = await this.#open.get(of).next(to);
    check(is === undefined || next === is, "it is", next);
    return next;
  }

  /** @param {Fields} fields */
  subscribe({ as, to, by, ...options }) {
    const client = this.#client(by);
    const taker = new Taker((onEvent) => client.subscribe(to, { ...options, onEvent }));
    this.#takers.set(as, taker);
    this.#open.set(as, taker.subscription);
  }

  /** @param {Fields} fields */
  async take({ of, count, first, numbers, set, all, envelopes, attempt, ack }) {
    const taker = this.#taker(of);
    taker.last = [];
    const one = async () => {
      const message = await taker.take();
      check(message !== NOTHING, "no message comes");
      if (attempt !== undefined)
        check(message.attempt === attempt, "the attempt is", message.attempt);
      taker.note(message);
      if (ack) message.ack();
      return message;
    };
    if (all !== undefined) {
      const wanted = this.#published.get(all) ?? 0;
      while ((taker.seen.get(all)?.size ?? 0) < wanted) await one();
      return;
    }
    if (first !== undefined) taker.next.clear();
    for (let at = 0; at < (count ?? (numbers ?? set ?? envelopes).length); at += 1) {
      const { stream, envelope } = await one();
      if (envelopes) check(matches(envelopes[at], envelope), "it is", envelope);
      if (numbers) check(envelope.n === numbers[at], `${numbers[at]} is`, envelope.n);
      if (count === undefined) continue;
      const next = taker.next.get(stream) ?? first ?? 0;
      check(envelope.n === next, `number ${next} of ${stream} is`, envelope.n);
      taker.next.set(stream, next + 1);
    }
    const got = taker.last.map(({ envelope }) => envelope.n).sort((a, b) => a - b);
    if (set)
      check(
        matches(
          [...set].sort((a, b) => a - b),
          got,
        ),
        "they are",
        got,
      );
  }

  /** @param {Fields} fields */
  async quiet({ of, ms }) {
    const message = await this.#taker(of).take(ms);
    check(message === NOTHING, "something comes", message);
  }

  /** @param {Fields} fields */
  async told({ of, event }) {
    const taker = this.#taker(of);
    for (;;) {
      const told = taker.events.shift();
      if (told && matches(event, told)) return told;
      if (told) continue;
      const message = await taker.take(20);
      if (message !== NOTHING) taker.keep(message);
    }
  }

  /** @param {Fields} fields */
  async ends({ of }) {
    await this.#taker(of).ends();
  }

  /** @param {Fields} fields */
  ack({ of, numbers }) {
    for (const message of this.#messages(of, numbers)) message.ack();
  }

  /** @param {Fields} fields */
  nack({ of, numbers, delayMs }) {
    for (const message of this.#messages(of, numbers)) message.nack({ delayMs });
  }

  /** @param {string} of @param {number[]} [numbers] */
  #messages(of, numbers) {
    const taker = this.#taker(of);
    return numbers ? numbers.map((n) => taker.messages.get(n)) : taker.last;
  }

  /** @param {Fields} fields */
  async close({ of }) {
    await this.#open.get(of).close();
    this.#open.delete(of);
  }

  /** @param {Fields} fields */
  async range({ to, by, is, numbers, ...options }) {
    const page = await this.#client(by).page(to, options);
    if (is) check(matches(is, page), "it is", page);
    const got = page.messages.map((/** @type {any} */ { deliver }) => deliver.n);
    if (numbers) check(matches(numbers, got), "they are", got);
    return page;
  }

  /** @param {Fields} fields */
  async streams({ pattern, by, names, ...options }) {
    const got = [];
    for await (const { stream } of this.#client(by).streams({ pattern, ...options }))
      got.push(stream);
    check(matches(names, got), "they are", got);
  }

  /** @param {Fields} fields */
  async request({ to, envelope, by, is, ...options }) {
    const answer = await this.#client(by).request(to, envelope, options);
    if (is) check(matches(is, answer.envelope), "it is", answer.envelope);
    return answer.envelope;
  }

  /** @param {Fields} fields */
  reply({ as, to, by, answer, ...options }) {
    this.#open.set(
      as,
      this.#client(by).reply(to, () => answer, options),
    );
  }

  /** @param {Fields} fields */
  async ticket({ by }) {
    return this.#client(by).ticket();
  }
}
