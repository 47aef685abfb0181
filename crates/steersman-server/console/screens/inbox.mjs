// The questions of all sessions: those that the token may answer first, soonest due on top.

import { Ago, api, Bars, Due, Empty, html, Line, link, plain, rolesFor, Trouble, useApi, useApp, useCalm, useKeys, useMemo, useState, useStream } from '../kit.mjs';
import { Live } from '../parts/live.mjs';
import { Answer, Facts, kindWord } from '../parts/question.mjs';
import { DECIDED } from '../parts/rail.mjs';

const ALL = api.path(['questions'], { limit: 200 });
const WAITING = 'status = waits or status = doubt';

export function Inbox({ query }) {
  const { me, open, told, go } = useApp();
  const asked = useApi(ALL);
  const reload = useCalm(() => {
    asked.reload();
    open.reload();
  }, 300);
  const stream = useStream(api.path(['events', 'stream'], { where: WAITING }), reload);
  const [focused, focus] = useState(0);
  const kind = query.kind ?? '';
  const { mine, others, waits } = useMemo(() => sorted(me, asked.data?.items ?? [], kind), [me, asked.data, kind]);
  const kinds = [...new Set((asked.data?.items ?? []).map((one) => one.kind))].sort();

  useKeys({ a: () => focus((n) => n + 1) });

  return html`
    <main id="content" class="screen" tabindex="-1">
      <header class="top">
        <h1>Inbox</h1>
        <p class="sum" role="status">${asked.data ? `${mine.length} for you${others.length > 0 ? `, ${others.length} for others` : ''}` : ''}</p>
        <div class="chips" role="group" aria-label="Kinds">
          <a class="chip" href="#/inbox" aria-current=${kind === '' ? 'true' : undefined}>all</a>
          ${kinds.map((one) => html`<a class="chip" href=${link(['inbox'], { kind: one })} aria-current=${kind === one ? 'true' : undefined}>${kindWord(one)}</a>`)}
        </div>
        <span class="grow"></span>
        <${Live} of=${stream} />
      </header>
      <div class="scroll">
        ${asked.problem && html`<${Trouble} problem=${asked.problem} again=${asked.reload} />`}
        ${!asked.data && !asked.problem && html`<${Bars} />`}
        ${asked.data && mine.length + others.length + waits.length === 0 && html`<${Empty} title="Nobody is asked"><p>What waits for a person is here, from all sessions, soonest due first.</p><//>`}
        ${mine.map((one, at) => html`<${Card} key=${one.session + one.id} question=${one} focus=${at === 0 ? focused : 0} done=${(text) => {
          told(text);
          reload();
        }} />`)}
        ${others.length > 0 && html`<h2 class="section">For others</h2>`}
        ${others.map((one) => html`<${Card} key=${one.session + one.id} question=${one} />`)}
        ${waits.length > 0 && html`<h2 class="section">Waits without a person</h2>`}
        ${waits.map((one) => html`<${Card} key=${one.session + one.id} question=${one} />`)}
        ${asked.data?.items.length === 200 ? html`<p class="help">These are the 200 that are due first. Answer some to see others.</p>` : null}
      </div>
    </main>
  `;
}

/** A question with all that one needs to decide it. */
export function Card({ question, focus, done, alone }) {
  return html`
    <article class=${`card ${done ? '' : 'others'} ${question.kind}`} aria-label=${`${kindWord(question.kind)}: ${plain(question.text)}`}>
      <header>
        <span class="kind">${kindWord(question.kind)}</span>
        ${alone ? null : html`<a class="where" href=${link(['s', question.session])}>${question.network ? plain(question.network) : null} <code>${question.session.slice(0, 6)}</code></a>`}
        <span class="from">${plain(question.agent)}${question.branch === 'main' ? '' : html` on <code>${question.branch}</code>`}</span>
        <span class="grow"></span>
        <span class="since">asked <${Ago} at=${question.since} /> ago</span>
        ${question.due && html`<span class="ends">ends in <${Due} at=${question.due} /></span>`}
      </header>
      <p class="asks"><${Line} text=${question.text} /></p>
      <${Facts} question=${question} />
      ${question.show.length > 0
        ? html`<p class="because">with ${question.show.map((name) => html`<a href=${link(['s', question.session, 'artifacts'], { name, branch: question.branch })}>${plain(name)}</a> `)}</p>`
        : null}
      ${question.kind === 'input' && !alone && done
        ? html`<div class="buttons"><a class="button primary" href=${link(['s', question.session, 'q', question.id])}>Enter it…</a><span class="says">On a page of its own.</span></div>`
        : html`<${Answer} question=${question} done=${done} focus=${focus} />`}
    </article>
  `;
}

function sorted(me, items, kind) {
  const wanted = items.filter((one) => !kind || one.kind === kind);
  const asked = wanted.filter((one) => DECIDED.has(one.kind));
  return {
    mine: asked.filter((one) => rolesFor(me, one).length > 0),
    others: asked.filter((one) => rolesFor(me, one).length === 0),
    waits: wanted.filter((one) => !DECIDED.has(one.kind)),
  };
}
