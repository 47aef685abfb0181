// Texts of models, tools and people. They become text nodes, and nothing else.

import { html, useMemo, useState } from '../ui.mjs';
import { plain } from '../words.mjs';
import { words } from '../text/diff.mjs';
import * as json from '../text/json.mjs';
import { blocks, inline } from '../text/markdown.mjs';

/** The most characters that are shown at first. */
const MOST = 20_000;

/** A text as people wrote it: JSON in colours, everything else as Markdown. */
export function Text({ text, as = 'markdown' }) {
  const [whole, show] = useState(false);
  const shown = whole ? text : text.slice(0, MOST);
  const value = useMemo(() => json.read(text), [text]);
  const more = text.length > shown.length
    ? html`<button type="button" class="quiet" onClick=${() => show(true)}>Show all ${text.length.toLocaleString()} characters</button>`
    : null;
  if (value !== undefined && !more) return html`<${Value} value=${value} />`;
  if (as === 'plain' || value !== undefined) return html`<div><pre class="text">${plain(shown)}</pre>${more}</div>`;
  return html`<div class="markdown">${blocks(shown).map((one) => html`<${Block} of=${one} />`)}${more}</div>`;
}

export function Value({ value }) {
  const pieces = useMemo(() => json.pieces(value), [value]);
  if (pieces.length > json.MOST) return html`<pre class="text">${plain(JSON.stringify(value, null, 2))}</pre>`;
  return html`<pre class="json">${pieces.map(([kind, text]) => (kind === 'mark' ? text : html`<span class=${kind}>${plain(text)}</span>`))}</pre>`;
}

/** A value of a state or of an argument: a text as it is, otherwise JSON. */
export function Shown({ value }) {
  if (value === undefined) return html`<em>unset</em>`;
  return typeof value === 'string' ? html`<${Text} text=${value} as="plain" />` : html`<${Value} value=${value} />`;
}

/** What changed from one text to another, word by word. */
export function Change({ from, to }) {
  const pieces = useMemo(() => words(from, to), [from, to]);
  return html`<pre class="text">${pieces.map(({ is, text }) => (is === 'same' ? plain(text) : is === 'gone' ? html`<del>${plain(text)}</del>` : html`<ins>${plain(text)}</ins>`))}</pre>`;
}

export function Line({ text }) {
  return html`<${Inline} of=${inline(text)} />`;
}

function Block({ of }) {
  switch (of.block) {
    case 'heading':
      return html`<p class=${of.level === 1 ? 'heading h1' : 'heading'}><${Inline} of=${of.inline} /></p>`;
    case 'code':
      return html`<pre class="text">${plain(of.text)}</pre>`;
    case 'quote':
      return html`<blockquote><${Inline} of=${of.inline} /></blockquote>`;
    case 'list':
      return html`<div class="list">${of.items.map(
        (item) => html`<div class="item" style=${{ '--depth': item.depth }}><span class="mark" aria-hidden="true">${/\d/.test(item.mark) ? item.mark : '•'}</span><span><${Inline} of=${item.inline} /></span></div>`,
      )}</div>`;
    default:
      return html`<p><${Inline} of=${of.inline} /></p>`;
  }
}

function Inline({ of }) {
  return of.map((piece) => {
    const text = plain(piece.text);
    switch (piece.is) {
      case 'code':
        return html`<code>${text}</code>`;
      case 'strong':
        return html`<strong>${text}</strong>`;
      case 'soft':
        return html`<em>${text}</em>`;
      case 'link':
        return html`<a href=${piece.to} target="_blank" rel="noopener noreferrer" title=${piece.to}>${text} <small>(${plain(piece.to)})</small></a>`;
      default:
        return text;
    }
  });
}
