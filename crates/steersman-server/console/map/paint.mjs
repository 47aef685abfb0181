// The map on a canvas: the part in sight, and the whole in a strip, from rectangles that were made elsewhere.

import { BAR, LANE, atPixel } from './scale.mjs';

/** The variable of each tone. */
const TONES = { u: 'live', a: 'answer', c: 'call', r: 'edge', q: 'accent', other: 'edge', line: 'line', bad: 'bad', doubt: 'doubt', sign: 'panel', text: 'text' };

/** Returns the colours of the theme as a canvas takes them: it knows no `light-dark`. */
export function colours(canvas) {
  const found = {};
  for (const [tone, name] of Object.entries(TONES)) {
    canvas.style.color = `var(--${name})`;
    found[tone] = getComputedStyle(canvas).color;
  }
  return found;
}

/** Gives a canvas the pixels of its place, and returns its pen. */
function sheet(canvas) {
  canvas.width = Math.round(canvas.clientWidth * devicePixelRatio);
  canvas.height = Math.round(canvas.clientHeight * devicePixelRatio);
  return canvas.getContext('2d');
}

const middle = (lane) => lane * LANE + LANE / 2;
const isPale = ({ laid, only }, lane) => only >= 0 && laid.lanes[lane].branch !== only;

/** Paints entries, each with `one`. What has a sign is painted over what has none, so that it is seen where entries are closer than pixels. */
function entries(pen, drawn, bars, one) {
  for (const noted of [false, true]) {
    for (const bar of bars) {
      if (Boolean(bar.sign) !== noted) continue;
      pen.globalAlpha = bar.pale || isPale(drawn, bar.lane) ? 0.3 : 1;
      one(pen, bar, drawn.colours);
    }
  }
  pen.globalAlpha = 1;
}

/** Paints all of the map, which has this size, in the place of the canvas: an entry is a rectangle of whole pixels, and has at least one. */
export function paintWhole(canvas, drawn, width, height) {
  const pen = sheet(canvas);
  const [right, down] = [canvas.width / width, canvas.height / height];
  entries(pen, drawn, drawn.bars, (pen, { x, y, w, h, tone }, colours) => {
    const box = [Math.floor(x * right), Math.floor(y * down), Math.round(w * right) || 1, Math.round(h * down) || 1];
    // What is pale stays so, however many are in a pixel.
    pen.clearRect(...box);
    pen.fillStyle = colours[tone];
    pen.fillRect(...box);
  });
}

/** Paints the part in sight, which begins at `left` and `top`. */
export function paint(canvas, drawn, { left, top, width, height }) {
  const { bars, spans, lines, x, laid, step, at, colours } = drawn;
  const pen = sheet(canvas);
  pen.scale(canvas.width / width, canvas.height / height);
  pen.translate(-left, -top);
  pen.fillStyle = colours.line;
  laid.lanes.forEach((lane, l) => {
    if (lane.first && l > 0) pen.fillRect(left, l * LANE, width, 1);
    pen.fillRect(left, middle(l), width, 1);
  });
  for (const span of spans) {
    if (span.to < left || span.x > left + width) continue;
    const from = Math.max(span.x, left - 20);
    pen.globalAlpha = isPale(drawn, span.lane) ? 0.3 : 1;
    hatch(pen, [from, middle(span.lane) - BAR / 2 + 2, Math.min(span.to, left + width + 20) - from, BAR - 4], colours.q);
  }
  pen.globalAlpha = 1;
  pen.lineWidth = 1.25;
  pen.strokeStyle = colours.other;
  for (const { from, to, how } of lines) {
    const [a, b] = [x[from] + step / 2, x[to] + step / 2];
    if (Math.max(a, b) < left || Math.min(a, b) > left + width) continue;
    pen.setLineDash(how === 'fork' || how === 'join' ? [] : [2, 2]);
    const [y, z] = [middle(bars[from].lane), middle(bars[to].lane)];
    pen.beginPath();
    pen.moveTo(a, y);
    pen.bezierCurveTo(a + step / 2, y, b - step / 2, (y + z) / 2, b, z);
    pen.stroke();
  }
  pen.setLineDash([]);
  pen.font = '600 11px system-ui, sans-serif';
  pen.textAlign = 'center';
  pen.textBaseline = 'middle';
  entries(pen, drawn, bars.slice(Math.max(0, atPixel(x, left) - 1), atPixel(x, left + width) + 2), one);
  if (bars[at]) {
    pen.strokeStyle = colours.text;
    pen.lineWidth = 2;
    pen.strokeRect(bars[at].x - 2, bars[at].lane * LANE + 2, bars[at].w + 4, LANE - 4);
  }
}

function one(pen, { x, y, w, h, tone, sign, border, dots }, colours) {
  pen.fillStyle = colours[tone];
  if (dots && w > 3) {
    // A frame with dots: it did not happen.
    pen.strokeStyle = colours[tone];
    pen.lineWidth = 1;
    pen.setLineDash([2, 1.5]);
    pen.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
    pen.setLineDash([]);
  } else pen.fillRect(x, y, w, h);
  if (border && w > 4) {
    pen.strokeStyle = colours.bad;
    pen.lineWidth = 2;
    pen.strokeRect(x + 1, y + 1, w - 2, h - 2);
  }
  if (sign && w >= 9) {
    pen.fillStyle = dots ? colours[tone] : colours.sign;
    pen.fillText(sign, x + w / 2, y + h / 2 + 0.5);
  }
}

function hatch(pen, [x, y, w, h], colour) {
  pen.save();
  pen.beginPath();
  pen.rect(x, y, w, h);
  pen.clip();
  pen.strokeStyle = colour;
  pen.globalAlpha *= 0.55;
  pen.lineWidth = 1.5;
  pen.beginPath();
  for (let from = Math.floor((x - h) / 6) * 6; from < x + w; from += 6) {
    pen.moveTo(from, y + h);
    pen.lineTo(from + h, y);
  }
  pen.stroke();
  pen.restore();
}
