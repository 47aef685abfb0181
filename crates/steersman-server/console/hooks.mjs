// What screens share: requests, streams, acts, keys, and what the person who looks may do.

import * as api from './api.mjs';
import { createContext, useCallback, useContext, useEffect, useRef, useState } from './ui.mjs';

/** The token's owner, the current route, and what is shown over all screens. */
export const App = createContext(null);
export const useApp = () => useContext(App);

/** Milliseconds between a request and the next one for a newer version. */
const CALM = 120;

/**
 * Asks for a path, and again after `reload` or for another version. What was there stays until there is something newer. Versions that come
 * while a request is under way wait for its end, so a session that does much does not keep its own screen from loading.
 */
export function useApi(path, version) {
  const [state, set] = useState({ path: null, data: null, problem: null });
  const [turn, next] = useState(0);
  const reload = useCallback(() => next((n) => n + 1), []);
  const asked = useRef({ busy: false, seen: version, version });
  asked.current.version = version;
  useEffect(() => {
    if (!path) return undefined;
    const stop = new AbortController();
    Object.assign(asked.current, { busy: true, seen: asked.current.version });
    api.get(path, { signal: stop.signal }).then(
      (data) => set({ path, data, problem: null }),
      (problem) => problem.name !== 'AbortError' && set((old) => ({ path, data: old.path === path ? old.data : null, problem })),
    ).then(() => !stop.signal.aborted && setTimeout(() => {
      if (stop.signal.aborted) return;
      asked.current.busy = false;
      if (asked.current.seen !== asked.current.version) reload();
    }, CALM));
    return () => stop.abort();
  }, [path, turn]);
  useEffect(() => {
    if (!asked.current.busy && asked.current.seen !== version) reload();
  }, [version]);
  const isOld = state.path !== path;
  return { data: isOld ? null : state.data, problem: isOld ? null : state.problem, reload };
}

/** Milliseconds after which a hidden page gives its stream back. */
const HIDDEN = 30_000;

/** Follows a stream while the page is in sight. Returns its state. */
export function useStream(path, hear) {
  const [state, set] = useState({ live: false, since: null });
  const heard = useRef(hear);
  heard.current = hear;
  useEffect(() => {
    if (!path) return undefined;
    let stream = null;
    let timer = null;
    const open = () => {
      clearTimeout(timer);
      stream ??= api.follow(path, (data, kind) => heard.current(data, kind), set);
    };
    const close = () => {
      stream?.close();
      stream = null;
    };
    const turned = () => {
      if (document.visibilityState === 'visible') open();
      else timer = setTimeout(close, HIDDEN);
    };
    if (document.visibilityState === 'visible') open();
    document.addEventListener('visibilitychange', turned);
    return () => {
      document.removeEventListener('visibilitychange', turned);
      clearTimeout(timer);
      close();
    };
  }, [path]);
  return state;
}

/**
 * Sends acts, one at a time. An act keeps its key until it is known what became of it, so whatever is sent twice is carried out once.
 */
export function useAct(done) {
  const [state, set] = useState({ is: 'idle' });
  const sent = useRef({ text: null, key: null });
  const run = async (path, body, send = api.act) => {
    if (state.is === 'sent') return null;
    const text = `${path} ${JSON.stringify(body)}`;
    if (sent.current.text !== text) sent.current = { text, key: api.key() };
    set({ is: 'sent' });
    try {
      const receipt = await send(path, body, sent.current.key);
      sent.current = { text: null, key: null };
      set({ is: 'taken', receipt });
      done?.(receipt);
      return receipt;
    } catch (problem) {
      if (problem.code !== 'unreached' && problem.code !== 'late') sent.current = { text: null, key: null };
      set({ is: 'refused', problem });
      return null;
    }
  };
  return { ...state, run };
}

/** The keys of the screens in sight, the newest last. */
const layers = [];

/** Adds keys while a part is in sight. */
export function useKeys(keys) {
  const own = useRef(keys);
  own.current = keys;
  useEffect(() => {
    const layer = () => own.current;
    layers.push(layer);
    return () => layers.splice(layers.indexOf(layer), 1);
  }, []);
}

let before = null;

/** Carries out what a key stands for, unless it is typed into a field. */
export function pressed(event, isOn) {
  if (!isOn || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.target.closest('input, textarea, select, dialog, [contenteditable]')) return;
  const key = before === 'g' ? `g ${event.key}` : event.key;
  before = key === 'g' ? 'g' : null;
  for (let at = layers.length - 1; at >= 0; at -= 1) {
    const act = layers[at]()[key];
    if (act) {
      event.preventDefault();
      act(event);
      return;
    }
  }
}

/** Moves the focus to the first element that fits a selector, if there is one. */
export function focusOn(selector) {
  const found = document.querySelector(selector);
  if (found instanceof HTMLElement) found.focus();
}

/** Returns the roles of the token that may answer a question. */
export function rolesFor(me, question) {
  const own = me.roles.length > 0 ? me.roles : ['user'];
  if (question.for.includes('any')) return own;
  return own.filter((role) => question.for.includes(role));
}

/** Calls a function at most once in a while; the last call counts. */
export function useCalm(act, wait) {
  const timer = useRef(null);
  const newest = useRef(act);
  newest.current = act;
  useEffect(() => () => clearTimeout(timer.current), []);
  return useCallback(() => {
    timer.current ??= setTimeout(() => {
      timer.current = null;
      newest.current();
    }, wait);
  }, []);
}
