import { html } from 'ghtml';
import { FAULT_KINDS } from '../faults/kinds.ts';
import { ENDPOINTS } from '../http/logged-request.ts';
import { STATUS_CODES } from '../http/routes.ts';
import { snakeCase } from '../json.ts';
import type { EmulatedPortal } from '../portal.ts';
import type { SettingDefinition } from '../settings/definitions.ts';
import { SETTINGS } from '../settings/settings.ts';

/** The control of a setting. */
export interface SettingControl extends SettingDefinition<unknown> {
  /** The name of its member in the API. */
  readonly name: string;
}

/** The initial data of the page's script, as JSON in the body's `data-portal`. */
export interface ConsoleData {
  /** Names of the users. */
  readonly users: readonly string[];
  readonly clients: readonly { readonly id: string; readonly name: string }[];
  readonly settings: readonly SettingControl[];
  /** Of each kind of fault its name, what a client sees of it, and one in the JSON form of the API. */
  readonly faultKinds: readonly { readonly name: string; readonly effect: string; readonly example: object }[];
  readonly endpoints: readonly string[];
  /** Reason phrases, by status. */
  readonly statusNames: Readonly<Record<number, string | undefined>>;
}

/**
 * The console page. Its sections are hidden until the script has data for them.
 * @param script the URL of its main module
 */
export function consolePage(portal: EmulatedPortal, script: string): string {
  const clients = portal.settings.clients.configured().map(({ id, name }) => ({ id, name }));
  const settings = Object.entries(SETTINGS).map(([name, definition]) => ({ ...definition, name: snakeCase(name) }));
  const users = [...portal.settings.users.keys()];
  const data: ConsoleData = {
    users,
    clients,
    settings,
    faultKinds: FAULT_EXAMPLES,
    endpoints: ENDPOINTS,
    statusNames: STATUS_CODES,
  };
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
<body data-portal="${JSON.stringify(data)}">
<header>
<h1>Portal emulator</h1>
<p id="live" role="status">connecting</p>
<p class="time" id="header-clock" hidden>Emulated time <time></time></p>
<button type="button" id="reset" class="danger" hidden>Reset &hellip;</button>
</header>
<main>
<nav aria-label="Sections">!${JUMPS.map(([id, title]) => html`<a href="#${id}">${title}</a>`)}</nav>
<div class="column">
!${section('logins', 'Waiting for a login', '<ul class="list"></ul>')}
!${section('device', 'Devices waiting for their user', '<ul class="list"></ul>')}
!${section('requests', 'Requests', REQUESTS)}
!${section('findings', 'Findings', FINDINGS)}
</div>
<div class="column">
!${section('grants', 'Grants', GRANTS)}
!${section('clock', 'Clock', CLOCK)}
!${section('faults', 'Faults', FAULTS)}
!${section('addresses', 'Client configuration', clientConfiguration(portal, data), true)}
</div>
!${section('settings', 'Settings', '<form></form>')}
</main>
<p id="notice" role="status" hidden><span></span><button type="button" aria-label="Close the message">×</button></p>
<dialog id="ask-reset" aria-labelledby="ask-reset-title">
<h2 id="ask-reset-title">Reset the emulator?</h2>
<p>This removes all logins, codes, grants and tokens, the log, the findings, the faults and the clock's offset, and restores the
initial settings. Ports and clients stay.</p>
<form method="dialog" class="buttons"><button value="" autofocus>Cancel</button><button value="reset" class="danger">Reset</button></form>
</dialog>
<noscript><p>This page needs JavaScript. The API under /_emulator/ offers the same.</p></noscript>
</body>
</html>
`;
}

/** The sections that the page may lead to: those that are never empty. */
const JUMPS = [
  ['requests', 'Requests'],
  ['findings', 'Findings'],
  ['grants', 'Grants'],
  ['clock', 'Clock'],
  ['faults', 'Faults'],
  ['addresses', 'Client configuration'],
  ['settings', 'Settings'],
];

const FAULT_EXAMPLES = Object.entries(FAULT_KINDS).map(([name, { target, effect, example }]) => {
  const common = target === 'requests' ? { endpoint: 'token' } : { origin: 'frontend' };
  return { name, effect: effect.replaceAll('`', ''), example: { kind: name, ...common, ...example } };
});

/** @param body HTML, already escaped */
function section(id: string, title: string, body: string, shown = false): string {
  const heading = `${id}-title`;
  return html`<section id="${id}" aria-labelledby="${heading}"!${shown ? '' : ' hidden'}>
<h2 id="${heading}" tabindex="-1">${title}</h2>
!${body}
</section>`;
}

const REQUESTS = `<label class="inline"><span>Endpoint</span><select id="endpoint-filter"><option value="">all</option></select></label>
<p class="empty">None yet. Requests appear here when a client uses the base_url.</p>
<ol class="list" reversed></ol>
<button type="button" id="older" hidden>Show older requests</button>`;

const FINDINGS = `<p class="empty">None yet. Mistakes of clients appear here.</p>
<ul class="list"></ul>`;

const GRANTS = `<p class="empty">None yet. A grant appears here when a client has exchanged a code for tokens.</p>
<ul class="list"></ul>`;

const FAULTS = `<p class="empty">None. The portal works normally.</p>
<ul class="list"></ul>
<button type="button" id="clear-faults" hidden>Clear all faults</button>
<form id="add-fault">
<h3>Add a fault</h3>
<label><span>Kind</span><select name="kind"></select></label>
<label><span>The fault, as in the API</span><textarea name="fault" rows="8" autocomplete="off" spellcheck="false"></textarea></label>
<button class="main">Add the fault</button>
</form>`;

const CLOCK = `<p><time class="now"></time> <span class="quiet" id="offset"></span></p>
<div class="buttons">
<button type="button" data-seconds="60">+1 min</button>
<button type="button" data-seconds="3600">+1 h</button>
<button type="button" data-seconds="86400">+1 day</button>
</div>
<form id="advance">
<label><span>Seconds</span><input name="seconds" type="number" inputmode="numeric" min="1" autocomplete="off" required></label>
<button>Advance</button>
</form>`;

function clientConfiguration(portal: EmulatedPortal, { users, clients }: ConsoleData): string {
  const { base, frontend } = portal.origins();
  const ids = clients.map(({ id, name }) => [name === id ? 'client_id' : `client_id of ${name}`, id] as const);
  const uris = portal.settings.clients.configured().flatMap(({ redirectUris }) => redirectUris);
  const rows = [
    ['base_url', base],
    ['frontend_url, the issuer', frontend],
    ['metadata', `${frontend}/.well-known/openid-configuration`],
    ...ids,
    ...[...new Set(uris)].map((uri) => ['redirect URI', uri] as const),
    ['users', users.join(', ')],
  ] as const;
  return html`<dl class="facts">
!${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd class="value">${value}</dd></div>`)}
</dl>`;
}
