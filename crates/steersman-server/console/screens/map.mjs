// A session over its lines: a lane for each branch and agent, from the first entry to the last, and the same as an outline.

import { api, Bars, clock, count, Empty, focusOn, html, link, Loaded, plain, Trouble, turned, useApi, useApp, useEffect, useKeys, useLayoutEffect, useMemo, useRef, useState } from '../kit.mjs';
import { colours, paint, paintWhole } from '../map/paint.mjs';
import * as scale from '../map/scale.mjs';
import { Pane } from '../parts/pane.mjs';
import { Rows } from '../rows.mjs';

/** Pixels of an entry: the steps of the zoom. */
const STEPS = [1, 2, 3, 4, 6, 8, 12, 18, 26];
const END = scale.OPEN + 8;
/** What is deeper begins further right. */
const indent = (depth) => ({ '--depth': Math.min(depth, 5) });
const inWords = (lane, by) => [lane.label, lane.who, lane.note].filter(Boolean).join(by);
const LEGEND = [
  ['u', 'message'],
  ['a', 'model'],
  ['c', 'call'],
  ['c unsafe', 'unsafe call'],
  ['r', 'result'],
  ['q', 'question, decision'],
  ['dots', 'simulated'],
  ['w', 'waits'],
  ['x', 'failed', '✕'],
  ['x d', 'in doubt', '?'],
];

export function SessionMap({ session, branch, live, query, to, page }) {
  const { go } = useApp();
  const { model, problem, again } = useMap(session, live.head);
  const view = query.view ?? (matchMedia('(max-width: 44rem)').matches ? 'outline' : 'map');
  const at = query.at ? Number(query.at) : null;
  const timed = query.by === 'time';
  const [zoom, setZoom] = useState(null);
  const laid = useMemo(() => model && scale.lanes(model, page?.branches?.length > 1 ? page.current : null), [model, page?.current]);
  const address = (more) => to('map', { view: query.view, by: query.by, at: query.at, ...more });
  // The address names the line, without a step in the history for each entry.
  const show = (n) => location.replace(address({ at: model.all[n].line }));
  const close = () => {
    location.replace(address({ at: undefined }));
    focusOn('.lanes, .rows');
  };
  useKeys({ Escape: close });
  if (problem && !model) return html`<${Trouble} problem=${problem} again=${again} />`;
  if (!model) return html`<${Bars} />`;
  if (model.all.length === 0) return html`<div class="scroll"><${Empty} title="Nothing has happened yet"><p>Each branch and agent has a lane here.</p><//></div>`;
  const parts = { model, laid, branch, show, timed, at };
  const entry = at === null ? undefined : model.all[scale.atLine(model.all, at)];
  const on = entry && scale.named(model.branches[entry.branch]);
  return html`
    <div class=${entry ? 'split open' : 'split'}>
      <div class="mapped">
        <div class="strip bar">
          <div class="chips" role="group" aria-label="Shown as">
            <a class="chip" href=${address({ view: 'map' })} aria-current=${view === 'map' ? 'true' : undefined}>lanes</a>
            <a class="chip" href=${address({ view: 'outline' })} aria-current=${view === 'outline' ? 'true' : undefined}>outline</a>
          </div>
          ${view === 'map' && html`<div class="chips" role="group" aria-label="Distances">
            <a class="chip" href=${address({ by: undefined })} aria-current=${timed ? undefined : 'true'}>in order</a>
            <a class="chip" href=${address({ by: 'time' })} aria-current=${timed ? 'true' : undefined}>by time</a>
          </div>`}
          <span class="meta">${count(model.all.length, 'entry', 'entries')}, ${count(laid.lanes.length, 'lane')}${branch ? html`, <b>${plain(branch)}</b> in full colour` : ''}</span>
        </div>
        ${problem && html`<${Trouble} problem=${problem} again=${again} />`}
        ${view === 'map' ? html`<${Lanes} ...${parts} name="Map" size=${model.all.length} zoom=${zoom} setZoom=${setZoom} /><${Legend} timed=${timed} />` : html`<${Outline} ...${parts} />`}
      </div>
      ${entry && html`<${Beside} key=${at} session=${session} entry=${entry} branch=${on} model=${model} close=${close} go=${go} />`}
    </div>
  `;
}

/** Reads the map, and then what is behind it, whenever there is a later line. */
function useMap(session, head) {
  const [state, set] = useState({ model: null, problem: null });
  const [turn, next] = useState(0);
  const busy = useRef(false);
  useEffect(() => {
    if (busy.current || (state.model?.head >= head && turn === 0)) return;
    busy.current = true;
    api.get(api.of(session, ['map'], { since: state.model?.head })).finally(() => {
      busy.current = false;
    }).then(
      (part) => set((old) => ({ model: scale.joined(old.model, part), problem: null })),
      (problem) => set((old) => ({ ...old, problem })),
    );
  }, [session, head, state.model?.head, turn]);
  return { ...state, again: () => next((n) => n + 1) };
}

/** The lanes of a session, in a scale in which `size` entries fit. */
function Lanes({ name, model, laid, branch, show, timed, at, size, zoom, setZoom }) {
  const { theme } = useApp();
  const box = useRef(null);
  const names = useRef(null);
  const canvas = useRef(null);
  const whole = useRef(null);
  const tones = useRef(null);
  const [view, setView] = useState({ left: 0, top: 0, width: 0, height: 0 });
  const [cursor, move] = useState(at === null ? null : scale.atLine(model.all, at));
  const fit = Math.max(2, STEPS.findLastIndex((step) => step * size + END <= view.width));
  // What fits fills the width; what does not is scrolled.
  const nth = zoom ?? fit;
  const step = zoom === null && fit > 2 ? Math.min(STEPS.at(-1), Math.floor((view.width - END) / size)) : STEPS[nth];
  const drawn = useMemo(() => {
    const x = scale.places(model.all, step, timed);
    return { x, step, laid, bars: scale.bars(model, laid.of, x, step), spans: scale.spans(model, laid, x), lines: scale.lines(model, laid.of) };
  }, [model, laid, step, timed]);
  const places = useRef(drawn.x);
  places.current = drawn.x;
  const only = branch ? model.branches.findIndex((one) => scale.named(one) === branch || one.id === branch) : -1;
  const wide = Math.ceil(drawn.x[model.all.length]) + END;
  const high = laid.lanes.length * scale.LANE;
  const seen = { ...view, height: Math.min(high, view.height) };

  // The entry in the middle stays there when the scale changes.
  const middle = useRef(0);
  useLayoutEffect(() => {
    box.current.scrollLeft = drawn.x[middle.current] - view.width / 2;
  }, [step, timed]);
  const look = () => {
    if (!box.current) return;
    const { scrollLeft: left, scrollTop: top, clientWidth, clientHeight: height } = box.current;
    const width = clientWidth - names.current.offsetWidth;
    if (width > 0) middle.current = scale.atPixel(places.current, left + width / 2);
    setView({ left, top, width, height });
  };
  useEffect(() => {
    look();
    const watch = new ResizeObserver(look);
    watch.observe(box.current);
    // A wheel with Ctrl, which a pinch on a touchpad is, too, changes the scale.
    const wheel = (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      setZoom((old) => Math.max(0, Math.min(STEPS.length - 1, (old ?? 5) - Math.sign(event.deltaY))));
    };
    box.current.addEventListener('wheel', wheel, { passive: false });
    return () => watch.disconnect();
  }, []);
  useLayoutEffect(() => {
    tones.current = colours(canvas.current);
  }, [theme]);
  useLayoutEffect(() => {
    if (seen.width > 0 && seen.height > 0) paint(canvas.current, { ...drawn, at: cursor, only, colours: tones.current }, seen);
  }, [drawn, view, cursor, only, theme]);
  const isCut = wide > view.width && view.width > 0;
  useLayoutEffect(() => {
    if (isCut) paintWhole(whole.current, { ...drawn, only, colours: tones.current }, wide, high);
  }, [drawn, isCut, view.width, only, theme]);
  useEffect(() => {
    if (at !== null) go(scale.atLine(model.all, at));
  }, [at]);

  const go = (n) => {
    if (n < 0 || n >= model.all.length) return;
    move(n);
    const place = drawn.x[n];
    const { scrollLeft } = box.current;
    if (place < scrollLeft + 8 || place + step + 16 > scrollLeft + view.width) box.current.scrollLeft = place - view.width / 2;
    const y = laid.of[n] * scale.LANE;
    box.current.scrollTop = Math.min(y, Math.max(box.current.scrollTop, y + scale.LANE - view.height));
  };
  const pressed = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const now = cursor ?? -1;
    const acts = {
      ArrowRight: () => go(now + 1),
      ArrowLeft: () => go(now - 1),
      ArrowDown: () => go(cursor === null ? 0 : scale.beside(laid.of, now, 1, laid.lanes.length)),
      ArrowUp: () => go(cursor === null ? 0 : scale.beside(laid.of, now, -1, laid.lanes.length)),
      Home: () => go(0),
      End: () => go(model.all.length - 1),
      Enter: () => cursor !== null && show(cursor),
      '+': () => setZoom(Math.min(STEPS.length - 1, nth + 1)),
      '-': () => setZoom(Math.max(0, nth - 1)),
    };
    if (!acts[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    acts[event.key]();
  };
  const pointed = (event) => {
    const area = canvas.current.getBoundingClientRect();
    const lane = Math.floor((event.clientY - area.top + view.top) / scale.LANE);
    const n = scale.atPixel(drawn.x, event.clientX - area.left + view.left);
    return [0, -1, 1, -2, 2].map((by) => n + by).find((one) => laid.of[one] === lane && Math.abs(one - n) * step < 12) ?? null;
  };
  // A drag that leaves the strip goes on until the button is up.
  const moved = ({ button, offsetX, pointerId, target }) => {
    if (button === 0) target.setPointerCapture(pointerId);
    if (target.hasPointerCapture(pointerId)) box.current.scrollLeft = (offsetX / target.clientWidth) * wide - view.width / 2;
  };
  const now = cursor === null ? null : model.all[cursor];
  const words = now && scale.told(model, now);
  const sentence = `Map of ${count(model.all.length, 'entry', 'entries')} in ${count(laid.lanes.length, 'lane')}: ${laid.lanes.map((lane) => inWords(lane, ' ')).join(', ')}`;
  return html`
    <div class="lanes" ref=${box} tabindex="0" role="application" aria-roledescription="map" aria-label=${`${name}. Arrows move, Enter opens, plus and minus change the scale.`} onKeyDown=${pressed} onScroll=${look}>
      <ul class="names" ref=${names} aria-hidden="true">${laid.lanes.map((lane) => html`<li class=${lane.first ? 'first' : ''} style=${indent(lane.depth)} title=${plain(inWords(lane, ', '))}>${lane.first && model.branches.length > 1 && html`<b>${plain(lane.label)}</b>`}<span>${plain(lane.who)}</span>${lane.note && html`<em>${lane.note}</em>`}</li>`)}</ul>
      <div class="sheet" style=${{ width: `${wide}px`, height: `${high}px` }}>
        <canvas ref=${canvas} role="img" aria-label=${sentence} style=${{ left: `${names.current?.offsetWidth ?? 0}px`, width: `${seen.width}px`, height: `${seen.height}px` }}
          onClick=${(event) => {
            const n = pointed(event);
            if (n === null) return;
            move(n);
            show(n);
          }}
          onMouseMove=${(event) => {
            const n = pointed(event);
            if (n !== null) move(n);
          }}></canvas>
      </div>
    </div>
    ${isCut && html`<div class="whole" aria-hidden="true" onPointerDown=${moved} onPointerMove=${moved}><canvas ref=${whole}></canvas><i style=${{ left: `${(view.left / wide) * 100}%`, width: `${(view.width / wide) * 100}%` }}></i></div>`}
    <div class="under">
      <p class="told" role="status">${now
        ? html`<code>@${now.line}</code> <b>${plain(words.who || words.branch)}</b> ${words.what}${words.notes.length > 0 ? html` <em>${words.notes.join(', ')}</em>` : ''} <span class="meta">${plain(words.branch)}, ${clock(now.at)}</span>`
        : html`<span class="meta">Point at an entry, or use the arrows.</span>`}</p>
      <div class="buttons zoom" role="group" aria-label=${`Scale of ${name}`}><button type="button" class="small" disabled=${nth === 0} aria-label="Smaller" onClick=${() => setZoom(nth - 1)}>−</button><button type="button" class="small" disabled=${nth === STEPS.length - 1} aria-label="Larger" onClick=${() => setZoom(nth + 1)}>+</button><button type="button" class="small" onClick=${() => setZoom(null)} disabled=${zoom === null}>Fit</button></div>
    </div>
  `;
}

function Legend({ timed }) {
  return html`<ul class="legend signs" aria-label="Signs">${LEGEND.map(([is, word, sign]) => html`<li><i class=${is}>${sign}</i>${word}</li>`)}${timed && html`<li>Gaps over 20 s are cut.</li>`}</ul>`;
}

/** Two sessions, or branches, one above the other: what they have in common is in the same place. `at`: the line of each where they go apart. */
export function Maps({ sides, at }) {
  const [zoom, setZoom] = useState(null);
  const maps = sides.map(({ session }) => useMap(session, 0));
  // A box that another one moved does not move that one back.
  const moved = useRef(new Set());
  const laid = maps.map(({ model }) => useMemo(() => model && scale.lanes(model), [model]));
  const broken = maps.find((one) => one.problem);
  if (broken) return html`<${Trouble} ...${broken} />`;
  const models = maps.map((one) => one.model);
  if (models.includes(null)) return html`<${Bars} count=${2} />`;
  const size = Math.max(...models.map((one) => one.all.length));
  const together = ({ target, currentTarget }) => {
    if (moved.current.delete(target)) return;
    for (const one of currentTarget.querySelectorAll('.lanes')) {
      const before = one.scrollLeft;
      one.scrollLeft = target.scrollLeft;
      if (one.scrollLeft !== before) moved.current.add(one);
    }
  };
  return html`<div class="maps" onScrollCapture=${together}>${models.map((model, n) => {
    const { session, branch } = sides[n];
    return html`<${Lanes} model=${model} name=${`Map ${'AB'[n]}`} laid=${laid[n]} branch=${branch} show=${(of) => (location.hash = link(['s', session, 'map'], { branch, at: model.all[of].line }))} at=${at[n]} size=${size} zoom=${zoom} setZoom=${setZoom} />`;
  })}</div><${Legend} />`;
}

function Outline({ model, laid, show, at }) {
  const [folded, fold] = useState(() => new Set());
  const [active, setActive] = useState(at === null ? undefined : `e${scale.atLine(model.all, at)}`);
  const rows = useMemo(() => scale.outline(model, laid, folded), [model, laid, folded]);
  return html`
    <${Rows}
      label="Outline of the map"
      tree=${(row) => ({ level: row.level, open: row.lane ? row.open : undefined })}
      items=${rows}
      keyOf=${(row) => row.key}
      active=${active}
      setActive=${setActive}
      open=${(row) => (row.lane ? fold(turned(folded, row.key)) : show(row.n))}
      estimate=${29}
      classOf=${(row) => `entry ${row.lane ? 'lane' : ''}`}
      row=${(row) => (row.lane
        ? html`<span role="gridcell" class="what" style=${indent(row.level - 1)}><i class=${row.open ? 'fold open' : 'fold'} aria-hidden="true"></i><b>${plain(row.lane.label || row.lane.who)}</b> ${row.lane.label ? plain(row.lane.who) : ''}${row.lane.note ? html` <em>${row.lane.note}</em>` : ''}</span><span role="gridcell" class="num">${count(row.count, 'entry', 'entries')}</span>`
        : html`<span role="gridcell" class="line num">@${row.entry.line}</span><span role="gridcell" class="what" style=${indent(row.level - 2)}>${row.what}${row.notes.length > 0 ? html` <em>${row.notes.join(', ')}</em>` : ''}</span><span role="gridcell" class="num when">${clock(row.entry.at)}</span>`)}
    />
  `;
}

/** The tones of rows of the story that fit a kind of entry. */
const TONES = { a: ['said', 'called'], u: ['said'], c: ['called'], r: ['came', 'wrong', 'doubt'], q: ['asked', 'doubt'], d: ['decided'] };

/** The pane of an entry: the row of the story that its line has. */
function Beside({ session, entry, branch, model, close, go }) {
  const { line } = entry;
  const part = useApi(api.of(session, ['story'], { branch, from: line, to: line }));
  const { what, who } = scale.told(model, entry);
  return html`<${Loaded} of=${part}>${(data) => {
    const wanted = TONES[entry.kind] ?? [];
    const nth = Math.max(0, data.items.findIndex((row) => wanted.includes(row.tone)));
    const row = data.items[nth] ?? { line, who, text: what, note: '', tone: 'engine', branch, at: new Date(entry.at).toISOString() };
    return html`<${Pane} session=${session} branch=${branch} row=${{ ...row, key: `${line}.${nth}` }} close=${close} go=${go} />`;
  }}<//>`;
}
