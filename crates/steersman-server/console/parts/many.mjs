// Orders to several sessions: each is one request of its own, under its own key, so a repetition gives none of them twice.

import { api, count, Dialog, html, plain, Status, useRef, useState } from '../kit.mjs';

const AT_ONCE = 4;

const FATES = { taken: 'taken', known: 'taken before', queued: 'on disk, taken by the process that drives it' };

export const ORDERS = {
  pause: ['Pause', 'Nothing new begins in them until they are resumed. What has begun goes on to its end.', {}],
  resume: ['Resume', 'They go on where they were paused.', {}],
  cancel: ['Cancel', 'Everything that is open in them is cancelled. What has begun and cannot be stopped may still happen; it is then in doubt.', { what: 'session' }],
};

export function Many({ order, sessions, close }) {
  const [verb, says, body] = ORDERS[order];
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
      <p>${says}</p>
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
