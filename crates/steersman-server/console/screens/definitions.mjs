// The definitions that the server serves, each with its drawing, and the entries that begin sessions.

import { api, Command, Empty, html, link, Loaded, plain, useApi, useState } from '../kit.mjs';
import { Graph } from '../parts/graph.mjs';
import { Start } from '../parts/start.mjs';

export function Definitions({ definition }) {
  const all = useApi(api.path(['definitions']));
  const [starts, start] = useState(null);
  return html`
    <main id="content" class="screen" tabindex="-1">
      <header class="top"><h1>${definition ? html`<a href="#/definitions">Definitions</a> / ${plain(definition)}` : 'Definitions'}</h1></header>
      <${Loaded} of=${all}>${(data) => {
        if (data.items.length === 0) return html`<${Empty} title="The server serves no definition"><p>A server that knows definitions starts their sessions:</p><${Command} text="steersman serve DEFINITION" /><//>`;
        const shown = definition ? data.items.filter((one) => one.name === definition) : data.items;
        return html`<div class="scroll">${shown.map(
          (one) => html`
            <article class="card definition">
              <header><a class="where" href=${link(['definitions', one.name])}>${plain(one.name)}</a><span class="from">${plain(one.description ?? '')}</span><span class="grow"></span><code title="digest">${one.digest.slice(0, 8)}</code></header>
              <div class="buttons">${one.entry.map((entry) => html`<button type="button" onClick=${() => start({ definition: one.name, entry })}>Talk to ${plain(entry)}…</button>`)}
                <a href=${link([], { where: `definition = ${one.name}` })}>its sessions</a></div>
              ${definition && html`<${Graph} parts=${['definitions', one.name]} />`}
            </article>
          `,
        )}</div>`;
      }}<//>
      ${starts ? html`<${Start} ...${starts} close=${() => start(null)} />` : null}
    </main>
  `;
}

