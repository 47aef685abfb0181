// The rectangles of the maps of recorded sessions, as the console makes them. `UPDATE=1` writes what differs; look at it.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import * as scale from '../../console/map/scale.mjs';

const maps = new URL('maps/', import.meta.url);
const STEP = 12;

/** All that the painter is given, with numbers of few digits. */
function drawn(map, timed) {
  const model = scale.joined(null, map);
  const laid = scale.lanes(model, null);
  const x = scale.places(model.all, STEP, timed);
  const bars = scale.bars(model, laid.of, x, STEP);
  const short = (value) => (typeof value === 'number' ? Math.round(value * 100) / 100 : value);
  const all = { lanes: laid.lanes, bars, spans: scale.spans(model, laid, x), lines: scale.lines(model, laid.of) };
  return { model, laid, x, bars, all: JSON.parse(JSON.stringify(all, (_, value) => short(value))) };
}

for (const name of readdirSync(maps).filter((one) => !one.includes('drawn'))) {
  const map = JSON.parse(readFileSync(new URL(name, maps), 'utf8'));
  for (const timed of [false, true]) {
    test(`the map of ${name}, ${timed ? 'by time' : 'in order'}`, () => {
      const { model, laid, x, bars, all } = drawn(map, timed);
      // Each entry has one rectangle, in the lane of its branch, and none covers another of its lane.
      assert.deepEqual(bars.map((bar) => bar.n), model.all.map((_, n) => n));
      bars.forEach((bar) => assert.equal(laid.lanes[bar.lane].branch, model.all[bar.n].branch));
      bars.slice(1).forEach((bar, n) => assert.ok(bar.x >= bars[n].x + bars[n].w));
      // What is under the cursor has the line that its row of the outline has.
      const rows = new Map(scale.outline(model, laid, new Set()).filter((row) => row.entry).map((row) => [row.n, row]));
      assert.equal(rows.size, bars.length);
      for (const bar of bars) {
        const n = scale.atPixel(x, bar.x + bar.w / 2);
        assert.equal(rows.get(n).entry.line, model.all[bar.n].line);
      }
      const file = new URL(name.replace('.json', timed ? '.drawn-by-time.json' : '.drawn.json'), maps);
      if (process.env.UPDATE) writeFileSync(file, `${JSON.stringify(all)}\n`);
      assert.deepEqual(all, existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : null);
    });
  }
}
