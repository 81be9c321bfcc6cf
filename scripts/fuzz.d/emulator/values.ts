// The values in requests to the emulator: good ones, and those of an attacker.
import fc from 'fast-check';
import { forgedJwt } from '../jwt.ts';
import type { ExtractionRule, KnownValues } from '../known-values.ts';
import { mutatedText, repeatedText, sometimes, specialText, visibleText } from '../texts.ts';

/** The kinds of values from responses to the attacker's own client, used and unused. */
type Learned =
  | 'states'
  | 'codes'
  | 'accessTokens'
  | 'refreshTokens'
  | 'grants'
  | 'faults'
  | 'deviceCodes'
  | 'userCodes'
  | 'requestUris';

/** What requests are made from. Of the victim it has only the id and the middle part of one of its states. */
export interface EmulatorFacts {
  readonly baseUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly victimId: string;
  readonly user: string;
  readonly password: string;
  /** The middle part of a state whose code can be polled at the helper. */
  readonly victimPayload: string;
  /** A client that has registered itself, and the token for its registration. */
  readonly registered: { readonly id: string; readonly token: string };
  readonly known: KnownValues<Learned>;
}

/** The values that responses below 400 issue. */
export const EXTRACTION_RULES: readonly ExtractionRule<Learned>[] = [
  ['/_emulator/grants', 'grants', /"id":"([^"]+)"/],
  ['/_emulator/faults', 'faults', /"id":"(\d+)"/],
  ['/_emulator/login', 'codes', /[?&]code=([^&\s"\\]+)/],
  ['/sso/authorize', 'codes', /[?&]code=([^&\s"\\]+)/],
  ['/sso/token', 'accessTokens', /"access_token":"([^"]+)"/],
  ['/sso/token', 'refreshTokens', /"refresh_token":"([^"]+)"/],
  ['/oauth2/authorize', 'codes', /[?&]code=([^&\s"\\]+)/],
  ['/oauth2/token', 'accessTokens', /"access_token":"([^"]+)"/],
  ['/oauth2/token', 'refreshTokens', /"refresh_token":"([^"]+)"/],
  ['/oauth2/device_authorization', 'deviceCodes', /"device_code":"([^"]+)"/],
  ['/oauth2/device_authorization', 'userCodes', /"user_code":"([^"]+)"/],
  ['/oauth2/par', 'requestUris', /"request_uri":"([^"]+)"/],
  ['/external/oauth2helper/config', 'states', /code_url":"[^"]*state=([^"&]+)"/],
  ['/external/oauth2helper/code/get', 'codes', /"code":"([^"]+)"/],
];

/** Generators of values. @param good every value is valid, so that requests get past the validation */
export function valueGenerators(facts: EmulatorFacts, good: boolean) {
  const { known, clientId, victimId } = facts;
  /** `some` in `percent` of the cases, but never in a good request. */
  const odd = <T>(percent: number, some: fc.Arbitrary<T>, usual: fc.Arbitrary<T>) =>
    good ? usual : sometimes(percent, some, usual);
  const state = odd(70, oddState(facts), known.one('states'));
  const others = fc.constantFrom(victimId, clientId.toUpperCase(), '__proto__', '', '..', '%2e%2e');
  return {
    odd,
    state,
    client: odd(40, fc.oneof({ arbitrary: others, weight: 6 }, repeatedText('x', 2000)), fc.constant(clientId)),
    code: odd(
      50,
      fc.oneof(mutatedText(known.one('codes')), visibleText(60), fc.constant(''), state),
      known.one('codes'),
    ),
    /** The id inside a state, which identifies a waiting login. */
    stateId: known.one('states').map((whole) => {
      const payload = Buffer.from(whole.split('.')[1] ?? '', 'base64url').toString();
      return /"jti":"([^"]+)"/.exec(payload)?.[1] ?? '';
    }),
    /** One of these tokens, or a similar one. */
    token(kind: 'accessTokens' | 'refreshTokens') {
      const one = known.one(kind);
      const older = fc.tuple(one, fc.nat(8)).map(([token, age]) => token.replace(/(?<=\.)[^.]*/, String(age)));
      const reversed = one.map((token) => token.split('.').reverse().join('.'));
      return odd(50, fc.oneof(older, mutatedText(one), reversed, state, visibleText(80), fc.constant('')), one);
    },
    /** An entry of a path or a query: the valid one, or an odd text. */
    entry: (usual: string | fc.Arbitrary<string>) =>
      odd(70, specialText, typeof usual === 'string' ? fc.constant(usual) : usual),
  };
}

/**
 * The values of parameters and members by their names; null for those that make a request bad. Others follow from their
 * schemas.
 */
export function memberValues(
  facts: EmulatorFacts,
  good: boolean,
): Readonly<Record<string, fc.Arbitrary<unknown> | null>> {
  const { known, registered, clientSecret, user, password, baseUrl, clientId } = facts;
  const { client, code, state, stateId, entry, token, odd } = valueGenerators(facts, good);
  const callbacks = [`${baseUrl}/external/oauth2helper/code/set/${clientId}`, 'https://tool.example/back'];
  const oddAddress = fc.constantFrom('http://127.0.0.1:1/cb?a=b#c', 'http://[', 'javascript:alert(1)', 'http://x/é');
  return {
    client_id: client,
    client_secret: fc.constant(clientSecret),
    // No client of the fuzzed emulator has keys.
    client_assertion: good ? null : fc.constant('x.y.z'),
    client_assertion_type: good ? null : fc.constant('urn:ietf:params:oauth:client-assertion-type:jwt-bearer'),
    state: sometimes(10, stateId, state),
    code,
    code_challenge: entry('x'.repeat(43)),
    code_challenge_method: entry('S256'),
    code_verifier: entry('x'.repeat(43)),
    refresh_token: token('refreshTokens'),
    // Mostly unknown, so that the other requests have valid ones.
    token: sometimes(10, sometimes(30, token('refreshTokens'), token('accessTokens')), visibleText(60)),
    subject_token: token('accessTokens'),
    subject_token_type: entry('urn:ietf:params:oauth:token-type:access_token'),
    actor_token: token('accessTokens'),
    actor_token_type: entry('urn:ietf:params:oauth:token-type:access_token'),
    requested_token_type: entry('urn:ietf:params:oauth:token-type:access_token'),
    resource: entry('https://api.example/'),
    token_type_hint: fc.constantFrom('access_token', 'refresh_token', 'x'),
    device_code: entry(known.one('deviceCodes')),
    user_code: entry(known.one('userCodes')),
    redirect_uri: odd(30, specialText, fc.constantFrom(...callbacks)),
    redirect_url: odd(50, oddAddress, fc.constant('http://127.0.0.1:1/cb')),
    scope: entry('openid Monitoring'),
    prompt: entry(fc.constantFrom('login', 'consent', 'select_account login')),
    max_age: entry('0'),
    login_hint: entry(user),
    request_uri: good ? null : entry(known.one('requestUris')),
    error: entry('access_denied'),
    username: fc.constant(user),
    password: fc.constant(password),
    action: sometimes(15, fc.constantFrom('refuse', 'continue', 'other'), fc.constant('')),
    user: entry(user),
    deny: sometimes(15, fc.constant(true), fc.constant(false)),
    registered: entry(registered.id),
    redirect_uris: odd(
      30,
      fc.constantFrom<unknown>(['x'], [`${callbacks[1]}#x`], [], 'x'),
      fc.constant([callbacks[1]]),
    ),
    post_logout_redirect_uris: odd(30, fc.constantFrom<unknown>(['x'], 'x'), fc.constant([callbacks[1]])),
    // No client of the fuzzed emulator has registered an address, and no flow issues ID tokens.
    post_logout_redirect_uri: good ? null : fc.constantFrom(...callbacks),
    id_token_hint: good ? null : mutatedText(known.one('accessTokens')),
    token_endpoint_auth_method: entry('client_secret_post'),
    grant_types: fc.constant(['authorization_code', 'refresh_token']),
    response_types: fc.constant(['code']),
    client_name: entry('A tool'),
    jwks: fc.constant({ keys: [] }),
    id: entry(known.one('faults')),
    grant_id: entry(known.one('grants')),
    file: fc.constantFrom('main.js', 'main.ts', 'x.js'),
    since: odd(70, fc.constantFrom('-1', '1e9', 'x', '99999999999999999999'), fc.constantFrom('0', '1000000000')),
    // Small, because a large one makes all known values expire.
    advance: odd(70, fc.constantFrom<unknown>(-1, '5', null, 1e308, -0, [], {}), fc.constantFrom<unknown>(0, 0.001)),
  };
}

/** A forged state, sometimes the victim's. */
function oddState({ known, victimPayload, clientSecret }: EmulatorFacts): fc.Arbitrary<string> {
  const states = fc.tuple(known.one('states'), fc.boolean()).map(([state, foreign]) => {
    return foreign ? state.replace(/(?<=\.)[^.]*/, victimPayload) : state;
  });
  return sometimes(10, mutatedText(states), forgedJwt(states, ['', 'secret', clientSecret]));
}
