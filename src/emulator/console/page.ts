import { html } from 'ghtml';
import type { Portal } from '../portal.ts';

/** What the page's script knows from the start, as JSON in the body's `data-portal`. */
export interface ConsoleStart {
  /** Names of the users who can log in. */
  readonly users: readonly string[];
  readonly clients: readonly { readonly id: string; readonly name: string }[];
}

/**
 * The console page. Its sections are hidden until the script has something for them.
 * @param script the address of its main module
 */
export function consolePage(portal: Portal, script: string): string {
  const { base, frontend } = portal.origins();
  const clients = [...portal.settings.clients.values()].map(({ id, name }) => ({ id, name }));
  const start: ConsoleStart = { users: [...portal.settings.users.keys()], clients };
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/_emulator/console.css">
<title>Portal emulator</title>
<script type="module" src="${script}"></script>
</head>
<body data-portal="${JSON.stringify(start)}">
<header>
<div class="bar">
<h1>Portal emulator</h1>
<p id="live" role="status">connecting</p>
<p class="time" id="header-clock" hidden>Emulated time <time></time></p>
<button type="button" id="reset" class="danger" hidden>Reset …</button>
</div>
<nav aria-label="Sections" id="sections"></nav>
</header>
<main>
<div class="column">
<section id="logins" hidden><h2 tabindex="-1">Waiting for a login</h2><ul class="list"></ul></section>
<section id="requests" hidden>
<div class="heading"><h2 tabindex="-1">Requests</h2>
<label class="inline"><span>Endpoint</span><select id="endpoint-filter"><option value="">all</option></select></label></div>
<p class="empty">No request yet. Point a client at the base URL, and what it sends shows up here.</p>
<ol class="list" reversed></ol>
<button type="button" id="older" hidden>Show older ones</button>
</section>
</div>
<div class="column">
<section id="grants" hidden><h2 tabindex="-1">Grants</h2>
<p class="empty">None yet. A login whose code is exchanged for tokens makes one.</p><ul class="list"></ul></section>
<section id="faults" hidden><h2 tabindex="-1">Faults</h2>
<p class="empty">None: the portal behaves.</p><ul class="list"></ul>
<button type="button" id="clear-faults" hidden>Clear all faults</button>
<form id="add-fault"></form></section>
<section id="clock" hidden><h2 tabindex="-1">Clock</h2>
<p><time class="now"></time> <span class="quiet" id="offset"></span></p>
<div class="buttons"><button type="button" data-seconds="60">+1 min</button><button type="button" data-seconds="3600">+1 h</button>
<button type="button" data-seconds="86400">+1 day</button></div>
<form id="advance"><label><span>Seconds</span><input name="seconds" inputmode="numeric" autocomplete="off" required></label>
<button>Advance</button></form></section>
<section id="findings" hidden><h2 tabindex="-1">Findings</h2><dl class="facts"></dl><ul class="list"></ul></section>
<section id="settings" hidden><h2 tabindex="-1">Settings</h2><form></form></section>
<section id="addresses"><h2 tabindex="-1">For your client</h2>
<dl class="facts">
<div><dt>base_url</dt><dd class="value">${base}</dd></div>
<div><dt>frontend_url</dt><dd class="value">${frontend}</dd></div>
!${clients.map(({ id, name }) => html`<div><dt>client_id${name === id ? '' : ` of ${name}`}</dt><dd class="value">${id}</dd></div>`)}
<div><dt>users</dt><dd>${start.users.join(', ')}</dd></div>
</dl></section>
</div>
</main>
<p id="notice" role="status" hidden><span></span><button type="button" aria-label="Close the message">×</button></p>
<dialog id="ask-reset" aria-labelledby="ask-reset-title">
<h2 id="ask-reset-title">Reset the emulator?</h2>
<p>It forgets every login, code, grant and token, the log, the faults and the clock's offset. Settings go back to those it was
started with. Ports and clients stay.</p>
<form method="dialog" class="buttons"><button value="" autofocus>Cancel</button><button value="reset" class="danger">Reset</button></form>
</dialog>
<noscript><p>This page needs JavaScript. Everything on it is also an API under /_emulator/.</p></noscript>
</body>
</html>
`;
}
