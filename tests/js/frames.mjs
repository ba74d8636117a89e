// The console's reader of frames against the vectors: node frames.mjs FOLDER
//
// It needs no browser and no packages. FOLDER is vectors/frame.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { NotAFrame, read, visible } from '../../crates/sealane-node/console/frame.js';

const [folder] = process.argv.slice(2);
const vectors = (name) => JSON.parse(readFileSync(join(folder, name), 'utf8'));
const bytes = (text) => Uint8Array.from(Buffer.from(text, 'hex'));

const LETTERS = 'ACSP';
// Whether a frame opens, and whether it is an announcement, only a reader with keys can tell.
const isOfHeader = ({ read: as, error }) => error?.startsWith('SL-FRAME') && as === 'stored';

function checkOpened({ name, frame, opened }) {
  const fields = read(bytes(frame));
  const hex = opened.header;
  assert.deepEqual(
    {
      class: LETTERS[fields.class],
      slot: fields.slot,
      epoch: fields.epochLow,
      sequence: fields.sequence,
      context: fields.context,
      orders: fields.orders,
    },
    {
      class: opened.class,
      slot: opened.slot,
      epoch: opened.epoch % 256,
      sequence: BigInt(opened.sequence),
      context: opened.context,
      orders: opened.orders,
    },
    name,
  );
  assert.equal(fields.bodyBytes, opened.body.length / 2, name);
  // The header as it travels has the tags as they are, two digits a byte.
  assert.equal(fields.group, hex.slice(2 * 23, 2 * 27), name);
  assert.equal(fields.source, hex.slice(2 * 27, 2 * 35), name);
  assert.equal(fields.destination, hex.slice(2 * 35, 2 * 43), name);
}

function check(vector) {
  const { name, frame, opened, error } = vector;
  if (isOfHeader(vector)) {
    assert.throws(
      () => read(bytes(frame)),
      (thrown) => thrown instanceof NotAFrame && thrown.ref === error,
      name,
    );
  } else if (opened) {
    checkOpened(vector);
  } else {
    // The seal refuses it, and its header is shown as it is.
    read(bytes(frame));
  }
}

const full = vectors('frames.json').filter(({ form }) => form === 'full');
full.forEach(check);
assert.ok(full.filter(isOfHeader).length >= 9 && full.some(({ opened }) => opened), 'too few');

function showsWhatTheHeaderSays() {
  const frame = bytes(full.find(({ opened }) => opened).frame);
  frame.fill(0xff, 35, 43);
  const shown = new Map(visible(frame));
  assert.equal(shown.get('destination'), 'everybody');
  assert.equal(shown.get('sender context'), '7374617274203031');
  assert.ok(!shown.has('time'), 'a frame does not say when it was made');
}

// Another reader would take bytes of a later version for something that they are not.
function refusesOtherVersionsByName() {
  const frame = bytes(full.find(({ opened }) => opened).frame);
  for (const version of [0, 1, 3, 255]) {
    frame[17] = version;
    assert.throws(() => visible(frame), /^Error: UnknownFrameVersion: version \d+/);
  }
}

// Cut anywhere, a frame is refused and nothing else goes wrong.
function refusesWhatIsCut() {
  for (const { frame } of full.filter(({ opened }) => opened)) {
    const whole = bytes(frame);
    for (let end = 0; end < whole.length; end += 1) {
      assert.throws(() => read(whole.subarray(0, end)), NotAFrame);
    }
  }
}

showsWhatTheHeaderSays();
refusesOtherVersionsByName();
refusesWhatIsCut();
console.log(`${full.length} frames are read as the vectors say`);
