// What a session made: files with versions. Pictures and texts are shown, everything else is saved.

import { api, bytes, Empty, html, Loaded, plain, Text, Trouble, useApi, useApp, useEffect, useState } from '../kit.mjs';
import { usePicture } from '../parts/graph.mjs';
import { Rating } from '../parts/rating.mjs';

/** The most bytes that are shown. What is longer is saved as a file. */
const MOST = 1 << 20;

export function Artifacts({ session, branch, live, query, to }) {
  const all = useApi(api.of(session, ['artifacts'], { branch }), live.head);
  return html`<${Loaded} of=${all}>${(data) => {
    if (data.items.length === 0) return html`<div class="scroll"><${Empty} title="Nothing was made yet"><p>What agents and people put into the session is here, with its versions.</p><//></div>`;
    const chosen = data.items.find((one) => one.name === query.name && String(one.version) === query.version)
      ?? data.items.filter((one) => one.name === query.name).at(-1)
      ?? data.items.at(-1);
    return html`
      <div class="split open artifacts">
        <ul class="list" aria-label="Artifacts">${data.items.map((one) => html`
          <li><a href=${to('artifacts', { name: one.name, version: one.version })} aria-current=${one === chosen ? 'true' : undefined}><b>${plain(one.name)}</b><span>version ${one.version}, ${plain(one.media)}, ${bytes(one.len)}${one.rating ? `, rated ${one.rating}` : ''}</span></a></li>`)}</ul>
        <${File} key=${`${chosen.name}/${chosen.version}`} session=${session} branch=${branch} of=${chosen} done=${all.reload} />
      </div>
    `;
  }}<//>`;
}

function File({ session, branch, of, done }) {
  const { me } = useApp();
  const path = api.of(session, ['artifacts', of.name], { branch, version: of.version });
  const [text, set] = useState(null);
  const [problem, setProblem] = useState(null);
  const isPicture = /^image\/(png|jpeg|gif|webp|avif|svg\+xml)/.test(of.media) && of.len <= 20 * MOST;
  const isText = !isPicture && of.len <= MOST && /^(text\/|application\/(json|yaml|xml|toml|javascript))|\+json|\+xml/.test(of.media);
  useEffect(() => {
    if (!isText) return;
    api.content(path).then(async (blob) => set(await blob.text()), setProblem);
  }, [path]);
  const save = async () => {
    const address = URL.createObjectURL(await api.content(path));
    const link = document.createElement('a');
    Object.assign(link, { href: address, download: of.name });
    link.click();
    URL.revokeObjectURL(address);
  };
  return html`
    <section class="file" aria-label=${of.name}>
      <header class="strip"><h2>${plain(of.name)}</h2><span class="meta">version ${of.version}, ${bytes(of.len)}, <code title="digest">${of.hash.slice(0, 12)}</code></span><span class="grow"></span>
        ${me.allows.includes('decide') && html`<${Rating} of=${of.rating} path=${api.of(session, ['artifacts', of.name, 'rating'])} version=${of.version} done=${done} />`}
        <button type="button" class="small" onClick=${save}>Save</button></header>
      <div class="scroll">
        ${problem && html`<${Trouble} problem=${problem} />`}
        ${isPicture && html`<${Picture} path=${path} name=${of.name} />`}
        ${isText && text !== null && html`<${Text} text=${text} as=${/markdown/.test(of.media) ? 'markdown' : 'plain'} />`}
        ${!isPicture && !isText && html`<${Empty} title=${of.media}><p>Save it to open it elsewhere.</p><//>`}
      </div>
    </section>
  `;
}

function Picture({ path, name }) {
  const picture = usePicture(path, 0);
  if (picture.problem) return html`<${Trouble} problem=${picture.problem} />`;
  return picture.address ? html`<img class="shown" src=${picture.address} alt=${name} />` : null;
}
