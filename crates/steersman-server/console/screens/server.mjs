// The server itself: whether it works, this token, and for administrators the tokens and webhooks of the tenant.

import { Ago, api, Copy, count, Dialog, FactList, Head, html, Loaded, plain, Refused, Trouble, turned, useAct, useApi, useApp, useState } from '../kit.mjs';
import { Confirm } from '../parts/confirm.mjs';

const HOUR = 3_600_000;

/** The last use of a token, which is recorded by the hour. */
const used = (at) => {
  if (!at) return 'never';
  return Date.now() - Date.parse(at) < HOUR ? 'this hour' : html`<${Ago} at=${at} /> ago`;
};

const HOOKS = ['session.settled', 'session.failed', 'question.asked', 'effect.in_doubt', 'artifact.made'];

export function Server() {
  const { me } = useApp();
  const isAdmin = me.allows.includes('admin');
  const isWhole = isAdmin && !me.tenant && !me.subject;
  const ready = useApi('readyz');
  const about = useApi(isWhole ? api.path(['server']) : null);
  return html`
    <main id="content" class="screen" tabindex="-1">
      <header class="top"><h1>Server</h1></header>
      <div class="scroll">
        <section class="panel" aria-labelledby="health"><h2 id="health">Health</h2>
          <${FactList} of=${[
            ['state', ready.data ? html`<span class="status good"><span class="sign" aria-hidden="true">✓</span>ready</span>` : ready.problem ? html`<span class="status bad"><span class="sign" aria-hidden="true">✕</span>not ready</span> ${plain(ready.problem.message)}` : '…'],
            ['version', me.version],
            ['drives', about.data && `${about.data.driving ? count(about.data.driven, 'session') : 'nothing'} now`],
            ['definitions', about.data && (about.data.definitions.map(plain).join(', ') || 'none')],
            ['speaks', about.data?.protocols.join(', ')],
          ]} />
          ${about.problem && html`<${Trouble} problem=${about.problem} again=${about.reload} />`}
        </section>
        <section class="panel" aria-labelledby="own"><h2 id="own">This token</h2>
          <${FactList} of=${[
            ['name', html`<code>${plain(me.name)}</code>`],
            ['of', plain([me.subject, me.tenant && `tenant ${me.tenant}`].filter(Boolean).join(', '))],
            ['allows', me.allows.join(', ')],
            ['roles', plain(me.roles.join(', ') || 'user')],
            ['starts', plain(me.definitions.join(', '))],
            ['expires', me.expires ? new Date(me.expires).toLocaleString() : 'never'],
          ]} />
        </section>
        ${isAdmin ? html`<${Tokens} />` : html`<p class="help">Tokens and webhooks are shown to tokens with the permission <code>admin</code>.</p>`}
        ${isAdmin && !me.subject && html`<${Webhooks} />`}
      </div>
    </main>
  `;
}

function Tokens() {
  const { me, told } = useApp();
  const all = useApi(api.path(['tokens'], { limit: 200 }));
  const [dialog, show] = useState(null);
  const close = () => {
    show(null);
    all.reload();
  };
  return html`
    <section class="panel" aria-labelledby="tokens">
      <header><h2 id="tokens">Tokens</h2><button type="button" class="small" onClick=${() => show('new')}>New token…</button></header>
      <${Loaded} of=${all}>${(data) => html`
        <table class="grid stacks">
          <${Head} of=${['Name', 'For', 'Allows', 'Used', 'State', '-Acts']} />
          <tbody>${data.items.map((one) => {
            const isOver = one.expires && Date.parse(one.expires) < Date.now();
            return html`<tr class=${one.revoked || isOver ? 'left' : ''}>
              <th scope="row"><code>${plain(one.name)}</code>${one.name === me.name && html` <b class="count">this one</b>`}${one.note && html`<p class="help">${plain(one.note)}</p>`}</th>
              <td data-label="for">${plain(one.subject ?? 'everybody')}${one.roles.length > 0 && html`<p class="help">as ${one.roles.map(plain).join(', ')}</p>`}</td>
              <td class="main">${one.allows.join(', ')}${one.definitions.length > 0 && html`<p class="help">starts ${one.definitions.map(plain).join(', ')}</p>`}</td>
              <td class="once" data-label="used">${used(one.used)}</td>
              <td>${one.revoked ? 'revoked' : isOver ? 'expired' : one.expires ? html`until ${new Date(one.expires).toLocaleDateString()}` : 'valid'}</td>
              <td class="acts">${one.revoked ? null : html`<button type="button" class="small" onClick=${() => show(one)}>Revoke…</button>`}</td>
            </tr>`;
          })}</tbody>
        </table>
        ${data.next ? html`<p class="help">The first 200. <code>steersman token list</code> has all.</p>` : null}`}<//>
      ${dialog === 'new' && html`<${NewToken} close=${close} />`}
      ${dialog?.name && html`
        <${Confirm} title=${`Revoke ${dialog.name}?`} verb=${`Revoke ${dialog.name}`} path=${api.path(['tokens', dialog.name])} send=${api.remove} close=${() => show(null)} done=${() => {
          told('Revoked.');
          close();
        }}><p>${dialog.name === me.name ? 'This is the token of this page: you are signed out at once. ' : ''}Whoever uses it loses access at once. It cannot be taken back.</p><//>`}
    </section>
  `;
}

/** Returns the names of a field that has several, with commas between them. */
function names(text) {
  return text.split(',').map((one) => one.trim()).filter(Boolean);
}

function NewToken({ close }) {
  const { me } = useApp();
  const act = useAct();
  const [fields, set] = useState({ note: '', subject: '', roles: '', definitions: '', expires: '' });
  const [allows, allow] = useState(new Set(['read', 'write', 'decide']));
  const field = (name) => ({ value: fields[name], onInput: (event) => set({ ...fields, [name]: event.target.value }) });
  const send = (event) => {
    event.preventDefault();
    act.run(api.path(['tokens']), {
      note: fields.note,
      subject: fields.subject.trim() || undefined,
      roles: names(fields.roles),
      definitions: names(fields.definitions),
      expires: fields.expires ? new Date(`${fields.expires}T23:59:59`).toISOString() : undefined,
      allows: [...allows],
    });
  };
  if (act.is === 'taken') return html`<${Secret} title="The new token" name=${act.receipt.name} text=${act.receipt.token} close=${close} />`;
  return html`
    <${Dialog} title="New token" close=${close}>
      <form class="stack" onSubmit=${send}>
        <label>Note, for you<input ...${field('note')} autofocus placeholder="the desk in Oslo" /></label>
        <${Choices} legend="Allows" all=${me.allows} of=${allows} set=${allow} />
        <div class="fields">
          <label>Only sessions of<input ...${field('subject')} placeholder="everybody" /></label>
          <label>Acts as<input ...${field('roles')} placeholder="user, or clerk, boss" /></label>
          <label>Starts only<input ...${field('definitions')} placeholder="all, or refund, desk" /></label>
          <label>Expires after<input type="date" ...${field('expires')} /></label>
        </div>
        <div class="buttons"><button type="submit" class="primary" disabled=${act.is === 'sent' || allows.size === 0}>Make a token that may ${me.allows.filter((one) => allows.has(one)).join(', ') || 'do nothing'}</button></div>
        <${Refused} act=${act} />
      </form>
    <//>
  `;
}

function Choices({ legend, all, of, set }) {
  return html`<fieldset><legend>${legend}</legend><div class="choices">${all.map((one) => html`<label class="check"><input type="checkbox" checked=${of.has(one)} onChange=${() => set(turned(of, one))} /> ${one}</label>`)}</div></fieldset>`;
}

/** A secret that is shown once. Nothing keeps it when the dialog closes. */
function Secret({ title, name, text, close }) {
  return html`
    <${Dialog} title=${title} close=${close}>
      <p>It is shown only here, and cannot be looked up later. Its name is <code>${plain(name)}</code>.</p>
      <div class="command"><code class="secret">${text}</code><${Copy} text=${text} label="Copy" of="the secret" /></div>
      <div class="buttons"><button type="button" onClick=${close}>I have it</button></div>
    <//>
  `;
}

function Webhooks() {
  const { told } = useApp();
  const all = useApi(api.path(['webhooks']));
  const [dialog, show] = useState(null);
  const act = useAct(() => all.reload());
  const close = () => {
    show(null);
    all.reload();
  };
  return html`
    <section class="panel" aria-labelledby="webhooks">
      <header><h2 id="webhooks">Webhooks</h2><button type="button" class="small" onClick=${() => show('new')}>New webhook…</button></header>
      <${Refused} act=${act} />
      <${Loaded} of=${all}>${(data) => (data.items.length === 0
        ? html`<p class="help">None. A webhook tells a program what happens, without texts.</p>`
        : html`<table class="grid stacks">
          <${Head} of=${['Name', 'Address', 'Told of', 'State', '-Acts']} />
          <tbody>${data.items.map((one) => html`<tr class=${one.failing ? 'wrong' : ''}>
            <th scope="row"><code>${plain(one.name)}</code></th>
            <td class="main">${plain(one.url)}</td>
            <td>${one.kinds.join(', ') || 'everything'}${one.where && html`<p class="help">where ${plain(one.where)}</p>`}</td>
            <td><span class="standing">${one.failing ? `failing: ${plain(one.failing)}` : 'sent to'}</span></td>
            <td class="acts">${one.failing && html`<button type="button" class="small" onClick=${() => act.run(api.path(['webhooks', one.name, 'resume']))}>Resume</button>`}<button type="button" class="small" onClick=${() => show(one)}>Delete…</button></td>
          </tr>`)}</tbody></table>`)}<//>
      ${dialog === 'new' && html`<${NewHook} close=${close} />`}
      ${dialog?.name && html`
        <${Confirm} title=${`Delete ${dialog.name}?`} verb=${`Delete ${dialog.name}`} path=${api.path(['webhooks', dialog.name])} send=${api.remove} close=${() => show(null)} done=${() => {
          told('Deleted.');
          close();
        }}><p>Nothing more is sent to ${plain(dialog.url)}. It cannot be taken back.</p><//>`}
    </section>
  `;
}

function NewHook({ close }) {
  const act = useAct();
  const [fields, set] = useState({ url: '', where: '' });
  const [kinds, choose] = useState(new Set(HOOKS));
  const send = (event) => {
    event.preventDefault();
    act.run(api.path(['webhooks']), { url: fields.url.trim(), kinds: kinds.size === HOOKS.length ? [] : [...kinds], where: fields.where.trim() || undefined });
  };
  if (act.is === 'taken') return html`<${Secret} title="The secret of the webhook" name=${act.receipt.name} text=${act.receipt.secret} close=${close} />`;
  return html`
    <${Dialog} title="New webhook" close=${close}>
      <form class="stack" onSubmit=${send}>
        <label>Address, with TLS<input type="url" required autofocus value=${fields.url} onInput=${(event) => set({ ...fields, url: event.target.value })} placeholder="desk.example/told" spellcheck="false" /></label>
        <${Choices} legend="Is told of" all=${HOOKS} of=${kinds} set=${choose} />
        <label>Only sessions where<input value=${fields.where} onInput=${(event) => set({ ...fields, where: event.target.value })} placeholder="all, or definition=refund" /></label>
        <div class="buttons"><button type="submit" class="primary" disabled=${act.is === 'sent' || kinds.size === 0}>Make the webhook</button></div>
        <${Refused} act=${act} />
      </form>
    <//>
  `;
}
