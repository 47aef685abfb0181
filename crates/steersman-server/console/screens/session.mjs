// One session: what is above its tabs, and the tabs.

import { api, count, Dialog, Head, html, link, money, number, plain, Search, Status, Trouble, useApi, useApp, useCalm, useEffect, useKeys, useReducer, useRef, useState, useStream } from '../kit.mjs';
import { begin, caughtUp, fold } from '../model.mjs';
import { Confirm } from '../parts/confirm.mjs';
import { Live } from '../parts/live.mjs';
import { Many } from '../parts/many.mjs';
import { Artifacts } from './artifacts.mjs';
import { Branches } from './branches.mjs';
import { Contexts } from './contexts.mjs';
import { Effects } from './effects.mjs';
import { Graph } from '../parts/graph.mjs';
import { SessionMap } from './map.mjs';
import { State } from './state.mjs';
import { Story } from './story.mjs';

const TABS = [
  ['story', 'Story', 'read'],
  ['map', 'Map', 'read'],
  ['contexts', 'Contexts', 'context'],
  ['effects', 'Effects', 'read'],
  ['state', 'State', 'read'],
  ['artifacts', 'Artifacts', 'read'],
  ['branches', 'Branches', 'read'],
  ['graph', 'Graph', 'read'],
];

export function Session({ session, tab, of, query }) {
  const { me, go, told, open } = useApp();
  const page = useApi(api.path(['sessions', session]));
  const asked = useApi(api.of(session, ['questions']));
  const [live, hear] = useReducer((state, event) => (event.caughtUp === undefined ? fold(state, event) : caughtUp(state, event.caughtUp)), null, begin);
  const [stops, stop] = useState(false);
  const [retries, retry] = useState(false);
  const [sums, sum] = useState(false);
  const composer = useRef(null);
  const words = useRef(null);
  const reload = useCalm(() => {
    page.reload();
    asked.reload();
    open.reload();
  }, 300);
  const heard = useFrames(hear);
  const stream = useStream(api.of(session, ['events'], { from: 'now' }), (event, kind) => {
    heard(event);
    if (kind === 'hello' || event.line !== undefined || kind === 'settled') reload();
  });
  const branch = query.branch;
  const tabs = TABS.filter(([, , needs]) => me.allows.includes(needs));
  const to = (name, more = {}) => link(name === 'story' ? ['s', session] : ['s', session, name], { branch, ...more });
  useKeys({
    ...Object.fromEntries(tabs.map(([name], at) => [String(at + 1), () => (location.hash = to(name))])),
    s: () => me.allows.includes('write') && stop(true),
    c: () => composer.current?.focus(),
    '/': () => words.current?.focus(),
  });

  useEffect(() => {
    document.querySelector('.tabs [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
  }, [tab, page.data === null]);

  if (page.problem && !page.data) {
    return html`<main id="content" class="screen" tabindex="-1"><header class="top"><h1><a href="#/">Sessions</a> / <code>${session.slice(0, 6)}</code></h1></header><${Trouble} problem=${page.problem} again=${page.reload} /></main>`;
  }
  const row = page.data;
  const parts = { session, branch, live, page: row, asked: asked.data?.items ?? [], query, reload, to, hear };
  const screens = {
    story: html`<${Story} ...${parts} composer=${composer} />`,
    map: html`<${SessionMap} ...${parts} />`,
    contexts: html`<${Contexts} ...${parts} of=${of} />`,
    effects: html`<${Effects} ...${parts} />`,
    state: html`<${State} ...${parts} />`,
    artifacts: html`<${Artifacts} ...${parts} />`,
    branches: html`<${Branches} ...${parts} />`,
    graph: html`<div class="scroll"><${Graph} parts=${['sessions', session]} query=${{ branch }} version=${live.head} /></div>`,
  };
  const isOpen = row && !['answered', 'failed', 'cancelled', 'limit'].includes(row.status);
  return html`
    <main id="content" class="screen" tabindex="-1">
      <header class="top">
        <h1><a href="#/" class="up">Sessions</a> <span class="of">/</span> ${row ? plain(row.network) : ''} <code>${session.slice(0, 6)}</code></h1>
        ${row && html`<${Status} of=${row.status} note=${row.holds?.length ? `for ${row.holds[0].by.join(', ')}` : ''} />`}
        ${row && html`<${Chooser} row=${row} branch=${branch} to=${(name) => go(['s', session, ...(tab === 'story' ? [] : [tab])], { branch: name })} />`}
        <span class="grow"></span>
        ${row && html`<button type="button" class="quiet sums-of" title="what it cost" onClick=${() => sum(true)}><dl class="facts-line"><div class="less"><dd>${number(row.model_calls)}</dd><dt>model calls</dt></div><div><dd>${number(row.tokens)}</dd><dt>tokens</dt></div>${row.cost ? html`<div><dd>${money(row.cost)}</dd><dt>cost</dt></div>` : null}</dl></button>`}
        <${Live} of=${stream} />
        ${row?.status === 'failed' && me.allows.includes('operate') && html`<button type="button" class="primary" onClick=${() => retry(true)}>Retry…</button>`}
        ${me.allows.includes('write') && html`<button type="button" disabled=${!isOpen} onClick=${() => stop(true)}>Stop…</button>`}
      </header>
      ${row?.reason ? html`<p class="bar warn"><b>${plain(row.reason.code)}</b>${row.reason.agent ? ` of ${plain(row.reason.agent)}` : ''}${row.message ? html`: ${plain(row.message.slice(0, 300))}` : ''}${row.status === 'limit' ? ' The next message goes on, as far as the limit lets it.' : ''}</p>` : null}
      ${row?.orders?.length ? html`<p class="bar warn">${row.orders.join('; ')}</p>` : null}
      ${row?.status === 'interrupted' ? html`<p class="bar warn">Nobody drives this session. <code>steersman serve</code> or <code>steersman run --all</code> goes on with it.</p>` : null}
      ${rerunOf(row)}
      <nav class="tabs" aria-label="Parts of the session">${tabs.map(([name, word], at) => html`<a href=${to(name)} aria-current=${tab === name ? 'page' : undefined}>${word}${badge(name, row)}</a>`)}<${Search} is="find" name="Find in the texts" hint="Find in the texts" value=${query.find} field=${words} go=${(find) => go(['s', session], { branch, find })} /></nav>
      ${screens[tab] && tabs.some(([name]) => name === tab) ? screens[tab] : html`<div class="empty"><h2>There is no such part</h2><p>${TABS.some(([name]) => name === tab) ? 'This token does not allow it.' : ''} <a href=${to('story')}>The story</a></p></div>`}
      ${sums && row
        ? html`<${Dialog} title="What it cost" close=${() => sum(false)}>
            <p class="help">All branches, and what was asked in vain.</p>
            <table class="grid"><${Head} of=${['Model', '#Calls', '#Tokens', '#Cost']} /><tbody>${(row.models ?? []).map((one) => html`<tr><th scope="row">${plain(one.model)}</th><td class="num">${number(one.calls)}</td><td class="num">${number(one.tokens)}</td><td class="num">${money(one.cost)}</td></tr>`)}
              ${row.lost?.tokens > 0 ? html`<tr class="wrong"><th scope="row">lost: calls that gave no answer</th><td></td><td class="num">${number(row.lost.tokens)}</td><td class="num">${money(row.lost.cost)}</td></tr>` : null}</tbody></table>
          <//>`
        : null}
      ${retries && html`<${Many} order="retry" sessions=${[row]} close=${() => {
        retry(false);
        reload();
      }} />`}
      ${stops && html`<${Stop} session=${session} row=${row} close=${() => stop(false)} done=${() => {
        told('Cancelled what was open.');
        stop(false);
        reload();
      }} />`}
    </main>
  `;
}

/** Gives events to the state in batches, one for each frame of the screen. */
function useFrames(hear) {
  const waiting = useRef([]);
  const asked = useRef(null);
  useEffect(() => () => cancelAnimationFrame(asked.current), []);
  return (event) => {
    waiting.current.push(event);
    asked.current ??= requestAnimationFrame(() => {
      asked.current = null;
      for (const one of waiting.current.splice(0)) hear(one);
    });
  };
}

function rerunOf(row) {
  const [, of, line] = /^(\w+)(?:@(\d+))?$/.exec(row?.labels?.rerun_of ?? '') ?? [];
  if (!of) return null;
  return html`<p class="bar">A rerun of <a href=${link(['s', of], { at: line })}><code>${of.slice(0, 6)}</code>${line ? ` from @${line}` : ''}</a>. <a href=${link(['diff'], { a: of, b: row.session })}>The differences</a></p>`;
}

function badge(name, row) {
  if (name === 'effects') {
    const doubts = (row?.effects ?? []).filter((effect) => effect.standing.includes('doubt') || effect.standing === 'unknown').length;
    return doubts > 0 ? html` <b class="badge">${doubts}</b>` : null;
  }
  if (name === 'branches' && row?.branches?.length > 1) return html` <b class="count">${row.branches.length}</b>`;
  return null;
}

function Chooser({ row, branch, to }) {
  if (!row.branches || row.branches.length < 2) return null;
  const name = (one) => one.label ?? one.id;
  return html`
    <label class="chooser"><span class="hidden">Branch</span>
      <select value=${branch ?? ''} onChange=${(event) => to(event.target.value || undefined)}>
        <option value="">${plain(row.current)} (current)</option>
        ${row.branches.filter((one) => name(one) !== row.current).map((one) => html`<option value=${name(one)}>${plain(name(one))}${one.superseded ? ', left' : ''}${one.dry ? ', dry' : ''}</option>`)}
      </select>
    </label>
  `;
}

function Stop({ session, row, close, done }) {
  const open = (row?.effects ?? []).filter((effect) => ['running', 'wished'].includes(effect.standing));
  return html`
    <${Confirm} title="Stop this turn?" verb="Cancel what is open" path=${api.of(session, ['cancel'])} body=${{ what: 'turn' }} close=${close} done=${done}>
      <p>Everything that is open is cancelled: ${count(open.length, 'call')} and ${count(row?.holds?.length ?? 0, 'question')}. What has begun and cannot be stopped may still happen; it is then in doubt.</p>
      <p>The session stays, and takes the next message.</p>
    <//>
  `;
}
