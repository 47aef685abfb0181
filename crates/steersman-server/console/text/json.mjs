// JSON as rows of marked pieces. Pure.

/** The most pieces. A value that is larger is shown as plain text. */
export const MOST = 4000;

/** Returns the pieces of a value, each `[kind, text]`: kinds are `key`, `text`, `number`, `word` and `mark`. */
export function pieces(value) {
  const found = JSON.stringify(value, null, 2).matchAll(/("(?:[^"\\]+|\\.)*")(?=(:)?)|[\w.+-]+|[^"\w-]+/g);
  return [...found].map(([text, string, colon]) => [string ? (colon ? 'key' : 'text') : /^[-\d]/.test(text) ? 'number' : /^\w/.test(text) ? 'word' : 'mark', text]);
}

/** Returns the value of a text that is an object or a list, otherwise `undefined`. */
export function read(text) {
  return /^\s*[[{]/.test(text) ? value(text) : undefined;
}

/** Returns the value of a text, otherwise what is given, which is `undefined` if nothing is. */
export function value(text, otherwise = undefined) {
  try {
    return JSON.parse(text);
  } catch {
    return otherwise;
  }
}
