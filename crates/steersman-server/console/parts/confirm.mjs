// A dialog that says what an act does, and carries it out.

import { Dialog, html, Refused, useAct } from '../kit.mjs';

/** `send` is what carries out the act at the path: without it a POST. */
export function Confirm({ title, verb, tone = 'bad', keep = 'Leave it', path, body = {}, send, close, done, children }) {
  const act = useAct(done);
  return html`
    <${Dialog} title=${title} close=${close}>
      ${children}
      <div class="buttons"><button type="button" class=${tone} aria-disabled=${act.is === 'sent'} onClick=${() => act.run(path, body, send)}>${verb}</button><button type="button" class="quiet" autofocus onClick=${close}>${keep}</button></div>
      <${Refused} act=${act} />
    <//>
  `;
}
