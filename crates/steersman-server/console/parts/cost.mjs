// What a fork, a rewind or a rerun may cost, as far as the recording says.

import { api, count, html, money, useApi, useApp } from '../kit.mjs';

/** Says what the model calls behind a line cost, so many times. Without the permission for contexts it is what the whole session cost. */
export function Cost({ session, branch, line, times = 1 }) {
  const { me } = useApp();
  const may = me.allows.includes('context');
  const calls = useApi(may ? api.of(session, ['contexts'], { branch }) : null);
  const page = useApi(may ? null : api.path(['sessions', session]));
  if (!calls.data && !page.data) return html`<span>…</span>`;
  const behind = (calls.data?.items ?? []).filter((one) => (one.answered ?? one.wished) > (line ?? 0));
  const n = may ? behind.length : page.data.model_calls;
  const cost = may ? behind.reduce((sum, one) => sum + (one.usage?.micros ?? 0), 0) / 1e6 : page.data.cost;
  const all = times > 1 ? `, ${money(cost * times)} for ${times} runs` : '';
  const where = may && line !== undefined ? 'On record behind this line:' : 'The session has on record:';
  return html`<span>${where} ${count(n, 'model call')} for <b>${cost ? money(cost) : 'nothing'}</b>${all}. Other answers may be longer or shorter; the limits of the definition hold.</span>`;
}
