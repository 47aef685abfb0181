// The branches of a session: where each left another one, and what became of it.

import { api, Bars, Head, html, link, plain, useApp, useState } from '../kit.mjs';
import { Confirm } from '../parts/confirm.mjs';

export function Branches({ session, page, reload }) {
  const { me, told } = useApp();
  const [wanted, want] = useState(null);
  if (!page?.branches) return html`<${Bars} />`;
  const rows = tree(page.branches);
  const may = me.allows.includes('time');
  return html`
    <div class="scroll">
      <table class="grid stacks branches">
        <${Head} of=${['Branch', 'Left', '#Last line', 'What became of it', '-Acts']} />
        <tbody>${rows.map(({ branch, depth }) => {
          const name = branch.label ?? branch.id;
          const isCurrent = name === page.current;
          return html`
            <tr class=${branch.superseded ? 'left' : ''}>
              <th scope="row"><span class="indent" style=${{ width: `${depth * 1.25}rem` }}></span>${depth > 0 && html`<span class="help" aria-hidden="true">└</span> `}<a href=${link(['s', session], { branch: isCurrent ? undefined : name })}>${plain(name)}</a>${isCurrent && html` <b class="count">current</b>`}${branch.dry && html` <span class="class pure">dry</span>`}</th>
              <td data-label=${branch.from ? 'left' : undefined}>${branch.from ? html`${branch.from.branch} <a href=${link(['s', session], { at: branch.from.line })}>@${branch.from.line}</a>${branch.by && html`<p class="help">by ${plain(branch.by)}</p>`}` : '–'}</td>
              <td class="num" data-label="to"><a href=${link(['s', session], { branch: name, at: branch.head })}>@${branch.head}</a></td>
              <td>${fate(branch)}</td>
              <td class="acts">${isCurrent ? null : html`<a class="button small" href=${link(['diff'], { a: `${session}:${page.current}`, b: `${session}:${name}` })}>Compare</a>`}
                ${!may || isCurrent || branch.superseded ? null : html`
                <button type="button" class="small" onClick=${() => want({ how: 'adopt', name })}>Adopt…</button>
                <button type="button" class="small" onClick=${() => want({ how: 'join', name })}>Join…</button>
                <button type="button" class="small" onClick=${() => want({ how: 'current', name })}>Make current…</button>
                ${branch.ended ? null : html`<button type="button" class="small" onClick=${() => want({ how: 'cancel', name })}>Cancel…</button>`}`}</td>
            </tr>`;
        })}</tbody>
      </table>
      ${rows.length === 1 && html`<p class="help">A row of the story forks the session, or goes back.</p>`}
      ${wanted ? html`<${Act} ...${wanted} session=${session} close=${() => want(null)} done=${(text) => {
        told(text);
        reload();
        want(null);
      }} />` : null}
    </div>
  `;
}

const ACTS = {
  adopt: ['Adopt', 'The session goes on with the lines of this branch, up to its first simulated effect. What it did to the world counts as done.', 'Adopted.'],
  join: ['Join', 'What the branch comes to is told to the current branch, as the result of a call. It is told once the branch has ended.', 'It is joined once it has ended.'],
  current: ['Make current', 'Messages and events that name no branch go to this one from now on.', 'It is the current branch.'],
  cancel: ['Cancel', 'Everything that is open on this branch is cancelled. Other branches go on.', 'Cancelled.'],
};

function Act({ how, name, session, close, done }) {
  const [verb, says, told] = ACTS[how];
  const [path, body] = how === 'join' ? [['join'], { branches: [name] }] : [['branches', name, how], {}];
  return html`<${Confirm} title=${`${verb} ${plain(name)}?`} verb=${`${verb} ${plain(name)}`} tone=${how === 'cancel' ? 'bad' : 'primary'} path=${api.of(session, path)} body=${body} close=${close} done=${() => done(told)}><p>${says}</p><//>`;
}

function fate(branch) {
  const words = [];
  if (branch.adopted) words.push(`adopted up to @${branch.adopted}`);
  if (branch.joined) words.push(`joined at @${branch.joined}`);
  if (branch.rewound) words.push('began with a rewind');
  if (branch.cancelled) words.push('cancelled');
  if (branch.left_after) words.push(`left behind after @${branch.left_after}`);
  else if (branch.superseded) words.push('left behind');
  if (branch.of_agent) words.push('of an agent');
  if (words.length === 0) words.push(branch.ended ? 'ended' : 'goes on');
  return words.join(', ');
}

/** Returns the branches with their depth: children below their parent, in the order in which they began. */
function tree(branches) {
  const rows = [];
  const add = (parent, depth) => {
    for (const branch of branches) {
      if ((branch.from?.branch ?? null) !== parent) continue;
      rows.push({ branch, depth });
      add(branch.id, depth + 1);
    }
  };
  add(null, 0);
  return rows;
}
