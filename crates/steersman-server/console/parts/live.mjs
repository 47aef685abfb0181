// Whether a screen hears what happens, in words.

import { clock, html, useNow } from '../kit.mjs';

export function Live({ of }) {
  const now = useNow();
  if (of.live) return html`<span class="live is"><i aria-hidden="true"></i><span>live</span></span>`;
  if (!of.since) return html`<span class="live" role="status"><i aria-hidden="true"></i><span>connecting</span></span>`;
  const again = of.again ? `, next try in ${Math.max(1, Math.ceil((of.again - now) / 1000))} s` : '';
  const words = of.problem ? of.problem.title : `not live since ${clock(of.since, now)}${again}`;
  return html`<span class="live not" role="status"><i aria-hidden="true"></i><span>${words}</span></span>`;
}
