// The page of somebody without a token.

import { Command, html, plain, useRef } from '../kit.mjs';
import * as auth from '../auth.mjs';

export function SignIn({ why, again }) {
  const field = useRef(null);
  const enter = (event) => {
    event.preventDefault();
    const text = field.current.value.trim();
    if (!text) return;
    field.current.value = '';
    if (location.hash.startsWith('#/token')) location.hash = '#/';
    auth.keep(text);
  };
  return html`
    <main class="signin" tabindex="-1">
      <img src="console/icon.svg" alt="" width="44" height="44" />
      <h1>Steersman</h1>
      ${why ? html`<p class="trouble" role="alert">${plain(why)}</p>` : null}
      <form onSubmit=${enter}>
        <label for="token">Token</label>
        <div class="pair">
          <input id="token" ref=${field} type="password" autocomplete="off" spellcheck="false" placeholder="stm_…" required />
          <button type="submit" class="primary">Sign in</button>
        </div>
        <p class="help">It is kept until this tab is closed, in no file or address.</p>
      </form>
      <p>On the server's computer, this opens the console:</p>
      <${Command} text="steersman ui" />
      <p>This makes a token:</p>
      <${Command} text="steersman token new --allow read,write,decide" />
      ${again ? html`<button type="button" onClick=${again}>Try again</button>` : null}
    </main>
  `;
}
