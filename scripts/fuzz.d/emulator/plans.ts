// Nearly valid requests for every endpoint of the portal.
import fc from 'fast-check';
import { FORM, type FuzzRequest, fuzzRequests, JSON_TYPE, type RequestPlan, requestPlan } from '../requests.ts';
import {
  formWriter,
  member,
  mergedMembers,
  mutatedText,
  noMembers,
  sometimes,
  specialText,
  textTemplate,
  visibleText,
} from '../texts.ts';
import { apiPlans } from './api-plans.ts';
import { type EmulatorFacts, valueGenerators } from './values.ts';

const HELPER = '/external/oauth2helper';

/** Requests to the emulator. The weights let complete flows occur. */
export function emulatorRequests(facts: EmulatorFacts): fc.Arbitrary<FuzzRequest> {
  return fuzzRequests((good) =>
    fc.oneof(
      { arbitrary: helper(facts, good), weight: 3 },
      { arbitrary: authorize(facts, good), weight: 2 },
      { arbitrary: token(facts, good), weight: 3 },
      { arbitrary: apiPlans(facts, good), weight: 3 },
      whoami(facts, good),
      revocation(facts, good),
      oauth2(facts, good),
      pages(good),
    ),
  );
}

function whoami(facts: EmulatorFacts, good: boolean): fc.Arbitrary<RequestPlan> {
  const { token } = valueGenerators(facts, good);
  return requestPlan({
    origin: 'base',
    path: '/api/whoami',
    heads: [textTemplate`Authorization: Bearer ${token('accessTokens')}`],
  });
}

/** Mostly with an unknown token, so that the other requests have valid ones. */
function revocation(facts: EmulatorFacts, good: boolean): fc.Arbitrary<RequestPlan> {
  const { client, token, odd } = valueGenerators(facts, good);
  const body = fc
    .record({
      id: odd(20, client, fc.constant(facts.clientId)),
      token: sometimes(10, sometimes(30, token('refreshTokens'), token('accessTokens')), visibleText(60)),
      hint: fc.constantFrom('access_token', 'refresh_token', 'x'),
      form: formWriter(good),
    })
    .map(({ id, token, hint, form }) =>
      form({ client_id: id, client_secret: facts.clientSecret, token, token_type_hint: hint }),
    );
  return requestPlan({ origin: 'base', method: 'POST', path: '/oauth2/revoke', heads: [FORM], body });
}

function helper(facts: EmulatorFacts, good: boolean): fc.Arbitrary<RequestPlan> {
  const { client, code, state } = valueGenerators(facts, good);
  const odd = fc.oneof(
    fc.constantFrom('http://127.0.0.1:1/cb', 'http://[', 'javascript:alert(1)'),
    textTemplate`http://x/${visibleText(50)}`,
  );
  const address = (good ? fc.constant('http://127.0.0.1:1/cb?a=b#c') : odd).map(encodeURIComponent);
  const query = sometimes(50, textTemplate`?redirect_url=${address}`, fc.constant(''));
  const what = fc.oneof(textTemplate`code=${code}`, fc.constantFrom('error=access_denied', ''));
  const heads = [JSON_TYPE];
  return fc.oneof(
    requestPlan({
      origin: 'base',
      method: 'POST',
      path: textTemplate`${fc.constant(HELPER)}/config/${client}${query}`,
      heads,
    }),
    requestPlan({ origin: 'base', path: textTemplate`${fc.constant(HELPER)}/code/get/${client}?state=${state}` }),
    requestPlan({
      origin: 'base',
      path: textTemplate`${fc.constant(HELPER)}/code/set/${client}?${what}&state=${state}`,
    }),
  );
}

/** The helper's flow, or that of a standard tool with the helper's address as its redirect_uri. */
function authorize(facts: EmulatorFacts, good: boolean): fc.Arbitrary<RequestPlan> {
  const { client, state, entry, odd } = valueGenerators(facts, good);
  const redirect = odd(50, specialText, fc.constant(callback(facts))).map(encodeURIComponent);
  const scope = entry('Monitoring%20RemoteControl');
  const ordinary = textTemplate`state=${entry('xyz')}&redirect_uri=${redirect}&scope=${scope}`;
  const query = textTemplate`response_type=code&client_id=${client}&${sometimes(30, ordinary, textTemplate`state=${state}`)}`;
  const path = textTemplate`/sso/authorize?${query}`;
  const action = sometimes(15, fc.constantFrom('refuse', 'continue', 'other'), fc.constant(''));
  const body = fc.tuple(formWriter(good), action).map(([form, chosen]) => {
    return form({ username: facts.user, password: facts.password, action: chosen });
  });
  return sometimes(
    40,
    requestPlan({ origin: 'frontend', path }),
    requestPlan({ origin: 'frontend', method: 'POST', path, heads: [FORM], body }),
  );
}

function token(facts: EmulatorFacts, good: boolean): fc.Arbitrary<RequestPlan> {
  const { client, code, entry, token, odd } = valueGenerators(facts, good);
  const { clientId, clientSecret } = facts;
  const refresh = token('refreshTokens').map((one) => ({ grant_type: 'refresh_token', refresh_token: one }));
  const scope = good ? fc.constant('Monitoring') : fc.constantFrom('', 'a b', 'a  b', '"');
  const ordinary = entry(callback(facts)).map((redirect_uri) => ({ redirect_uri, access_type: 'offline' }));
  const exchange = mergedMembers(
    fc.constant({ grant_type: 'authorization_code' }),
    member('code', code),
    member('scope', scope),
    sometimes(30, ordinary, noMembers),
  );
  return fc
    .record({
      id: odd(20, client, fc.constant(clientId)),
      basic: sometimes(20, fc.constant(true), fc.constant(false)),
      grant: sometimes(60, refresh, exchange),
      form: formWriter(good),
    })
    .map(({ id, basic, grant, form }): RequestPlan => {
      const heads = [FORM, `Authorization: Basic ${Buffer.from(`${id}:${clientSecret}`).toString('base64')}`];
      const credentials: Record<string, string> = basic ? {} : { client_id: id, client_secret: clientSecret };
      const body = form({ ...credentials, ...grant });
      return { origin: 'frontend', method: 'POST', path: '/sso/token', heads: basic ? heads : [FORM], body };
    });
}

const DEVICE_GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:device_code';

/** The generic OAuth 2.0 server. */
function oauth2(facts: EmulatorFacts, good: boolean): fc.Arbitrary<RequestPlan> {
  const { client, code, entry, token, odd } = valueGenerators(facts, good);
  const { clientId, clientSecret, known, user, password } = facts;
  const post = (path: string, members: fc.Arbitrary<Record<string, string>>) =>
    fc
      .record({ id: odd(20, client, fc.constant(clientId)), members, form: formWriter(good) })
      .map(({ id, members: own, form }): RequestPlan => {
        const body = form({ client_id: id, client_secret: clientSecret, ...own });
        return { origin: 'frontend', method: 'POST', path, heads: [FORM], body };
      });
  const pages = (path: fc.Arbitrary<string>) => {
    const action = sometimes(15, fc.constantFrom('refuse', 'continue', 'other'), fc.constant(''));
    const body = fc.tuple(formWriter(good), action).map(([form, chosen]) => {
      return form({ username: user, password, action: chosen });
    });
    return sometimes(
      50,
      requestPlan({ origin: 'frontend', path }),
      requestPlan({ origin: 'frontend', method: 'POST', path, heads: [FORM], body }),
    );
  };
  const challenge = sometimes(30, entry('x'.repeat(43)), fc.constant(''));
  const redirect = entry('https://tool.example/back').map(encodeURIComponent);
  const authorize = textTemplate`/oauth2/authorize?response_type=code&client_id=${client}&redirect_uri=${redirect}&scope=${entry('a')}&state=${entry('s')}&code_challenge_method=S256&code_challenge=${challenge}`;
  const device = sometimes(
    80,
    textTemplate`/oauth2/device?user_code=${entry(known.one('userCodes'))}`,
    fc.constant('/oauth2/device'),
  );
  const exchange = code.map((one) => ({
    grant_type: 'authorization_code',
    code: one,
    redirect_uri: 'https://tool.example/back',
    code_verifier: 'x'.repeat(43),
  }));
  const poll = entry(known.one('deviceCodes')).map((one) => ({
    grant_type: DEVICE_GRANT_TYPE,
    device_code: one,
    code_verifier: 'x'.repeat(43),
  }));
  const refresh = token('refreshTokens').map((one) => ({ grant_type: 'refresh_token', refresh_token: one }));
  const pkce = challenge.map((one) => ({ code_challenge: one, code_challenge_method: one === '' ? '' : 'S256' }));
  const scope = entry('read').map((one) => ({ scope: one }));
  const assertion = {
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: 'x.y.z',
  };
  /** No client of the fuzzed emulator has keys, so an assertion makes a request bad. */
  const asserted = good ? noMembers : sometimes<Record<string, string>>(5, fc.constant(assertion), noMembers);
  return fc.oneof(
    requestPlan({
      origin: 'frontend',
      path: fc.constantFrom(
        '/.well-known/oauth-authorization-server',
        '/.well-known/openid-configuration',
        '/oauth2/jwks',
      ),
    }),
    { arbitrary: pages(authorize), weight: 2 },
    { arbitrary: post('/oauth2/device_authorization', mergedMembers(scope, pkce, asserted)), weight: 2 },
    { arbitrary: pages(device), weight: 2 },
    {
      arbitrary: post(
        '/oauth2/token',
        mergedMembers(fc.oneof<fc.Arbitrary<Record<string, string>>[]>(exchange, poll, refresh), asserted),
      ),
      weight: 4,
    },
    post('/oauth2/revoke', fc.constant({ token: 'unknown' })),
  );
}

function callback({ baseUrl, clientId }: EmulatorFacts): string {
  return `${baseUrl}${HELPER}/code/set/${clientId}`;
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

function pages(good: boolean): fc.Arbitrary<RequestPlan> {
  const path = sometimes(10, textTemplate`/${visibleText(99)}`, fc.constantFrom(...PAGES));
  const origin = sometimes(30, fc.constant('frontend' as const), fc.constant('base' as const));
  return requestPlan({ origin, path: good ? path : sometimes(10, mutatedText(path), path) });
}
