// Orders to several sessions: each is one request of its own, under its own key, so a repetition gives none of them twice.

import { api, count, Dialog, html, plain, Status, useRef, useState } from '../kit.mjs';

const AT_ONCE = 4;

const FATES = { taken: 'taken', known: 'taken before', queued: 'on disk, taken by the process that drives it' };

const OVER = ['answered', 'failed', 'limit', 'cancelled'];

/** Each order: its name, what it does, its body, and the sessions that it is of use to. */
export const ORDERS = {
  retry: ['Retry', 'What failed is tried again now: a call of a model from the line before it. What is done stays done.', {}, (row) => row.status === 'failed' || row.status === 'waits'],
  pause: ['Pause', 'Nothing new begins in them until they are resumed. What has begun goes on to its end.', {}, (row) => row.status !== 'paused'],
  resume: ['Resume', 'They go on where they were paused.', {}, (row) => row.status === 'paused'],
  cancel: ['Cancel', 'Everything that is open in them is cancelled. What has begun and cannot be stopped may still happen; it is then in doubt.', { what: 'session' }, (row) => !OVER.includes(row.status)],
};

export function Many({ order, sessions: chosen, close }) {
  const [verb, says, body, isOf] = ORDERS[order];
  // They stay the same while the orders change their states.
  const [sessions] = useState(() => chosen.filter(isOf));
  const others = chosen.length - sessions.length;
  const [fates, set] = useState({});
  const [busy, setBusy] = useState(false);
  const keys = useRef(new Map(sessions.map((row) => [row.session, api.key()])));
  const open = sessions.filter((row) => !fates[row.session] || fates[row.session].again);
  const one = async ({ session }) => {
    try {
      const receipt = await api.act(api.of(session, [order]), body, keys.current.get(session));
      set((old) => ({ ...old, [session]: { text: FATES[receipt.fate] ?? `waits: ${receipt.why ?? 'for a condition'}` } }));
    } catch (problem) {
      // What may have arrived is sent again under the same key.
      const again = problem.code === 'unreached' || problem.status >= 500 || problem.status === 429;
      set((old) => ({ ...old, [session]: { text: problem.message, bad: true, again } }));
    }
  };
  const run = async () => {
    setBusy(true);
    const left = [...open];
    await Promise.all(Array.from({ length: AT_ONCE }, async () => {
      for (let next = left.shift(); next; next = left.shift()) await one(next);
    }));
    setBusy(false);
  };
  const isOver = open.length === 0;
  const tried = Object.keys(fates).length > 0;
  return html`
    <${Dialog} title=${`${verb} ${count(sessions.length, 'session')}?`} close=${close}>
      <p>${says}${others > 0 ? ` It is of no use to ${count(others, 'other')} of those that are selected.` : ''}</p>
      <ul class="fates">${sessions.map((row) => html`<li><code>${row.session.slice(0, 6)}</code><span>${plain(row.network)}</span>${fates[row.session]
        ? html`<span class=${fates[row.session].bad ? 'badly' : 'help'} role="status">${plain(fates[row.session].text)}</span>`
        : html`<${Status} of=${row.status} />`}</li>`)}</ul>
      <div class="buttons">
        ${isOver ? null : html`<button type="button" class=${order === 'cancel' ? 'bad' : 'primary'} disabled=${busy} onClick=${run}>${busy ? 'Sent' : tried ? `Try ${open.length} again` : `${verb} ${count(open.length, 'session')}`}</button>`}
        <button type="button" class=${isOver ? '' : 'quiet'} autofocus onClick=${close}>${isOver ? 'Close' : 'Leave them'}</button>
      </div>
    <//>
  `;
}
