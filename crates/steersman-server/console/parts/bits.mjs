// Small parts that all screens use.

import { Fragment, html, useEffect, useRef, useState } from '../ui.mjs';
import * as words from '../words.mjs';
import { Line } from './text.mjs';

/** The state of a session: a sign and a word, so that no meaning is in the colour alone. */
export function Status({ of, note }) {
  const { word, tone, sign } = words.status(of);
  return html`<span class=${`status ${tone}`}><span class="sign" aria-hidden="true">${sign}</span>${word}${note && html`<span class="note"> ${note}</span>`}</span>`;
}

/** A time: how long ago, with the exact time as its title. `said` makes it a part of a sentence. */
export function Ago({ at, said }) {
  const now = useNow();
  return html`<time datetime=${at} title=${new Date(at).toLocaleString()}>${(said ? words.since : words.ago)(at, now)}</time>`;
}

export function Due({ at }) {
  const now = useNow();
  if (!at) return null;
  const isSoon = Date.parse(at) - now < 600_000;
  return html`<time class=${isSoon ? 'due soon' : 'due'} datetime=${at} title=${`ends by itself at ${new Date(at).toLocaleString()}`}>${words.due(at, now)}</time>`;
}

let ticking = null;
const tickers = new Set();

/** The time, as of the last few seconds. */
export function useNow() {
  const [now, set] = useState(Date.now());
  useEffect(() => {
    tickers.add(set);
    ticking ??= setInterval(() => tickers.forEach((tick) => tick(Date.now())), 5000);
    return () => tickers.delete(set);
  }, []);
  return now;
}

/** The reason why something could not be shown, at the place that failed. */
export function Trouble({ problem, again }) {
  return html`
    <div class="trouble" role="alert">
      <strong>${problem.title ?? 'Something went wrong'}</strong>
      <p><${Line} text=${problem.detail ?? problem.message} /></p>
      ${problem.help && html`<p class="help"><${Line} text=${problem.help} /></p>`}
      ${again ? html`<button type="button" onClick=${again}>Try again</button>` : null}
    </div>
  `;
}

export function Refused({ act }) {
  return act.is === 'refused' ? html`<${Trouble} problem=${act.problem} />` : null;
}

/** The head of a table. A name behind `#` is of numbers, one behind `-` is read and not seen. */
export function Head({ of }) {
  const cell = (name) => (name[0] === '#' ? html`<th scope="col" class="num">${name.slice(1)}</th>` : html`<th scope="col">${name[0] === '-' ? html`<span class="hidden">${name.slice(1)}</span>` : name}</th>`);
  return html`<thead><tr>${of.map(cell)}</tr></thead>`;
}

/** The most rows of a table that are there before somebody asks for others. */
const FEW = 60;

/** Returns the first rows of a table, and a button that brings others; with `last` the last rows. */
export function useFew(rows, last) {
  const [most, set] = useState(FEW);
  const more = rows.length > most && html`<button type="button" class="quiet small" onClick=${() => set(most * 4)}>${rows.length - most} more</button>`;
  return [last ? rows.slice(-most) : rows.slice(0, most), more];
}

/** Facts with their names. One without a value is left out. */
export function FactList({ of }) {
  return html`<dl class="facts-list">${of.filter(([, value]) => value).map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** A field for words to look for. `go` gets them, and an empty text once the field is emptied. */
export function Search({ name, hint, value = '', field, go, is = 'filter' }) {
  const enter = (event) => {
    event.preventDefault();
    go(field.current.value.trim());
  };
  return html`<form class=${is} role="search" onSubmit=${enter}><input ref=${field} type="search" key=${value} defaultValue=${value} aria-label=${name} placeholder=${hint} onChange=${(event) => event.target.value === '' && value && go('')} /></form>`;
}

/** A screen without content: what would be here, and what makes it. */
export function Empty({ title, children }) {
  return html`<div class="empty"><h2>${title}</h2>${children}</div>`;
}

export function Command({ text }) {
  return html`<div class="command"><code>${text}</code><${Copy} text=${text} label="Copy" /></div>`;
}

export function Copy({ text, label, of }) {
  const [done, set] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    set(true);
    setTimeout(() => set(false), 1500);
  };
  return html`<button type="button" class="quiet small" onClick=${copy} aria-label=${`${label}: ${of ?? text.slice(0, 60)}`}>${done ? 'Copied' : label}</button>`;
}

/** Grey bars while nothing is there yet. They come late, so that what is fast does not flicker. */
export function Bars({ count = 6 }) {
  const [late, set] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => set(true), 150);
    return () => clearTimeout(timer);
  }, []);
  if (!late) return html`<div class="bars" aria-busy="true"></div>`;
  return html`<div class="bars" aria-busy="true" role="status"><span class="hidden">Loading</span>${Array.from({ length: count }, () => html`<i></i>`)}</div>`;
}

/** What a screen shows of a request: content, a problem, or grey bars. */
export function Loaded({ of, children }) {
  if (of.problem && !of.data) return html`<${Trouble} problem=${of.problem} again=${of.reload} />`;
  if (!of.data) return html`<${Bars} />`;
  return html`<${Fragment}>${of.problem && html`<${Trouble} problem=${of.problem} again=${of.reload} />`}${children(of.data)}<//>`;
}

/** A dialog over the page. Escape closes it, and the focus returns to where it was. */
export function Dialog({ title, close, children, wide }) {
  const dialog = useRef(null);
  useEffect(() => {
    const before = document.activeElement;
    dialog.current.showModal();
    return () => before instanceof HTMLElement && before.isConnected && before.focus();
  }, []);
  return html`
    <dialog ref=${dialog} class=${wide ? 'wide' : ''} aria-label=${title} onClose=${close} onClick=${(event) => event.target === dialog.current && dialog.current.close()}>
      <header><h2>${title}</h2><button type="button" class="quiet close" aria-label="Close" onClick=${() => dialog.current.close()}>✕</button></header>
      <div class="inside">${children}</div>
    </dialog>
  `;
}
