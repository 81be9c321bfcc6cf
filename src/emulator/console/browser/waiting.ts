import type { WaitingDevice } from '../../oauth/device-logins.ts';
import type { WaitingLogin } from '../../oauth/helper-flows.ts';
import { callApi } from './api.ts';
import { createButton, createElement, requireElement, showList } from './dom.ts';
import { clientName, consoleData, createSection, formatTimeOfDay, type PageSection } from './section.ts';

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
