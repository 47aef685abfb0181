// The rail at the side, which is a bar at the bottom of a small screen.

import { html, rolesFor } from '../kit.mjs';
import { isDecided } from './question.mjs';

const ICONS = {
  sessions: 'M3 5h14M3 10h14M3 15h9',
  inbox: 'M3 11l2.5-7h9L17 11v5H3zM3 11h4l1 2h4l1-2h4',
  definitions: 'M10 3v5M10 8 5 12M10 8l5 4M3.5 12h3v4h-3zM13.5 12h3v4h-3zM8.5 2.5h3v3h-3z',
  memories: 'M5 3h10v14l-5-3.5L5 17z',
  server: 'M3.5 4h13v5h-13zM3.5 11h13v5h-13zM6 6.5h.1M6 13.5h.1',
  theme: 'M10 3a7 7 0 1 0 7 7 5.5 5.5 0 0 1-7-7z',
  help: 'M7.5 7.5a2.5 2.5 0 1 1 3.6 2.2c-.8.4-1.1.9-1.1 1.8M10 14.5v.3',
  leave: 'M8 4H4v12h4M12 6.5 15.5 10 12 13.5M7.5 10h8',
};

export function Icon({ of }) {
  return html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true"><path d=${ICONS[of]} /></svg>`;
}

export function Rail({ at, me, open, theme, setTheme, help, leave }) {
  const mine = (open ?? []).filter((question) => isDecided(question) && rolesFor(me, question).length > 0).length;
  const places = [
    ['sessions', '#/', 'Sessions', !at || at === 'sessions' || at === 's' || at === 'diff'],
    ['inbox', '#/inbox', 'Inbox', at === 'inbox'],
    ['definitions', '#/definitions', 'Definitions', at === 'definitions'],
    ...(me.allows.includes('memory') ? [['memories', '#/memories', 'Memories', at === 'memories']] : []),
    ['server', '#/server', 'Server', at === 'server'],
  ];
  return html`
    <nav class="rail" aria-label="Console">
      <a class="brand" href="#/" aria-label="Steersman, all sessions"><img src="console/icon.svg" alt="" width="24" height="24" /><span>Steersman</span></a>
      <ul>
        ${places.map(
          ([icon, href, name, isHere]) => html`<li><a href=${href} aria-current=${isHere ? 'page' : undefined}><${Icon} of=${icon} /><span>${name}</span>${icon === 'inbox' && mine > 0
            ? html`<b class="badge" aria-label=${`${mine} for you`}>${mine}</b>`
            : null}</a></li>`,
        )}
      </ul>
      <div class="low">
        <button type="button" class="quiet" onClick=${() => setTheme(theme === 'dark' ? 'light' : 'dark')} aria-label=${theme === 'dark' ? 'Light theme' : 'Dark theme'}><${Icon} of="theme" /><span>${theme === 'dark' ? 'Light' : 'Dark'}</span></button>
        <button type="button" class="quiet keys-help" onClick=${help} aria-label="Keys"><${Icon} of="help" /><span>Keys</span></button>
        <button type="button" class="quiet" onClick=${leave} aria-label="Sign out" title=${`token ${me.name}${me.subject ? `, ${me.subject}` : ''}`}><${Icon} of="leave" /><span>Sign out</span></button>
        <p class="who">${me.subject ?? me.name}<br />${me.roles.join(', ') || 'user'}</p>
      </div>
    </nav>
  `;
}
