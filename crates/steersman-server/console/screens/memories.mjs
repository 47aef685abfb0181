// What agents keep across sessions: by scope, or by the words in it.

import { Ago, api, bytes, Empty, FactList, html, link, Loaded, plain, Search, Text, useApi, useApp, useRef, useState } from '../kit.mjs';
import { Confirm } from '../parts/confirm.mjs';
import { Rating } from '../parts/rating.mjs';

const PAGE = 200;

export function Memories({ query }) {
  const { me, go } = useApp();
  const field = useRef(null);
  const { scope, words, after } = query;
  const may = me.allows.includes('memory');
  const list = useApi(may ? (words ? api.path(['memories', 'search'], { query: words, scope, limit: PAGE }) : api.path(['memories'], { scope, after, limit: PAGE })) : null);
  const items = list.data?.items ?? [];
  const scopes = [...new Set([...items.map((one) => one.scope), ...(scope ? [scope] : [])])].sort();
  const to = (more) => link(['memories'], { scope, words, after, ...more });
  const chosen = items.find((one) => String(one.memory) === query.id) ?? items[0];
  return html`
    <main id="content" class="screen" tabindex="-1">
      <header class="top">
        <h1>Memories</h1>
        ${may && html`
          <${Search} name="Words in them" hint="Words in them, as an agent would look" value=${words} field=${field} go=${(text) => go(['memories'], { scope, words: text })} />
          <label class="as">of <select value=${scope ?? ''} onChange=${(event) => go(['memories'], { words, scope: event.target.value })}><option value="">all scopes</option>${scopes.map((one) => html`<option>${one}</option>`)}</select></label>`}
      </header>
      ${may ? html`<${Loaded} of=${list}>${() => (chosen
        ? html`
          <div class="split open artifacts">
            <div class="list" aria-label="Memories">
              <ul>${items.map((one) => html`
                <li><a href=${to({ id: one.memory })} aria-current=${one === chosen ? 'true' : undefined}><b>${plain(one.name)}</b><span>${plain(one.scope)}, by ${plain(one.by)} <${Ago} at=${new Date(one.saved).toISOString()} /> ago${stars(one)}</span></a></li>`)}</ul>
              ${list.data.next ? html`<a class="more" href=${to({ after: list.data.next, id: undefined })}>Older memories</a>` : null}
            </div>
            <${One} key=${chosen.memory} row=${chosen} reload=${list.reload} back=${to({ id: undefined })} />
          </div>`
        : words || scope
          ? html`<${Empty} title="Nothing is remembered there"><p><a href="#/memories">All memories</a></p><//>`
          : html`<${Empty} title="Nothing is remembered yet"><p>What agents save with the tool set <code>memory</code>, to find it in later sessions, is here.</p><//>`)}<//>`
        : html`<${Empty} title="This token may not look at memories"><p>It needs the permission <code>memory</code>. </p><//>`}
    </main>
  `;
}

function stars(row) {
  const rated = row.rated_by_people ?? row.rated_by_agents;
  return rated ? `, rated ${rated.rating}` : '';
}

function One({ row, reload, back }) {
  const { told } = useApp();
  const whole = useApi(api.path(['memories', String(row.memory)]));
  const [forgets, forget] = useState(false);
  const rated = row.rated_by_people;
  return html`
    <section class="file" aria-label=${plain(row.name)}>
      <header class="strip">
        <h2>${plain(row.name)}</h2><span class="meta">${row.memory}, ${bytes(row.bytes)}</span><span class="grow"></span>
        <${Rating} of=${rated?.rating} path=${api.path(['memories', String(row.memory), 'rating'])} done=${reload} />
        <button type="button" class="small" onClick=${() => forget(true)}>Forget…</button>
      </header>
      <div class="scroll">
        <${Loaded} of=${whole}>${(data) => html`<${Text} text=${data.text} as=${/markdown/.test(row.media_type) ? 'markdown' : 'plain'} />`}<//>
        <${FactList} of=${[
          ['scope', html`<a href=${link(['memories'], { scope: row.scope })}>${plain(row.scope)}</a>`],
          ['tags', plain(row.tags.join(', '))],
          ['saved', html`by ${plain(row.by)} of ${plain(row.network)}${row.session && html` in <a href=${link(['s', row.session], { at: row.effect?.split('.')[0] })}><code>${row.session.slice(0, 6)}</code></a>`}, ${new Date(row.saved).toLocaleString()}`],
          ['kept until', row.until && new Date(row.until).toLocaleString()],
          ['replaced by', row.replaced_by],
          ...[['people', rated], ['agents', row.rated_by_agents]].map(([by, one]) => [`rated by ${by}`, one && plain(`${one.rating}${one.reason ? `: ${one.reason}` : ''}`)]),
        ]} />
      </div>
      ${forgets && html`
        <${Confirm} title=${`Forget “${plain(row.name)}”?`} verb="Forget it" keep="Keep it" path=${api.path(['memories', 'forget'])} body=${{ memories: [row.memory], apply: true }} close=${() => forget(false)} done=${() => {
          told('Forgotten.');
          location.hash = back;
          reload();
        }}><p>No agent finds it any more. Sessions that found it keep what they were shown. It cannot be taken back.</p><//>`}
    </section>
  `;
}
