// A question to a person: what is asked, what each answer does, and the controls that answer it.

import { api, call, html, plain, Refused, rolesFor, Shown, useAct, useApp, useEffect, useRef, useState } from '../kit.mjs';
import { value } from '../text/json.mjs';

/** What ends the waits that nobody answers. */
const ENDS = {
  event: 'An event from outside is awaited.',
  timer: 'A time is awaited.',
  again: 'A failed attempt is repeated at a time.',
  hold: 'A person holds the tool.',
  outage: 'The place of a model does not answer. The session goes on by itself.',
};

export function kindWord(kind) {
  return { input: 'secret', repeat: 'repetition', timer: 'time', again: 'retry' }[kind] ?? kind;
}

/** The controls of what a person ends. */
const PARTS = { approval: Approval, budget: Approval, repeat: Approval, question: Reply, input: Secret, doubt: Doubt };

export function isDecided(question) {
  return question.kind in PARTS;
}

/** The controls of a question. `done` is called with a sentence once an answer is on disk. */
export function Answer({ question, done, focus }) {
  const { me } = useApp();
  const roles = rolesFor(me, question);
  const [role, setRole] = useState(roles[0]);
  const first = useRef(null);
  useEffect(() => {
    if (focus) first.current?.querySelector('button, input, textarea')?.focus();
  }, [focus]);
  const part = PARTS[question.kind];
  if (!part) return html`<p class="help">${ENDS[question.kind] ?? 'It ends by itself.'}</p>`;
  if (roles.length === 0) {
    return html`<p class="help">${`For ${question.for.join(', ')}. This token acts as ${me.roles.join(', ') || 'user'}.`}</p>`;
  }
  if (!me.allows.includes('decide')) {
    return html`<p class="help">Answering needs the permission <code>decide</code>, which this token does not have.</p>`;
  }
  return html`
    <div class="answer" ref=${first}>
      ${roles.length > 1 && html`<label class="as">decide as <select value=${role} onChange=${(event) => setRole(event.target.value)}>${roles.map((one) => html`<option>${one}</option>`)}</select></label>`}
      <${part} question=${question} role=${role} done=${done} />
    </div>
  `;
}

function useAnswer(question, done) {
  const act = useAct();
  const send = async (how, body, told) => {
    const receipt = await act.run(api.of(question.session, ['questions', question.id, how]), body);
    if (!receipt) return false;
    done?.(receipt.fate === 'taken' ? told : `${told} The session takes it when it is driven again.`);
    return true;
  };
  return { ...act, send, busy: act.is === 'sent' };
}

function Approval({ question, role, done }) {
  const act = useAnswer(question, done);
  const [args, setArgs] = useState(() => Object.fromEntries(question.edit.map((name) => [name, JSON.stringify(question.args?.[name])])));
  const [reason, setReason] = useState(null);
  const changed = changes(question, args);
  const words = {
    approval: [`Approve ${call(question.tool ?? 'it', null).replace('()', '')}`, `It runs once, with exactly ${changed ? 'the changed' : 'these'} arguments.`],
    budget: ['Allow the cost', 'The call begins, and may cost more than is left.'],
    repeat: ['Let it run again', 'The call runs, although an equal one was done or given up before.'],
  }[question.kind];
  const isWrong = changed === undefined;
  if (reason !== null) {
    return html`
      <form class="stack" onSubmit=${async (event) => {
        event.preventDefault();
        await act.send('reject', { as: role, reason: reason || undefined }, 'Rejected.');
      }}>
        <label>Reason, which the model reads<input value=${reason} autofocus onInput=${(event) => setReason(event.target.value)} /></label>
        <div class="buttons">
          <button class="bad" type="submit" disabled=${act.busy}>Reject${question.tool ? ` ${question.tool}` : ''}</button>
          <button class="quiet" type="button" onClick=${() => setReason(null)}>Back</button>
        </div>
        <${Refused} act=${act} />
      </form>
    `;
  }
  return html`
    <form class="stack" onSubmit=${async (event) => {
      event.preventDefault();
      if (isWrong) return;
      const body = changed ? { as: role, args: { ...question.args, ...changed } } : { as: role };
      await act.send('approve', body, changed ? `Approved with ${told(changed)} in place of ${told(Object.fromEntries(Object.keys(changed).map((name) => [name, question.args?.[name]])))}.` : 'Approved.');
    }}>
      ${question.edit.length > 0
        ? html`<div class="fields">${question.edit.map((name) => html`<label>${plain(name)}<input value=${args[name]} onInput=${(event) => setArgs({ ...args, [name]: event.target.value })} aria-invalid=${value(args[name]) === undefined} /></label>`)}</div>`
        : null}
      <div class="buttons">
        <button class="primary" type="submit" disabled=${act.busy || isWrong}>${changed && question.kind === 'approval' ? `Approve changed ${question.tool}` : words[0]}</button>
        <button type="button" disabled=${act.busy} onClick=${() => setReason('')}>Reject…</button>
        <span class="says">${isWrong ? 'A changed argument is not JSON: put texts into quotation marks.' : changed ? `${words[1]} ${told(changed)}, not as it is asked above.` : words[1]}</span>
      </div>
      <${Refused} act=${act} />
    </form>
  `;
}

/** Returns arguments in words: `cents: 2500`. */
function told(args) {
  return Object.entries(args).map(([name, item]) => `${name}: ${JSON.stringify(item)}`).join(', ');
}

/** Returns the arguments that differ from those of the call, null if none does, undefined if one cannot be read. */
function changes(question, args) {
  const changed = {};
  for (const [name, text] of Object.entries(args)) {
    const now = value(text);
    if (now === undefined) return undefined;
    if (JSON.stringify(now) !== JSON.stringify(question.args?.[name])) changed[name] = now;
  }
  return Object.keys(changed).length > 0 ? changed : null;
}

function Reply({ question, role, done }) {
  const act = useAnswer(question, done);
  const [text, set] = useState('');
  const own = (event) => {
    event.preventDefault();
    if (text) act.send('answer', { as: role, text }, 'Answered.');
  };
  return html`
    <form class="stack" onSubmit=${own}>
      ${question.options.length > 0
        ? html`<div class="buttons">${question.options.map((option) => html`<button class="primary" type="button" disabled=${act.busy} onClick=${() => act.send('answer', { as: role, option }, `Answered: ${option}.`)}>${plain(option)}</button>`)}</div>`
        : null}
      <div class="pair">
        <input value=${text} aria-label="Your answer" placeholder=${question.options.length > 0 ? 'or something else' : 'Your answer'} onInput=${(event) => set(event.target.value)} />
        <button type="submit" disabled=${act.busy || !text}>Answer</button>
      </div>
      <${Refused} act=${act} />
    </form>
  `;
}

function Secret({ question, role, done }) {
  const act = useAnswer(question, done);
  const field = useRef(null);
  const enter = async (event) => {
    event.preventDefault();
    const text = field.current.value;
    field.current.value = '';
    if (text) await act.send('answer', { as: role, text }, 'Sealed.');
  };
  return html`
    <form class="stack" onSubmit=${enter} autocomplete="off">
      <div class="pair">
        <input type="password" ref=${field} autocomplete="off" spellcheck="false" aria-label=${plain(question.text)} />
        <button class="primary" type="submit" disabled=${act.busy}>Seal and send</button>
      </div>
      <p class="says">It is sealed before it is stored. No model sees it, and this page forgets it.</p>
      <${Refused} act=${act} />
    </form>
  `;
}

function Doubt({ question, role, done }) {
  const act = useAnswer(question, done);
  const [how, set] = useState(null);
  const [text, setText] = useState('');
  const tool = question.tool ?? 'it';
  const ways = {
    done: ['It happened', `The session goes on as if ${tool} had returned this result. It does not run again.`, `Say that ${tool} happened`],
    not_performed: ['It did not: run it again', `${call(tool, question.args ?? {})} runs again, and touches the world.`, `Run ${tool} again`],
    fail: ['Give up', `The call ends as failed: the model reads that nobody knows. Nothing runs.`, 'End the call as failed'],
  };
  if (!how) {
    return html`<div class="buttons">${Object.entries(ways).map(([key, [name]]) => html`<button type="button" onClick=${() => set(key)}>${name}…</button>`)}</div>`;
  }
  const [, says, button] = ways[how];
  // A text without quotation marks is a text.
  const result = value(text, text);
  const isWrong = how === 'done' && question.needs.some((name) => result?.[name] === undefined);
  return html`
    <form class="stack" onSubmit=${(event) => {
      event.preventDefault();
      if (!isWrong) act.send('resolve', { as: role, how, result: how === 'done' ? result : undefined }, 'Resolved.');
    }}>
      <p class="says">${says}</p>
      ${how === 'done'
        ? html`<label>Result, as the tool would have returned it<input value=${text} placeholder=${question.needs.length > 0 ? `{ ${question.needs.map((name) => `"${name}": …`).join(', ')} }` : 'a text, or JSON'} aria-invalid=${isWrong} onInput=${(event) => setText(event.target.value)} /></label>${isWrong ? html`<p class="says">It is an object with ${question.needs.join(', ')}.</p>` : null}`
        : null}
      <div class="buttons">
        <button class=${how === 'not_performed' ? 'bad' : 'primary'} type="submit" disabled=${act.busy || isWrong}>${button}</button>
        <button class="quiet" type="button" onClick=${() => set(null)}>Back</button>
      </div>
      <${Refused} act=${act} />
    </form>
  `;
}

/** What a question shows besides its text. */
export function Facts({ question }) {
  const args = question.args && typeof question.args === 'object' && Object.keys(question.args).length > 0 ? question.args : null;
  return html`
    <div class="facts">
      ${question.tool && html`<p class="call"><code>${plain(question.tool)}</code></p>`}
      ${args
        ? html`<dl class="args">${Object.entries(args).map(([name, item]) => html`<div><dt>${plain(name)}</dt><dd><${Shown} value=${item} /></dd></div>`)}</dl>`
        : null}
      ${question.because && html`<p class="because">because <code>${plain(question.because)}</code></p>`}
      ${question.repeats ? html`<p class="because">an equal effect was done before: <code>${question.repeats}</code></p>` : null}
      ${question.next ? html`<p class="because">then ${question.next} is asked</p>` : null}
      ${question.left ? html`<p class="because">no branch waits for it any more</p>` : null}
      ${question.probe?.said ? html`<p class="because">the probe said: ${plain(question.probe.said)}</p>` : null}
    </div>
  `;
}
