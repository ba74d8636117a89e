// The snippet of spec/hub.md §7 over sources that close: node follow.mjs FILE ORIGIN TOKEN STREAM N
//
// Node.js has no EventSource. The one here reads as WHATWG HTML §9.2 says, and closes behind every
// second message. It prints what each source brought to the hub, and what was read.
import { readFileSync } from 'node:fs';

const [file, origin, token, stream, count] = process.argv.slice(2);
const MESSAGES_OF_A_SOURCE = 2;
const brought = [];
const offsets = [];
const ask = (path, init) => fetch(new URL(path, origin), init);
const soon = (work) => setTimeout(work, 1);

class Source {
  #end = new AbortController();

  constructor(path) {
    const url = new URL(path, origin);
    const asked = Object.fromEntries(url.searchParams);
    brought.push({ ticket: asked.ticket, lastEventId: asked.lastEventId });
    this.#read(url).catch(() => {}).then(() => this.onerror());
  }

  async #read(url) {
    const answer = await fetch(url, { signal: this.#end.signal });
    if (!answer.ok) throw answer.status;
    let [id, name, data, rest, seen] = ['', '', [], '', 0];
    for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + piece).split('\n');
      rest = lines.pop();
      for (const line of lines) {
        const [field, value] = line.split(/: ?(.*)/s);
        if (field === 'id') id = value;
        if (field === 'event') name = value;
        if (field === 'data') data.push(value);
        if (line !== '') continue;
        if (data.length > 0 && name === '') {
          this.onmessage({ data: data.join('\n'), lastEventId: id });
          seen += 1;
          if (seen === MESSAGES_OF_A_SOURCE) return this.close();
        }
        [name, data] = ['', []];
      }
    }
  }

  close() {
    this.#end.abort();
  }
}

const names = ['fetch', 'EventSource', 'setTimeout'];
const snippet = new Function(...names, `${readFileSync(file, 'utf8')}; return follow;`);
snippet(ask, Source, soon)(
  stream,
  token,
  (message) => {
    offsets.push(message.offset);
    if (offsets.length < Number(count)) return;
    console.log(JSON.stringify({ brought, offsets }));
    process.exit(0);
  },
  '',
  'first',
);
