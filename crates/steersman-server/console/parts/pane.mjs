// The pane beside the story: one row in full, why it happened, what its line holds, and what can be done from there.

import { api, Copy, Dialog, html, link, Loaded, plain, Refused, span, Text, useAct, useApi, useApp, useEffect, useKeys, useRef, useState } from '../kit.mjs';
import { Cost } from './cost.mjs';

export function Pane({ session, branch, row, before, close, go }) {
  const { me } = useApp();
  const side = useRef(null);
  const { line } = row;
  const whole = useApi(row.cut ? api.of(session, ['story'], { branch, from: line, to: line }) : null);
  // What the engine notes is no act of an agent.
  const isAct = row.tone !== 'engine' && row.tone !== 'begins';
  const why = useApi(isAct ? api.of(session, ['why', line], { branch }) : null);
  const [raw, showRaw] = useState(false);
  const [dialog, setDialog] = useState(null);
  const text = row.cut ? whole.data?.items.find((one) => one.text.startsWith(row.text))?.text : row.text;
  const [head, value] = result(row, text ?? '');
  const at = `${session.slice(0, 6)}@${line}`;
  // What a model answered is asked again from the line before it.
  const isAnswer = before && ['said', 'called'].includes(row.tone) && row.who && row.who !== 'you';
  const rerun = link(['s', session, 'rerun'], { at: isAnswer ? before : line, branch });
  const may = me.allows.includes('time');
  useEffect(() => {
    side.current.scrollTop = 0;
  }, []);
  useKeys({
    f: () => may && setDialog('fork'),
    z: () => may && setDialog('rewind'),
    r: () => may && (location.hash = rerun),
  });
  return html`
    <aside class="pane" ref=${side} aria-label="Details">
      <header><h2><code>@${line}</code> ${plain(row.who === '?' ? 'question' : (row.who === '!' ? '' : row.who) || (head ?? ''))}</h2><button type="button" class="quiet close" aria-label="Close" onClick=${close}>✕</button></header>
      <p class="meta">${[row.note, row.took ? `model ${span(row.took)}` : '', row.branch === 'main' ? '' : `branch ${row.branch}`, new Date(row.at).toLocaleString()].filter(Boolean).map((one) => html`<span>${plain(one)}</span>`)}</p>
      ${row.cut && !whole.data ? html`<${Loaded} of=${whole}>${() => null}<//>` : html`<${Text} text=${value} as=${row.tone === 'said' || row.tone === 'asked' ? 'markdown' : 'plain'} />`}
      <div class="buttons">
        ${me.allows.includes('context') && html`<a class="button small" href=${link(['s', session, 'contexts'], { branch, at: line })}>What the model saw</a>`}
        ${may && html`<button type="button" class="small" onClick=${() => setDialog('fork')}>Fork here…</button><a class="button small" href=${rerun}>${isAnswer ? 'Ask again…' : 'Rerun from here…'}</a><button type="button" class="small" onClick=${() => setDialog('rewind')}>Rewind…</button>`}
        <button type="button" class="small" aria-expanded=${raw} onClick=${() => showRaw(!raw)}>Log line</button>
        <${Copy} text=${`steersman why ${at}`} label="Copy command" />
      </div>
      ${raw && html`<${Raw} session=${session} line=${line} />`}
      <h3>Why</h3>
      ${!isAct || why.problem?.code === 'line' || why.problem?.code === 'effect'
        ? html`<p class="help">No agent acted in this line.</p>`
        : html`<${Loaded} of=${why}>${(data) => html`<ol class="chain">${data.steps.map((step) => html`
            <li><span class="line">@${step.line}</span><div><p><b>${plain(step.who)}</b> ${plain(step.text)}</p>${step.facts.length > 0 && html`<dl>${step.facts.map((fact) => html`<div><dt>${plain(fact.word)}</dt><dd>${plain(fact.text)}</dd></div>`)}</dl>`}</div></li>`)}</ol>`}<//>`}
      ${dialog ? html`<${Leave} how=${dialog} session=${session} branch=${branch} line=${line} go=${go} close=${() => setDialog(null)} />` : null}
    </aside>
  `;
}

/** Splits the text of a result: the call's name, and what it answered. */
function result(row, text) {
  const [, name, rest] = /^([\w.-]+) = ([\s\S]*)$/.exec(text) ?? [];
  return (row.tone === 'came' || row.tone === 'wrong' || row.tone === 'doubt') && name ? [name, rest] : [null, text];
}

function Raw({ session, line }) {
  const one = useApi(api.of(session, ['lines', line]));
  return html`<${Loaded} of=${one}>${(data) => html`<pre class="text raw">${plain([data.head, ...data.rows.map((row) => `  ${row}`)].join('\n'))}</pre>`}<//>`;
}

/** The dialogs that leave the path of the session: a fork tries something beside it, a rewind goes back. */
function Leave({ how, session, branch, line, go, close }) {
  const isFork = how === 'fork';
  const { told } = useApp();
  const act = useAct((opened) => {
    told(isFork ? `The branch ${opened.label ?? opened.branch} begins at @${line}.` : `It went back to @${line}.`);
    close();
    go(['s', session], { branch: isFork ? opened.branch : undefined });
  });
  const [say, setSay] = useState('');
  const [label, setLabel] = useState('');
  const [live, setLive] = useState(false);
  const send = (event) => {
    event.preventDefault();
    const more = { say: say || undefined, label: label || undefined };
    if (isFork) act.run(api.of(session, ['branches']), { at: line, from: branch, live, ...more });
    else act.run(api.of(session, ['rewind']), { at: line, branch, ...more });
  };
  return html`
    <${Dialog} title=${isFork ? `Fork at @${line}` : `Go back to @${line}`} close=${close}>
      <form class="stack" onSubmit=${send}>
        <p>${isFork
          ? live
            ? 'A branch begins here. Its calls touch the world, as those of the session do.'
            : 'A branch begins here, beside the session. Calls that touch the world are simulated.'
          : 'The session goes on from this line. What came after it stays readable, and effects that have happened are not undone: they are listed on the new branch.'}</p>
        <p class="help"><${Cost} session=${session} branch=${branch} line=${line} /></p>
        <label>Say there, if you want<textarea rows="3" autofocus value=${say} onInput=${(event) => setSay(event.target.value)}></textarea></label>
        <label>Label<input value=${label} onInput=${(event) => setLabel(event.target.value)} /></label>
        ${isFork && html`<label class="check"><input type="checkbox" checked=${live} onChange=${(event) => setLive(event.target.checked)} /> Live: its calls touch the world</label>`}
        <div class="buttons"><button type="submit" class=${isFork && !live ? 'primary' : 'bad'} disabled=${act.is === 'sent' || act.is === 'taken'}>${isFork ? (live ? 'Fork live' : 'Fork dry') : `Go back to @${line}`}</button></div>
        <${Refused} act=${act} />
      </form>
    <//>
  `;
}

