// JSON as rows of marked pieces. Pure.

/** Returns the pieces of a value, each `[kind, text]`: kinds are `key`, `text`, `number`, `word` and `mark`. */
export function pieces(value, indent = '') {
  const out = [];
  write(value, indent, out);
  return out;
}

/** The most pieces. A value that is larger is shown as plain text. */
export const MOST = 4000;

function write(value, indent, out) {
  if (value === null || typeof value === 'boolean') out.push(['word', String(value)]);
  else if (typeof value === 'number') out.push(['number', String(value)]);
  else if (typeof value === 'string') out.push(['text', JSON.stringify(value)]);
  else if (Array.isArray(value)) list(value.map((item) => [null, item]), ['[', ']'], indent, out);
  else list(Object.entries(value), ['{', '}'], indent, out);
}

function list(entries, [open, close], indent, out) {
  if (entries.length === 0) {
    out.push(['mark', open + close]);
    return;
  }
  const inner = `${indent}  `;
  out.push(['mark', open]);
  entries.forEach(([name, item], at) => {
    out.push(['mark', `${at === 0 ? '' : ','}\n${inner}`]);
    if (name !== null) out.push(['key', JSON.stringify(name)], ['mark', ': ']);
    write(item, inner, out);
  });
  out.push(['mark', `\n${indent}${close}`]);
}

/** Returns the value of a text that is an object or a list, otherwise `undefined`. */
export function read(text) {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
