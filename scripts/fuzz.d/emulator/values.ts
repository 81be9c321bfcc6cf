// The values that requests to the emulator carry: good ones, and such as an attacker would send.
import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import type { Known } from '../known.ts';
import { encoded, mutated, NO_ALGORITHM, repeated, sometimes, soup, special } from '../texts.ts';

/** What is learned from answers to requests of the attacker's own client, used and unused. */
type Learned = 'states' | 'codes' | 'accessTokens' | 'refreshTokens' | 'grants' | 'faults';

/** What requests are made from. Nothing of the victim's is here but its id and the middle part of one of its states. */
export interface Facts {
  readonly baseUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly victimId: string;
  readonly user: string;
  readonly password: string;
  /** The middle part of a state whose code waits at the helper. */
  readonly victimPayload: string;
  readonly known: Known<Learned>;
}

/** Takes from an answer below 400 what was issued in it. @param path of its request */
export function learn({ known }: Facts, path: string, answer: string): void {
  const found = (pattern: RegExp) => pattern.exec(answer)?.[1];
  if (path.startsWith('/_emulator/grants')) known.add('grants', found(/"id":"([^"]+)"/));
  else if (path.startsWith('/_emulator/faults')) known.add('faults', found(/"id":"(\d+)"/));
  else if (path.startsWith('/sso/token')) {
    known.add('accessTokens', found(/"access_token":"([^"]+)"/));
    known.add('refreshTokens', found(/"refresh_token":"([^"]+)"/));
  } else if (path.startsWith('/external/oauth2helper/config')) {
    known.add('states', found(/code_url":"[^"]*state=([^"&]+)"/));
  } else if (path.startsWith('/external/oauth2helper/code/get')) known.add('codes', found(/"code":"([^"]+)"/));
  else if (path.startsWith('/sso/authorize') || path.startsWith('/_emulator/login')) {
    known.add('codes', found(/[?&]code=([^&\s"\\]+)/));
  }
}

/** @param good has every value be a good one, so that what lies behind the checks is reached */
export function valuesOf(facts: Facts, good: boolean) {
  const { known, clientId, victimId } = facts;
  /** `odd` in so many of a hundred cases, but never in a good request. */
  const odd = (percent: number, some: fc.Arbitrary<string>, usual: fc.Arbitrary<string>) =>
    good ? usual : sometimes(percent, some, usual);
  const state = odd(70, oddState(facts), known.one('states'));
  const others = fc.constantFrom(victimId, clientId.toUpperCase(), '__proto__', '', '..', '%2e%2e');
  return {
    odd,
    state,
    client: odd(40, fc.oneof({ arbitrary: others, weight: 6 }, repeated('x', 2000)), fc.constant(clientId)),
    code: odd(50, fc.oneof(mutated(known.one('codes')), soup(60), fc.constant(''), state), known.one('codes')),
    /** The id inside a state, by which a waiting login is named. */
    stateId: known.one('states').map((whole) => {
      const payload = Buffer.from(whole.split('.')[1] ?? '', 'base64url').toString();
      return /"jti":"([^"]+)"/.exec(payload)?.[1] ?? '';
    }),
    /** One of these tokens, or one like it. */
    token(kind: 'accessTokens' | 'refreshTokens') {
      const one = known.one(kind);
      const older = fc.tuple(one, fc.nat(8)).map(([token, age]) => token.replace(/(?<=\.)[^.]*/, String(age)));
      const reversed = one.map((token) => token.split('.').reverse().join('.'));
      return odd(50, fc.oneof(older, mutated(one), reversed, state, soup(80), fc.constant('')), one);
    },
    /** An entry of a path or a query: the good one, or something strange. */
    entry: (usual: string | fc.Arbitrary<string>) =>
      odd(70, special, typeof usual === 'string' ? fc.constant(usual) : usual),
  };
}

/** A state that is forged in one of the ways that JWT libraries have fallen for. */
function oddState({ known, victimPayload, clientSecret }: Facts): fc.Arbitrary<string> {
  const parts = fc.tuple(known.one('states'), fc.boolean()).map(([whole, foreign]) => {
    const [head = '', payload = '', mac = ''] = whole.split('.');
    return { whole, head, payload: foreign ? victimPayload : payload, mac };
  });
  const forged = <T>(
    by: fc.Arbitrary<T>,
    how: (parts: Record<'whole' | 'head' | 'payload' | 'mac', string>, by: T) => string,
  ) => fc.tuple(parts, by).map(([state, one]) => how(state, one));
  const none = encoded(NO_ALGORITHM);
  return fc.oneof(
    forged(none, ({ payload }, head) => `${head}.${payload}.`),
    forged(none, ({ payload, mac }, head) => `${head}.${payload}.${mac}`),
    forged(encoded(OTHER_ALGORITHMS), ({ payload, mac }, head) => `${head}.${payload}.${mac}`),
    forged(fc.constantFrom('', 'secret', clientSecret), ({ head, payload }, key) => {
      const mac = createHmac('sha256', key).update(`${head}.${payload}`).digest('base64url');
      return `${head}.${payload}.${mac}`;
    }),
    forged(encoded(CLAIMS), ({ head, mac }, payload) => `${head}.${payload}.${mac}`),
    parts.map(({ head, payload, mac }) => `${head}.${payload}.${mac}`),
    forged(fc.nat(99), ({ whole }, share) => whole.slice(0, Math.floor((share * whole.length) / 100))),
    parts.map(({ whole, mac }) => `${whole}.${mac}`),
    mutated(known.one('states')),
    fc.constant('..'),
    soup(200),
  );
}

const OTHER_ALGORITHMS = [
  '{"alg":"RS256"}',
  '{"alg":"HS512"}',
  '{"alg":"HS256","crit":["x"]}',
  '{"alg":"HS256","jwk":{"kty":"oct","k":"AA"}}',
  '{"alg":"HS256","kid":"../../dev/null"}',
  '{"alg":["HS256"]}',
];

const CLAIMS = ['{"jti":null}', '[]', '1', '{"jti":"__proto__","aud":["a"],"exp":1e400}', '{"exp":"x"}', ''];
