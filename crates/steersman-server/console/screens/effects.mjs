// What a session did to the world, or may have done.

import { api, call, Empty, Head, html, link, Loaded, plain, turned, useApi, useApp, useFew, useState, Value } from '../kit.mjs';
import { Card } from './inbox.mjs';

const CLASSES = ['unsafe', 'idempotent', 'read', 'pure'];

/** Standings of what did nothing to the world. */
const NOTHING = /^(simulated|replaced|not |cancelled|expired|refused|rejected)/;
const touches = (effect) => ['unsafe', 'idempotent'].includes(effect.class) && (effect.attempts > 0 || /^(done|in doubt|unknown)/.test(effect.standing));

export function Effects({ session, branch, live, asked, query, to, reload, page }) {
  const { told, go } = useApp();
  const all = useApi(api.of(session, ['effects'], { branch }), live.head);
  const [open, show] = useState(new Set());
  const doubts = asked.filter((one) => one.kind === 'doubt' && (!branch || one.branch === branch));
  const of = query.class ?? '';
  const { tool = '' } = query;
  const those = (all.data?.items ?? []).filter((one) => !tool || one.tool === tool);
  const shown = those.filter((one) => !of || (of === 'touched' ? touches(one) : one.class === of));
  const [few, more] = useFew(shown);
  return html`
    <div class="scroll">
      ${doubts.map((one) => html`<${Card} key=${one.id} question=${one} alone done=${(text) => {
        told(text);
        reload();
      }} />`)}
      <${Loaded} of=${all}>${(data) => {
        if (data.items.length === 0) return html`<${Empty} title="No call yet"><p>Calls of tools are here, and what became of each.</p><//>`;
        const names = new Map((page?.branches ?? []).map((one) => [one.id, one.label ?? one.id]));
        const touched = those.filter(touches).length;
        const sums = Object.entries(data.sums);
        return html`
          <div class="strip">
            <div class="chips" role="group" aria-label="Classes">
              <a class="chip" href=${to('effects', { tool })} aria-current=${of ? undefined : 'true'}>all ${those.length}</a>
              ${touched > 0 && html`<a class="chip" href=${to('effects', { class: 'touched', tool })} aria-current=${of === 'touched' ? 'true' : undefined}>touched the world ${touched}</a>`}
              ${CLASSES.map((one) => [one, those.filter((effect) => effect.class === one).length]).filter(([, n]) => n > 0).map(([one, n]) => html`<a class="chip" href=${to('effects', { class: one, tool })} aria-current=${of === one ? 'true' : undefined}>${one} ${n}</a>`)}
            </div>
            <label class="as">of <select aria-label="Tool" value=${tool} onChange=${(event) => (location.hash = to('effects', { class: of, tool: event.target.value }))}><option value="">all tools</option>${[...new Set(data.items.map((one) => one.tool))].map((name) => html`<option>${name}</option>`)}</select></label>
            ${sums.length > 0
              ? html`<ul class="sums">${sums.map(([tool, sum]) => html`<li><b>${plain(tool)}</b> ${sum.intended} intended, ${sum.done} done, <span class=${sum.repeated > 0 ? 'badly' : ''}>${sum.repeated} repeated</span>${sum.intended - sum.done > 0 ? `, ${sum.intended - sum.done} not done` : ''}</li>`)}</ul>`
              : html`<p class="help">Nothing has touched the world.</p>`}
          </div>
          <table class="grid stacks effects">
            <${Head} of=${['#Line', 'Call', 'Class', 'Standing', '#Attempts', 'Branch']} />
            <tbody>${few.map((effect) => html`
              <tr class=${tone(effect)}>
                <td class="num"><a href=${link(['s', session], { at: effect.line, branch })}>@${effect.line}</a></td>
                <td class="main"><button type="button" class="quiet fold" aria-expanded=${open.has(effect.effect)} onClick=${() => show(turned(open, effect.effect))}><code>${plain(call(effect.tool, effect.args)).slice(0, 220)}</code></button>
                  ${open.has(effect.effect) && html`<${Value} value=${effect.args} />`}</td>
                <td><span class=${`class ${effect.class}`}>${effect.class}</span></td>
                <td><span class="standing">${plain(effect.standing)}</span>${effect.by ? ` by ${plain(effect.by)}` : ''}${effect.repeats ? html`<br /><span class="badly">repeats ${effect.repeats}${effect.allowed ? `, allowed by ${plain(effect.allowed)}` : ''}</span>` : ''}</td>
                <td class="num attempts">${effect.attempts || '–'}</td>
                <td class="of-branch">${effect.branch === 'main' ? 'main' : html`<code>${plain(names.get(effect.branch) ?? effect.branch)}</code>`}</td>
              </tr>`)}</tbody>
          </table>
          ${more}
        `;
      }}<//>
    </div>
  `;
}

function tone(effect) {
  if (/doubt|unknown|may have/.test(effect.standing)) return 'doubt';
  if (/fail|refus|expired|limit/.test(effect.standing)) return 'wrong';
  if (/wait/.test(effect.standing)) return 'asked';
  return NOTHING.test(effect.standing) ? 'nothing' : '';
}
