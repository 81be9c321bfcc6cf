// Nearly valid requests for everything that a hub serves on the LAN.
import fc from 'fast-check';
import { FORM, type FuzzRequest, fuzzRequests, JSON_TYPE, type RequestPlan, requestPlan } from '../requests.ts';
import {
  formWriter,
  jsonValue,
  member,
  mergedMembers,
  mutatedText,
  noMembers,
  repeatedText,
  sometimes,
  specialText,
  textTemplate,
  toLatin1,
  visibleText,
} from '../texts.ts';
import type { FuzzCredentials, HubFacts } from './facts.ts';
import { type AuthenticationParts, valueGenerators } from './values.ts';

/** Requests to a hub. The weights let complete flows occur. */
export function hubRequests(facts: HubFacts): fc.Arbitrary<FuzzRequest> {
  const requests = fuzzRequests((good) =>
    fc.oneof(
      { arbitrary: token(facts, good), weight: 4 },
      { arbitrary: device(facts, good), weight: 1 },
      { arbitrary: revoke(facts, good), weight: 2 },
      { arbitrary: connections(facts, good), weight: 1 },
      { arbitrary: register(facts, good), weight: 1 },
      { arbitrary: pair(facts, good), weight: 2 },
      { arbitrary: callback(facts, good), weight: 1 },
      { arbitrary: pages(good), weight: 1 },
    ),
  );
  return fc.tuple(requests, fc.nat(ADDRESSES - 1), fc.nat(99), servername).map(([request, address, chance, name]) => ({
    ...request,
    via: {
      address: `127.${1 + Math.floor(address / 250)}.${1 + (address % 250)}.1`,
      // If no response is needed, the HTTPS port sometimes gets a request without TLS.
      plain: request.origin === 'http' || (!request.sound && chance < 10),
      ...(chance % 10 === 0 && (!request.sound || chance === 0) && { servername: name }),
    },
  }));
}

/** The number of source addresses, because the hub limits each address. */
const ADDRESSES = 20_000;

/** Server names (SNI) for the TLS handshake. */
const servername = fc.constantFrom('evil.example', 'localhost', 'a'.repeat(63), 'xn--nxasmq6b');

const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code';
const SCOPES = ['Monitoring', 'RemoteControl', 'Monitoring Monitoring', '"', ' ', 'a\u0000b', 'x'.repeat(2000)];
const TTLS = ['0', '1', '60', '3600', '999999999', '-1', '1.5', '1e9', 'x', '99999999999999999999'];

function token(facts: HubFacts, good: boolean): fc.Arbitrary<RequestPlan> {
  const { one, proof, odd } = valueGenerators(facts, good);
  const { session, own, doubter, known } = facts;
  const grants = (refreshToken: fc.Arbitrary<string>, deviceCode: fc.Arbitrary<string>) => {
    const grant = { grant_type: 'client_credentials' };
    const ttl = good ? fc.constant('60') : fc.constantFrom(...TTLS);
    return fc.oneof(
      { arbitrary: fc.constant(grant), weight: 2 },
      ttl.map((min_ttl) => ({ ...grant, min_ttl })),
      one(refreshToken).map((refresh_token) => ({ grant_type: 'refresh_token', refresh_token })),
      one(deviceCode).map((device_code) => ({ grant_type: DEVICE_CODE, device_code })),
    );
  };
  const asking = (appliances: fc.Arbitrary<FuzzCredentials>, grant: fc.Arbitrary<Readonly<Record<string, string>>>) => {
    const type = odd(5, member('grant_type', fc.constantFrom('password', 'authorization_code', '')), noMembers);
    return toForm(
      '/oauth/token',
      good,
      proof(appliances),
      mergedMembers(grant, scope(20, good), resource(10, good), type),
    );
  };
  const others = fc.oneof(
    { arbitrary: fc.constantFrom(own, own, doubter), weight: 3 },
    { arbitrary: registered(facts), weight: 8 },
  );
  return sometimes(
    40,
    asking(fc.constant(session.client), grants(fc.constant(session.refreshToken), fc.constant(session.deviceCode))),
    asking(others, grants(known.one('refreshTokens'), known.one('deviceCodes'))),
  );
}

const RESOURCES = [
  'https://hub/connections/',
  'https://hub/connections/%zz',
  'x',
  '/connections/a',
  'https://[::/',
  'a\nb',
];

function resource(percent: number, good: boolean) {
  const any = good ? fc.constant('https://api.portal.example/') : fc.constantFrom(...RESOURCES);
  return sometimes(percent, member('resource', any), noMembers);
}

function scope(percent: number, good: boolean) {
  return sometimes(percent, member('scope', good ? fc.constant('Monitoring') : fc.constantFrom(...SCOPES)), noMembers);
}

/** The registered appliances that have a secret. */
function registered({ known }: HubFacts): fc.Arbitrary<FuzzCredentials> {
  return known.one('registered').map((both) => {
    const [id = '', secret = ''] = both.split(' ');
    return { id, secret };
  });
}

function device(facts: HubFacts, good: boolean): fc.Arbitrary<RequestPlan> {
  const { proof } = valueGenerators(facts, good);
  // Not for `own`, whose token must stay the same: somebody may log in, and its grant would be replaced.
  const appliances = fc.oneof(
    { arbitrary: fc.constantFrom(facts.doubter, facts.session.client), weight: 2 },
    { arbitrary: registered(facts), weight: 8 },
  );
  return toForm(
    '/oauth/device_authorization',
    good,
    proof(appliances),
    mergedMembers(scope(30, good), resource(10, good)),
  );
}

/** Revocations by `doubter`, of any token. */
function revoke(facts: HubFacts, good: boolean): fc.Arbitrary<RequestPlan> {
  const { one, proof, entry } = valueGenerators(facts, good);
  const token = one(sometimes(30, facts.known.one('refreshTokens'), facts.known.one('accessTokens')));
  const hint = sometimes(50, member('token_type_hint', entry('access_token')), noMembers);
  return toForm('/oauth/revoke', good, proof(fc.constant(facts.doubter)), mergedMembers(member('token', token), hint));
}

function connections(facts: HubFacts, good: boolean): fc.Arbitrary<RequestPlan> {
  const { proof } = valueGenerators(facts, good);
  const appliances = fc.constantFrom(facts.own, facts.doubter, facts.session.client);
  return toForm('/oauth/connections', good, proof(appliances), noMembers);
}

function toForm(
  path: string,
  good: boolean,
  proof: fc.Arbitrary<AuthenticationParts>,
  members: fc.Arbitrary<Readonly<Record<string, string>>>,
): fc.Arbitrary<RequestPlan> {
  const otherTypes = fc.constantFrom(JSON_TYPE, 'Content-Type: text/plain', '');
  return fc
    .record({
      proof,
      members,
      form: formWriter(good),
      // The port without TLS has no OAuth endpoints.
      origin: sometimes(good ? 0 : 3, fc.constant('http' as const), fc.constant('https' as const)),
      type: sometimes(good ? 0 : 5, otherTypes, fc.constant(FORM)),
    })
    .map(({ proof: { heads, forged, ...proof }, members, form, origin, type }): RequestPlan => {
      const body = form({ ...members, ...proof.members });
      return { origin, method: 'POST', path, heads: [type, ...heads], body, forged };
    });
}

/** The registration of an appliance (RFC 7591), with an initial access token or without one. */
function register(facts: HubFacts, good: boolean): fc.Arbitrary<RequestPlan> {
  const token = valueGenerators(facts, good).one(facts.known.one('invites')).map(toLatin1);
  const authorization = textTemplate`Authorization: Bearer ${token}`;
  const invited = good ? authorization : sometimes(50, authorization, fc.constant(''));
  const body = (good ? introduction.map((right) => JSON.stringify(right)) : oddBody).map(toLatin1);
  return requestPlan({ origin: 'https', method: 'POST', path: '/oauth/register', heads: [JSON_TYPE, invited], body });
}

const KEY = {
  kty: 'EC',
  crv: 'P-256',
  x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
  y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
};

const introduction = mergedMembers<unknown>(
  fc.record(
    {
      client_name: fc.constantFrom('Heat pump', 'Wallbox 7', 'Z\u00e4hler', '\u7535\u8868'),
      scope: fc.constant('Monitoring'),
      software_id: fc.constant('meter-firmware'),
    },
    { requiredKeys: ['client_name'] },
  ),
  sometimes(20, fc.constant({ jwks: { keys: [KEY] } }), fc.constant({})),
);

/**
 * Members of a registration, including ones that ask for more rights, each with values that a server may handle
 * wrongly.
 */
const MEMBERS: Readonly<Record<string, readonly unknown[]>> = {
  client_name: ['\r\nX-Header: a', '<b>x</b>', 'a'.repeat(5000), '\u202e'],
  scope: ['"', 'a\u0000b', 'x'.repeat(2000)],
  software_id: ['\r\nX-Header: a', 'a'.repeat(5000)],
  jwks: [
    [{ ...KEY, d: 'jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI' }],
    [{ kty: 'oct', k: 'AAAA' }],
    [{ ...KEY, x: 'AA' }],
    [{ kty: 'RSA', n: 'AQAB', e: 'AQAB' }],
    Array.from({ length: 60 }, () => KEY),
    [null],
  ].map((keys) => ({ keys })),
  jwks_uri: ['https://evil.example/'],
  token_endpoint_auth_method: ['none', 'client_secret_jwt', 'private_key_jwt'],
  grant_types: [['password'], ['client_credentials', 'implicit'], [1]],
  redirect_uris: [['https://evil.example/']],
  software_statement: ['a.b.c'],
  client_id: ['victim'],
};

const oddMember = fc.oneof(
  ...Object.entries(MEMBERS).map(([name, odd]) =>
    fc.oneof(jsonValue, fc.constantFrom(...odd)).map((one) => ({ [name]: one })),
  ),
);
const odd = fc.tuple(introduction, oddMember).map((both) => JSON.stringify(Object.assign({}, ...both)));
const oddBody: fc.Arbitrary<string> = fc.oneof(
  { arbitrary: odd, weight: 3 },
  mutatedText(odd),
  repeatedText('[', 20_000),
  repeatedText('x', 20_000).map((client_name) => JSON.stringify({ client_name })),
  fc.constant('{"client_name":"a","client_name":"b","__proto__":{"scope":"x"}}'),
  jsonValue.map((one) => JSON.stringify(one)),
);

function pair(facts: HubFacts, good: boolean): fc.Arbitrary<RequestPlan> {
  const { one } = valueGenerators(facts, good);
  const code = one(facts.known.one('userCodes'));
  const retyped = fc
    .tuple(code, fc.constantFrom('', ' ', '--'))
    .map(([typed, between]) => typed.toLowerCase().replaceAll('-', between));
  const typed = sometimes(30, retyped, code);
  const query = sometimes(20, fc.constant(''), textTemplate`?user_code=${typed.map(encodeURIComponent)}`);
  const body = fc.tuple(formWriter(good), typed).map(([form, user_code]) => form({ user_code }));
  const post = { origin: 'https', method: 'POST', path: '/pair', body } as const;
  const foreign = requestPlan({ ...post, heads: [FORM, fc.constantFrom(...FOREIGN_PAGES)] });
  return fc.oneof(
    requestPlan({ origin: 'https', path: textTemplate`/pair${query}` }),
    sometimes(good ? 0 : 20, foreign, requestPlan({ ...post, heads: [FORM] })),
  );
}

const FOREIGN_PAGES = ['Origin: https://evil.example', 'Origin: null', 'Sec-Fetch-Site: cross-site'];

/** Codes that no portal gave: what the hub does with them costs it an exchange, so there are few to a good nonce. */
function callback({ known }: HubFacts, good: boolean): fc.Arbitrary<RequestPlan> {
  if (good) return requestPlan({ origin: 'http', path: '/callback/x' });
  const one = known.one('nonces');
  const nonce = sometimes(2, one, fc.oneof(mutatedText(one), visibleText(60)).map(encodeURIComponent));
  const query = fc.oneof(
    { arbitrary: fc.constantFrom('', '?', '?error=access_denied', '?code=a&code=b', '?error='), weight: 5 },
    textTemplate`?code=${visibleText(60)}`,
    fc.constant(`?code=${'x'.repeat(5000)}`),
  );
  return requestPlan({ origin: 'http', path: textTemplate`/callback/${nonce}${query}` });
}

const PAGES = [
  '/',
  '/ca.pem',
  '/ca-old.pem',
  '/.well-known/oauth-authorization-server',
  '/openapi.json',
  '/favicon.ico',
  '/oauth/token',
  '/oauth/',
  '/.well-known/',
  '/v1/status',
  '/metrics',
];

function pages(good: boolean): fc.Arbitrary<RequestPlan> {
  const known = fc.constantFrom(...PAGES);
  const path = sometimes(
    20,
    textTemplate`${mutatedText(known)}${specialText}`,
    sometimes(10, textTemplate`/${visibleText(99)}`, known),
  );
  const origin = sometimes(40, fc.constant('http' as const), fc.constant('https' as const));
  return requestPlan({ origin, path: good ? known : path });
}
