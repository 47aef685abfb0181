// The pure modules of the console: `node --test crates/steersman-server/tests/console/`.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as scale from '../../console/map/scale.mjs';
import { appended, begin, caughtUp, fold, prepended } from '../../console/model.mjs';
import { link, read } from '../../console/route.mjs';
import { Frames } from '../../console/sse.mjs';
import { rows, words } from '../../console/text/diff.mjs';
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
  assert.deepEqual(whole[1], { event: 'said', data: '{"a":\n1}', id: '1.1' });
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

test('two lists stand side by side, and nothing of them is lost', () => {
  const lists = [[], ['find'], ['find', 'pay'], ['find', 'ask', 'pay'], ['pay', 'find'], ['find', 'find', 'x']];
  for (const a of lists) {
    for (const b of lists) {
      const found = rows(a, b);
      assert.deepEqual(found.map((row) => row.a).filter((one) => one !== undefined), a);
      assert.deepEqual(found.map((row) => row.b).filter((one) => one !== undefined), b);
      for (const row of found) assert.equal(row.same, row.a === row.b, JSON.stringify(row));
    }
  }
  assert.deepEqual(rows(['find', 'pay'], ['find', 'wire']), [{ a: 'find', b: 'find', same: true }, { a: 'pay', b: 'wire', same: false }]);
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

/** The columns of a session as `GET /map` has them: a desk asks a clerk, pays after an approval, and is tried on a dry branch. */
function columns() {
  const rows = [
    // line, k, ms, branch, agent, kind, flags
    [1, 1, 0, 0, 0, 'u', scale.BY_PERSON],
    [2, 1, 900, 0, 0, 'a', 0],
    [2, 2, 900, 0, 0, 'c', 0],
    [3, 1, 950, 0, 1, 'u', 0],
    [4, 1, 2000, 0, 1, 'a', 0],
    [4, 2, 2000, 0, 1, 'f', 0],
    [5, 1, 2001, 0, 0, 'r', 0],
    [6, 1, 3000, 0, 0, 'c', scale.UNSAFE],
    [6, 0, 3000, 0, null, 'q', 0],
    [7, 0, 90_000, 1, null, 'b', 0],
    [7, 1, 90_000, 1, 0, 'c', scale.UNSAFE],
    [8, 1, 90_010, 1, 0, 'r', scale.SIMULATED],
    [9, 0, 100_000, 0, null, 'd', scale.BY_PERSON],
    [10, 1, 100_100, 0, 0, 'r', scale.DOUBT],
    [11, 1, 100_200, 0, 0, 'f', scale.FAILED],
  ];
  const from = (at) => rows.map((row, n) => row[at] - (n === 0 ? 0 : rows[n - 1][at]));
  return {
    head: 11,
    base_ms: 1_000_000,
    lines: from(0),
    k: rows.map((row) => row[1]),
    at: from(2),
    branch: rows.map((row) => row[3]),
    agent: rows.map((row) => row[4]),
    kind: rows.map((row) => row[5]).join(''),
    flags: rows.map((row) => row[6]),
    branches: [
      { id: '0.0', label: 'main', from: null, first: 1, head: 11, ended: false, superseded: null, joined_at: null, adopted_to: null },
      { id: '7.1', label: 'dry', from: [0, 5], first: 7, head: 8, ended: true, superseded: null, joined_at: 10, adopted_to: null },
    ],
    agents: [{ id: '1.0', name: 'desk', parent: null }, { id: '2.3', name: 'clerk', parent: 0 }],
    waits: [{ effect: '6.1', kind: 'approval', branch: 0, from_line: 6, to_line: 9, by: 'manager', go: true }],
    links: [{ from: [2, 0], to: [3, 1], how: 'call' }, { from: [4, 1], to: [5, 0], how: 'return' }],
  };
}

/** The part of the columns behind a line, as the server answers `since`. */
function behind(map, since, head) {
  const { all } = scale.joined(null, map);
  const kept = all.filter((entry) => entry.line > since && entry.line <= head);
  const steps = (of, base) => kept.map((entry, n) => of(entry) - (n === 0 ? base : of(kept[n - 1])));
  return {
    ...map,
    head,
    lines: steps((entry) => entry.line, 0),
    at: steps((entry) => entry.at, map.base_ms),
    ...Object.fromEntries(['k', 'branch', 'agent', 'flags'].map((name) => [name, kept.map((entry) => entry[name])])),
    kind: kept.map((entry) => entry.kind).join(''),
    waits: map.waits.filter((wait) => wait.from_line <= head).map((wait) => (wait.to_line > head ? { ...wait, to_line: null, by: null, go: null } : wait)),
    links: map.links.filter((one) => one.to[0] > since && one.to[0] <= head),
  };
}

test('a map is the same however it came in parts', () => {
  const whole = scale.joined(null, columns());
  assert.deepEqual([whole.all.length, whole.all.at(-1).line, whole.all.at(-1).at], [15, 11, 1_100_200]);
  for (let head = 1; head <= 11; head += 1) {
    const first = scale.joined(null, behind(columns(), 0, head));
    const then = behind(columns(), head, 11);
    assert.deepEqual(scale.joined(first, then), whole, `at ${head}`);
    assert.deepEqual(scale.joined(scale.joined(first, then), then), whole, `twice at ${head}`);
  }
});

test('each entry of a map has one rectangle in the lane of its branch and agent, and the outline names all of them', () => {
  const model = scale.joined(null, columns());
  const laid = scale.lanes(model, 'main');
  assert.deepEqual(laid.lanes.map((lane) => [lane.label, lane.who, lane.depth, lane.note]), [['main', 'desk', 0, 'current'], ['', 'clerk', 0, ''], ['dry', 'desk', 1, 'joined']]);
  for (const timed of [false, true]) {
    for (const step of [1, 8, 26]) {
      const x = scale.places(model.all, step, timed);
      const bars = scale.bars(model, laid.of, x, step);
      assert.deepEqual(bars.map((bar) => bar.n), model.all.map((_, n) => n));
      bars.forEach((bar, n) => {
        assert.ok(bar.y >= bar.lane * scale.LANE && bar.y + bar.h <= (bar.lane + 1) * scale.LANE);
        assert.ok(n === 0 || bar.x >= bars[n - 1].x + bars[n - 1].w, `${n} overlaps`);
        assert.equal(scale.atPixel(x, bar.x + bar.w / 2), n);
      });
    }
  }
  const bars = scale.bars(model, laid.of, scale.places(model.all, 8, false), 8);
  assert.deepEqual([bars[7].border, bars[11].dots, bars[13].sign, bars[14].sign, bars[12].sign], [true, true, '?', '✕', '✓']);
  const rows = scale.outline(model, laid, new Set());
  assert.deepEqual(rows.filter((row) => row.entry).map((row) => row.n).sort((a, b) => a - b), model.all.map((_, n) => n));
  for (const row of rows) if (row.entry) assert.equal(row.entry.line, model.all[row.n].line);
  assert.equal(scale.outline(model, laid, new Set(rows.map((row) => row.key))).length, 3);
});

test('time cuts long gaps, a wait is in the lane of its call, and lines join lanes', () => {
  const model = scale.joined(null, columns());
  const laid = scale.lanes(model, null);
  const x = scale.places(model.all, 8, true);
  assert.equal(x[9] - x[8], 160);
  assert.ok(x[4] - x[3] > 8 && x[4] - x[3] < 10);
  const [wait] = scale.spans(model, laid, x);
  assert.deepEqual([wait.lane, wait.open, wait.x, wait.to], [0, false, x[7], x[12]]);
  const half = scale.joined(null, behind(columns(), 0, 8));
  const [open] = scale.spans(half, scale.lanes(half, null), scale.places(half.all, 8, false));
  assert.deepEqual([open.open, open.to], [true, 8 * half.all.length + scale.OPEN]);
  assert.deepEqual(scale.lines(model, laid.of), [
    { from: 1, to: 3, how: 'call' },
    { from: 4, to: 6, how: 'return' },
    { from: 6, to: 9, how: 'fork' },
    { from: 11, to: 13, how: 'join' },
  ]);
});

test('keys go from lane to lane to the entry that is nearest', () => {
  const laid = scale.lanes(scale.joined(null, columns()), null);
  assert.equal(scale.beside(laid.of, 2, 1, 3), 3);
  assert.equal(scale.beside(laid.of, 4, 1, 3), 9);
  assert.equal(scale.beside(laid.of, 9, -1, 3), 5);
  assert.equal(scale.beside(laid.of, 0, -1, 3), 0);
  const model = scale.joined(null, columns());
  assert.deepEqual(scale.told(model, model.all[13]), { what: 'result', who: 'desk', branch: 'main', notes: ['in doubt'] });
});
