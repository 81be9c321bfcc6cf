import type { GrantAnswer } from '../../api/inspection.ts';
import { change } from './api.ts';
import { button, find, make, showList } from './dom.ts';
import { clientName, type Part, part, showEmpty } from './part.ts';
import { clockTime, dateAndTime } from './times.ts';

/** Grants that the page shows: those refreshed last. */
const SHOWN = 30;

const list = find('#grants ul', HTMLElement);

/** The grants, the one refreshed last first. */
export const grants: Part = part<{ readonly grants: readonly GrantAnswer[] }>('grants', (answer) => {
  showList(list, answer.grants.slice(-SHOWN).toReversed(), ({ id }) => id, row);
  showEmpty('grants', answer.grants.length === 0);
});

function row({ id, client, user, scope, generation, issued, refreshed, revoked }: GrantAnswer): HTMLElement {
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
