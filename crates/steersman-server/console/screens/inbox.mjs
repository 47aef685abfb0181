// The questions of all sessions: those that the token may answer first, soonest due on top.

import { Ago, api, Bars, Due, Empty, html, Line, link, plain, rolesFor, Trouble, useApi, useApp, useCalm, useEffect, useKeys, useMemo, useRef, useState, useStream } from '../kit.mjs';
import { Live } from '../parts/live.mjs';
import { Answer, Facts, isDecided, kindWord } from '../parts/question.mjs';

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
  const [over, ends] = useState(new Map());
  const shown = useInPlace(mine, over, kind);
  const settling = useSettling(shown.map((one) => keyOf(one) + over.has(keyOf(one))).join(' '), kind);
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
      <div class=${settling ? 'scroll settling' : 'scroll'} onClickCapture=${settling ? holds : undefined}>
        ${asked.problem && html`<${Trouble} problem=${asked.problem} again=${asked.reload} />`}
        ${!asked.data && !asked.problem && html`<${Bars} />`}
        ${asked.data && mine.length + others.length + waits.length === 0 && html`<${Empty} title="Nobody is asked"><p>What waits for people is here, from all sessions.</p><//>`}
        ${shown.map((one, at) => (over.has(keyOf(one))
          ? html`<${Over} key=${keyOf(one)} question=${one} text=${over.get(keyOf(one)).text} />`
          : html`<${Card} key=${keyOf(one)} question=${one} focus=${at === 0 ? focused : 0} done=${(text) => {
              told(text);
              ends((old) => new Map(old).set(keyOf(one), { question: one, text }));
              setTimeout(() => ends((old) => new Map([...old].filter(([key]) => key !== keyOf(one)))), KEPT);
              reload();
            }} />`))}
        ${others.length > 0 && html`<h2 class="section">For others</h2>`}
        ${others.map((one) => html`<${Card} key=${one.session + one.id} question=${one} />`)}
        ${waits.length > 0 && html`<h2 class="section">Waits without a person</h2>`}
        ${waits.map((one) => html`<${Card} key=${one.session + one.id} question=${one} />`)}
        ${asked.data?.items.length === 200 ? html`<p class="help">The 200 that are due first.</p>` : null}
      </div>
    </main>
  `;
}

/** Milliseconds for which a question that was answered here keeps its place. */
const KEPT = 60_000;
/** Milliseconds after a change of the list in which nothing is decided: a press may have been meant for what was there before. */
const SETTLES = 700;

function keyOf(one) {
  return one.session + one.id;
}

/** Returns the questions in the order in which they were shown first, those that were just answered in their places, and new ones behind. */
function useInPlace(asked, over, kind) {
  const order = useRef({ kind, keys: [] });
  if (order.current.kind !== kind) order.current = { kind, keys: [] };
  const known = new Map([...[...over].map(([key, one]) => [key, one.question]), ...asked.map((one) => [keyOf(one), one])]);
  const before = order.current.keys.filter((key) => known.has(key));
  const fresh = [...known.keys()].filter((key) => !before.includes(key) && !over.has(key));
  order.current.keys = [...before, ...fresh];
  return order.current.keys.map((key) => known.get(key));
}

/** Returns true while the list has just changed under a press that was meant for what was there before. */
function useSettling(keys, kind) {
  const last = useRef({ keys, kind });
  const [settling, set] = useState(false);
  useEffect(() => {
    const before = last.current;
    last.current = { keys, kind };
    // What comes first, or is asked for, moves nothing that somebody is about to press.
    if (before.keys === keys || before.keys === '' || before.kind !== kind) return undefined;
    set(true);
    const timer = setTimeout(() => set(false), SETTLES);
    return () => clearTimeout(timer);
  }, [keys, kind]);
  return settling;
}

/** Takes a press of a pointer on a button away. Keys go on: the focus does not move with the list. */
function holds(event) {
  if (event.detail === 0 || !event.target.closest('button')) return;
  event.preventDefault();
  event.stopPropagation();
}

/** A question that was just answered, in its place. */
function Over({ question, text }) {
  return html`<p class="over"><span class="sign" aria-hidden="true">✓</span> ${plain(text)} <span class="help">${plain(question.text)}</span> <a href=${link(['s', question.session])}>What came of it</a></p>`;
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
        <span class="since">asked <${Ago} at=${question.since} said /></span>
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
  const asked = wanted.filter((one) => isDecided(one));
  return {
    mine: asked.filter((one) => rolesFor(me, one).length > 0),
    others: asked.filter((one) => rolesFor(me, one).length === 0),
    waits: wanted.filter((one) => !isDecided(one)),
  };
}
