// The live part of one session: what its stream told since the story was read. Pure.
//
// The stream decides when the story is read again, and it has what no line holds: the words that a model is writing. Rows are made by
// the server alone, so what is on the screen is what `steersman show` prints.

export function begin() {
  return { head: 0, writing: {}, stale: false };
}

/** Returns the state after an event: `hello`, or an event of the session. */
export function fold(live, event) {
  if (event.event === undefined) {
    return { ...live, head: Math.max(live.head, event.head ?? 0), writing: {}, stale: true };
  }
  const next = event.line === undefined ? provisional(live, event) : { ...live, head: Math.max(live.head, event.line), stale: true };
  switch (event.event) {
    case 'said':
      return { ...next, writing: whole(next.writing, event) };
    case 'ended':
      return { ...next, writing: without(next.writing, event.call) };
    case 'finished':
      return { ...next, writing: ofOthers(next.writing, event.agent_id) };
    case 'owner':
    case 'settled':
      return { ...next, writing: {} };
    default:
      return next;
  }
}

function provisional(live, event) {
  const key = event.effect;
  switch (event.event) {
    case 'piece': {
      const before = live.writing[key];
      const same = before && before.attempt === event.attempt;
      const text = (same ? before.text : '') + event.text;
      const one = { effect: key, attempt: event.attempt, agent: event.agent, agentId: event.agent_id, branch: event.branch, text };
      return { ...live, writing: { ...live.writing, [key]: one } };
    }
    case 'withdrawn':
      return { ...live, writing: without(live.writing, key) };
    default:
      return live;
  }
}

/** Keeps a whole message in the place of its pieces until the rows have it. */
function whole(writing, event) {
  const before = writing[event.effect];
  return before ? { ...writing, [event.effect]: { ...before, text: event.text, line: event.line } } : writing;
}

/** Returns the state once the rows up to a line were read. */
export function caughtUp(live, head) {
  const writing = Object.entries(live.writing).filter(([, one]) => one.line === undefined || one.line > head);
  return { ...live, writing: Object.fromEntries(writing), stale: live.head > head };
}

function without(writing, key) {
  if (!(key in writing)) return writing;
  const { [key]: _gone, ...rest } = writing;
  return rest;
}

function ofOthers(writing, agent) {
  return Object.fromEntries(Object.entries(writing).filter(([, one]) => one.agentId !== agent || one.line !== undefined));
}

/** Puts newly read rows behind those that are there: rows of a line that was read before are replaced. */
export function appended(rows, fresh) {
  if (fresh.length === 0) return rows;
  const first = fresh[0].line;
  let end = rows.length;
  while (end > 0 && rows[end - 1].line >= first) end -= 1;
  return [...rows.slice(0, end), ...fresh];
}

/** Puts earlier rows in front of those that are there. */
export function prepended(rows, earlier) {
  if (rows.length === 0) return earlier;
  const first = rows[0].line;
  return [...earlier.filter((row) => row.line < first), ...rows];
}
