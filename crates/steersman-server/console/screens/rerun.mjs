// A session is run again from its recording, with something changed: first what that does, then how it goes, then what came of it.

import { api, Bars, count, FactList, Head, html, link, Loaded, money, plain, Refused, Trouble, useAct, useApi, useApp, useEffect, useState } from '../kit.mjs';
import { Cost } from '../parts/cost.mjs';
import { value } from '../text/json.mjs';

const MOST = 20;
const RESULTS = {
  same: ['✓', 'good', 'the same result'],
  partial: ['◐', 'warn', 'the same result; some acts of people were not repeated'],
  differs: ['≠', 'ask', 'another result'],
  leaf: ['◇', 'warn', 'ended at an effect that cannot be simulated'],
  failed: ['✕', 'bad', 'failed, as the recorded one did not'],
};

export function Rerun({ session, query }) {
  const { me, go } = useApp();
  const line = query.at ? Number(query.at) : undefined;
  const { branch, job } = query;
  const page = useApi(api.path(['sessions', session]));
  const to = (more) => link(['s', session, 'rerun'], { at: line, branch, ...more });
  return html`
    <main id="content" class="screen" tabindex="-1">
      <header class="top"><h1><a href=${link(['s', session], { branch, at: line })}>${plain(page.data?.network ?? '')} <code>${session.slice(0, 6)}</code></a> <span class="of">/</span> ${line === undefined ? 'Run again' : `Run again from @${line}`}</h1></header>
      <div class="scroll">
        ${!me.allows.includes('time')
          ? html`<div class="empty"><h2>This token may not run sessions again</h2><p>It needs the permission <code>time</code>.</p></div>`
          : job
            ? html`<${Job} key=${job} id=${job} session=${session} branch=${branch} again=${to()} />`
            : html`<${Loaded} of=${page}>${() => html`<${Begin} session=${session} branch=${branch} line=${line} begun=${(id) => go(['s', session, 'rerun'], { at: line, branch, job: id })} />`}<//>`}
      </div>
    </main>
  `;
}

/** What was run last, to change something else of it. */
let kept = {};

function Begin({ session, branch, line, begun }) {
  const { me } = useApp();
  const known = useApi(api.path(['definitions']));
  const now = useApi(me.allows.includes('context') ? api.of(session, ['reruns', 'values']) : null);
  const present = new Map((now.data?.items ?? []).map((one) => [one.path, typeof one.value === 'string' ? one.value : JSON.stringify(one.value)]));
  const act = useAct((job) => begun(job.job));
  const [fields, set] = useState(kept.of === session ? kept.fields : { say: '', definition: '', people: 'recorded', repeat: 1, live: false, typed: '' });
  const [values, setValues] = useState(kept.of === session ? kept.values : [['', '']]);
  const field = (name) => ({ value: fields[name], onInput: (event) => set({ ...fields, [name]: event.target.value }) });
  const times = Math.max(1, Math.min(MOST, Number(fields.repeat) || 1));
  const isEmpty = values.some(([path, text]) => path.trim() && !text.trim());
  const isAllowed = !isEmpty && (!fields.live || fields.typed.trim() === session.slice(0, 6));
  const send = (event) => {
    event.preventDefault();
    const changed = values.filter(([path]) => path.trim());
    kept = { of: session, fields: { ...fields, live: false }, values };
    act.run(api.of(session, ['reruns']), {
      branch,
      at: line,
      say: fields.say || undefined,
      definition: fields.definition || undefined,
      people: fields.people,
      repeat: times,
      live: fields.live,
      set: changed.length > 0 ? Object.fromEntries(changed.map(([path, text]) => [path.trim(), value(text, text)])) : undefined,
    });
  };
  const change = (at, side, text) => {
    const next = values.map((pair, n) => (n === at ? pair.map((old, s) => (s === side ? text : old)) : pair));
    // A path that is chosen brings its present value, to be changed.
    if (side === 0 && (!next[at][1] || next[at][1] === present.get(values[at][0]))) next[at][1] = present.get(text) ?? '';
    setValues(next.at(-1)[0] ? [...next, ['', '']] : next);
  };
  return html`
    <form class="stack again" onSubmit=${send}>
      <div class="before"><${FactList} of=${[
        ['Touches', fields.live
          ? html`<b class="badly">The world.</b> Effects that are not on record happen, as in a session of its own.`
          : html`<b>Nothing.</b> Effects on record have their recorded results, others are simulated.`],
        ['May cost', html`<${Cost} session=${session} branch=${branch} line=${line} times=${times} /> What is on record costs nothing.`],
        ['Makes', html`${count(times, 'session')} of its own.`],
      ]} /></div>
      <label>Say${line === undefined ? ' at its beginning' : ` at @${line}`}, in place of the next recorded message<textarea rows="2" ...${field('say')} placeholder="as recorded"></textarea></label>
      <fieldset class="stack"><legend>Values of the definition</legend>
        ${values.map(([path, text], at) => html`<div class="pair"><input aria-label="Path" list="paths" placeholder="agents.desk.system" value=${path} onInput=${(event) => change(at, 0, event.target.value)} /><textarea rows=${text.length > 60 ? 6 : 1} aria-label="Value" placeholder="value" value=${text} onInput=${(event) => change(at, 1, event.target.value)}></textarea></div>`)}
        ${isEmpty ? html`<p class="says">A path needs a value.</p>` : null}
        <datalist id="paths">${[...present.keys()].map((path) => html`<option value=${path} />`)}</datalist>
        <p class="help">A path that is chosen brings its present value.</p>
      </fieldset>
      <div class="fields">
        <label>Definition<select value=${fields.definition} onChange=${(event) => set({ ...fields, definition: event.target.value })}><option value="">as recorded</option>${(known.data?.items ?? []).map((one) => html`<option value=${one.name}>${plain(one.name)}, as it is now</option>`)}</select></label>
        <label>Questions to people<select value=${fields.people} onChange=${(event) => set({ ...fields, people: event.target.value })}><option value="recorded">as recorded</option><option value="stop">end the run</option></select></label>
        <label>Runs<input type="number" min="1" max=${MOST} ...${field('repeat')} /></label>
      </div>
      <label class="check"><input type="checkbox" checked=${fields.live} onChange=${(event) => set({ ...fields, live: event.target.checked })} /> Live: effects that are not on record touch the world</label>
      ${fields.live && html`<label>Type <code>${session.slice(0, 6)}</code> to allow it<input ...${field('typed')} autocomplete="off" spellcheck="false" /></label>`}
      <div class="buttons"><button type="submit" class=${fields.live ? 'bad' : 'primary'} disabled=${act.is === 'sent' || !isAllowed}>Run it ${times === 1 ? 'once' : `${times} times`}${fields.live ? ', live' : ''}</button></div>
      <${Refused} act=${act} />
    </form>
  `;
}

/** Milliseconds between two looks at a job. */
const LOOK = 300;

function Job({ id, session, branch, again }) {
  const { told } = useApp();
  const job = useApi(api.path(['jobs', id]));
  const data = job.data;
  useEffect(() => {
    if (data?.state !== 'running') return undefined;
    const timer = setTimeout(job.reload, LOOK);
    return () => clearTimeout(timer);
  }, [data]);
  if (job.problem && !data) return html`<${Trouble} problem=${job.problem} again=${job.reload} />`;
  if (!data) return html`<${Bars} />`;
  if (data.state === 'lost') return html`<div class="empty"><h2>The process that ran this is gone</h2><p>The sessions that it made stay: <a href=${link([], { where: `rerun_of = ${session.slice(0, 6)}*` })}>look for them</a>, or <a href=${again}>run it again</a>.</p></div>`;
  const sums = new Map();
  for (const run of data.runs) sums.set(run.result, (sums.get(run.result) ?? 0) + 1);
  const a = branch ? `${session}:${branch}` : session;
  const stop = () => api.remove(api.path(['jobs', id])).then(() => told('It stops after its next line.'), (problem) => told(problem.message));
  return html`
    <div class="strip" role="status">
      <b>${{ running: `Run ${data.done + 1} of ${data.of}`, done: count(data.done, 'run'), stopped: `Stopped after ${count(data.done, 'run')}`, failed: `Ended after ${count(data.done, 'run')}` }[data.state]}</b>
      ${data.state === 'running' && html`<progress max=${data.of} value=${data.done} aria-label="Runs that are done"></progress><button type="button" class="small" onClick=${stop}>Stop</button>`}
      ${data.changed && html`<span>with another <code>${plain(data.changed.join(', '))}</code></span>`}
      <ul class="sums">${[...sums].map(([result, n]) => html`<li><b>${n}</b> ${RESULTS[result]?.[2] ?? result}</li>`)}</ul>
      <span class="grow"></span><a href=${again}>Change something else</a>
    </div>
    ${data.error && html`<${Trouble} problem=${data.error} />`}
    ${job.problem && html`<${Trouble} problem=${job.problem} again=${job.reload} />`}
    ${data.runs.length > 0 ? html`
      <table class="grid stacks runs">
        <${Head} of=${['Session', 'Result', 'Came to', '#Models asked', '#Cost', '-Differences']} />
        <tbody>${data.runs.map((run) => {
          const [sign, tone, words] = RESULTS[run.result] ?? ['·', 'quiet', run.result];
          return html`<tr>
            <th scope="row"><a href=${link(['s', run.session])}><code>${run.session.slice(0, 6)}</code></a></th>
            <td><span class=${`status ${tone}`} title=${words}><span class="sign" aria-hidden="true">${sign}</span>${run.result}</span></td>
            <td class="main">${came(run)}${run.diverged && html`<p class="help">left the recording at <a href=${link(['s', session], { branch, at: run.diverged.line })}>@${run.diverged.line}</a>: ${plain(run.diverged.why)}</p>`}${run.leaf && html`<p class="help">ended at ${plain(run.leaf)}</p>`}${run.not_repeated.map((act) => html`<p class="help">not repeated: ${plain(act)}</p>`)}</td>
            <td class="num" data-label="models asked">${run.model_calls.live} <span class="help">of ${run.model_calls.live + run.model_calls.recorded}</span></td>
            <td class="num" data-label="cost">${money(run.cost)}</td>
            <td class="acts"><a class="button small" href=${link(['diff'], { a, b: run.session })}>Differences</a></td>
          </tr>`;
        })}</tbody>
      </table>` : html`<${Bars} count=${3} />`}
  `;
}

/** Returns what a run came to: its outcome if there is one, otherwise its answer. */
function came(run) {
  const { outcome, answer, named } = run.diff;
  if (named) return Object.entries(outcome.b ?? {}).map(([name, value]) => html`<span class="label">${plain(name)} <b>${plain(JSON.stringify(value))}</b></span> `);
  return answer.b ? plain(answer.b.slice(0, 240)) : run.status;
}
