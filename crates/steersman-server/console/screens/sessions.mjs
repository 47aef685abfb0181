// All sessions that the token sees.

import { Ago, api, Bars, Command, count, Empty, html, link, money, number, plain, Search, Status, Trouble, turned, useApp, useCalm, useEffect, useKeys, useMemo, useRef, useState, useStream } from '../kit.mjs';
import { Live } from '../parts/live.mjs';
import { Many, ORDERS } from '../parts/many.mjs';
import { Start } from '../parts/start.mjs';
import { kindWord } from '../parts/question.mjs';
import { Rows } from '../rows.mjs';

const PAGE = 100;
const QUICK = [
  ['all', ''],
  ['waiting', 'status = waits or status = doubt'],
  ['running', 'status = running'],
  ['failed', 'status = failed or status = limit'],
  ['failed last day', '(status = failed or status = limit) and updated > -1d'],
];

export function Sessions({ query }) {
  const { go, me, open } = useApp();
  const where = query.where ?? '';
  const [list, set] = useState({ where: null, items: [], next: null, problem: null });
  const [active, setActive] = useState(undefined);
  const [starts, start] = useState(false);
  // The sessions that are selected; null while none is to be.
  const [chosen, choose] = useState(null);
  const [order, give] = useState(null);
  const field = useRef(null);
  // The filter whose rows are being read.
  const loading = useRef(null);
  const newest = useRef(where);
  newest.current = where;

  const load = async (after) => {
    if (loading.current === where) return;
    loading.current = where;
    try {
      const page = await api.get(api.path(['sessions'], { where, after, limit: PAGE }));
      if (newest.current !== where) return;
      set((old) => ({
        where,
        items: after && old.where === where ? merged(old.items, page.items) : page.items,
        next: page.next,
        problem: null,
      }));
    } catch (problem) {
      if (newest.current !== where) return;
      set((old) => ({ ...old, where, items: old.where === where ? old.items : [], problem }));
    } finally {
      if (loading.current === where) loading.current = null;
    }
  };
  useEffect(() => {
    load();
  }, [where]);
  const reload = useCalm(() => {
    load();
    open.reload();
  }, 400);

  const stream = useStream(api.path(['events', 'stream'], { where }), (data, kind) => {
    if (kind === 'session') {
      set((old) => (old.where === where ? { ...old, items: merged([data], old.items) } : old));
      open.reload();
    } else if (kind === 'left') {
      set((old) => ({ ...old, items: old.items.filter((row) => row.session !== data.session) }));
    } else reload();
  });

  const turn = ({ session }) => choose(turned(chosen, session));
  useKeys({
    '/': () => field.current?.focus(),
    n: () => start(true),
    x: () => choose(chosen ? null : new Set()),
    Escape: () => choose(null),
  });
  const asks = useMemo(() => waits(open.data?.items), [open.data]);
  const isOld = list.where !== where;

  return html`
    <main id="content" class=${chosen ? 'screen selecting' : 'screen'} tabindex="-1">
      <header class="top">
        <h1>Sessions</h1>
        <${Search} name="Filter" hint="status = waits and definition = refund" value=${where} field=${field} go=${(text) => go([], { where: text })} />
        <div class="chips" role="group" aria-label="Filters">${QUICK.map(([name, filter]) => html`<a class="chip" href=${link([], { where: filter })} aria-current=${where === filter ? 'true' : undefined}>${name}</a>`)}</div>
        <span class="grow"></span>
        <${Live} of=${stream} />
        <button type="button" aria-pressed=${chosen !== null} onClick=${() => choose(chosen ? null : new Set())}>Select</button>
        <button type="button" class="primary" onClick=${() => start(true)}>New session</button>
      </header>
      ${list.problem && html`<${Trouble} problem=${list.problem} again=${() => load()} />`}
      ${isOld && !list.problem
        ? html`<${Bars} />`
        : list.items.length === 0
          ? list.problem
            ? null
            : where
            ? html`<${Empty} title="No session matches"><p><a href="#/">Show all sessions</a></p><//>`
            : html`<${Empty} title="There is no session yet"><p>Begin one here, or in a terminal:</p><${Command} text='steersman run --input "Hello"' /><//>`
          : html`<${Rows}
              label="Sessions"
              items=${list.items}
              keyOf=${(row) => row.session}
              total=${list.next ? -1 : list.items.length}
              active=${active}
              setActive=${setActive}
              open=${(row) => (chosen ? turn(row) : go(['s', row.session]))}
              end=${() => list.next && load(list.next)}
              estimate=${35}
              classOf=${() => 'session'}
              head=${html`<div class="row session header" role="row"><span role="columnheader">State</span><span role="columnheader">Definition</span><span role="columnheader">Session</span><span role="columnheader">Waits for, or why</span><span role="columnheader" class="num">Lines</span><span role="columnheader" class="num">Tokens</span><span role="columnheader" class="num">Cost</span><span role="columnheader" class="num">Last</span></div>`}
              row=${(row) => html`<${Row} row=${row} asks=${asks.get(row.session)} isChosen=${chosen?.has(row.session)} turn=${() => turn(row)} />`}
            />`}
      ${chosen && html`<${Chosen} of=${list.items.filter((row) => chosen.has(row.session))} me=${me} give=${give} all=${() => choose(new Set(list.items.map((row) => row.session)))} close=${() => choose(null)} />`}
      ${order ? html`<${Many} order=${order} sessions=${list.items.filter((row) => chosen?.has(row.session))} close=${() => {
        give(null);
        reload();
      }} />` : null}
      ${starts ? html`<${Start} close=${() => start(false)} />` : null}
    </main>
  `;
}

function Chosen({ of, me, give, all, close }) {
  const may = me.allows.includes('operate');
  return html`
    <div class="chosen" role="region" aria-label="Selected sessions">
      <b role="status">${count(of.length, 'session')} selected</b>
      <button type="button" class="quiet small" onClick=${all}>All that are listed</button>
      <span class="grow"></span>
      ${of.length === 2 && html`<a class="button small" href=${link(['diff'], { a: of[1].session, b: of[0].session })}>Compare</a>`}
      ${Object.entries(ORDERS).map(([order, [verb, , isOf]]) => html`<button type="button" class="small" disabled=${!may || !of.some(isOf)} title=${may ? (of.length > 0 ? `for ${of.filter(isOf).length} of ${of.length}` : undefined) : 'This needs the permission "operate", which this token does not have.'} onClick=${() => give(order)}>${verb}…</button>`)}
      <button type="button" class="quiet small" onClick=${close}>Done</button>
    </div>
  `;
}

function Row({ row, asks, isChosen, turn }) {
  const labels = Object.entries(row.labels).filter(([, value]) => value !== '');
  const outcome = row.outcome && typeof row.outcome === 'object' ? Object.entries(row.outcome).filter(([, value]) => value !== null) : [];
  return html`
    <span role="gridcell" class="first">${isChosen === undefined ? null : html`<input type="checkbox" checked=${isChosen} onChange=${turn} aria-label=${`Select ${row.session.slice(0, 6)}`} tabindex="-1" /> `}<${Status} of=${row.status} /></span>
    <span role="gridcell" class="strong">${plain(row.network)}</span>
    <span role="gridcell" class="name"><a href=${link(['s', row.session])} tabindex="-1" onClick=${(event) => isChosen !== undefined && event.preventDefault()}><code>${row.session.slice(0, 6)}</code></a>${labels.map(([name, value]) => html`<span class="label" title=${`${name}: ${value}`}>${name === 'rerun_of' ? 'rerun' : html`${plain(name)} <b>${plain(value)}</b>`}</span>`)}</span>
    <span role="gridcell" class="waits">${asks
      ? html`<span class="kind">${kindWord(asks.kind)}</span> ${plain(asks.text)}`
      : row.reason
      ? html`<span class="badly">${plain(row.reason.code)}</span>${row.reason.agent ? ` of ${plain(row.reason.agent)}` : ''}`
      : outcome.map(([name, value]) => html`<span class="label">${plain(name)} <b>${plain(JSON.stringify(value))}</b></span>`)}</span>
    <span role="gridcell" class="num wide">${number(row.line)}</span>
    <span role="gridcell" class="num wide">${number(row.tokens)}</span>
    <span role="gridcell" class="num wide">${money(row.cost)}</span>
    <span role="gridcell" class="num"><${Ago} at=${row.updated} /></span>
  `;
}

function waits(questions) {
  const found = new Map();
  for (const question of questions ?? []) {
    if (!found.has(question.session)) found.set(question.session, question);
  }
  return found;
}

/** Puts rows in front of others; one that both have is that of the first. The newest are first. */
function merged(first, second) {
  const rows = new Map();
  for (const row of [...second, ...first]) rows.set(row.session, row);
  return [...rows.values()].sort((a, b) => b.updated.localeCompare(a.updated));
}
