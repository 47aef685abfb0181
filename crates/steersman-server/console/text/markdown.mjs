// A small part of Markdown, as data: headings, lists, quotes, code, tables as code, emphasis, and links that are not followed by
// themselves. Pure. What is not understood stays text, and nothing becomes markup.

const ITEM = /^(\s*)([-*+]|\d+[.)])\s+(.*)$/;
/** The blocks whose rows all begin alike. */
const OTHER = /^(#{1,6}\s|\s*(```|~~~)|\s*>|\s*([-*+]|\d+[.)])\s)/;

export function blocks(text) {
  const rows = text.split(/\r\n?|\n/);
  const out = [];
  let at = 0;
  // Takes the rows from here on that fit.
  const take = (fits) => {
    const from = at;
    while (at < rows.length && fits(rows[at])) at += 1;
    return rows.slice(from, at);
  };
  const isCell = (row) => /^\s*\|.*\|\s*$/.test(row);
  const isQuote = (row) => /^\s*>/.test(row);
  while (at < rows.length) {
    const row = rows[at];
    const fence = /^\s*(```|~~~)/.exec(row);
    const heading = /^(#{1,6})\s+(.*)$/.exec(row);
    if (fence) {
      at += 1;
      out.push({ block: 'code', text: take((one) => !one.trim().startsWith(fence[1])).join('\n') });
      at += 1;
    } else if (heading) {
      out.push({ block: 'heading', level: heading[1].length, inline: inline(heading[2]) });
      at += 1;
    } else if (isCell(row)) out.push({ block: 'code', text: take(isCell).join('\n') });
    else if (isQuote(row)) out.push({ block: 'quote', inline: inline(take(isQuote).map((one) => one.replace(/^\s*> ?/, '')).join('\n')) });
    else if (ITEM.test(row)) {
      const items = [];
      for (const one of take((other) => ITEM.test(other) || /^\s+\S/.test(other))) {
        const [, space, mark, words] = ITEM.exec(one) ?? [];
        if (mark) items.push({ depth: Math.min(3, Math.floor(space.length / 2)), mark, text: words });
        else items.at(-1).text += `\n${one.trim()}`;
      }
      out.push({ block: 'list', items: items.map((item) => ({ ...item, inline: inline(item.text) })) });
    } else if (row.trim() === '') at += 1;
    else {
      at += 1;
      const more = take((one) => one.trim() !== '' && !OTHER.test(one));
      out.push({ block: 'text', inline: inline([row, ...more].join('\n')) });
    }
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
