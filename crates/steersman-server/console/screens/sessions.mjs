// All sessions that the token sees.

import * as api from '../api.mjs';
import { useApi, useApp, useCalm, useKeys, useStream } from '../hooks.mjs';
import { Ago, Bars, Command, Empty, Status, Trouble } from '../parts/bits.mjs';
import { Live } from '../parts/live.mjs';
import { Start } from '../parts/start.mjs';
import { kindWord } from '../parts/question.mjs';
import { link } from '../route.mjs';
import { Rows } from '../rows.mjs';
import { html, useEffect, useMemo, useRef, useState } from '../ui.mjs';
import { money, number, plain } from '../words.mjs';

const PAGE = 100;
const QUICK = [
  ['all', ''],
  ['waiting', 'status = waits or status = doubt'],
  ['running', 'status = running'],
  ['failed', 'status = failed or status = limit'],
];

export function Sessions({ query }) {
  const { go, open } = useApp();
  const where = query.where ?? '';
  const [list, set] = useState({ where: null, items: [], next: null, problem: null });
  const [active, setActive] = useState(undefined);
  const [starts, start] = useState(false);
  const field = useRef(null);
  const loading = useRef(false);

  const load = async (after) => {
    if (loading.current) return;
    loading.current = true;
    try {
      const page = await api.get(api.path(['sessions'], { where, after, limit: PAGE }));
      set((old) => ({
        where,
        items: after && old.where === where ? merged(old.items, page.items) : page.items,
        next: page.next,
        problem: null,
      }));
    } catch (problem) {
      set((old) => ({ ...old, where, items: old.where === where ? old.items : [], problem }));
    } finally {
      loading.current = false;
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
      set((old) => (old.where === where ? { ...old, items: merged([data.session ? data : data.row], old.items) } : old));
      open.reload();
    } else if (kind === 'left') {
      set((old) => ({ ...old, items: old.items.filter((row) => row.session !== data.session) }));
    } else reload();
  });

  useKeys({ '/': () => field.current?.focus(), n: () => start(true) });
  const asks = useMemo(() => waits(open.data?.items), [open.data]);
  const isOld = list.where !== where;

  return html`
    <main id="content" class="screen" tabindex="-1">
      <header class="top">
        <h1>Sessions</h1>
        <form class="filter" role="search" onSubmit=${(event) => {
          event.preventDefault();
          go([], { where: field.current.value.trim() });
        }}>
          <input ref=${field} type="search" defaultValue=${where} key=${where} aria-label="Filter" placeholder="status = waits and definition = refund" onChange=${(event) => event.target.value === '' && go([])} />
        </form>
        <div class="chips" role="group" aria-label="Filters">${QUICK.map(([name, filter]) => html`<a class="chip" href=${link([], { where: filter })} aria-current=${where === filter ? 'true' : undefined}>${name}</a>`)}</div>
        <span class="grow"></span>
        <${Live} of=${stream} />
        <button type="button" class="primary" onClick=${() => start(true)}>New session</button>
      </header>
      ${list.problem ? html`<${Trouble} problem=${list.problem} again=${() => load()} />` : null}
      ${isOld && !list.problem
        ? html`<${Bars} />`
        : list.items.length === 0
          ? list.problem
            ? null
            : where
            ? html`<${Empty} title="No session matches"><p><a href="#/">Show all sessions</a></p><//>`
            : html`<${Empty} title="There is no session yet"><p>Here is every session of the store, as it goes on. Begin one here, or in a terminal:</p><${Command} text='steersman run --input "Hello"' /><//>`
          : html`<${Rows}
              label="Sessions"
              items=${list.items}
              keyOf=${(row) => row.session}
              total=${list.next ? -1 : list.items.length}
              active=${active}
              setActive=${setActive}
              open=${(row) => go(['s', row.session])}
              end=${() => list.next && load(list.next)}
              estimate=${41}
              classOf=${() => 'session'}
              head=${html`<div class="row session header" role="row"><span role="columnheader">State</span><span role="columnheader">Definition</span><span role="columnheader">Session</span><span role="columnheader">Waits for</span><span role="columnheader" class="num">Lines</span><span role="columnheader" class="num">Tokens</span><span role="columnheader" class="num">Cost</span><span role="columnheader" class="num">Last</span></div>`}
              row=${(row) => html`<${Row} row=${row} asks=${asks.get(row.session)} />`}
            />`}
      ${starts ? html`<${Start} close=${() => start(false)} />` : null}
    </main>
  `;
}

function Row({ row, asks }) {
  const labels = Object.entries(row.labels).filter(([, value]) => value !== '');
  const outcome = row.outcome && typeof row.outcome === 'object' ? Object.entries(row.outcome).filter(([, value]) => value !== null) : [];
  return html`
    <span role="gridcell"><${Status} of=${row.status} /></span>
    <span role="gridcell" class="strong">${plain(row.network)}</span>
    <span role="gridcell" class="name"><a href=${link(['s', row.session])} tabindex="-1"><code>${row.session.slice(0, 6)}</code></a>${labels.map(([name, value]) => html`<span class="label" title=${`${name}: ${value}`}>${plain(name)} <b>${plain(value)}</b></span>`)}</span>
    <span role="gridcell" class="waits">${asks
      ? html`<span class="kind">${kindWord(asks.kind)}</span> ${plain(asks.text)}`
      : outcome.map(([name, value]) => html`<span class="label">${plain(name)} <b>${plain(JSON.stringify(value))}</b></span>`)}</span>
    <span role="gridcell" class="num wide">${number(row.line)}</span>
    <span role="gridcell" class="num wide">${number(row.tokens)}</span>
    <span role="gridcell" class="num wide">${money(row.cost)}</span>
    <span role="gridcell" class="num"><${Ago} at=${row.updated} /></span>
  `;
}

/** Returns the first question of each session. */
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
  for (const row of [...second, ...first]) if (row?.session) rows.set(row.session, row);
  for (const row of first) if (row?.session) rows.set(row.session, row);
  return [...rows.values()].sort((a, b) => (a.updated < b.updated ? 1 : a.updated > b.updated ? -1 : 0));
}
