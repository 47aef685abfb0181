// The dialog that begins a session.

import { api, Dialog, html, Loaded, plain, Refused, useAct, useApi, useApp, useEffect, useRef, useState } from '../kit.mjs';

export function Start({ close, definition, entry }) {
  const { me, go } = useApp();
  const all = useApi(api.path(['definitions']));
  const act = useAct((receipt) => go(['s', receipt.session]));
  const [chosen, choose] = useState({ definition, entry });
  const [message, say] = useState('');
  const field = useRef(null);
  useEffect(() => field.current?.focus(), [all.data === null]);
  if (!me.allows.includes('write')) {
    return html`<${Dialog} title="New session" close=${close}><p>Starting sessions needs the permission <code>write</code>, which this token does not have.</p><//>`;
  }
  return html`
    <${Dialog} title="New session" close=${close}>
      <${Loaded} of=${all}>${(data) => {
        const found = data.items.find((one) => one.name === chosen.definition) ?? data.items[0];
        if (!found) return html`<p>The server serves no definition. Start it with one: <code>steersman serve DEFINITION</code>.</p>`;
        const first = chosen.definition === found.name && found.entry.includes(chosen.entry) ? chosen.entry : found.entry[0];
        return html`
          <form class="stack" onSubmit=${(event) => {
            event.preventDefault();
            act.run(api.path(['sessions']), { definition: found.name, entry: first, message: message || undefined });
          }}>
            <div class="fields">
              <label>Definition<select value=${found.name} onChange=${(event) => choose({ definition: event.target.value })}>${data.items.map((one) => html`<option>${one.name}</option>`)}</select></label>
              <label>Begins with<select value=${first} onChange=${(event) => choose({ definition: found.name, entry: event.target.value })}>${found.entry.map((one) => html`<option>${one}</option>`)}</select></label>
            </div>
            ${found.description && html`<p class="says">${plain(found.description)}</p>`}
            <label>First message<textarea rows="4" ref=${field} value=${message} onInput=${(event) => say(event.target.value)}></textarea></label>
            <div class="buttons"><button type="submit" class="primary" disabled=${act.is === 'sent'}>Begin ${plain(found.name)}</button></div>
            <${Refused} act=${act} />
          </form>
        `;
      }}<//>
    <//>
  `;
}
