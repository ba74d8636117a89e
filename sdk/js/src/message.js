// A message as a loop is given it.

export class Message {
  #subscription;
  #connection;

  /**
   * @param {Record<string, any>} deliver
   * @param {import("./subscription.js").Subscription} subscription
   * @param {number} connection the number of the connection that brought it
   */
  constructor(deliver, subscription, connection) {
    /** @type {string} */
    this.stream = deliver.stream;
    /** @type {number} */
    this.offset = deliver.offset;
    /** @type {number} */
    this.generation = deliver.generation;
    /** @type {number} */
    this.attempt = deliver.attempt;
    /** @type {number} */
    this.storedMs = deliver.storedMs;
    /** @type {Record<string, any>} */
    this.envelope = deliver.deliver;
    this.#subscription = subscription;
    this.#connection = connection;
  }

  /** @returns {string} */
  get id() {
    return this.envelope.id;
  }

  /** The place behind it, for `subscribe(topic, message.place)`. */
  get place() {
    return { from: this.offset + 1, generation: this.generation };
  }

  ack() {
    this.#subscription.finish(this, this.#connection);
  }

  /** @param {{delayMs?: number}} [options] */
  nack({ delayMs = 0 } = {}) {
    this.#subscription.refuse(this, this.#connection, delayMs);
  }
}
