// A small part of Markdown, as data: headings, lists, quotes, code, tables as code, emphasis, and links that are not followed by
// themselves. Pure. What is not understood stays text, and nothing becomes markup.

export function blocks(text) {
  const rows = text.split('\n');
  const out = [];
  let at = 0;
  while (at < rows.length) {
    const row = rows[at];
    const fence = /^\s*(```|~~~)\s*(\S*)/.exec(row);
    if (fence) {
      const end = rows.findIndex((other, n) => n > at && other.trim().startsWith(fence[1]));
      const upto = end < 0 ? rows.length : end;
      out.push({ block: 'code', language: fence[2], text: rows.slice(at + 1, upto).join('\n') });
      at = upto + 1;
      continue;
    }
    const heading = /^(#{1,6})\s+(.*)$/.exec(row);
    if (heading) {
      out.push({ block: 'heading', level: heading[1].length, inline: inline(heading[2]) });
      at += 1;
      continue;
    }
    if (/^\s*\|.*\|\s*$/.test(row)) {
      const from = at;
      while (at < rows.length && /^\s*\|.*\|\s*$/.test(rows[at])) at += 1;
      out.push({ block: 'code', language: '', text: rows.slice(from, at).join('\n') });
      continue;
    }
    if (/^\s*>/.test(row)) {
      const from = at;
      while (at < rows.length && /^\s*>/.test(rows[at])) at += 1;
      const inner = rows.slice(from, at).map((one) => one.replace(/^\s*> ?/, ''));
      out.push({ block: 'quote', inline: inline(inner.join('\n')) });
      continue;
    }
    const item = /^(\s*)([-*+]|\d+[.)])\s+(.*)$/.exec(row);
    if (item) {
      const items = [];
      while (at < rows.length) {
        const next = /^(\s*)([-*+]|\d+[.)])\s+(.*)$/.exec(rows[at]);
        if (next) items.push({ depth: Math.min(3, Math.floor(next[1].length / 2)), mark: next[2], text: next[3] });
        else if (/^\s+\S/.test(rows[at])) items[items.length - 1].text += `\n${rows[at].trim()}`;
        else break;
        at += 1;
      }
      out.push({ block: 'list', items: items.map(({ depth, mark, text: of }) => ({ depth, mark, inline: inline(of) })) });
      continue;
    }
    if (row.trim() === '') {
      at += 1;
      continue;
    }
    const from = at;
    while (at < rows.length && rows[at].trim() !== '' && !/^(#{1,6}\s|\s*(```|~~~)|\s*>|\s*([-*+]|\d+[.)])\s)/.test(rows[at])) at += 1;
    if (at === from) at += 1;
    out.push({ block: 'text', inline: inline(rows.slice(from, at).join('\n')) });
  }
  return out;
}

const INLINE = /(`+)([\s\S]+?)\1|\*\*([^\s*](?:[^*]*[^\s*])?)\*\*|(?<![\w*])[*_]([^\s*_](?:[^*_]*[^\s*_])?)[*_](?![\w*])|\[([^\]\n]+)\]\(([^)\s]+)\)/g;

/** Returns the pieces of a text: `{ is, text }`, and `{ is: 'link', text, to }`. */
export function inline(text) {
  const out = [];
  let from = 0;
  for (const found of text.matchAll(INLINE)) {
    if (found.index > from) out.push({ is: 'text', text: text.slice(from, found.index) });
    const [whole, , code, strong, soft, label, to] = found;
    if (code !== undefined) out.push({ is: 'code', text: code });
    else if (strong !== undefined) out.push({ is: 'strong', text: strong });
    else if (soft !== undefined) out.push({ is: 'soft', text: soft });
    else if (/^https?:\/\//i.test(to)) out.push({ is: 'link', text: label, to });
    else out.push({ is: 'text', text: whole });
    from = found.index + whole.length;
  }
  if (from < text.length) out.push({ is: 'text', text: text.slice(from) });
  return out;
}
