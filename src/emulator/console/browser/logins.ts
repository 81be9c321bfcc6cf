import type { WaitingLogin } from '../../oauth/helper-runs.ts';
import { change } from './api.ts';
import { button, find, make, showList } from './dom.ts';
import { clientName, type Part, part, start } from './part.ts';
import { clockTime } from './times.ts';

const section = find('#logins', HTMLElement);
const list = find('ul', HTMLElement, section);

/** The logins that nobody has done yet, and what a person can do about each. */
export const logins: Part = part<{ readonly logins: readonly WaitingLogin[] }>('logins', (answer) => {
  section.hidden = answer.logins.length === 0;
  showList(list, answer.logins.toReversed(), ({ state }) => state, row);
});

function row({ state, client, opened, expires }: WaitingLogin): HTMLElement {
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
