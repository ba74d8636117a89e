// Faults of the console that must not come back: node faults.mjs open HOST:PORT | guarded
// HOST:PORT TOKEN
//
// `open` is a hub without tokens whose stream `sealed/strange` has six frames, one of them with a
// sender context of which every bit is 1. `guarded` is a hub where TOKEN reads `orders` and may do
// nothing else.
import assert from 'node:assert/strict';
import {
  button,
  configure,
  enqueue,
  launch,
  numbered,
  offsets,
  press,
  readFrom,
  rows,
  settled,
  show,
  watched,
} from './browser.mjs';

const [part, target, token] = process.argv.slice(2);

const upTo = (first, next) => Array.from({ length: next - first }, (_, n) => first + n);
const reversed = (list) => [...list].reverse();

async function pagesByOffsetBothWays(page) {
  await enqueue(target, 'pages', numbered(0, 730));
  await show(page, target, 'pages');
  await settled(page);
  assert.match(await readFrom(page, '10'), /^offsets 10 to 109, oldest first$/);
  assert.deepEqual(await offsets(page), upTo(10, 110));
  await press(page, 'Newer');
  assert.deepEqual(await offsets(page), upTo(110, 210));
  await press(page, 'Older');
  assert.deepEqual(await offsets(page), upTo(10, 110));
  await press(page, 'Older');
  assert.deepEqual(await offsets(page), upTo(0, 10));
  assert.ok(await button(page, 'Older').isDisabled(), 'there is nothing older');
}

async function losesNoRowFromOneEndToTheOther(page) {
  const seen = [];
  await press(page, 'Oldest');
  for (;;) {
    seen.push(...(await offsets(page)));
    if (await button(page, 'Newer').isDisabled()) break;
    await press(page, 'Newer');
  }
  assert.deepEqual(seen, upTo(0, 730));
  const back = [];
  assert.match(await press(page, 'Newest'), /^offsets 630 to 729, oldest first, the end$/);
  for (;;) {
    back.unshift(...(await offsets(page)));
    if (await button(page, 'Older').isDisabled()) break;
    await press(page, 'Older');
  }
  assert.deepEqual(back, upTo(0, 730));
  // What comes later is the next page.
  await press(page, 'Newest');
  await enqueue(target, 'pages', numbered(730, 3));
  await page.waitForFunction(
    (newer) => !newer.disabled,
    await button(page, 'Newer').elementHandle(),
  );
  await press(page, 'Newer');
  assert.deepEqual(await offsets(page), [730, 731, 732]);
}

async function saysWhatIsNoOffsetYet(page) {
  const beyond = 'there is no such offset yet; the next one will be 733';
  assert.equal(await readFrom(page, '99999999'), beyond);
  assert.equal(await rows(page).count(), 0);
  await enqueue(target, 'pages', numbered(733, 1));
  await page.waitForTimeout(1200);
  assert.equal(await rows(page).count(), 0, 'what was read is followed by itself');
  await press(page, 'Older');
  assert.deepEqual(await offsets(page), upTo(633, 733));
  assert.match(await readFrom(page, 'yesterday'), /^refused: InvalidParameter$/);
}

async function pagesByTimeBothWays(page) {
  await enqueue(target, 'times', numbered(0, 150));
  await new Promise((resolve) => setTimeout(resolve, 2100));
  const between = Date.now() - 1000;
  await enqueue(target, 'times', numbered(150, 150));
  await show(page, target, 'times');
  await settled(page);
  // The page's own zone, as somebody there would write it.
  const local = await page.evaluate((ms) => {
    const two = (number) => String(number).padStart(2, '0');
    const date = new Date(ms);
    const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join('-');
    return `${day} ${[date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(':')}`;
  }, between);
  for (const place of [`@${between}`, new Date(between).toISOString(), local]) {
    await readFrom(page, place);
    assert.deepEqual(await offsets(page), upTo(150, 250), place);
  }
  await press(page, 'Newer');
  assert.deepEqual(await offsets(page), upTo(250, 300));
  await press(page, 'Older');
  await press(page, 'Older');
  assert.deepEqual(await offsets(page), upTo(50, 150));
  await readFrom(page, '-1h');
  assert.deepEqual(await offsets(page), upTo(0, 100));
  assert.match(await readFrom(page, '2999-01-01'), /^nothing from there on/);
}

async function followsFromTheLastPageOnWithoutAHole(page) {
  await enqueue(target, 'follow', numbered(0, 250));
  await show(page, target, 'follow');
  assert.match(await settled(page), /^following, newest first, 0 came$/);
  assert.deepEqual(await offsets(page), reversed(upTo(150, 250)));
  await enqueue(target, 'follow', numbered(250, 30));
  await page.getByText('following, newest first, 30 came').waitFor();
  assert.deepEqual(await offsets(page), reversed(upTo(150, 280)));
  await press(page, 'Older');
  assert.deepEqual(await offsets(page), upTo(50, 150));
  // What is stored between the last page and the subscription is there too.
  const between = async (route) => {
    const response = await route.fetch();
    await enqueue(target, 'follow', numbered(280, 1));
    await route.fulfill({ response });
  };
  await page.route('**/v1/streams/follow?from=*', between, { times: 1 });
  await press(page, 'Follow');
  await page.getByText('following, newest first, 1 came').waitFor();
  assert.deepEqual(await offsets(page), reversed(upTo(180, 281)));
}

// While it is paused, retention takes what had no credit any more.
async function countsNoGapAsAMessage(page) {
  await configure(target, 'short', { maxCount: 10 });
  await show(page, target, 'short');
  await settled(page);
  await button(page, 'Pause').click();
  for (let n = 0; n < 600; n += 10) await enqueue(target, 'short', numbered(n, 10));
  await page.waitForTimeout(1500);
  await button(page, 'Go on').click();
  await page.locator('.messages .refused').getByText('will not come').first().waitFor();
  await rows(page).getByText('"n":599').waitFor();
  const gaps = await page.locator('.messages .refused').count();
  const messages = (await rows(page).count()) - gaps;
  await page.getByText(`newest first, ${messages} came`).waitFor();
}

async function showsTheContextOfAFrameAndNoTime(page) {
  await show(page, target, 'sealed/strange');
  await settled(page);
  assert.deepEqual(await offsets(page), [5, 4, 3, 2, 1, 0]);
  assert.equal(await page.locator('.messages .refused').count(), 0);
  await rows(page).nth(2).locator('summary').click();
  await rows(page).nth(2).getByText('ffffffffffffffff').waitFor();
  const names = await rows(page).nth(2).locator('dt').allInnerTexts();
  assert.ok(names.includes('sender context') && !names.includes('time'), names.join());
}

async function tellsMessagesApart(page) {
  await enqueue(target, 'ids', [{ id: 'abcdefghijklm-1', n: 7 }]);
  await show(page, target, 'ids');
  await settled(page);
  const id = rows(page).first().locator('.id');
  assert.equal(await id.innerText(), 'abcdefghijklm-1');
  const { scrollWidth, clientWidth } = await id.evaluate(({ scrollWidth, clientWidth }) => ({
    scrollWidth,
    clientWidth,
  }));
  assert.ok(scrollWidth <= clientWidth, 'the end of the id is cut off');
  assert.equal(await rows(page).first().locator('summary code').innerText(), '{"n":7}');
}

async function saysWhenAMessageWasStored(page) {
  const began = Date.now();
  await show(page, target, 'stored');
  await settled(page);
  await enqueue(target, 'stored', numbered(0, 1));
  const check = async () => {
    const shown = await rows(page).first().locator('summary time').innerText();
    const ms = Date.parse(shown.replace(' ', 'T'));
    assert.ok(began <= ms && ms <= Date.now(), `${shown} is not the time of storing`);
  };
  await check();
  await press(page, 'Newest');
  await check();
}

async function publishesToANewTopic(page) {
  await page.goto(`http://${target}/#/`);
  await page.getByRole('link', { name: 'Publish', exact: true }).click();
  const topic = page.getByLabel('Topic', { exact: true });
  const envelope = page.getByLabel('Envelope', { exact: true });
  const posts = [];
  page.on('request', (request) => request.method() === 'POST' && posts.push(request.url()));
  await topic.fill('new/Straße 7');
  for (const [text, words] of [
    ['{"a": 1,}', /Not JSON/],
    ['[1]', /a JSON map/],
    ['{"a": 1, "a": 2}', /“a” stands there twice/],
  ]) {
    await envelope.fill(text);
    await page.getByText(words).last().waitFor();
    await button(page, 'Publish').click();
    assert.equal(await envelope.getAttribute('aria-invalid'), 'true', text);
  }
  assert.deepEqual(posts, [], 'what is no envelope is not sent');
  await envelope.fill('{"a": 1}');
  await envelope.press('Tab');
  await button(page, 'Publish').press('Enter');
  await page.getByText(/stored at offset 0 \(/).waitFor();
  await page.getByRole('link', { name: 'new/Straße 7' }).click();
  await settled(page);
  assert.deepEqual(await offsets(page), [0]);
}

async function keepsTheRefusalOfASealedStream(page) {
  await show(page, target, 'sealed/strange', 'publish');
  await page.getByText('This stream is sealed').waitFor();
  await button(page, 'Publish').click();
  await page.getByText(/^NotSealed: /).waitFor();
  await page.waitForTimeout(1500);
  assert.ok(await page.getByText(/^NotSealed: /).isVisible(), 'the next look at it takes it away');
}

// The list is drawn anew each second: whoever uses the keyboard stays where they are.
async function keepsTheFocusInAList(page) {
  await page.goto('about:blank');
  await page.goto(`http://${target}/#/`);
  const link = page.locator('.streams').getByRole('link', { name: 'pages', exact: true });
  await link.focus();
  await page.waitForTimeout(2500);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'pages', exact: true }).waitFor();
}

const topics = (page) => page.locator('.streams tbody a').allInnerTexts();

async function showsStreamsBeyondTheFirstPage(page) {
  const name = (n) => `z/${String(n).padStart(4, '0')}`;
  for (let n = 0; n < 450; n += 1) await enqueue(target, name(n), [{ n }]);
  await page.goto('about:blank');
  await page.goto(`http://${target}/#/`);
  const seen = [];
  for (let first = ''; ; ) {
    await page.waitForFunction((before) => {
      const link = document.querySelector('.streams tbody a');
      return link && link.innerText !== before;
    }, first);
    const shown = await topics(page);
    [first] = shown;
    seen.push(...shown);
    if (await button(page, 'Next page').isDisabled()) break;
    await button(page, 'Next page').click();
  }
  assert.deepEqual(seen.filter((topic) => topic.startsWith('z/')), upTo(0, 450).map(name));
  assert.deepEqual(seen, [...seen].sort(), 'a stream stands on two pages');
  await button(page, 'Previous page').click();
  await page.getByRole('link', { name: seen[200], exact: true }).waitFor();
  for (const [wanted, found] of [['/0449', 1], ['z/*', 200], ['Straße', 1], ['nothing', 0]]) {
    await page.getByLabel('Filter topics').fill(wanted);
    await page.waitForFunction(
      (count) => document.querySelectorAll('.streams tbody tr').length === count,
      found,
    );
  }
  await page.getByLabel('Filter topics').fill('z/044*');
  await page.locator('#trouble').getByText('InvalidTopic').waitFor();
  await page.getByLabel('Filter topics').fill('');
  await page.locator('#trouble').waitFor({ state: 'hidden' });
}

async function showsAReaderAllThatItMayRead(page) {
  await page.goto(`http://${target}/`);
  await page.locator('#trouble').getByText('Unauthorized').waitFor();
  await page.getByLabel('Token').fill(token);
  await button(page, 'Use').click();
  await page.getByRole('link', { name: 'orders' }).waitFor();
  await page.getByText('they take the right observe').waitFor();
  await page.waitForTimeout(1500);
  assert.deepEqual(await topics(page), ['orders']);
  assert.equal(await page.locator('#trouble').isVisible(), false, 'a reader is told of trouble');
  await page.getByRole('link', { name: 'orders' }).click();
  assert.match(await settled(page), /^following/);
  assert.deepEqual(await offsets(page), [2, 1, 0]);
  await readFrom(page, '1');
  assert.deepEqual(await offsets(page), [1, 2]);
  for (const view of ['Readers', 'Codec cost', 'Publish']) {
    await page.getByRole('link', { name: view }).click();
    await page.waitForTimeout(1200);
    assert.equal(await page.locator('#trouble').isVisible(), false, view);
  }
  await button(page, 'Publish').click();
  await page.getByText(/^Forbidden: .*publish/).waitFor();
  await show(page, target, 'secret');
  await settled(page);
  await page.locator('#trouble').getByText('Forbidden').waitFor();
}

// A page sees why its socket is refused, and not only that it is.
async function seesWhyASocketIsRefused(page) {
  const ending = (query, token) =>
    page.evaluate(
      async ([query, token]) => {
        const address = `ws://${location.host}/v1/subscribe?${query}`;
        const socket = new WebSocket(address, ['json', `sealane.token.${token}`]);
        let said;
        socket.onmessage = ({ data }) => (said = JSON.parse(data).error);
        const closed = await new Promise((resolve) => (socket.onclose = resolve));
        return [said?.code, said?.ref, closed.code, closed.reason];
      },
      [query, token],
    );
  const read = 'stream=orders&from=new';
  const unknown = ['Unauthorized', 'SL-NODE-06', 1008, 'Unauthorized'];
  assert.deepEqual(await ending(read, `${token.slice(0, -4)}AAAA`), unknown);
  const forbidden = ['Forbidden', 'SL-NODE-07', 1008, 'Forbidden'];
  assert.deepEqual(await ending('stream=secret&from=new', token), forbidden);
}

const PARTS = {
  open: {
    statuses: [400, 404, 409],
    tests: [
      pagesByOffsetBothWays,
      losesNoRowFromOneEndToTheOther,
      saysWhatIsNoOffsetYet,
      pagesByTimeBothWays,
      followsFromTheLastPageOnWithoutAHole,
      countsNoGapAsAMessage,
      showsTheContextOfAFrameAndNoTime,
      tellsMessagesApart,
      saysWhenAMessageWasStored,
      publishesToANewTopic,
      keepsTheRefusalOfASealedStream,
      keepsTheFocusInAList,
      showsStreamsBeyondTheFirstPage,
    ],
  },
  guarded: {
    statuses: [401, 403],
    tests: [showsAReaderAllThatItMayRead, seesWhyASocketIsRefused],
  },
};

const browser = await launch();
try {
  const { statuses, tests } = PARTS[part];
  const { page, check } = await watched(browser, target, statuses);
  page.setDefaultTimeout(15_000);
  for (const test of tests) {
    await test(page);
    console.log(test.name);
  }
  check();
} finally {
  await browser.close();
}
