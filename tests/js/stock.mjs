// Stock clients against a hub: node stock.mjs json|msgpack|records HOST:PORT
// Nothing here knows Sealane: it is `ws`, `fetch`, JSON and msgpackr as their users write them.
import assert from 'node:assert/strict';
import { Packr, Unpackr, pack, unpack } from 'msgpackr';
import WebSocket from 'ws';

const [part, address] = process.argv.slice(2);

async function enqueue(envelope, type = 'application/json', encode = JSON.stringify) {
  const body = encode({ to: 'orders', envelope });
  const headers = { 'content-type': type, accept: 'application/json' };
  const reply = await fetch(`http://${address}/v1/enqueue`, { method: 'POST', headers, body });
  assert.equal(reply.status, 200);
  return reply.json();
}

// A connection whose frames can be awaited one by one.
function connect(query, protocols, encode, decode) {
  const socket = new WebSocket(`ws://${address}/v1/subscribe?stream=orders${query}`, protocols);
  const frames = [];
  const waiting = [];
  socket.on('message', (data, isBinary) => {
    const frame = decode(data, isBinary);
    const first = waiting.shift();
    if (first) first(frame);
    else frames.push(frame);
  });
  const failed = new Promise((_, reject) => socket.on('error', reject));
  const closed = new Promise((resolve) => socket.on('close', (code) => resolve(code)));
  const next = () =>
    Promise.race([
      failed,
      frames.length > 0 ? frames.shift() : new Promise((resolve) => waiting.push(resolve)),
    ]);
  return { socket, closed, next, send: (frame) => socket.send(encode(frame)) };
}

async function work({ socket, closed, next, send }, codec) {
  assert.equal((await next()).codec, codec);
  const sent = [
    { id: 'o1', type: 'order', data: { qty: 3, price: 9.5, tags: ['a', 'b'] } },
    { id: 'o2', type: 'order', data: { qty: 4294967295, note: 'Grüße' } },
    { id: 'o3', type: 'order', data: null },
  ];
  for (const envelope of sent) await enqueue(envelope);
  send({ credit: 2 });
  let frame = await next();
  if (frame.status === 'joined') frame = await next();
  assert.deepEqual({ ...frame.deliver }, sent[0]);
  send({ ack: frame.deliver.id });
  frame = await next();
  assert.equal(frame.deliver.id, 'o2');
  assert.equal(frame.deliver.data.qty, 4294967295);
  const began = Date.now();
  send({ nack: frame.deliver.id, delayMs: 100 });
  send({ credit: 2 });
  const rest = [await next(), await next()];
  assert.deepEqual(rest.map((one) => one.deliver.id), ['o3', 'o2']);
  assert.deepEqual(rest.map((one) => one.attempt), [1, 2]);
  assert.ok(Date.now() - began >= 100);
  for (const one of rest) send({ ack: one.deliver.id });
  socket.close();
  assert.equal(await closed, 1005);
}

async function json() {
  const decode = (data, isBinary) => {
    assert.equal(isBinary, false);
    return JSON.parse(data);
  };
  await work(connect('', [], JSON.stringify, decode), 'json');
  // What is not understood is told, and the connection closed.
  const wrong = connect('', [], JSON.stringify, decode);
  await wrong.next();
  wrong.send({ please: 1 });
  assert.equal((await wrong.next()).error.code, 'UnknownOp');
  assert.equal(await wrong.closed, 1003);
}

async function msgpack() {
  const unpackr = new Unpackr({ useRecords: false, int64AsType: 'auto' });
  const packr = new Packr({ useRecords: false, int64AsType: 'auto' });
  const encode = (frame) => packr.pack(frame);
  const client = connect('', ['msgpack'], encode, (data) => unpackr.unpack(data));
  await work(client, 'msgpack');
  assert.equal(client.socket.protocol, 'msgpack');
  // A body packed with the package's defaults, and read with them.
  const plain = new Packr({ useRecords: false });
  const type = 'application/msgpack';
  const { id } = await enqueue({ from: 'msgpackr' }, type, (body) => plain.pack(body));
  const reader = connect('&from=3&codec=msgpack', [], pack, (data) => unpack(data));
  await reader.next();
  reader.send({ credit: 1 });
  const { deliver, offset } = await reader.next();
  assert.deepEqual({ ...deliver }, { id, from: 'msgpackr' });
  assert.equal(offset, 3);
  reader.send({ ack: id });
  reader.socket.close();
  await reader.closed;
}

async function records() {
  // msgpackr keeps the structures in the options that it is given: each needs its own.
  const packr = new Packr({ sequential: true });
  const unpackr = new Unpackr({ sequential: true, mapsAsObjects: true, int64AsType: 'auto' });
  const sizes = [];
  const decode = (data) => {
    sizes.push(data.length);
    return unpackr.unpack(data);
  };
  const client = connect('&consumer=workers', ['msgpack-records'], (f) => packr.pack(f), decode);
  await work(client, 'msgpack-records');
  // Keys come once: the third message has nothing more to define than the first.
  console.log(`frames of ${sizes.join(', ')} bytes`);
  assert.ok(sizes.at(-1) < sizes[1], `${sizes}`);
}

await { json, msgpack, records }[part]();
console.log('done');
