// Numbers, times and states in words. Pure.

/** @type {[string, number][]} */
const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
];

/** Returns a span of milliseconds with its largest unit: `3 min`, `2 h`. */
export function span(ms) {
  const size = Math.abs(ms);
  if (size < 1000) return `${Math.round(size)} ms`;
  const [unit, len] = UNITS.find(([, len]) => size >= len);
  const value = size / len;
  const few = unit === 's' && value < 10 && value % 1 !== 0;
  return `${few ? value.toFixed(1) : Math.floor(value)} ${unit}`;
}

export function ago(time, now = Date.now()) {
  const ms = now - Date.parse(time);
  // The clock of a page is looked at every few seconds, and that of the server may be ahead.
  if (ms < 1000 && ms > -6000) return 'now';
  const whole = Math.trunc(ms / 1000) * 1000;
  return ms < 0 ? `in ${span(whole)}` : span(whole);
}

/** Returns how long ago a time is, as a part of a sentence. */
export function since(time, now = Date.now()) {
  const text = ago(time, now);
  return text === 'now' ? 'just now' : `${text} ago`;
}

export function due(time, now = Date.now()) {
  const ms = Date.parse(time) - now;
  return ms <= 0 ? 'overdue' : span(ms);
}

/** Returns the local time of day, with the day where it is another one. */
export function clock(time, now = Date.now()) {
  const at = new Date(time);
  // Each row of a list has a time, and a formatter takes longer than the rest of the row.
  const of = [at.getHours(), at.getMinutes(), at.getSeconds()].map((n) => String(n).padStart(2, '0')).join(':');
  const isToday = at.toDateString() === new Date(now).toDateString();
  return isToday ? of : `${at.toLocaleDateString([], { month: 'short', day: 'numeric' })} ${of}`;
}

/** Returns a whole number with thin spaces between groups of digits. */
export function number(n) {
  return String(Math.round(n)).replace(/\B(?=(\d{3})+(?!\d))/g, '\u2009');
}

/** Returns an amount in the currency of the prices. What costs nothing is a dash. */
export function money(cost) {
  if (!cost) return '–';
  return cost < 0.01 ? cost.toFixed(4) : cost < 1 ? cost.toFixed(3) : cost.toFixed(2);
}

export function bytes(n) {
  if (n < 1024) return `${n} B`;
  const [unit, len] = n < 1024 * 1024 ? ['KB', 1024] : ['MB', 1024 * 1024];
  return `${(n / len).toFixed(n / len < 10 ? 1 : 0)} ${unit}`;
}

export function count(n, noun, plural = `${noun}s`) {
  return `${number(n)} ${n === 1 ? noun : plural}`;
}

export function percent(part, whole) {
  return whole > 0 ? `${((100 * part) / whole).toFixed(part === whole ? 0 : 1)} %` : '–';
}

/** The statuses of a session: a word, and the colour and sign that go with it. */
export const STATUS = {
  new: { word: 'new', tone: 'quiet', sign: '○' },
  running: { word: 'running', tone: 'live', sign: '●' },
  interrupted: { word: 'interrupted', tone: 'warn', sign: '◐' },
  waits: { word: 'waits', tone: 'ask', sign: '◇' },
  asks: { word: 'asks', tone: 'ask', sign: '◇' },
  doubt: { word: 'in doubt', tone: 'doubt', sign: '?' },
  answered: { word: 'answered', tone: 'good', sign: '✓' },
  limit: { word: 'limit', tone: 'warn', sign: '!' },
  failed: { word: 'failed', tone: 'bad', sign: '✕' },
  cancelled: { word: 'cancelled', tone: 'quiet', sign: '–' },
  paused: { word: 'paused', tone: 'warn', sign: '‖' },
};

/** Returns the status of a session; one that this console does not know is shown as it is. */
export function status(word) {
  return STATUS[word] ?? { word, tone: 'quiet', sign: '·' };
}

/** Returns a call as people read it: `pay(order: "4711", cents: 3990)`. */
export function call(name, args) {
  if (args === null || args === undefined) return `${name}()`;
  if (typeof args !== 'object' || Array.isArray(args)) return `${name}(${JSON.stringify(args)})`;
  const shown = Object.entries(args).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
  return `${name}(${shown.join(', ')})`;
}

/** The signs in which characters are shown that would change how the text around them reads. */
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Returns the first number below a length that fits; the numbers behind it fit, too. */
export function low(length, fits) {
  let [from, to] = [0, length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (fits(middle)) to = middle;
    else from = middle + 1;
  }
  return from;
}

/** Returns a set with an item, or without it if it had it. */
export function turned(set, item) {
  const next = new Set(set);
  if (!next.delete(item)) next.add(item);
  return next;
}

/** Returns a text in which characters without a shape, and those that turn the direction, are marks. */
export function plain(text) {
  return String(text).replace(HIDDEN, (one) => `⟨${one.charCodeAt(0).toString(16).padStart(4, '0')}⟩`);
}
