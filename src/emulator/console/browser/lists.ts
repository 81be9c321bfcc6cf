import type { GrantAnswer } from '../../api/inspection.ts';
import type { WaitingLogin } from '../../oauth/helper-runs.ts';
import { change } from './api.ts';
import { button, find, make, showList } from './dom.ts';
import { clientName, clockTime, dateAndTime, type Part, part, showEmpty, start } from './part.ts';

/** The logins that nobody has done yet, and what a person can do about each. */
export const logins: Part = part<{ readonly logins: readonly WaitingLogin[] }>('logins', (answer) => {
  find('#logins', HTMLElement).hidden = answer.logins.length === 0;
  showList(find('#logins ul', HTMLElement), answer.logins.toReversed(), ({ state }) => state, loginRow);
});

function loginRow({ state, client, opened, expires }: WaitingLogin): HTMLElement {
  const name = clientName(client);
  const logIn = (user: string) => change('POST', 'login', { state, user }, `${user} is logged in for ${name}.`);
  const refuse = () => change('POST', 'login', { state, deny: true }, `The login for ${name} is refused.`);
  return make(
    'li',
    {},
    make(
      'p',
      { class: 'row' },
      make('b', {}, name),
      make('span', { class: 'quiet' }, `since ${clockTime(opened)}, until ${clockTime(expires)}`),
    ),
    make(
      'div',
      { class: 'buttons' },
      ...start.users.map((user) => button(`Log in as ${user}`, () => logIn(user), { class: 'main' })),
      button('Refuse', refuse),
    ),
  );
}

/** Grants that the page shows: those refreshed last. */
const MAX_GRANTS_SHOWN = 30;

/** The grants, the one refreshed last first. */
export const grants: Part = part<{ readonly grants: readonly GrantAnswer[] }>('grants', (answer) => {
  showList(
    find('#grants ul', HTMLElement),
    answer.grants.slice(-MAX_GRANTS_SHOWN).toReversed(),
    ({ id }) => id,
    grantRow,
  );
  showEmpty('grants', answer.grants.length === 0);
});

function grantRow({ id, client, user, scope, generation, issued, refreshed, revoked }: GrantAnswer): HTMLElement {
  const name = clientName(client);
  const since = make('time', { datetime: refreshed, title: dateAndTime(refreshed) }, clockTime(refreshed));
  const verb = generation === 1 || issued === refreshed ? 'issued ' : 'refreshed ';
  return make(
    'li',
    { class: 'entry' },
    make(
      'div',
      {},
      make('b', {}, name),
      make('p', {}, `${user}, ${scope === null || scope === '' ? 'no scope' : scope}`),
      make('p', { class: 'quiet' }, `Generation ${generation}, ${verb}`, since),
    ),
    revoked
      ? make('span', { class: 'status s5' }, 'revoked')
      : make(
          'div',
          { class: 'buttons' },
          revocation(id, 'access_tokens', 'Revoke access tokens', `The access tokens of ${name} are revoked.`),
          revocation(id, 'grant', 'Revoke grant', `The grant of ${name} is revoked.`),
        ),
  );
}

function revocation(id: string, what: 'grant' | 'access_tokens', label: string, done: string): HTMLElement {
  return button(label, () => change('POST', `grants/${encodeURIComponent(id)}/revoke`, { what }, done), {
    class: what === 'grant' ? 'danger' : '',
  });
}

interface Finding {
  readonly client: string | null;
  /** What it is, as a sentence. */
  readonly message: string;
}

/** What a client does that the portal would not like, by the API's names; `polls` says how each code was polled for. */
const HEADINGS: Readonly<Record<string, string>> = {
  reused_refresh_tokens: 'Used refresh token',
  repeated_codes: 'Used code',
  overlapping_refreshes: 'Overlapping refreshes',
  early_refreshes: 'Early refreshes',
  failed_authentications: 'Failed authentication',
  polls: 'Polling',
};

/** Findings of one kind that the page shows: the newest. */
const MAX_FINDINGS_SHOWN = 5;

/** What the author of a client wants to know after a test. */
export const findings: Part = part<Readonly<Record<string, readonly Finding[]>>>('findings', (answer) => {
  const all = Object.entries(HEADINGS).flatMap(([kind, heading]) =>
    (answer[kind] ?? [])
      .slice(-MAX_FINDINGS_SHOWN)
      .map((finding, index) => ({ ...finding, key: `${kind} ${index}`, kind, heading })),
  );
  showList(find('#findings ul', HTMLElement), all, ({ key }) => key, findingRow);
  showEmpty('findings', all.length === 0);
});

function findingRow({ client, message, kind, heading }: Finding & { readonly kind: string; readonly heading: string }) {
  const badge = make('span', { class: kind === 'polls' ? 'status' : 'status s4' }, heading);
  return make('li', {}, make('p', { class: 'row' }, badge, make('b', {}, clientName(client))), make('p', {}, message));
}
