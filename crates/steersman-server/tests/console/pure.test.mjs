// The pure modules of the console: `node --test crates/steersman-server/tests/console/`.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { appended, begin, caughtUp, fold, prepended } from '../../console/model.mjs';
import { link, read } from '../../console/route.mjs';
import { Frames } from '../../console/sse.mjs';
import { words } from '../../console/text/diff.mjs';
import * as json from '../../console/text/json.mjs';
import { blocks, inline } from '../../console/text/markdown.mjs';
import { bytes, call, money, number, plain, span, status } from '../../console/words.mjs';

test('an address leads to the parts and the query that made it', () => {
  for (const [parts, query] of [
    [['s', 'aatg39'], {}],
    [['s', 'a/b?c#d', 'q', '8.0@8'], { at: '3', branch: 'ü & %' }],
    [['inbox'], { kind: 'doubt' }],
  ]) {
    assert.deepEqual(read(link(parts, query)), { parts, query });
  }
  assert.deepEqual(read(link(['x'], { a: undefined, b: '', c: null })), { parts: ['x'], query: {} });
  assert.deepEqual(read(''), { parts: [], query: {} });
  assert.deepEqual(read('#/s/%E0%A4%A'), { parts: ['s', '%E0%A4%A'], query: {} });
});

test('events are the same however the bytes are cut', () => {
  const text = 'event: hello\ndata: {"cursor":"0.0"}\nretry: 1000\n\n: still here\n\nid: 1.1\nevent: said\ndata: {"a":\ndata: 1}\n\n';
  const whole = new Frames().push(text);
  assert.equal(whole.length, 2);
  assert.deepEqual(whole[1], { event: 'said', data: '{"a":\n1}', id: '1.1', retry: null });
  for (let size = 1; size < 9; size += 1) {
    const frames = new Frames();
    const found = [];
    for (let at = 0; at < text.length; at += size) found.push(...frames.push(text.slice(at, at + size)));
    assert.deepEqual(found, whole);
  }
  assert.equal(new Frames().push(text.replaceAll('\n', '\r\n')).length, 2);
});

const piece = (text, attempt = 1) => ({ event: 'piece', effect: '1.1', attempt, agent: 'desk', agent_id: '1.0', branch: 'main', text });

test('pieces of an answer are one text until the rows have it', () => {
  let live = begin();
  live = fold(live, { head: 3, driven: 'here' });
  for (const event of [piece('One, '), piece('two')]) live = fold(live, event);
  assert.equal(live.writing['1.1'].text, 'One, two');
  live = fold(live, piece('Again', 2));
  assert.equal(live.writing['1.1'].text, 'Again');
  live = fold(live, { event: 'said', effect: '1.1', line: 4, text: 'Again.' });
  assert.equal(live.writing['1.1'].text, 'Again.');
  assert.equal(live.head, 4);
  assert.ok(live.stale);
  live = caughtUp(live, 3);
  assert.ok(live.stale && live.writing['1.1']);
  live = caughtUp(live, 4);
  assert.deepEqual([live.stale, live.writing], [false, {}]);
});

test('pieces are void when they are withdrawn, when the connection is new, and when the session settles', () => {
  for (const end of [{ event: 'withdrawn', effect: '1.1' }, { head: 0 }, { event: 'settled', status: 'answered' }, { event: 'owner', line: 5, owner: 'x' }]) {
    const live = fold(fold(begin(), piece('One')), end);
    assert.deepEqual(live.writing, {}, JSON.stringify(end));
  }
});

test('a line that comes twice changes nothing', () => {
  const events = [piece('One'), { event: 'said', effect: '1.1', line: 2, text: 'One.' }, { event: 'called', line: 2 }];
  const once = events.reduce(fold, begin());
  assert.deepEqual([...events.slice(1), ...events.slice(1)].reduce(fold, once), once);
});

test('rows that are read again are there once', () => {
  const row = (line, text = '') => ({ line, text });
  const rows = [row(1), row(2, 'a'), row(2, 'b'), row(3)];
  assert.deepEqual(appended(rows, [row(3, 'new'), row(4)]), [row(1), row(2, 'a'), row(2, 'b'), row(3, 'new'), row(4)]);
  assert.equal(appended(rows, []), rows);
  assert.deepEqual(prepended(rows.slice(1), [row(1), row(2, 'a')]), rows);
});

test('what changed makes both texts', () => {
  const texts = ['', 'a', 'Order: unknown', 'Order: 4711', 'It is 12:03 now.', 'It was 12:04 then, I think.', 'äöü 🙂 x', 'x'.repeat(50)];
  for (const a of texts) {
    for (const b of texts) {
      const pieces = words(a, b);
      const of = (not) => pieces.filter((one) => one.is !== not).map((one) => one.text).join('');
      assert.equal(of('came'), a);
      assert.equal(of('gone'), b);
    }
  }
  assert.deepEqual(words('Order: unknown', 'Order: 4711').map((one) => one.is), ['same', 'gone', 'came']);
  const long = Array.from({ length: 5000 }, (_, n) => `w${n}`).join(' ');
  assert.equal(words(long, `${long} end`).at(-1).text, ' end');
});

test('a value is written as JSON', () => {
  for (const value of [null, 1, 'a"b', [], {}, { a: [1, { b: null }], 'c d': true }]) {
    const text = json.pieces(value).map(([, one]) => one).join('');
    assert.deepEqual(JSON.parse(text), value);
  }
  assert.equal(json.read('no'), undefined);
  assert.equal(json.read('{broken'), undefined);
  assert.deepEqual(json.read(' [1]'), [1]);
});

/** All texts of a piece of Markdown. */
function said(block) {
  if (block.text !== undefined) return block.text;
  return (block.inline ?? block.items.flatMap((item) => item.inline)).map((one) => one.text).join('');
}

test('Markdown is data, and nothing in it is lost', () => {
  const found = blocks('# Title\n\nSome **bold** and `code`.\n\n* one\n  * two\n1. three\n\n```js\n<b>\n```\n> quoted\n\n| a | b |\n');
  assert.deepEqual(found.map((one) => one.block), ['heading', 'text', 'list', 'code', 'quote', 'code']);
  assert.deepEqual(found[2].items.map((one) => one.depth), [0, 1, 0]);
  assert.deepEqual(inline('a **b** `c` _d_').map((one) => one.is), ['text', 'strong', 'text', 'code', 'text', 'soft']);
  for (const text of ['<img src=x onerror=alert(1)>', 'a * b * c', 'snake_case_name', '**', '```', '- ', '[x](javascript:alert(1))', '> ', '|', '#', '1) a', '\n\n']) {
    const all = blocks(text).map(said).join('');
    for (const word of text.match(/\w+/g) ?? []) assert.ok(all.includes(word) || /^\d+$/.test(word), `${text}: ${all}`);
  }
});

test('only addresses of the web are links', () => {
  assert.deepEqual(inline('[a](https://desk.example/x)'), [{ is: 'link', text: 'a', to: 'https://desk.example/x' }]);
  for (const text of ['[a](javascript:alert(1))', '[a](data:text/html,x)', '[a](//evil.example)', '[a](\u0001javascript:x)']) {
    assert.ok(inline(text).every((one) => one.is === 'text'), text);
  }
});

test('characters that hide or turn a text are marks', () => {
  assert.equal(plain('pay\u202ereversed'), 'pay⟨202e⟩reversed');
  assert.equal(plain('a\u200bb\u0007'), 'a⟨200b⟩b⟨0007⟩');
  assert.equal(plain('\ud800x'), '⟨d800⟩x');
  assert.equal(plain('🙂 line\nand\ttab'), '🙂 line\nand\ttab');
});

test('numbers, spans and calls read as people write them', () => {
  assert.deepEqual([span(25), span(1500), span(61_000), span(7_300_000), span(9e7)], ['25 ms', '1.5 s', '1 min', '2 h', '1 d']);
  assert.deepEqual([number(999), number(18402)], ['999', '18\u2009402']);
  assert.deepEqual([bytes(12), bytes(2048), bytes(5 << 20)], ['12 B', '2.0 KB', '5.0 MB']);
  assert.deepEqual([money(0), money(0.0012), money(0.021), money(12)], ['–', '0.0012', '0.021', '12.00']);
  assert.equal(call('pay', { to: 'anna', cents: 5 }), 'pay(to: "anna", cents: 5)');
  assert.deepEqual(status('unheard'), { word: 'unheard', tone: 'quiet', sign: '·' });
});
