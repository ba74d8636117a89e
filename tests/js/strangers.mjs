// The console's protocol before a hub that says what no hub says yet: node strangers.mjs
//
// It needs no browser and no packages: the socket and the answers are scripted here.
import assert from 'node:assert/strict';

const sockets = [];

class FakeSocket extends EventTarget {
  static OPEN = 1;
  readyState = 1;
  sent = [];

  constructor() {
    super();
    sockets.push(this);
  }

  send(text) {
    this.sent.push(JSON.parse(text));
  }

  close() {}

  say(frame) {
    this.dispatchEvent(Object.assign(new Event('message'), { data: JSON.stringify(frame) }));
  }
}

const answer = { status: 200, body: '' };
Object.assign(globalThis, {
  sessionStorage: { getItem: () => null },
  location: new URL('http://hub.test/'),
  WebSocket: FakeSocket,
  fetch: async () => new Response(answer.body, { status: answer.status }),
});

const { Refused, Tail, enqueue, range } = await import(
  '../../crates/sealane-node/console/hub.js'
);
const { entry, plain } = await import('../../crates/sealane-node/console/json.js');

const deliver = (offset) => ({
  sky: 'blue',
  deliver: { n: offset },
  stream: 'a',
  offset,
  generation: 7,
  attempt: 1,
});

function passesOverFrames() {
  const seen = [];
  const note =
    (kind, ...names) =>
    (frame) =>
      seen.push([kind, ...names.map((name) => plain(entry(frame, name)))]);
  new Tail('a', 'first', {
    begun: note('begun', 'offset', 'level'),
    message: note('message', 'offset'),
    gap: note('gap', 'from', 'to', 'reason'),
    refused: ({ code, message, hint }) => seen.push(['refused', code, message, hint]),
    closed() {},
  });
  const [socket] = sockets;
  const place = { stream: 'a', generation: 7, offset: 0, recovered: true, level: 'orbit' };
  const frames = [
    { status: 'greeting' },
    { moon: [1], status: 'subscribed', codec: 'json', features: ['teleport'], ...place },
    { status: 'weather', offset: 9 },
    { teleport: { to: 'b' } },
    { status: ['joined'] },
    {},
    deliver(0),
    { status: 'gap', stream: 'a', from: 1, to: 2, reason: 'meteor', size: 9 },
    { batch: [{ note: 'between' }, deliver(3)], count: 2 },
    { heartbeat: 12, pulse: 60 },
    { error: { code: 'OutOfOrbit', message: 'gone', hint: 'Wait.', ref: 'SL-HUB-99', km: 7 } },
  ];
  frames.forEach((frame) => socket.say(frame));
  assert.deepEqual(seen, [
    ['begun', '0', 'orbit'],
    ['message', '0'],
    ['gap', '1', '2', 'meteor'],
    ['message', '3'],
    ['refused', 'OutOfOrbit', 'gone', 'Wait.'],
  ]);
  assert.deepEqual(socket.sent, [{ credit: 256 }], 'strangers cost no credit');
}

// A page that goes on to something else is not told that its old connection has ended.
function tellsOnlyAnEndThatItDidNotMake() {
  const ends = [];
  for (const name of ['own', 'other']) {
    const none = () => {};
    const closed = () => ends.push(name);
    const tail = new Tail('a', 'new', { begun: none, message: none, gap: none, closed });
    if (name === 'own') tail.close();
    sockets.at(-1).dispatchEvent(new Event('close'));
  }
  assert.deepEqual(ends, ['other']);
}

async function readsAnswers() {
  const stored = { id: 'm', stream: 'a', offset: 3, level: 'orbit', moon: 1 };
  Object.assign(answer, { status: 200, body: JSON.stringify(stored) });
  assert.deepEqual((await enqueue('a', '{}')).answer, stored);
  const gap = { status: 'gap', stream: 'a', from: 1, to: 2, reason: 'meteor' };
  const page = { stream: 'a', messages: [deliver(0)], gaps: [gap], next: 1, end: true, tide: 0 };
  Object.assign(answer, { status: 200, body: JSON.stringify(page) });
  const { frames, next, end } = await range('a', 'first', 10);
  assert.deepEqual([frames.length, next, end], [2, 1, true]);
}

async function keepsTheWordsOfRefusals() {
  const error = { code: 'OutOfOrbit', message: 'too far', hint: 'Wait.', by: {} };
  const cases = [
    [JSON.stringify({ error, moon: 1 }), 'OutOfOrbit', 'too far'],
    [JSON.stringify({ moon: 1 }), 'HTTP 418', '{"moon":1}'],
    ['a teapot', 'HTTP 418', 'a teapot'],
  ];
  for (const [body, code, message] of cases) {
    Object.assign(answer, { status: 418, body });
    const refused = await enqueue('a', '{}').catch((refused) => refused);
    assert.ok(refused instanceof Refused, body);
    assert.deepEqual([refused.code, refused.message], [code, message]);
  }
}

passesOverFrames();
tellsOnlyAnEndThatItDidNotMake();
await readsAnswers();
await keepsTheWordsOfRefusals();
console.log('what only a newer hub says is passed over');
