// How two sessions or branches differ: what they came to, where they went apart, and what they did.

import { api, call, Change, count, Empty, html, link, Loaded, money, number, plain, Shown, useApi, useApp, useRef } from '../kit.mjs';
import { rows } from '../text/diff.mjs';
import { value } from '../text/json.mjs';
import { Maps } from './map.mjs';

/** Reads a side of the address: `SESSION` or `SESSION:BRANCH`. */
function side(text) {
  const [session, branch] = (text ?? '').split(/:(.*)/s);
  return { session, branch: branch || undefined };
}

export function Diff({ query }) {
  const { go } = useApp();
  const fields = { a: useRef(null), b: useRef(null) };
  const isAsked = query.a && query.b;
  const found = useApi(isAsked ? api.path(['diff'], { a: query.a, b: query.b }) : null);
  const compare = (event) => {
    event.preventDefault();
    go(['diff'], { a: fields.a.current.value.trim(), b: fields.b.current.value.trim() });
  };
  return html`
    <main id="content" class="screen" tabindex="-1">
      <header class="top"><h1>Differences</h1>
        <form class="sides" key=${`${query.a} ${query.b}`} onSubmit=${compare}>
          <label><b>A</b><input ref=${fields.a} defaultValue=${query.a ?? ''} aria-label="A: a session, or SESSION:BRANCH" placeholder="SESSION:BRANCH" required spellcheck="false" /></label>
          <label><b>B</b><input ref=${fields.b} defaultValue=${query.b ?? ''} aria-label="B: a session, or SESSION:BRANCH" placeholder="SESSION:BRANCH" required spellcheck="false" /></label>
          <button type="submit">Compare</button>
        </form>
      </header>
      <div class="scroll">${isAsked
        ? html`<${Loaded} of=${found}>${(data) => html`<${Found} data=${data} query=${query} />`}<//>`
        : html`<${Empty} title="Two sessions, or two branches"><p>Name them above, select two sessions in <a href="#/">the list</a>, or choose <i>Compare</i> at a branch.</p><//>`}
      </div>
    </main>
  `;
}

function Found({ data, query }) {
  const sides = { a: side(query.a), b: side(query.b) };
  const { a, b } = sides;
  const at = (of, line) => link(['s', of.session], { branch: of.branch, at: line });
  const verdict = data.empty ? ['good', '✓', 'The same result, by the same way.'] : data.differs ? ['ask', '≠', 'They came to different results.'] : ['warn', '≈', 'The same result, by another way.'];
  const outcome = Object.keys({ ...data.outcome.a, ...data.outcome.b });
  const figures = [
    ['ended', data.ended.a, data.ended.b],
    ['model calls', number(data.model_calls.a), number(data.model_calls.b)],
    ['tokens', number(data.tokens.a), number(data.tokens.b)],
    ['cost', money(data.micros.a / 1e6), money(data.micros.b / 1e6)],
    ...outcome.map((name) => [html`outcome <code>${plain(name)}</code>`, shown(data.outcome.a?.[name]), shown(data.outcome.b?.[name])]),
  ];
  const tools = rows(data.tools.a.map(deed), data.tools.b.map(deed));
  const path = rows(data.path.a, data.path.b);
  const { me } = useApp();
  const values = [a, b].map(({ session }) => useApi(me.allows.includes('context') ? api.of(session, ['reruns', 'values']) : null).data?.items);
  const changed = values.every(Boolean) ? differing(...values) : [];
  const apart = ['a', 'b'].map((name) => Math.min(...data.first.map((one) => one.lines[name] ?? Infinity)));
  const heard = rows(data.answers.a, data.answers.b).filter((row) => !row.same);
  const head = html`<tr><th scope="col"><span class="hidden">What</span></th><th scope="col">A <a href=${at(a)}><code>${sideName(a)}</code></a></th><th scope="col">B <a href=${at(b)}><code>${sideName(b)}</code></a></th></tr>`;
  return html`
    <p class="verdict"><span class=${`status ${verdict[0]}`}><span class="sign" aria-hidden="true">${verdict[1]}</span>${verdict[2]}</span></p>
    <table class="grid diff">
      <thead>${head}</thead>
      <tbody>${figures.map(([name, one, other]) => html`<tr class=${one === other ? '' : 'differs'}><th scope="row">${name}</th><td>${one}</td><td>${other}</td></tr>`)}</tbody>
    </table>
    ${changed.map(([path, was, is]) => html`<h3>Changed: <code>${plain(path)}</code></h3><${Change} from=${was} to=${is} />`)}
    <h3>Maps, A above B</h3><${Maps} sides=${[a, b]} at=${apart.map((line) => (line < Infinity ? line : null))} />
    ${data.first.length > 0 && html`<h3>Where they went apart</h3><table class="grid diff">
      <thead>${head}</thead>
      <tbody>${data.first.map((one) => html`<tr><th scope="row">${plain(one.agent)}<br /><span class="help">${one.after === 0 ? 'from the beginning' : `after ${count(one.after, 'equal entry', 'equal entries')}`}</span></th>${['a', 'b'].map((name) => html`<td>${one.lines[name] === null ? null : html`<a href=${at(sides[name], one.lines[name])}>@${one.lines[name]}</a> `}${one[name] === null ? html`<em>ends here</em>` : html`<span class="said">${plain(one[name])}</span>`}</td>`)}</tr>`)}</tbody></table>`}
    ${heard.map((row) => html`<h3>${row.a === undefined ? 'Heard only in B' : row.b === undefined ? 'Heard only in A' : 'Another answer'}</h3><${Change} from=${row.a ?? ''} to=${row.b ?? ''} />`)}
    ${tools.length > 0 && html`<h3>Calls of tools</h3><${Sides} rows=${tools} head=${head} nth />`}
    ${path.length > 0 && html`<h3>Path</h3><${Sides} rows=${path} head=${head} />`}
    ${Object.keys(data.state).length > 0 && html`<h3>State</h3><table class="grid diff">
      <thead>${head}</thead>
      <tbody>${Object.entries(data.state).map(([name, both]) => html`<tr class="differs"><th scope="row"><code>${plain(name)}</code></th>${[both.a, both.b].map((one) => html`<td><${Shown} value=${one ?? undefined} /></td>`)}</tr>`)}</tbody></table>`}
  `;
}

/** Returns the values of the definitions that differ: the path, and the value of each side. */
function differing(a, b) {
  const all = new Map(a.map((one) => [one.path, [shown(one.value), '']]));
  for (const one of b) all.set(one.path, [all.get(one.path)?.[0] ?? '', shown(one.value)]);
  return [...all].filter(([, [was, is]]) => was !== is).map(([path, both]) => [path, ...both]);
}

function Sides({ rows: all, head, nth }) {
  return html`<table class="grid diff"><thead>${head}</thead><tbody>${all.map((row, at) => html`<tr class=${row.same ? '' : 'differs'}><th scope="row">${nth ? at + 1 : ''}</th><td>${row.a === undefined ? '–' : html`<code>${plain(row.a)}</code>`}</td><td>${row.b === undefined ? '–' : row.same ? html`<span class="help">the same</span>` : html`<code>${plain(row.b)}</code>`}</td></tr>`)}</tbody></table>`;
}

function sideName({ session, branch }) {
  return `${session.slice(0, 6)}${branch ? `:${plain(branch)}` : ''}`;
}

function deed({ agent, tool, args, how }) {
  return `${agent}: ${call(tool, value(args, args))} ${how}`;
}

function shown(value) {
  return value === undefined || value === null ? '–' : plain(typeof value === 'string' ? value : JSON.stringify(value));
}
