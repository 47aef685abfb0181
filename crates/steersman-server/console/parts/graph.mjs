// The drawing of a definition. It is the picture that `steersman graph` makes, with its list for readers of the screen.

import { api, Bars, html, plain, Trouble, useApi, useEffect, useState } from '../kit.mjs';

/** A picture that a request answers. It is an image: nothing in it runs, and it loads nothing. */
export function usePicture(path, version) {
  const [state, set] = useState({ address: null, problem: null });
  useEffect(() => {
    let address = null;
    let isOver = false;
    api.content(path).then(
      (blob) => {
        if (isOver) return;
        address = URL.createObjectURL(blob);
        set({ address, problem: null });
      },
      (problem) => !isOver && set({ address: null, problem }),
    );
    return () => {
      isOver = true;
      if (address) URL.revokeObjectURL(address);
    };
  }, [path, version]);
  return state;
}

export function Graph({ parts, query, version }) {
  const graph = useApi(api.path([...parts, 'graph'], query), version);
  const picture = usePicture(api.path([...parts, 'graph.svg'], query), version);
  const [large, enlarge] = useState(false);
  if (picture.problem) return html`<${Trouble} problem=${picture.problem} />`;
  if (!picture.address || !graph.data) return html`<${Bars} />`;
  const { nodes, edges, name, stands } = graph.data;
  return html`
    <div class="graph">
      <div class="buttons"><button type="button" class="small" aria-pressed=${large} onClick=${() => enlarge(!large)}>${large ? 'Fit to the page' : 'Full size'}</button>${stands ? html`<span class="says">${plain(stands)}</span>` : null}</div>
      <div class=${large ? 'picture large' : 'picture'} tabindex="0" role="group" aria-label="Drawing">
        <img src=${picture.address} alt=${`Drawing of ${name}: ${nodes.map((node) => `${node.what} ${node.name}${node.mark.text ? ` (${node.mark.text})` : ''}`).join(', ')}`} />
      </div>
      <details>
        <summary>As a list</summary>
        <ul class="outline">${nodes.map((node, at) => html`
          <li><strong>${plain(node.name)}</strong> ${node.what}${node.mark.text && html` – <em>${plain(node.mark.text)}</em>`}
            <ul>${node.facts.map((fact) => html`<li>${plain(fact.word)}: ${plain(fact.text)}</li>`)}${edges.filter((edge) => edge.from.node === at).map((edge) => html`<li>${plain(edge.label || edge.kind)} → ${plain(nodes[edge.to.node]?.name ?? 'a group')}${edge.times ? ` (${edge.times}×)` : ''}</li>`)}</ul></li>`)}</ul>
      </details>
    </div>
  `;
}
