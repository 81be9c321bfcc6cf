// Requests close to good ones, for every endpoint of the portal.
import { apiPlan } from './api-plans.ts';
import type { Facts } from './facts.ts';
import { mutated, SPECIAL, soup } from './mutations.ts';
import { FORM, JSON_TYPE, type Plan, type Planner } from './plan.ts';
import { Values } from './values.ts';

const HELPER = '/external/oauth2helper';

/** What requests to the emulator are, by weights that let flows come to their end. */
export function emulatorPlanner(facts: Facts): Planner {
  return (dice, good) => dice.of(PLANS, whoami)(new Values(dice, facts, good));
}

const PLANS: readonly ((values: Values) => Plan)[] = [
  whoami,
  config,
  codeGet,
  codeSet,
  authorize,
  authorize,
  token,
  token,
  token,
  apiPlan,
  apiPlan,
  pages,
];

function whoami(values: Values): Plan {
  const heads = [`Authorization: Bearer ${values.token(values.facts.accessTokens)}`];
  return { origin: 'base', method: 'GET', path: '/api/whoami', heads };
}

function config(values: Values): Plan {
  const { dice } = values;
  const url = dice.of(['http://127.0.0.1:1/cb', 'http://[', 'javascript:alert(1)', `http://x/${soup(dice, 50)}`], '');
  const wanted = values.good ? 'http://127.0.0.1:1/cb?a=b#c' : url;
  const query = dice.chance(0.5) ? `?redirect_url=${encodeURIComponent(wanted)}` : '';
  return {
    origin: 'base',
    method: 'POST',
    path: `${HELPER}/config/${values.client()}${query}`,
    heads: [JSON_TYPE],
  };
}

function codeGet(values: Values): Plan {
  const path = `${HELPER}/code/get/${values.client()}?state=${values.state()}`;
  return { origin: 'base', method: 'GET', path, heads: [] };
}

function codeSet(values: Values): Plan {
  const what = values.dice.of([`code=${values.code()}`, 'error=access_denied', ''], '');
  const path = `${HELPER}/code/set/${values.client()}?${what}&state=${values.state()}`;
  return { origin: 'base', method: 'GET', path, heads: [] };
}

/** The helper's flow, or a standard tool's own with the helper's address as its redirect_uri. */
function authorize(values: Values): Plan {
  const { dice, facts } = values;
  const ordinary = dice.chance(0.3);
  const own = `${facts.baseUrl}${HELPER}/code/set/${facts.clientId}`;
  const scope = values.entry('Monitoring%20RemoteControl');
  const address = encodeURIComponent(values.good || dice.chance(0.5) ? own : dice.of(SPECIAL, ''));
  const more = ordinary
    ? `state=${values.entry('xyz')}&redirect_uri=${address}&scope=${scope}`
    : `state=${values.state()}`;
  const path = `/sso/authorize?response_type=code&client_id=${values.client()}&${more}`;
  if (dice.chance(0.4)) return { origin: 'frontend', method: 'GET', path, heads: [] };
  const action = dice.chance(0.15) ? dice.of(['refuse', 'continue', 'other'], 'refuse') : '';
  const body = values.form({ username: facts.user, password: facts.password, action });
  return { origin: 'frontend', method: 'POST', path, heads: [FORM], body };
}

function token(values: Values): Plan {
  const { dice, facts } = values;
  const id = values.good || dice.chance(0.8) ? facts.clientId : values.client();
  const credentials = dice.chance(0.8) ? { client_id: id, client_secret: facts.clientSecret } : {};
  const grant = dice.chance(0.6)
    ? { grant_type: 'refresh_token', refresh_token: values.token(facts.refreshTokens) }
    : exchange(values);
  const basic = Buffer.from(`${id}:${facts.clientSecret}`).toString('base64');
  const heads = 'client_id' in credentials ? [FORM] : [FORM, `Authorization: Basic ${basic}`];
  const body = values.form({ ...credentials, ...grant });
  return { origin: 'frontend', method: 'POST', path: '/sso/token', heads, body };
}

function exchange(values: Values): Record<string, string> {
  const { dice, facts } = values;
  const scope = values.good ? 'Monitoring' : dice.of(['', 'a b', 'a  b', '"'], '');
  const redirect = dice.chance(0.3)
    ? { redirect_uri: values.entry(`${facts.baseUrl}${HELPER}/code/set/${facts.clientId}`), access_type: 'offline' }
    : {};
  return { grant_type: 'authorization_code', code: values.code(), scope, ...redirect };
}

const PAGES = [
  '/',
  '/favicon.ico',
  '/_emulator',
  '/_emulator/',
  '/_emulator/console.css',
  '/_emulator/console/main.js',
  '/_emulator/console/main.ts',
  '/_emulator/console/x.js',
  '/_emulator/openapi.json',
];

function pages({ dice, good }: Values): Plan {
  const path = dice.chance(0.1) ? `/${soup(dice, 99)}` : dice.of(PAGES, '/');
  const strange = !good && dice.chance(0.1) ? mutated(dice, path) : path;
  return { origin: dice.chance(0.7) ? 'base' : 'frontend', method: 'GET', path: strange, heads: [] };
}
