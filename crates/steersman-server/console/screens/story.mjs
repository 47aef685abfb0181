// What happened in a session, row by row, live.

import { api, Bars, clock, count, Empty, focusOn, html, link, number, plain, Refused, span, Trouble, useAct, useApp, useCallback, useEffect, useKeys, useMemo, useRef, useState } from '../kit.mjs';
import { appended, prepended } from '../model.mjs';
import { Pane } from '../parts/pane.mjs';
import { Rows } from '../rows.mjs';
import { Card } from './inbox.mjs';

/** Rows of a page, and the most characters of a text that a row shows. */
const PAGE = 200;
const CHARS = 1200;
/** Rows that are read at once further up. */
const MANY = 1000;
const NOTED = new Set(['asked', 'doubt', 'wrong']);

export function Story({ session, branch, live, asked, query, reload, hear, composer, page: about }) {
  const { told, go } = useApp();
  const [rows, set] = useState(null);
  const [before, setBefore] = useState(null);
  const [problem, setProblem] = useState(null);
  const [head, setHead] = useState(0);
  // An address names a line, or one of its rows: `2.1` is the second row of line 2.
  const wanted = query.at && `${query.at}.0`.split('.', 2).join('.');
  const [active, setActive] = useState(wanted);
  const [pane, openPane] = useState(wanted);
  const [atEnd, setAtEnd] = useState(true);
  const [seen, setSeen] = useState(0);
  const busy = useRef(false);
  const reading = useRef(0);
  const [turn, next] = useState(0);
  const { find } = query;
  const path = (more) => api.of(session, ['story'], { branch, find, limit: PAGE, chars: CHARS, ...more });

  const read = useCallback(async (more, join) => {
    if (busy.current) return;
    busy.current = true;
    const mine = reading.current;
    try {
      const part = await api.get(path(more));
      if (mine !== reading.current) return;
      setProblem(null);
      join(part);
      next((n) => n + 1);
    } catch (error) {
      if (mine === reading.current) setProblem(error);
    } finally {
      if (mine === reading.current) busy.current = false;
    }
  }, [session, branch, find]);

  const whole = () =>
    read({ last: true }, (part) => {
      set(numbered(part.items));
      setBefore(part.before);
      setHead(part.head);
      hear({ caughtUp: part.head });
    });
  useEffect(() => {
    // What is still read of another branch is not for this one.
    reading.current += 1;
    busy.current = false;
    set(null);
    whole();
  }, [session, branch, find]);

  // The stream says that there are lines behind those that were read. It may say so while something else is read, so it is looked at after each.
  useEffect(() => {
    if (rows === null || !live.stale || live.head <= head) return undefined;
    const timer = setTimeout(
      () =>
        read({ from: head + 1 }, (part) => {
          set((old) => numbered(appended(old ?? [], part.items)));
          const upto = part.next === null ? Math.max(part.head, live.head) : (part.items.at(-1)?.line ?? part.head);
          setHead(upto);
          hear({ caughtUp: upto });
        }),
      120,
    );
    return () => clearTimeout(timer);
  }, [live.head, live.stale, head, rows === null, turn]);

  const earlier = () =>
    before !== null &&
    read({ last: true, to: before, limit: MANY }, (part) => {
      set((old) => numbered(prepended(old ?? [], part.items)));
      setBefore(part.before);
    });

  // A link leads to a line of the story that is on the screen already, or to one far up.
  useEffect(() => {
    if (!wanted) return;
    setActive(wanted);
    openPane(wanted);
  }, [wanted]);
  useEffect(() => {
    if (Number(query.at) <= before) earlier();
  }, [query.at, before, turn]);

  const writing = Object.values(live.writing).filter((one) => !find && (!branch || one.branch === branch));
  const items = rows ?? [];
  const open = useMemo(() => new Map(asked.map((one) => [Number((one.id.split('@')[1] ?? one.id.split('.')[0])), one])), [asked]);
  useEffect(() => {
    if (atEnd) setSeen(items.length);
  }, [items.length, atEnd]);

  // The address names the line, without a step in the history for each row.
  const named = (at) => history.replaceState(null, '', link(['s', session], { branch, find, at }));
  const show = (row) => {
    openPane(row.key);
    named(find || row.key.endsWith('.0') ? row.line : row.key);
  };
  const close = () => {
    openPane(null);
    named(undefined);
    focusOn('.rows');
  };
  const jump = (step) => {
    const at = items.findIndex((row) => row.key === active);
    const isNoted = (row) => NOTED.has(row.tone);
    const found = step > 0 ? items.slice(at + 1).find(isNoted) : items.slice(0, at < 0 ? undefined : at).findLast(isNoted);
    if (!found) return told('No other in the rows that were read.');
    setActive(found.key);
    show(found);
  };
  const toEnd = () => {
    const list = document.querySelector('.rows');
    list.scrollTop = list.scrollHeight;
  };
  useKeys({
    '.': toEnd,
    Escape: close,
    '}': () => jump(1),
    '{': () => jump(-1),
    a: () => focusOn('.questions .answer :is(button, input)'),
  });
  const chosen = items.find((row) => row.key === pane);

  if (rows === null) return problem ? html`<${Trouble} problem=${problem} again=${whole} />` : html`<${Bars} />`;
  const fresh = items.length - seen;
  return html`
    <div class=${chosen ? 'split open' : 'split'}>
      <div class="story">
        ${problem && html`<${Trouble} problem=${problem} again=${whole} />`}
        ${find && html`<p class="bar" role="status">${count(items.length, 'row')}${before === null ? '' : ' or more'} with “${plain(find)}”. <a href=${link(['s', session], { branch, at: chosen?.line })}>${chosen ? `@${chosen.line} in the story` : 'All rows'}</a></p>`}
        ${items.length === 0 && writing.length === 0 ? find ? null : html`<${Empty} title="Nothing has happened yet"><p>Rows come as soon as a process drives the session.</p><//>` : html`
          <${Rows}
            label="Story"
            items=${items}
            keyOf=${(row) => row.key}
            active=${active}
            setActive=${setActive}
            open=${show}
            start=${earlier}
            stick
            stuck=${setAtEnd}
            estimate=${28}
            classOf=${(row) => `story-row ${row.tone} ${row.of !== undefined ? 'inner' : ''}`}
            head=${before !== null && html`<button type="button" class="quiet small earlier" onClick=${earlier}>Earlier rows</button>`}
            row=${(row) => html`<${Told} row=${row} find=${find} />`}
            tail=${writing.map((one) => html`<div class="row story-row writing" key=${one.effect} role="presentation"><span></span><span class="who">${plain(one.agent ?? '')}</span><span class="what"><span class="clamp">${plain(one.text)}<i class="caret" aria-hidden="true"></i></span></span><span class="note">writing</span><span></span></div>`)}
          />`}
        ${!atEnd && html`<button type="button" class="follow" onClick=${toEnd}>${fresh > 0 ? `${number(fresh)} new ↓` : 'To the end ↓'}</button>`}
        ${asked.length > 0
          ? html`<section class="questions" aria-label="Open questions">${asked.filter((one) => !branch || one.branch === branch).slice(0, 5).map((one) => html`<${Card} key=${one.id} question=${one} alone=${one.kind !== 'input'} done=${(text) => {
              told(text);
              reload();
            }} />`)}</section>`
          : null}
        <${Say} session=${session} branch=${branch} field=${composer} about=${about} done=${reload} />
      </div>
      ${chosen && html`<${Pane} key=${chosen.key} session=${session} branch=${branch} row=${chosen} before=${items.findLast((one) => one.line < chosen.line)?.line} question=${open.get(chosen.line)} close=${close} go=${go} />`}
    </div>
  `;
}

/** Gives each row a key: its line, and its place among the rows of that line. */
function numbered(rows) {
  let [line, at] = [null, 0];
  return rows.map((row) => {
    at = row.line === line ? at + 1 : 0;
    line = row.line;
    const key = `${row.line}.${at}`;
    return row.key === key ? row : { ...row, key };
  });
}

/** What the signs mean that stand in the place of an actor. */
const WHO = { '?': 'asks', '!': '' };
const SIGNS = { called: '→', came: '←', wrong: '✕', asked: '?', decided: '✓', doubt: '?', chose: '⑂', engine: '·', found: '◎', begins: '⑂' };

function Told({ row, find }) {
  const isSaid = row.tone === 'said';
  const note = [row.note, row.took ? span(row.took) : ''].filter(Boolean).join(', ');
  return html`
    <span role="gridcell" class="line num" title=${new Date(row.at).toLocaleString()}>${row.line}</span>
    <span role="gridcell" class="who">${plain(WHO[row.who] ?? row.who)}</span>
    <span role="gridcell" class="what">${isSaid ? null : html`<span class="sign" aria-hidden="true">${SIGNS[row.tone] ?? ''}</span>`}<span class=${isSaid ? 'clamp' : 'one'}>${found(row.text, find)}${row.cut ? '…' : ''}</span></span>
    <span role="gridcell" class="note">${plain(note)}</span>
    <span role="gridcell" class="when num">${clock(row.at)}</span>
  `;
}

/** Returns a text in which words that were looked for are marked. */
function found(text, words) {
  if (!words) return plain(text);
  const parts = text.split(new RegExp(`(${words.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')})`, 'iu'));
  return parts.map((part, n) => (n % 2 === 1 ? html`<mark>${plain(part)}</mark>` : plain(part)));
}

function Say({ session, branch, field, about, done }) {
  const { me } = useApp();
  const [text, set] = useState('');
  const act = useAct(() => {
    set('');
    done();
  });
  if (!me.allows.includes('write')) return null;
  const send = (event) => {
    event?.preventDefault();
    if (text.trim()) act.run(api.of(session, ['messages']), { text, branch });
  };
  const waits = act.is === 'taken' && act.receipt.fate !== 'taken' ? `It is on disk. ${act.receipt.why ?? 'The session takes it when it is driven again.'}` : null;
  return html`
    <form class="say" onSubmit=${send}>
      <textarea ref=${field} rows="1" aria-label="Say something" placeholder=${about?.status === 'waits' ? 'Say something. What is asked stays open.' : 'Say something'} value=${text} onInput=${(event) => set(event.target.value)} onKeyDown=${(event) => {
        if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) send(event);
        if (event.key === 'Escape') event.target.blur();
      }}></textarea>
      <button type="submit" class="primary" disabled=${act.is === 'sent' || !text.trim()}>${act.is === 'sent' ? 'Sent' : 'Say'}</button>
      <${Refused} act=${act} />
      ${waits ? html`<p class="says" role="status">${plain(waits)}</p>` : null}
    </form>
  `;
}
