// Where each entry of a session's map is: lanes from top to bottom, entries from left to right. Pure.
//
// The entries, branches and agents are those of `GET /map`, which the timeline of the program has, too.

import { low } from '../words.mjs';

export const FAILED = 1;
export const DOUBT = 2;
export const BY_PERSON = 4;
export const CUT_OFF = 8;
export const UNSAFE = 16;
export const BROKE = 32;
export const SIMULATED = 64;
export const CANCELLED = 128;

export const KINDS = {
  u: 'message',
  a: 'answer of a model',
  c: 'call',
  r: 'result',
  R: 'choice of a router',
  S: 'summary',
  f: 'end of the work',
  q: 'wait',
  d: 'decision',
  w: 'edit of the state',
  b: 'branch begins',
  o: 'another process drives it',
};

/** @type {[number, string][]} */
const NOTES = [
  [FAILED, 'failed'],
  [DOUBT, 'in doubt'],
  [BY_PERSON, 'by a person'],
  [CUT_OFF, 'cut off'],
  [UNSAFE, 'unsafe'],
  [BROKE, 'broke the cached prefix'],
  [SIMULATED, 'simulated'],
  [CANCELLED, 'cancelled'],
];

/** Pixels of a lane and of a bar in it. */
export const LANE = 34;
export const BAR = 18;
/** Pixels of a second, and the most pixels of a gap between two entries: what is longer is cut. */
const SECOND = 8;
const GAP = 160;
/** Pixels behind the last entry over which an open wait reaches. */
export const OPEN = 48;

/** Puts a part of the columns behind what was there. The whole is the same, however it came in parts. */
export function joined(model, part) {
  let [line, at] = [0, part.base_ms];
  const fresh = part.lines.map((step, n) => {
    line += step;
    at += part.at[n];
    return { line, k: part.k[n], at, branch: part.branch[n], agent: part.agent[n], kind: part.kind[n], flags: part.flags[n] };
  });
  const head = model?.head ?? 0;
  const waits = new Map((model?.waits ?? []).map((wait) => [`${wait.effect}/${wait.from_line}`, wait]));
  for (const wait of part.waits) waits.set(`${wait.effect}/${wait.from_line}`, wait);
  return {
    head: part.head,
    all: [...(model?.all ?? []), ...fresh.filter((entry) => entry.line > head)],
    branches: part.branches,
    agents: part.agents,
    waits: [...waits.values()],
    links: [...(model?.links ?? []), ...part.links.filter((one) => one.to[0] > head)],
  };
}

export function named(branch) {
  return branch.label ?? branch.id;
}

export function fate(branch) {
  if (branch.superseded) return 'left behind';
  if (branch.adopted_to !== null && branch.adopted_to !== undefined) return 'adopted';
  if (branch.joined_at) return 'joined';
  return branch.ended ? 'ended' : '';
}

/** Returns the lanes, and the lane of each entry: branches below the one that they left, and in each its agents in their order. `current` is a
 *  branch's name. */
export function lanes({ branches, agents, all }, current) {
  /** @type {Set<number>[]} */
  const used = branches.map(() => new Set());
  for (const entry of all) if (entry.agent !== null) used[entry.branch].add(entry.agent);
  const found = [];
  const add = (parent, depth) => {
    branches.forEach((branch, b) => {
      if ((branch.from?.[0] ?? null) !== parent) return;
      const own = [...used[b]].sort((x, y) => x - y);
      for (const agent of own.length > 0 ? own : [null]) {
        const first = agent === (own[0] ?? null);
        found.push({ branch: b, agent, depth, first, label: first ? named(branch) : '', who: agent === null ? '' : agents[agent].name, note: first ? (named(branch) === current ? 'current' : fate(branch)) : '' });
      }
      add(b, depth + 1);
    });
  };
  add(null, 0);
  // What belongs to no agent is in the first lane of its branch.
  const place = new Map();
  found.forEach((lane, y) => {
    place.set(`${lane.branch}/${lane.agent}`, y);
    if (lane.first) place.set(`${lane.branch}/null`, y);
  });
  return { lanes: found, of: all.map((entry) => place.get(`${entry.branch}/${entry.agent}`)) };
}

/** Returns the left end of each entry, and the end of the last: as far apart as the steps, or as the time between them. */
export function places(all, step, timed) {
  const x = new Float64Array(all.length + 1);
  for (let n = 0; n < all.length; n += 1) {
    const next = all[n + 1]?.at ?? all[n].at;
    const gap = timed ? Math.min(GAP, ((next - all[n].at) / 1000) * SECOND * (step / 8)) : 0;
    x[n + 1] = x[n] + Math.max(step, gap);
  }
  return x;
}

export function atLine(all, line) {
  return low(all.length, (n) => all[n].line >= line);
}

export function atPixel(x, pixel) {
  return Math.max(0, Math.min(x.length - 2, low(x.length, (n) => x[n] > pixel) - 1));
}

/** Returns the rectangle of each entry: its place, its colour, and its sign. */
export function bars({ all, branches }, of, x, step) {
  return all.map((entry, n) => {
    const { kind, flags } = entry;
    const isTall = 'acuq'.includes(kind) || Boolean(flags & (FAILED | DOUBT));
    const inset = (LANE - BAR) / 2 + (isTall ? 0 : BAR / 4);
    const left = branches[entry.branch].superseded;
    const isDone = kind === 'd' && !(flags & FAILED);
    return {
      n,
      lane: of[n],
      x: x[n],
      y: of[n] * LANE + inset,
      w: Math.max(1, step > 4 ? step - 1 : step),
      h: LANE - 2 * inset,
      tone: flags & DOUBT ? 'doubt' : flags & (FAILED | CANCELLED) ? 'bad' : 'uacr'.includes(kind) ? kind : kind === 'd' || kind === 'q' ? 'q' : 'other',
      sign: flags & DOUBT ? '?' : flags & FAILED ? '✕' : kind === 'q' ? '◇' : isDone ? '✓' : '',
      border: Boolean(flags & UNSAFE),
      dots: Boolean(flags & SIMULATED),
      pale: left !== null && left !== undefined && entry.line > left,
    };
  });
}

/** Returns the spans in which something waits, in the lane of the call that waits. One that goes on reaches beyond the end. */
export function spans({ all, waits }, laid, x) {
  const end = x[all.length];
  return waits.map((wait) => {
    const [line, k] = wait.effect.split('.').map(Number);
    const begins = atLine(all, wait.from_line);
    let call = -1;
    for (let n = atLine(all, line); n < all.length && all[n].line <= wait.from_line; n += 1) {
      if (all[n].kind === 'c' && all[n].branch === wait.branch && (call < 0 || all[n].k === k)) call = n;
    }
    const ends = wait.to_line === null ? null : Math.max(atLine(all, wait.to_line), begins + 1);
    const own = laid.lanes.findIndex((lane) => lane.branch === wait.branch);
    return { kind: wait.kind, by: wait.by, open: wait.to_line === null, lane: call < 0 ? own : laid.of[call], x: x[Math.min(begins, all.length)], to: ends === null ? end + OPEN : x[Math.min(ends, all.length)] };
  });
}

/** Returns the lines between lanes: calls and returns of agents, and branches that leave and come back. Each is from one entry to another. */
export function lines({ all, links, branches }, of) {
  const found = new Map();
  all.forEach((entry, n) => {
    const key = `${entry.line}/${entry.agent}`;
    if (!found.has(key)) found.set(key, n);
  });
  const out = [];
  const add = (from, to, how) => from >= 0 && to >= 0 && from < all.length && to < all.length && of[from] !== of[to] && out.push({ from, to, how });
  for (const { from, to, how } of links) add(found.get(`${from[0]}/${from[1]}`) ?? -1, found.get(`${to[0]}/${to[1]}`) ?? -1, how);
  branches.forEach((branch, b) => {
    if (branch.from) {
      // The branch leaves behind the last entry up to its line.
      let from = atLine(all, branch.from[1] + 1) - 1;
      while (from >= 0 && all[from].branch !== branch.from[0]) from -= 1;
      add(from, all.findIndex((entry) => entry.branch === b), 'fork');
    }
    if (branch.joined_at) add(all.findLastIndex((entry) => entry.branch === b), atLine(all, branch.joined_at), 'join');
  });
  return out;
}

/** Returns the next entry of the lane above or below, nearest in time. */
export function beside(of, at, by, lanes) {
  for (let lane = of[at] + by; lane >= 0 && lane < lanes; lane += by) {
    for (let far = 0; far < of.length; far += 1) {
      if (of[at - far] === lane) return at - far;
      if (of[at + far] === lane) return at + far;
    }
  }
  return at;
}

export function told(model, entry) {
  return {
    what: KINDS[entry.kind] ?? entry.kind,
    who: entry.agent === null ? '' : model.agents[entry.agent].name,
    branch: named(model.branches[entry.branch]),
    notes: NOTES.filter(([flag]) => entry.flags & flag).map(([, word]) => word),
  };
}

/** Returns the rows of the outline: branches and agents with their entries below. What is folded has none. */
export function outline(model, laid, folded) {
  const rows = [];
  const byLane = laid.lanes.map(() => []);
  laid.of.forEach((lane, n) => byLane[lane].push(n));
  laid.lanes.forEach((lane, l) => {
    const key = `l${l}`;
    rows.push({ key, level: lane.depth + 1, lane, count: byLane[l].length, open: !folded.has(key) });
    if (!folded.has(key)) for (const n of byLane[l]) rows.push({ key: `e${n}`, level: lane.depth + 2, n, entry: model.all[n], ...told(model, model.all[n]) });
  });
  return rows;
}
