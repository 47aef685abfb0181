// An order to one or several sessions, which one request gives.

import { api, count, Dialog, html, plain, Refused, Status, useAct, useApp, useState } from '../kit.mjs';

/** The fates whose words say too little. */
const FATES = { known: 'taken before', queued: 'on disk', left: 'not yet' };

/** The most sessions of a request. */
const MOST = 1000;

const OVER = ['answered', 'failed', 'limit', 'cancelled'];

/** Each order: its name, what it does, and the sessions that it is of use to. */
export const ORDERS = {
  retry: ['Retry', 'What failed is tried again now: a call of a model from the line before it. What is done stays done.', (row) => row.status === 'failed' || row.status === 'waits'],
  pause: ['Pause', 'Nothing new begins in them until they are resumed. What has begun goes on to its end.', (row) => row.status !== 'paused'],
  resume: ['Resume', 'They go on where they were paused.', (row) => row.status === 'paused'],
  cancel: ['Cancel', 'Everything that is open in them is cancelled. What has begun and cannot be stopped may still happen; it is then in doubt.', (row) => !OVER.includes(row.status)],
};

export function Many({ order, sessions: chosen, close }) {
  const [verb, says, isOf] = ORDERS[order];
  // They stay the same while the order changes their states.
  const [sessions] = useState(() => chosen.filter(isOf));
  const others = chosen.length - sessions.length;
  const [fates, set] = useState({});
  // Whatever is sent again is the same order, so no session takes it twice.
  const [key] = useState(api.key);
  const { told } = useApp();
  const act = useAct(({ items }) => {
    set((old) => ({ ...old, ...Object.fromEntries(items.map((one) => [one.session, one])) }));
    if (sessions.length > 1 || !/^(taken|known)$/.test(items[0].fate)) return;
    told(`${verb}: taken.`);
    close();
  });
  // A session without a fate was not given the order yet.
  const open = sessions.filter(({ session }) => /^(failed|left|undefined)$/.test(fates[session]?.fate));
  const isOver = open.length === 0;
  const run = () => act.run(api.path(['orders']), { act: order, sessions: open.slice(0, MOST).map((row) => row.session), apply: true }, (path, body) => api.act(path, body, key));
  return html`
    <${Dialog} title=${`${verb} ${count(sessions.length, 'session')}?`} close=${close}>
      <p>${says}${others > 0 ? ` It is of no use to ${count(others, 'other')} of those that are selected.` : ''}</p>
      <ul class="fates">${sessions.map((row) => {
        const one = fates[row.session];
        return html`<li><code>${row.session.slice(0, 6)}</code><span>${plain(row.network)}</span>${one
          ? html`<span class=${/^(failed|refused)$/.test(one.fate) ? 'badly' : 'help'} role="status">${plain([FATES[one.fate] ?? one.fate, one.why].filter(Boolean).join(': '))}</span>`
          : html`<${Status} of=${row.status} />`}</li>`;
      })}</ul>
      <div class="buttons">
        ${isOver ? null : html`<button type="button" class=${order === 'cancel' ? 'bad' : 'primary'} disabled=${act.is === 'sent'} onClick=${run}>${act.is === 'sent' ? 'Sent' : html`${verb} ${count(open.length, 'session')}`}</button>`}
        <button type="button" class=${isOver ? '' : 'quiet'} autofocus onClick=${close}>${isOver ? 'Close' : 'Leave them'}</button>
      </div>
      <${Refused} act=${act} />
    <//>
  `;
}
