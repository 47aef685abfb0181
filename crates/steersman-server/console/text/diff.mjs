// What changed between two texts, word by word. Pure.

/** The most words of both texts that are compared one by one: the table of the comparison has a cell for each pair. */
const MOST = 3000;

/** Returns pieces `{ is: 'same' | 'gone' | 'came', text }` that make the first text, and the second. */
export function words(before, after) {
  const a = split(before);
  const b = split(after);
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const middle = between(a.slice(head, a.length - tail), b.slice(head, b.length - tail));
  return joined([
    { is: 'same', text: a.slice(0, head).join('') },
    ...middle,
    { is: 'same', text: a.slice(a.length - tail).join('') },
  ]);
}

/** Returns two lists as rows: what both have is in one row, and what differs stands side by side. A side without an item is `undefined`. */
export function rows(before, after) {
  const out = [];
  let waiting = [];
  for (const piece of between(before, after)) {
    if (piece.is === 'gone') {
      out.push({ a: piece.text, same: false });
      waiting.push(out.length - 1);
    } else if (piece.is === 'came') {
      const at = waiting.shift();
      if (at === undefined) out.push({ b: piece.text, same: false });
      else out[at].b = piece.text;
    } else {
      waiting = [];
      out.push({ a: piece.text, b: piece.text, same: true });
    }
  }
  return out;
}

function split(text) {
  return text.match(/\w+|\s+|[^\w\s]/gu) ?? [];
}

function between(a, b) {
  if (a.length + b.length > MOST) return [...a.map((text) => ({ is: 'gone', text })), ...b.map((text) => ({ is: 'came', text }))];
  const width = b.length + 1;
  const longest = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      longest[i * width + j] =
        a[i] === b[j] ? longest[(i + 1) * width + j + 1] + 1 : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
    }
  }
  const out = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      out.push({ is: 'same', text: a[i] });
      i += 1;
      j += 1;
    } else if (j === b.length || (i < a.length && longest[(i + 1) * width + j] >= longest[i * width + j + 1])) {
      out.push({ is: 'gone', text: a[i] });
      i += 1;
    } else {
      out.push({ is: 'came', text: b[j] });
      j += 1;
    }
  }
  return out;
}

function joined(pieces) {
  const out = [];
  for (const piece of pieces) {
    if (piece.text === '') continue;
    const last = out.at(-1);
    if (last?.is === piece.is) last.text += piece.text;
    else out.push({ ...piece });
  }
  return out;
}
