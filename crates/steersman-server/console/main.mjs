// The console: what is around all screens, and which screen an address means.

import { api, App, Dialog, focusOn, html, link, pressed, read, render, useApi, useEffect, useKeys, useMemo, useState } from './kit.mjs';
import * as auth from './auth.mjs';
import { Rail } from './parts/rail.mjs';
import { KEYS } from './parts/keys.mjs';
import { Definitions } from './screens/definitions.mjs';
import { Diff } from './screens/diff.mjs';
import { Inbox } from './screens/inbox.mjs';
import { Memories } from './screens/memories.mjs';
import { QuestionPage } from './screens/question.mjs';
import { Rerun } from './screens/rerun.mjs';
import { Server } from './screens/server.mjs';
import { Session } from './screens/session.mjs';
import { Sessions } from './screens/sessions.mjs';
import { SignIn } from './screens/signin.mjs';

/** The places where choices of the person are kept that are no secret. */
const THEME = 'steersman.theme';
const SINGLE_KEYS = 'steersman.keys';

function useRoute() {
  const [route, set] = useState(() => read(location.hash));
  useEffect(() => {
    const changed = () => set(read(location.hash));
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  return route;
}

function useTheme() {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const [theme, set] = useState(localStorage.getItem(THEME));
  const [, again] = useState(null);
  useEffect(() => dark.addEventListener('change', again), []);
  if (theme) {
    // At once: what is painted below reads the colours.
    document.documentElement.dataset.theme = theme;
    localStorage.setItem(THEME, theme);
  }
  return [theme ?? (dark.matches ? 'dark' : 'light'), set];
}

const SCREENS = { sessions: Sessions, inbox: Inbox, diff: Diff, memories: Memories, server: Server, definitions: Definitions };

function Screen({ route: { parts: [first = 'sessions', second, third = 'story', of], query } }) {
  const its = { session: second, query };
  if (first === 's') {
    if (third === 'q') return html`<${QuestionPage} key=${`${second}/${of}`} session=${second} question=${of} />`;
    if (third === 'rerun') return html`<${Rerun} key=${second} ...${its} />`;
    return html`<${Session} key=${second} ...${its} tab=${third} of=${of} />`;
  }
  return Object.hasOwn(SCREENS, first)
    ? html`<${SCREENS[first]} query=${query} definition=${second} />`
    : html`<main class="page"><div class="empty"><h1>There is no such page</h1><p><a href="#/">All sessions</a></p></div></main>`;
}

function Shell({ me }) {
  const route = useRoute();
  const [theme, setTheme] = useTheme();
  const [help, showHelp] = useState(false);
  const [leaves, setLeaves] = useState(false);
  const [single, setSingle] = useState(localStorage.getItem(SINGLE_KEYS) !== 'off');
  const [toast, setToast] = useState(null);
  const open = useApi(api.path(['questions'], { limit: 200 }));
  const go = (parts, query) => {
    location.hash = link(parts, query);
  };

  useKeys({
    'g s': () => go([]),
    'g i': () => go(['inbox']),
    'g d': () => go(['definitions']),
    'g m': () => go(['memories']),
    'g v': () => go(['server']),
    '?': () => showHelp(true),
    t: () => setTheme(theme === 'dark' ? 'light' : 'dark'),
  });
  useEffect(() => {
    const hear = (event) => pressed(event, single);
    addEventListener('keydown', hear);
    return () => removeEventListener('keydown', hear);
  }, [single]);
  // The focus is never lost: what had it and is gone leaves it to the screen.
  useEffect(() => {
    const watch = new MutationObserver(() => document.activeElement === document.body && focusOn(document.querySelector('dialog[open]') ? 'dialog[open] button' : 'main'));
    watch.observe(document.body, { childList: true, subtree: true });
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === 'visible' && open.reload(), 20_000);
    return () => clearInterval(timer);
  }, []);
  useEffect(() => {
    if (!toast) return undefined;
    const timer = setTimeout(() => setToast(null), 6000);
    return () => clearTimeout(timer);
  }, [toast]);

  const app = useMemo(() => ({ me, open, told: setToast, go, theme }), [me, open.data, theme]);
  return html`
    <${App.Provider} value=${app}>
      <a class="skip" href="#content" onClick=${(event) => {
        event.preventDefault();
        focusOn('main');
      }}>Skip to the content</a>
      <div class="frame">
        <${Rail} at=${route.parts[0]} me=${me} open=${open.data?.items} theme=${theme} setTheme=${setTheme} help=${() => showHelp(true)} leave=${() => setLeaves(true)} />
        <${Screen} route=${route} />
      </div>
      <div class="toast" role="status" aria-live="polite">${toast ? html`<span>${toast}</span>` : null}</div>
      ${leaves
        ? html`<${Dialog} title="Sign out?" close=${() => setLeaves(false)}>
            <p>All tabs of this browser forget the token.</p>
            <div class="buttons"><button type="button" class="bad" onClick=${auth.leave}>Sign out</button><button type="button" class="quiet" autofocus onClick=${() => setLeaves(false)}>Stay</button></div>
          <//>`
        : null}
      ${help
        ? html`<${Dialog} title="Keys" wide close=${() => showHelp(false)}>
            <dl class="keys">${KEYS.map(([keys, does]) => html`<div><dt>${keys.split(' ').map((key) => html`<kbd>${key}</kbd>`)}</dt><dd>${does}</dd></div>`)}</dl>
            <label class="check"><input type="checkbox" checked=${single} onChange=${(event) => {
              setSingle(event.target.checked);
              localStorage.setItem(SINGLE_KEYS, event.target.checked ? 'on' : 'off');
            }} /> Single keys act</label>
          <//>`
        : null}
    <//>
  `;
}

/** Everything behind the sign-in: what the token may do is asked first. */
function Root({ found }) {
  const route = useRoute();
  const [token, set] = useState(auth.current());
  const [why, setWhy] = useState(found);
  useEffect(() => auth.watch(() => set(auth.current())), []);
  const me = useApi(token ? api.path(['me']) : null);
  useEffect(() => {
    if (token) setWhy(null);
  }, [token]);
  if (!token || route.parts[0] === 'token') {
    const told = auth.hasLapsed() ? 'The server does not take this token: it is not known, was revoked, or has expired.' : why;
    return html`<${SignIn} why=${told} />`;
  }
  if (me.problem) return html`<${SignIn} why=${me.problem.detail} again=${me.reload} />`;
  if (!me.data) return null;
  return html`<${Shell} me=${me.data} key=${me.data.name} />`;
}

const why = await auth.find().catch(() => 'The server did not answer. Try again, or sign in with a token.');
const app = document.getElementById('app');
app.textContent = '';
render(html`<${Root} found=${why} />`, app);
