// The dialog that begins a session.

import { api, Dialog, Empty, html, Loaded, plain, Refused, useAct, useApi, useApp, useEffect, useRef, useState } from '../kit.mjs';
import { value } from '../text/json.mjs';

export function Start({ close, definition, entry }) {
  const { me, go } = useApp();
  const all = useApi(api.path(['definitions']));
  const act = useAct((receipt) => go(['s', receipt.session]));
  const [chosen, choose] = useState({ definition, entry });
  const [message, say] = useState('');
  const [args, setArgs] = useState({});
  const field = useRef(null);
  useEffect(() => field.current?.focus(), [all.data === null]);
  if (!me.allows.includes('write')) {
    return html`<${Dialog} title="New session" close=${close}><p>Starting sessions needs the permission <code>write</code>, which this token does not have.</p><//>`;
  }
  return html`
    <${Dialog} title="New session" close=${close}>
      <${Loaded} of=${all}>${(data) => {
        const found = data.items.find((one) => one.name === chosen.definition) ?? data.items[0];
        if (!found) return html`<${Empty} title="The server serves no definition" />`;
        const first = found.entries.find((one) => one.name === chosen.entry) ?? found.entries[0];
        const own = first.parameters.properties ?? {};
        // An agent that declares none takes a message alone.
        const names = Object.keys(own).filter((name, _, all) => all[1] || name !== 'message');
        const given = names.filter((name) => args[name]).map((name) => [name, own[name].type === 'string' ? args[name] : value(args[name], args[name])]);
        return html`
          <form class="stack" onSubmit=${(event) => {
            event.preventDefault();
            act.run(api.path(['sessions']), { definition: found.name, entry: first.name, message: message || undefined, args: names[0] && Object.fromEntries(given) });
          }}>
            <div class="fields">
              <label>Definition<select value=${found.name} onChange=${(event) => choose({ definition: event.target.value })}>${data.items.map((one) => html`<option>${one.name}</option>`)}</select></label>
              <label>Begins with<select value=${first.name} onChange=${(event) => choose({ definition: found.name, entry: event.target.value })}>${found.entries.map((one) => html`<option>${one.name}</option>`)}</select></label>
            </div>
            ${found.description && html`<p class="says">${plain(found.description)}</p>`}
            ${names[0] && html`<div class="fields">${names.map((name) => html`<label>${plain(name)}<input value=${args[name]} placeholder=${own[name].description} onInput=${(event) => setArgs({ ...args, [name]: event.target.value })} /></label>`)}</div>`}
            <label>First message<textarea rows="4" ref=${field} value=${message} onInput=${(event) => say(event.target.value)}></textarea></label>
            <div class="buttons"><button type="submit" class="primary" disabled=${act.is === 'sent'}>Begin ${plain(found.name)}</button></div>
            <${Refused} act=${act} />
          </form>
        `;
      }}<//>
    <//>
  `;
}
