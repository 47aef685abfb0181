// What people think of something that agents made.

import { html, Refused, useAct } from '../kit.mjs';

export function Rating({ of, path, version, done }) {
  const act = useAct(done);
  return html`
    <label class="as">rating <select value=${of ?? ''} disabled=${act.is === 'sent'} onChange=${(event) => event.target.value && act.run(path, { rating: Number(event.target.value), version })}>
      <option value="">none</option>${[1, 2, 3, 4, 5].map((n) => html`<option value=${n}>${n}</option>`)}</select></label>
    <${Refused} act=${act} />
  `;
}
