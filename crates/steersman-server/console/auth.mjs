// The token of this tab: in memory, and while the page loads again in that of the keeper. It is in no address and in no file.

/** The name of this tab, which says nothing. */
const TAB = 'steersman.tab';
/** Milliseconds in which the keeper gives its token; it may have to start. */
const WORKER = 10_000;
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

const wasHere = sessionStorage.getItem(TAB);
const tab = wasHere ?? random();
sessionStorage.setItem(TAB, tab);

/** The keeper. A page that is not on this computer and has no TLS gets none: it asks for the token after a reload. */
let keeper = null;

async function startKeeper() {
  const url = new URL('keeper.mjs', import.meta.url).href;
  const policy = /** @type {any} */ (globalThis).trustedTypes?.createPolicy('steersman', { createScriptURL: () => url });
  const workers = navigator.serviceWorker;
  // One that is there is asked at once, and looks for a newer file meanwhile.
  const known = await workers.getRegistration(new URL('.', url).href);
  const registering = workers.register(policy ? policy.createScriptURL('') : url);
  if (known) registering.catch(() => {});
  const found = known ?? (await registering);
  keeper = found.active ?? found.waiting ?? found.installing;
  if (token) entrust();
}

const started = startKeeper().catch(() => {});

function entrust() {
  keeper?.postMessage({ tab, token });
}

// The keeper may have forgotten it by now. A page that has not found its token yet takes nothing from the keeper.
addEventListener('pagehide', () => {
  if (token) entrust();
});

/** Returns 128 random bits. A page without TLS has no `randomUUID`. */
export function random() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

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
  entrust();
  for (const listener of listeners) listener();
}

function drop() {
  token = null;
  entrust();
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
    const looking = known();
    const answer = await fetch('v1/token/exchange', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ code }),
    });
    const body = await answer.json();
    if (answer.ok) {
      // An address of somebody else may lead to their token: whoever is signed in is asked first.
      const before = await looking;
      const other = before && before !== body.token;
      keep(other && !confirm(`This address signs you in with another token: ${body.token.split('_')[1]}. Use it in place of yours?`) ? before : body.token);
      return null;
    }
    return `The address had a code that is not good any more: ${body.detail}. ${body.help ?? ''}`;
  }
  const kept = await known();
  if (kept) keep(kept);
  return null;
}

/** Returns the token of this tab before its reload, or of another tab. */
async function known() {
  return (await ofKeeper()) ?? (await ofAnotherTab());
}

async function ofKeeper() {
  await started;
  if (!keeper || !wasHere) return null;
  const { port1, port2 } = new MessageChannel();
  return new Promise((found) => {
    let isLate = false;
    setTimeout(() => {
      isLate = true;
      found(null);
    }, WORKER);
    port1.onmessage = ({ data }) => {
      found(data);
      // The page asks for a token by now, and needs it no more.
      if (isLate && data && !token) keep(data);
    };
    keeper.postMessage({ tab }, [port2]);
  });
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
