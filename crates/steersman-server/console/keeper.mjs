// A service worker that keeps the token of a tab while the tab loads again. It keeps it in memory, for as long as the browser lets it idle,
// which is half a minute: what a page stores itself, the browser writes into the profile of the person. It answers no requests.

const worker = /** @type {any} */ (self);
const kept = new Map();

worker.addEventListener('install', () => worker.skipWaiting());

worker.addEventListener('message', ({ data: { tab, token }, ports: [answer] }) => {
  if (answer) answer.postMessage(kept.get(tab) ?? null);
  else if (token) kept.set(tab, token);
  else kept.delete(tab);
});
