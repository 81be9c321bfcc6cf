// Requests close to good ones, for the emulator's own API.
import fc from 'fast-check';
import { FAULT_KINDS } from '../../../src/emulator/faults/kinds.ts';
import { ENDPOINTS } from '../../../src/emulator/http/logged-request.ts';
import { JSON_TYPE, type Plan, plan } from '../requests.ts';
import { latin1, mutated, repeated, sometimes, special, text, value } from '../texts.ts';
import { type Facts, valuesOf } from './values.ts';

/** The emulator's own API. Faults that would break answers have their turn between the parts, when nothing else is sent. */
export function apiPlan(facts: Facts, good: boolean): fc.Arbitrary<Plan> {
  const { state, stateId, entry, odd } = valuesOf(facts, good);
  const { known } = facts;
  const at = (name: string | fc.Arbitrary<string>) =>
    text`/_emulator/${typeof name === 'string' ? fc.constant(name) : name}`;
  const get = (name: string | fc.Arbitrary<string>) => plan({ origin: 'base', path: at(name) });
  const remove = (name: fc.Arbitrary<string>) => plan({ origin: 'base', method: 'DELETE', path: at(name) });
  const send = (name: string | fc.Arbitrary<string>, json: fc.Arbitrary<unknown>, method = 'POST') => {
    const written = json.map((one) => latin1(JSON.stringify(one)));
    const body = odd(40, mutated(written), odd(5, repeated('[', 5000), written));
    return plan({ origin: 'base', method, path: at(name), heads: [JSON_TYPE], body });
  };
  const deny = sometimes(15, fc.constant(true), fc.constant(false));
  const login = fc.record({ state: sometimes(20, stateId, state), user: entry(facts.user), deny });
  const advance = fc.constantFrom<unknown>(...ADVANCES).map((seconds) => ({ advance: seconds }));
  const what = fc.constantFrom('grant', 'access_tokens');
  const since = sometimes(30, fc.constantFrom(...NUMBERS), fc.constantFrom('1000000000', '1000000007'));
  return fc.oneof(
    { arbitrary: send('login', login), weight: 4 },
    get(text`requests?since=${since}`),
    get('settings'),
    send('settings', settings(good), 'PATCH'),
    get('faults'),
    send('faults', harmlessFault(facts, good)),
    remove(text`faults/${entry(known.one('faults'))}`),
    remove(sometimes(20, fc.constant('faults'), text`faults/${special}`)),
    get('clock'),
    { arbitrary: send('clock', advance), weight: 2 },
    get('logins'),
    get('grants'),
    send(
      text`grants/${entry(known.one('grants'))}/revoke`,
      (good ? what : sometimes<unknown>(50, what, value)).map((one) => ({ what: one })),
    ),
    get('findings'),
    get(sometimes(20, fc.constant('events?x=1'), fc.constant('events'))),
    // Forgets all that is known, so a good one is rare: what comes after it begins anew with a config request.
    send(
      'reset',
      sometimes<object>(
        3,
        fc.constant({}),
        value.map((one) => ({ x: one })),
      ),
    ),
  );
}

const NUMBERS = ['0', '-1', '1e9', 'x', '99999999999999999999'];

/** Small ones: far ones let all that is known expire. They have their turn between the parts of a run. */
const ADVANCES = [-1, 0, 0.001, '5', null, 1e308, -0, [], {}];

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

/** A change of one or two settings. They are put back as soon as it succeeds. */
function settings(good: boolean): fc.Arbitrary<object> {
  const one = fc.oneof(
    ...GOOD_SETTINGS.map(([name, values]) => {
      const right = fc.constantFrom(...values);
      return (good ? right : sometimes(30, right, value)).map((chosen) => [name, chosen] as const);
    }),
  );
  return fc.array(one, { minLength: 1, maxLength: 2 }).map((entries) => Object.fromEntries(entries));
}

const endpoint = fc.constantFrom(...ENDPOINTS, '*');

/** A fault, good or not, that costs no answer its status whatever a mutation makes of it. */
function harmlessFault({ victimId }: Facts, good: boolean): fc.Arbitrary<object> {
  const who = { endpoint, client: fc.constant(victimId), times: fc.constant(1) };
  const right = fc.oneof(
    fc.record({ kind: fc.constant('wrong_date'), ...who, offset: fc.constantFrom(0, -3600, 1e10) }),
    fc.record({ kind: fc.constant('content_type'), ...who, content_type: fc.constantFrom('text/plain', 'x') }),
  );
  const odd = fc.record({ endpoint: fc.constant('token'), kind: value, status: value, never: value });
  return good ? right : sometimes<object>(50, odd, right);
}

const commit = fc.boolean();

/** The members of each kind of fault beside the common ones. */
const FAULTS: Readonly<Record<keyof typeof FAULT_KINDS, Readonly<Record<string, fc.Arbitrary<unknown>>>>> = {
  status: {
    commit,
    status: fc.integer({ min: 200, max: 599 }),
    headers: fc.constant({ 'x-a': 'b' }),
    body: fc.constant('{"a":'),
  },
  redirect: { commit, location: fc.constant('http://127.0.0.1:1/'), status: fc.constantFrom(301, 302, 307, 308) },
  not_json: { commit },
  delay: { commit, seconds: fc.constantFrom(0.001, 0.02, 60) },
  hang: { commit },
  reset_before: {},
  commit_then_drop: {},
  truncate: { bytes: fc.constantFrom(0, 1, 20, 1_000_000) },
  slow_body: { bytes_per_second: fc.constantFrom(1, 500, 1_000_000) },
  content_type: { content_type: fc.constant('text/html') },
  oversize: { bytes: fc.constantFrom(1, 100_000, 1e10) },
  wrong_date: { offset: fc.constantFrom(-1e10, 3600, 1e10) },
  tls_failure: { answer: fc.constantFrom('garbage', 'close') },
  origin_down: { seconds: fc.constant(0.02) },
};

/** A fault, in force for whatever comes; of a kind for each turn. */
export function fault(clientId: string, turn: number): fc.Arbitrary<Readonly<Record<string, unknown>>> {
  const often = {
    times: fc.constantFrom(1, 3, null),
    probability: fc.constantFrom(1, 0.5),
    every: fc.constantFrom(1, 2),
  };
  const where = sometimes(
    50,
    sometimes(70, fc.constant({ endpoint: 'token', grant_type: 'refresh_token' }), fc.constant({ endpoint: 'token' })),
    fc.record({ endpoint }),
  );
  const narrowed = fc
    .tuple(where, sometimes(30, fc.constant({ client: clientId }), fc.constant({})), fc.record(often))
    .map((parts): object => Object.assign({}, ...parts));
  const origin = fc.constantFrom('base', 'frontend');
  const common = { requests: narrowed, connections: fc.record({ origin, ...often }), origin: fc.record({ origin }) };
  const kinds = Object.entries(FAULT_KINDS);
  const [kind, { strikes }] = kinds[turn % kinds.length] ?? ['not_json', FAULT_KINDS.not_json];
  const own = fc.record(new Map(Object.entries(FAULTS)).get(kind) ?? {});
  return fc.tuple(common[strikes], own).map(([shared, members]) => ({ kind, ...shared, ...members }));
}
