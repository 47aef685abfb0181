// The state of a session, as of any of its lines.

import { api, Empty, Head, html, link, Loaded, plain, Shown, useApi, useEffect, useState } from '../kit.mjs';

export function State({ session, branch, live, query, to }) {
  const at = query.at ? Number(query.at) : undefined;
  const state = useApi(api.of(session, ['state'], { branch, at }), at === undefined ? live.head : undefined);
  const newest = useApi(api.of(session, ['state'], { branch }), live.head);
  const [wanted, want] = useState(at);
  useEffect(() => {
    if (wanted === at) return undefined;
    const timer = setTimeout(() => location.replace(to('state', { at: wanted })), 120);
    return () => clearTimeout(timer);
  }, [wanted]);
  const head = newest.data?.line;
  return html`
    <div class="scroll">
      ${head > 1
        ? html`<form class="strip" onSubmit=${(event) => event.preventDefault()}>
            <label class="slider">As of line <output>${wanted ?? head}</output>
              <input type="range" min="1" max=${head} value=${wanted ?? head} onInput=${(event) => want(Number(event.target.value) === head ? undefined : Number(event.target.value))} /></label>
            ${at === undefined ? null : html`<button type="button" class="small" onClick=${() => want(undefined)}>Newest</button>`}
          </form>`
        : null}
      <${Loaded} of=${state}>${(data) => {
        const entries = Object.entries(data.state);
        if (entries.length === 0) return html`<${Empty} title="No entry is set at this line"><p>Entries of <code>state</code> are here, with their values.</p><//>`;
        return html`
          <table class="grid state">
            <${Head} of=${['Entry', 'Value', ...(at === undefined ? [] : ['Newest'])]} />
            <tbody>${entries.map(([name, value]) => {
              const now = newest.data?.state[name];
              const differs = at !== undefined && JSON.stringify(now) !== JSON.stringify(value);
              return html`<tr><th scope="row"><code>${plain(name)}</code> <a href=${link(['s', session], { branch, at: data.written[name] })}>@${data.written[name]}</a></th><td><${Shown} value=${value} /></td>${at === undefined ? null : html`<td class=${differs ? 'came' : ''}>${differs ? html`<${Shown} value=${now} />` : 'the same'}</td>`}</tr>`;
            })}</tbody>
          </table>
        `;
      }}<//>
    </div>
  `;
}
