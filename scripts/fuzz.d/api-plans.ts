// Requests close to good ones, for the emulator's own API.
import { harmlessFault } from './fault-bodies.ts';
import { latin1, mutated, SPECIAL, value } from './mutations.ts';
import { JSON_TYPE, type Plan } from './plan.ts';
import type { Values } from './values.ts';

type Call = readonly [method: string, path: string, body?: unknown];

/** The emulator's own API. Faults that would break answers have bouts of their own, in which nothing else is sent. */
export function apiPlan(values: Values): Plan {
  const { dice } = values;
  const [method, name, body] = dice.of(CALLS, clock)(values);
  const path = `/_emulator/${name}`;
  if (body === undefined) return { origin: 'base', method, path, heads: [] };
  let text = JSON.stringify(body);
  if (!values.good && dice.chance(0.4)) text = mutated(dice, text);
  else if (!values.good && dice.chance(0.05)) text = '['.repeat(dice.below(5000));
  return { origin: 'base', method, path, heads: [JSON_TYPE], body: latin1(text) };
}

const clock = ({ dice }: Values): Call => ['POST', 'clock', { advance: dice.of<unknown>(ADVANCES, 0) }];

const login = (values: Values): Call => {
  const { dice, facts } = values;
  const state = dice.chance(0.2) ? values.stateId() : values.state();
  return ['POST', 'login', { state, user: values.entry(facts.user), deny: dice.chance(0.15) }];
};

const CALLS: readonly ((values: Values) => Call)[] = [
  login,
  login,
  login,
  login,
  ({ dice }) => ['GET', `requests?since=${dice.chance(0.3) ? dice.of(NUMBERS, '') : String(1e9 + dice.below(9))}`],
  () => ['GET', 'settings'],
  (values) => ['PATCH', 'settings', settings(values)],
  () => ['GET', 'faults'],
  (values) => ['POST', 'faults', harmlessFault(values)],
  (values) => ['DELETE', `faults/${values.entry(values.dice.of(values.facts.faults, 'x'))}`],
  ({ dice }) => ['DELETE', dice.chance(0.2) ? 'faults' : `faults/${dice.of(SPECIAL, 'x')}`],
  () => ['GET', 'clock'],
  clock,
  () => ['GET', 'logins'],
  () => ['GET', 'grants'],
  (values) => {
    const what = values.good || values.dice.chance(0.5) ? values.dice.of(['grant', 'access_tokens'], '') : undefined;
    return [
      'POST',
      `grants/${values.entry(values.dice.of(values.facts.grants, 'x'))}/revoke`,
      { what: what ?? value(values.dice) },
    ];
  },
  () => ['GET', 'findings'],
  ({ dice }) => ['GET', `events${dice.chance(0.2) ? '?x=1' : ''}`],
  // Forgets all that is known, so a good one is rare: what comes after it begins anew with a config request.
  ({ dice }) => ['POST', 'reset', dice.chance(0.03) ? {} : { x: value(dice) }],
];

const NUMBERS = ['0', '-1', '1e9', 'x', '99999999999999999999'];

/** Small ones: far ones let all that is known expire. They have their turn between the parts of a run. */
const ADVANCES = [-1, 0, 0.001, '5', null, 1e308, -0, [], {}];

const NO_SETTING: readonly [string, readonly unknown[]] = ['', []];

/** A change of one or two settings. They are put back as soon as it succeeds. */
function settings({ dice, good }: Values): object {
  const one = () => dice.of(GOOD_SETTINGS, NO_SETTING);
  const entries = [one(), ...(dice.chance(0.3) ? [one()] : [])];
  return Object.fromEntries(
    entries.map(([name, some]) => [name, good || dice.chance(0.3) ? dice.of<unknown>(some, null) : value(dice)]),
  );
}

/** Each setting, with some of what it takes. */
export const GOOD_SETTINGS: readonly (readonly [name: string, values: readonly unknown[]])[] = [
  ['auto_login', [true, false]],
  ['forget_logins', [true, false]],
  ['state_lifetime', [0.5, 1e9]],
  ['code_lifetime', [0.001, 60]],
  ['token_lifetime', [1, 1e9]],
  ['refresh_lifetime', [null, 0.1]],
  ['grant_lifetime', [null, 0.1]],
  ['refresh_grace', [0, 2, 1e9]],
  ['refresh_grace_time', [0, 30]],
  ['on_reuse', ['refuse', 'revoke-family']],
  ['basic', ['accept', 'refuse']],
  ['relay_refusal', [true, false]],
  ['code_url_after_exchange', ['gone', 'served']],
  ['refuse_redirect_urls', [null, '^http:', '[\\p{L}]{2,3}$']],
  ['error_body', ['json', 'html', 'empty']],
  ['id_token', [true, false]],
  ['rate_limit', [0, 3]],
  ['rate_limit_window', [0.001, 60]],
];
