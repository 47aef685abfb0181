// What each model call saw, to the byte: as it was sent, what is new since the call before, and what the provider had cached.

import { api, bytes, Change, Copy, count, Empty, Head, html, link, Loaded, money, number, percent, plain, Text, useApi, useFew, useKeys, useState, Value } from '../kit.mjs';

export function Contexts({ session, branch, live, of, query, to }) {
  const all = useApi(api.of(session, ['contexts'], { branch }), live.head);
  const items = all.data?.items ?? [];
  const names = [...new Set(items.map((one) => one.name))];
  const agent = query.agent ?? '';
  const shown = items.filter((one) => !agent || one.name === agent);
  const chosen = items.find((one) => one.effect === of) ?? nearest(items, query.at) ?? shown.findLast((one) => one.answered !== null) ?? shown.at(-1);
  const [few, more] = useFew(shown, true);
  const open = (one) => one && (location.hash = link(['s', session, 'contexts', one.effect], { branch, agent }));
  const beside = (step) => {
    const same = items.filter((one) => one.name === chosen?.name);
    open(same[same.indexOf(chosen) + step]);
  };
  useKeys({ '[': () => beside(-1), ']': () => beside(1) });
  return html`<${Loaded} of=${all}>${() => {
    if (items.length === 0) return html`<div class="scroll"><${Empty} title="No model was asked yet"><p>Each call of a model is here, with its context exactly as it was sent.</p><//></div>`;
    const input = sum(shown, 'input');
    return html`
      <div class=${of ? 'split open contexts opened' : 'split open contexts'}>
        <div class="calls">
          <div class="strip">
            ${names.length > 1
              ? html`<label class="as">of <select value=${agent} onChange=${(event) => (location.hash = to('contexts', { agent: event.target.value }))}><option value="">all agents</option>${names.map((name) => html`<option>${name}</option>`)}</select></label>`
              : null}
            <span class="meta">${count(shown.length, 'call')}, ${number(input)} input tokens, ${percent(sum(shown, 'cached'), input)} cached, ${money(sum(shown, 'micros') / 1e6)}</span>
          </div>
          ${more}
          <table class="grid calls-table">
            <${Head} of=${['#Asked', 'Agent', '#Input', '#Cached', '#Kept', 'What changed']} />
            <tbody>${few.map((one) => html`
              <tr class=${one === chosen ? 'active' : ''} onClick=${(event) => !event.target.closest('a') && open(one)}>
                <td class="num"><a href=${link(['s', session, 'contexts', one.effect], { branch, agent })} aria-current=${one === chosen ? 'true' : undefined}>@${one.wished}</a></td>
                <td>${plain(one.name)}</td>
                <td class="num">${one.usage ? number(one.usage.input) : '–'}</td>
                <td class="num">${one.usage ? number(one.usage.cached) : '–'}</td>
                <td class="num">${kept(one.usage)}</td>
                <td>${one.usage?.broke ? html`<span class="badly">${plain(one.usage.broke)}</span>` : one.answered === null ? 'no answer' : ''}</td>
              </tr>`)}</tbody>
          </table>
        </div>
        ${chosen && html`<${Call} key=${chosen.effect} session=${session} branch=${branch} call=${chosen} items=${items} back=${to('contexts', { agent })} />`}
      </div>
    `;
  }}<//>`;
}

/** What a call kept of the one before. Its process measured it, so it is unknown for the first call of a process, as for that of an agent. */
function kept(usage) {
  return usage && (usage.prefix > 0 || usage.broke) ? bytes(usage.prefix) : '–';
}

function sum(calls, field) {
  return calls.reduce((all, one) => all + (one.usage?.[field] ?? 0), 0);
}

/** Returns the call whose answer a line took, otherwise the last one that was asked up to it. */
function nearest(items, line) {
  if (line === undefined) return undefined;
  const at = Number(line);
  return items.find((one) => one.answered === at) ?? items.find((one) => one.wished === at) ?? items.findLast((one) => one.wished <= at);
}

function Call({ session, branch, call, items, back }) {
  const place = (show) => api.of(session, ['contexts', call.effect], { branch, show });
  const whole = useApi(place('whole'));
  const why = useApi(place('why'));
  // The first call of an agent has none before it.
  const isFirst = !items.some((one) => one.name === call.name && one.wished < call.wished);
  const change = useApi(isFirst ? null : place('diff'));
  const before = change.data ? items.find((one) => one.answered === change.data.before && one.name === call.name) : undefined;
  const earlier = useApi(before ? api.of(session, ['contexts', before.effect], { branch }) : null);
  return html`
    <section class="context" aria-label="Context">
      <a class="back" href=${back}>All calls</a>
      <${Loaded} of=${whole}>${(data) => {
        const prefix = change.data ? change.data.prefix : 0;
        const rows = segments(data, why.data, prefix);
        const { usage } = data;
        const cached = usage && usage.input > 0 ? (usage.cached / usage.input) * data.bytes : 0;
        return html`
          <header class="strip">
            <h2>${plain(data.name)} <code>@${data.wished}</code></h2>
            <span class="meta">${plain(usage?.model ?? data.model)}, ${bytes(data.bytes)}, <code title="digest of the request">${data.digest.slice(0, 8)}</code></span>
            <span class=${data.as_sent === false ? 'standing badly' : 'standing'}>${data.as_sent === true ? '✓ as sent' : data.as_sent === false ? 'not as sent' : call.answered === null ? 'no answer so far' : 'sent, and failed'}</span>
            <span class="grow"></span>
            <${Copy} text=${JSON.stringify(data, null, 2)} label="Copy JSON" />
          </header>
          ${data.as_sent === false && html`<p class="bar warn">This version of the program renders it in another way.</p>`}
          <div class="shares" aria-hidden="true">${rows.map((row) => html`<i class=${row.is} style=${{ flexGrow: row.bytes }} title=${`${row.part}, ${bytes(row.bytes)}`}></i>`)}${cached > 0 && html`<b style=${{ left: `${(100 * cached) / data.bytes}%` }}></b>`}</div>
          <p class="meta legend"><span><i class="kept"></i>${bytes(Math.min(prefix, data.bytes))} kept from ${before ? html`the call <a href=${link(['s', session, 'contexts', before.effect], { branch })}>@${before.wished}</a>` : 'before'}</span><span><i class="new"></i>${bytes(Math.max(0, data.bytes - prefix))} new</span>${usage ? html`<span>${number(usage.cached)} of ${number(usage.input)} tokens were cached by the provider</span>` : null}${change.data?.broke ? html`<span class="badly">${plain(change.data.broke)} changed</span>` : null}</p>
          <ol class="segments">${rows.map((row) => html`<${Segment} key=${row.at} row=${row} old=${replaced(row, rows, earlier.data)} session=${session} branch=${branch} />`)}</ol>
          ${change.data?.gone.length > 0 ? html`<h3>Gone since the call before</h3><ul class="gone">${change.data.gone.map((one) => html`<li><b>${plain(one.part)}</b> ${bytes(one.bytes)} <span>${plain(one.says)}</span></li>`)}</ul>` : null}
          ${why.data?.absent.length > 0 ? html`<h3>Left out by a policy</h3><ul class="gone">${why.data.absent.map((one) => html`<li><b>${plain(one.what ?? one.part ?? '')}</b> <span>${plain(JSON.stringify(one))}</span></li>`)}</ul>` : null}
          ${data.params && Object.keys(data.params).length > 0 && html`<h3>Parameters</h3><${Value} value=${data.params} />`}
          ${data.output && html`<h3>Form of the answer</h3><${Value} value=${data.output} />`}
        `;
      }}<//>
    </section>
  `;
}

/** Puts together what was sent, where it comes from, and how much of it the call before had, too. */
function segments(data, why, prefix) {
  let upto = 0;
  return data.segments.map((segment, at) => {
    const from = upto;
    upto += segment.bytes;
    const is = upto <= prefix ? 'kept' : from >= prefix ? 'new' : 'part';
    return { ...segment, at, is, origin: why?.segments[at] };
  });
}

/** Returns the text that stood in the place of a new segment in the call before. Only prompts and tools are replaced: a history grows. */
function replaced(row, rows, earlier) {
  if (!earlier || row.is === 'kept' || row.part === 'history') return undefined;
  const nth = rows.filter((one) => one.part === row.part && one.at < row.at).length;
  const old = earlier.segments.filter((one) => one.part === row.part)[nth];
  return old && said(old.content);
}

function said(content) {
  const [[kind, value]] = Object.entries(content);
  if (typeof value === 'string') return value;
  if (kind === 'Assistant') return [value.text, ...(value.calls ?? []).map((one) => `${one.name}(${one.args})`)].filter(Boolean).join('\n');
  if (kind === 'Result') return value.text;
  return JSON.stringify(value, null, 2);
}

function Segment({ row, old, session, branch }) {
  const [open, set] = useState(row.part !== 'tools');
  const [kind] = Object.keys(row.content);
  const text = said(row.content);
  const { origin } = row;
  const title = kind === 'Tools' ? count(row.content.Tools.length, 'tool') : kind === 'Result' ? `result of ${row.content.Result.name}` : kind.toLowerCase();
  return html`
    <li class=${`segment ${row.is}`}>
      <header>
        <button type="button" class="quiet fold" aria-expanded=${open} onClick=${() => set(!open)}><b>${plain(row.part)}</b> ${title === row.part ? '' : plain(title)}</button>
        <span class="share">${row.is === 'kept' ? 'kept' : row.is === 'new' ? 'new' : 'kept in part'}</span>
        <span class="num">${bytes(row.bytes)}</span>
        <span class="origin">${origin?.template ? html`<code>${plain(origin.template)}</code> ` : null}${(origin?.reads ?? []).map((read) => html`<span>reads <code>${plain(read.path)}</code>${read.written ? html` set <a href=${link(['s', session], { branch, at: read.written })}>@${read.written}</a>` : ''} </span>`)}${(origin?.lines ?? []).slice(0, 6).map((line) => html`<a href=${link(['s', session], { branch, at: line })}>@${line}</a> `)}${(origin?.lines ?? []).length > 6 ? `and ${origin.lines.length - 6} more ` : ''}${origin?.policy ? plain(typeof origin.policy === 'string' ? origin.policy : JSON.stringify(origin.policy)) : ''}</span>
      </header>
      ${open
        ? old !== undefined && old !== text
          ? html`<${Change} from=${old} to=${text} />`
          : kind === 'Tools'
            ? html`<${Tools} tools=${row.content.Tools} />`
            : html`<${Text} text=${text} as="plain" />`
        : null}
    </li>
  `;
}

function Tools({ tools }) {
  return html`<dl class="tools">${tools.map((tool) => html`<div><dt><code>${plain(tool.name)}</code></dt><dd>${plain(tool.description)}<details><summary>parameters</summary><${Text} text=${tool.parameters} as="plain" /></details></dd></div>`)}</dl>`;
}
