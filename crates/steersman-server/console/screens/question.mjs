// One question on a page of its own: the address that protocols hand out, and the form for a secret. Nothing else of the session is here.

import { api, html, link, Loaded, useApi, useApp, useState } from '../kit.mjs';
import { Card } from './inbox.mjs';

export function QuestionPage({ session, question }) {
  const { open } = useApp();
  const asked = useApi(api.of(session, ['questions']));
  const [done, set] = useState(null);
  return html`
    <main id="content" class="screen" tabindex="-1">
      <header class="top"><h1>Question</h1><span class="grow"></span><a href="#/inbox">Inbox</a></header>
      <div class="scroll narrow">
        ${done
          ? html`<div class="empty"><h2>${done}</h2><p><a href=${link(['s', session])}>Open the session</a></p></div>`
          : html`<${Loaded} of=${asked}>${(data) => {
              const found = data.items.find((one) => one.id === question) ?? data.items.find((one) => one.effect === question);
              if (!found) return html`<div class="empty"><h2>This is not asked any more</h2><p>It was answered, is over, or never was. <a href=${link(['s', session])}>Open the session</a></p></div>`;
              return html`<${Card} question=${found} alone done=${(text) => {
                set(text);
                open.reload();
              }} />`;
            }}<//>`}
      </div>
    </main>
  `;
}
