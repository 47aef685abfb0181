// The token of this tab: in memory, and in the storage that ends with the tab. It is in no address and in no file.

const KEY = 'steersman.token';
/** Milliseconds in which another tab gives its token. */
const PATIENCE = 250;

let token = null;
let lapsed = false;
const listeners = new Set();
const tabs = new BroadcastChannel('steersman');

tabs.onmessage = ({ data }) => {
  if (data?.ask && token) tabs.postMessage({ token });
  if (data?.left) drop();
};

export function current() {
  return token;
}

export function watch(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function keep(text) {
  lapsed = false;
  token = text;
  sessionStorage.setItem(KEY, text);
  for (const listener of listeners) listener();
}

function drop() {
  token = null;
  sessionStorage.removeItem(KEY);
  for (const listener of listeners) listener();
}

export function leave() {
  lapsed = false;
  drop();
  tabs.postMessage({ left: true });
}

/** Forgets a token that the server does not take any more, in this tab alone. */
export function lapse() {
  lapsed = true;
  drop();
}

export function hasLapsed() {
  return lapsed;
}

/** Finds the token at the start of the page: for a code in the address, of this tab, or of another one. Returns why there is none. */
export async function find() {
  const [, code] = /^#c=([0-9a-z]+)$/.exec(location.hash) ?? [];
  if (code) {
    history.replaceState(null, '', `${location.pathname}${location.search}#/`);
    const answer = await fetch('v1/token/exchange', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ code }),
    });
    const body = await answer.json();
    if (answer.ok) {
      keep(body.token);
      return null;
    }
    return `The address had a code that is not good any more: ${body.detail}. ${body.help ?? ''}`;
  }
  const kept = sessionStorage.getItem(KEY) ?? (await ofAnotherTab());
  if (kept) keep(kept);
  return null;
}

function ofAnotherTab() {
  return new Promise((found) => {
    const timer = setTimeout(() => found(null), PATIENCE);
    const hear = ({ data }) => {
      if (!data?.token) return;
      clearTimeout(timer);
      tabs.removeEventListener('message', hear);
      found(data.token);
    };
    tabs.addEventListener('message', hear);
    tabs.postMessage({ ask: true });
  });
}
