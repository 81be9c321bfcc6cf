import type { GrantResponseBody } from '../../api/inspection.ts';
import type { WaitingDevice } from '../../oauth/device-logins.ts';
import type { WaitingLogin } from '../../oauth/helper-flows.ts';
import { callApi } from './api.ts';
import { createButton, createElement, requireElement, showList } from './dom.ts';
import {
  clientName,
  consoleData,
  createSection,
  formatDateTime,
  formatTimeOfDay,
  type PageSection,
  setEmptyMessageVisible,
} from './section.ts';

/** Grants shown: the most recently refreshed ones. */
const MAX_GRANTS_SHOWN = 30;

/** The grants, most recently refreshed first. */
export const grantsSection: PageSection = createSection<{ readonly grants: readonly GrantResponseBody[] }>(
  'grants',
  (response) => {
    showList(
      requireElement('#grants ul', HTMLElement),
      response.grants.slice(-MAX_GRANTS_SHOWN).toReversed(),
      ({ id }) => id,
      grantRow,
    );
    setEmptyMessageVisible('grants', response.grants.length === 0);
  },
);

function grantRow({ id, client, user, scope, generation, issued, refreshed, revoked }: GrantResponseBody): HTMLElement {
  const name = clientName(client);
  const since = createElement(
    'time',
    { datetime: refreshed, title: formatDateTime(refreshed) },
    formatTimeOfDay(refreshed),
  );
  const verb = generation === 1 || issued === refreshed ? 'issued ' : 'refreshed ';
  return createElement(
    'li',
    { class: 'entry' },
    createElement(
      'div',
      {},
      createElement('b', {}, name),
      createElement('p', {}, `${user}, ${scope === null || scope === '' ? 'no scope' : scope}`),
      createElement('p', { class: 'quiet' }, `Generation ${generation}, ${verb}`, since),
    ),
    revoked
      ? createElement('span', { class: 'status s5' }, 'revoked')
      : createElement(
          'div',
          { class: 'buttons' },
          revokeButton(id, 'access_tokens', 'Revoke access tokens', `The access tokens of ${name} were revoked.`),
          revokeButton(id, 'grant', 'Revoke grant', `The grant of ${name} was revoked.`),
        ),
  );
}

function revokeButton(id: string, what: 'grant' | 'access_tokens', label: string, done: string): HTMLElement {
  return createButton(label, () => callApi('POST', `grants/${encodeURIComponent(id)}/revoke`, { what }, done), {
    class: what === 'grant' ? 'danger' : '',
  });
}

interface Finding {
  readonly client: string | null;
  /** The finding as a sentence. */
  readonly message: string;
}

/** Headings of the findings, by their names in the API. */
const HEADINGS: Readonly<Record<string, string>> = {
  reused_refresh_tokens: 'Reused refresh token',
  repeated_codes: 'Reused code',
  overlapping_refreshes: 'Overlapping refreshes',
  early_refreshes: 'Early refreshes',
  failed_authentications: 'Failed authentication',
  fast_polls: 'Too fast polling',
  polls: 'Polling',
};

/** Findings shown of each kind: the newest. */
const MAX_FINDINGS_SHOWN = 5;

/** What clients did wrong, and how they polled. */
export const findingsSection: PageSection = createSection<Readonly<Record<string, readonly Finding[]>>>(
  'findings',
  (response) => {
    const all = Object.entries(HEADINGS).flatMap(([kind, heading]) =>
      (response[kind] ?? [])
        .slice(-MAX_FINDINGS_SHOWN)
        .map((finding, index) => ({ ...finding, key: `${kind} ${index}`, kind, heading })),
    );
    showList(requireElement('#findings ul', HTMLElement), all, ({ key }) => key, findingRow);
    setEmptyMessageVisible('findings', all.length === 0);
  },
);

function findingRow({ client, message, kind, heading }: Finding & { readonly kind: string; readonly heading: string }) {
  const badge = createElement('span', { class: kind === 'polls' ? 'status' : 'status s4' }, heading);
  return createElement(
    'li',
    {},
    createElement('p', { class: 'row' }, badge, createElement('b', {}, clientName(client))),
    createElement('p', {}, message),
  );
}

/** The waiting logins, with buttons to log in and to refuse. */
export const loginsSection: PageSection = createSection<{ readonly logins: readonly WaitingLogin[] }>(
  'logins',
  ({ logins }) => showWaiting('#logins', logins, ({ state }) => state, loginRow),
);

/** The devices that wait for their user, with buttons to allow and to refuse. */
export const devicesSection: PageSection = createSection<{ readonly devices: readonly WaitingDevice[] }>(
  'device',
  ({ devices }) => showWaiting('#device', devices, ({ user_code }) => user_code, deviceRow),
);

/** Shows a list, newest first, and hides its section if it is empty. */
function showWaiting<T>(
  section: string,
  waiting: readonly T[],
  key: (one: T) => string,
  row: (one: T) => HTMLElement,
): void {
  requireElement(section, HTMLElement).hidden = waiting.length === 0;
  showList(requireElement(`${section} ul`, HTMLElement), waiting.toReversed(), key, row);
}

function loginRow({ state, client, ...times }: WaitingLogin): HTMLElement {
  const name = clientName(client);
  const logIn = (user: string) => callApi('POST', 'login', { state, user }, `${user} is logged in for ${name}.`);
  const refuse = () => callApi('POST', 'login', { state, deny: true }, `The login for ${name} was refused.`);
  return waitingRow(name, times, logIn, refuse);
}

function deviceRow({ user_code, client, scope: _, ...times }: WaitingDevice): HTMLElement {
  const name = clientName(client);
  const logIn = (user: string) => callApi('POST', 'device', { user_code, user }, `${user} is logged in for ${name}.`);
  const refuse = () => callApi('POST', 'device', { user_code, deny: true }, `The login for ${name} was refused.`);
  return waitingRow(`${name}, ${user_code}`, times, logIn, refuse);
}

function waitingRow(
  title: string,
  { opened, expires }: { readonly opened: string; readonly expires: string },
  logIn: (user: string) => unknown,
  refuse: () => unknown,
): HTMLElement {
  const times = `opened ${formatTimeOfDay(opened)}, expires ${formatTimeOfDay(expires)}`;
  return createElement(
    'li',
    {},
    createElement(
      'p',
      { class: 'row' },
      createElement('b', {}, title),
      createElement('span', { class: 'quiet' }, times),
    ),
    createElement(
      'div',
      { class: 'buttons' },
      ...consoleData.users.map((user) => createButton(`Log in as ${user}`, () => logIn(user), { class: 'main' })),
      createButton('Refuse', refuse),
    ),
  );
}
