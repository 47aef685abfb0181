// A list that keeps only the rows in sight in the page. Rows may have different heights: they are measured, and what was in sight stays where
// it is. The list itself has the focus, so recycling a row never loses it.

import { html, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from './ui.mjs';
import { low } from './words.mjs';

/** Pixels above and below the part in sight whose rows are there, too. */
const OVER = 400;
/** Pixels from the end within which a list counts as being at its end. */
const NEAR = 48;

/**
 * `row(item, at)` returns the cells of a row. `open(item)` is called for Enter and a click. `end` and `start` are called near the ends, to
 * load more. With `stick` the list stays at its end while rows are added. `tree(item)` returns the level of a row, and whether it is open if
 * others are below it.
 */
export function Rows(props) {
  const { items, keyOf, row, open, label, end, start, stick, estimate = 34, active, setActive, total, classOf, head, tail, stuck, tree } = props;
  const box = useRef(null);
  // While the list is only scrolled, rows that stay in sight are not made again.
  const made = useRef([props, new Map()]);
  const heights = useRef(new Map());
  const anchor = useRef(null);
  const atEnd = useRef(Boolean(stick));
  // The place where the list was scrolled to last. Where the element is elsewhere, the person is scrolling, and is left alone.
  const place = useRef(0);
  const to = (top) => {
    box.current.scrollTop = top;
    place.current = box.current.scrollTop;
  };
  const [view, setView] = useState({ top: 0, height: 800 });
  const [version, again] = useReducer((n) => n + 1, 0);

  const tops = useMemo(() => {
    const all = new Float64Array(items.length + 1);
    for (let at = 0; at < items.length; at += 1) {
      all[at + 1] = all[at] + (heights.current.get(String(keyOf(items[at]))) ?? estimate);
    }
    return all;
  }, [items, version, estimate]);

  const first = Math.max(0, below(tops, view.top - OVER));
  const last = Math.min(items.length, below(tops, view.top + view.height + OVER) + 1);

  useLayoutEffect(() => {
    const element = box.current;
    let changed = false;
    for (const child of element.querySelectorAll(':scope > [data-key]')) {
      const height = child.getBoundingClientRect().height;
      const { key } = child.dataset;
      if (height > 0 && Math.abs((heights.current.get(key) ?? estimate) - height) > 0.5) {
        heights.current.set(key, height);
        changed = true;
      }
    }
    if (changed) again();
    if (stick && atEnd.current) {
      to(element.scrollHeight);
    } else if (anchor.current && Math.abs(element.scrollTop - place.current) < 1) {
      const at = items.findIndex((item) => keyOf(item) === anchor.current.key);
      const top = at < 0 ? null : tops[at] + anchor.current.inside;
      if (top !== null && Math.abs(element.scrollTop - top) > 1) to(top);
    }
  });

  useEffect(() => {
    const element = box.current;
    const watch = new ResizeObserver(() => {
      setView((old) => ({ ...old, height: element.clientHeight }));
    });
    watch.observe(element);
    return () => watch.disconnect();
  }, []);

  const scrolled = () => {
    const element = box.current;
    // The list may be gone when its last scrolling is told.
    if (!element) return;
    const top = element.scrollTop;
    place.current = top;
    const isAtEnd = top + element.clientHeight >= element.scrollHeight - NEAR;
    if (isAtEnd !== atEnd.current) {
      atEnd.current = isAtEnd;
      stuck?.(isAtEnd);
    }
    const at = Math.min(items.length - 1, below(tops, top));
    anchor.current = at < 0 ? null : { key: keyOf(items[at]), inside: top - tops[at] };
    setView({ top, height: element.clientHeight });
    if (isAtEnd) end?.();
    if (top < OVER) start?.();
  };

  useEffect(() => {
    // A list that does not fill its place has no scrolling that would load more.
    const element = box.current;
    if (items.length > 0 && element.scrollHeight <= element.clientHeight + NEAR) end?.();
  }, [items.length]);

  const go = (wanted) => {
    setActive?.(keyOf(items[Math.max(0, Math.min(items.length - 1, wanted))]));
  };
  const activeAt = active === undefined ? -1 : items.findIndex((item) => keyOf(item) === active);
  // The active row is in sight once it is there, also if an address or another part of the screen chose it. What is far away is put into the middle.
  useLayoutEffect(() => {
    if (activeAt < 0) return;
    const { scrollTop, clientHeight } = box.current;
    const [above, below] = [scrollTop - tops[activeAt], tops[activeAt + 1] - scrollTop - clientHeight];
    const far = Math.max(above, below);
    if (far <= 0) return;
    atEnd.current = Boolean(stick) && activeAt === items.length - 1;
    to(far > clientHeight ? tops[activeAt] - clientHeight / 2 : above > 0 ? tops[activeAt] : scrollTop + below);
  }, [active, activeAt < 0]);

  const pressed = (event) => {
    if (event.target !== box.current || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(view.height / estimate) - 1);
    const steps = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page };
    if (event.key in steps && items.length > 0) go(activeAt < 0 ? (steps[event.key] > 0 ? 0 : items.length - 1) : activeAt + steps[event.key]);
    else if (event.key === 'Home') go(0);
    else if (event.key === 'End') go(items.length - 1);
    else if (event.key === 'Enter' && activeAt >= 0) open?.(items[activeAt]);
    else if (tree && activeAt >= 0 && { ArrowLeft: true, ArrowRight: false }[event.key] === tree(items[activeAt]).open) open(items[activeAt]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  const [of, old] = made.current;
  const inSight = new Map();
  made.current = [props, inSight];
  for (let at = first; at < last; at += 1) {
    const item = items[at];
    const key = keyOf(item);
    inSight.set(at, (of === props && old.get(at)) || html`
      <div
        key=${key}
        data-key=${key}
        id=${`row-${key}`}
        role="row"
        aria-rowindex=${at + 1}
        aria-selected=${key === active}
        aria-level=${tree?.(item).level}
        aria-expanded=${tree?.(item).open}
        class=${`row ${classOf?.(item) ?? ''} ${key === active ? 'active' : ''}`}
        onClick=${(event) => {
          if (event.target.closest('a, button, input, select, textarea') || String(getSelection())) return;
          setActive?.(key);
          open?.(item);
        }}
      >
        ${row(item, at)}
      </div>
    `);
  }
  return html`
    <div
      ref=${box}
      class="rows"
      role=${tree ? 'treegrid' : 'grid'}
      tabindex="0"
      aria-label=${label}
      aria-rowcount=${total ?? items.length}
      aria-activedescendant=${activeAt >= first && activeAt < last ? `row-${active}` : undefined}
      onScroll=${scrolled}
      onKeyDown=${pressed}
    >
      ${head}
      <div role="presentation" style=${{ height: `${tops[first] ?? 0}px` }}></div>
      ${[...inSight.values()]}
      <div role="presentation" style=${{ height: `${tops[items.length] - (tops[last] ?? 0)}px` }}></div>
      ${tail}
    </div>
  `;
}

/** Returns the index of the last row that begins at or above a place. */
function below(tops, place) {
  return Math.max(0, low(tops.length, (at) => tops[at] > place) - 1);
}
