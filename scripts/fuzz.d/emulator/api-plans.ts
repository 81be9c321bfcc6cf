// Nearly valid requests to the emulator's own API.
import fc from 'fast-check';
import { openApiDocument } from '../../../src/emulator/openapi/document.ts';
import { JSON_TYPE, type RequestPlan, requestPlan } from '../requests.ts';
import { type JsonSchema, matchingValue } from '../schemas.ts';
import { jsonValue, mutatedText, repeatedText, sometimes, specialText, textTemplate, toLatin1 } from '../texts.ts';
import { type EmulatorFacts, valueGenerators } from './values.ts';

/** Plans for requests to the emulator's own API. */
export function apiPlans(facts: EmulatorFacts, good: boolean): fc.Arbitrary<RequestPlan> {
  const { state, stateId, entry, odd } = valueGenerators(facts, good);
  const { known } = facts;
  const at = (name: string | fc.Arbitrary<string>) =>
    textTemplate`/_emulator/${typeof name === 'string' ? fc.constant(name) : name}`;
  const get = (name: string | fc.Arbitrary<string>) => requestPlan({ origin: 'base', path: at(name) });
  const remove = (name: fc.Arbitrary<string>) => requestPlan({ origin: 'base', method: 'DELETE', path: at(name) });
  const send = (name: string | fc.Arbitrary<string>, json: fc.Arbitrary<unknown>, method = 'POST') => {
    const written = json.map((one) => toLatin1(JSON.stringify(one)));
    const body = odd(40, mutatedText(written), odd(5, repeatedText('[', 5000), written));
    return requestPlan({ origin: 'base', method, path: at(name), heads: [JSON_TYPE], body });
  };
  const deny = sometimes(15, fc.constant(true), fc.constant(false));
  const login = fc.record({ state: sometimes(20, stateId, state), user: entry(facts.user), deny });
  const advance = fc.constantFrom<unknown>(...ADVANCES).map((seconds) => ({ advance: seconds }));
  const what = fc.constantFrom('grant', 'access_tokens');
  const since = sometimes(30, fc.constantFrom(...NUMBERS), fc.constantFrom('1000000000', '1000000007'));
  return fc.oneof(
    { arbitrary: send('login', login), weight: 4 },
    send('device', fc.record({ user_code: entry(known.one('userCodes')), user: entry(facts.user), deny })),
    get('device'),
    get(textTemplate`requests?since=${since}`),
    get('settings'),
    send('settings', settings(good), 'PATCH'),
    get('faults'),
    { arbitrary: send('faults', harmlessFault(facts, good)), weight: 2 },
    { arbitrary: remove(textTemplate`faults/${entry(known.one('faults'))}`), weight: 2 },
    remove(sometimes(20, fc.constant('faults'), textTemplate`faults/${specialText}`)),
    get('clock'),
    { arbitrary: send('clock', advance), weight: 2 },
    get('logins'),
    get('grants'),
    send(
      textTemplate`grants/${entry(known.one('grants'))}/revoke`,
      (good ? what : sometimes<unknown>(50, what, jsonValue)).map((one) => ({ what: one })),
    ),
    get('findings'),
    get(sometimes(20, fc.constant('events?x=1'), fc.constant('events'))),
    // A valid reset is rare, because it invalidates all known values: later flows must start again with a config
    // request.
    send(
      'reset',
      sometimes<object>(
        3,
        fc.constant({}),
        jsonValue.map((one) => ({ x: one })),
      ),
    ),
  );
}

const NUMBERS = ['0', '-1', '1e9', 'x', '99999999999999999999'];

/** Small advances, because large ones make all known values expire. */
const ADVANCES = [-1, 0, 0.001, '5', null, 1e308, -0, [], {}];

const { paths } = openApiDocument({ base: '', frontend: '' }, '') as unknown as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
};

interface Described {
  readonly requestBody?: { readonly content: { readonly 'application/json': { readonly schema: JsonSchema } } };
}

/** The schema of an operation's body, from the emulator's OpenAPI document. */
function bodyOf(path: string, verb: string): JsonSchema {
  return paths[path]?.[verb]?.requestBody?.content['application/json'].schema ?? {};
}

/** A change of one to five settings. After a successful change the settings are restored at once. */
function settings(good: boolean): fc.Arbitrary<object> {
  const one = Object.entries(bodyOf('/_emulator/settings', 'patch').properties ?? {}).map(([name, schema]) => {
    const right = matchingValue(schema);
    return (good ? right : sometimes(30, right, jsonValue)).map((chosen) => [name, chosen] as const);
  });
  return fc.array(fc.oneof(...one), { minLength: 1, maxLength: 5 }).map((entries) => Object.fromEntries(entries));
}

/**
 * Faults of each kind that never occur, and others that a mutation may trigger, which do not change the status of
 * responses.
 */
function harmlessFault({ victimId }: EmulatorFacts, good: boolean): fc.Arbitrary<object> {
  const byChance = (bodyOf('/_emulator/faults', 'post').oneOf ?? []).filter(
    ({ properties }) => properties?.['probability'],
  );
  const silent = fc.oneof(...byChance.map(matchingValue)).map((fault) => ({ ...(fault as object), probability: 0 }));
  const endpoint = fc.constantFrom('token', '*');
  const offset = fc.constantFrom(0, -3600, 1e10);
  const right = fc.record({ kind: fc.constant('wrong_date'), endpoint, client: fc.constant(victimId), offset });
  const odd = fc.record({ endpoint: fc.constant('token'), kind: jsonValue, status: jsonValue, never: jsonValue });
  return good ? silent : sometimes<object>(50, odd, right);
}
