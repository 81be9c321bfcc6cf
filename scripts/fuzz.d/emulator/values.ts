// The values that requests to the emulator carry: good ones, and such as an attacker would send.
import fc from 'fast-check';
import { forgedJwt } from '../jwt.ts';
import type { ExtractionRule, KnownValues } from '../known-values.ts';
import { mutatedText, repeatedText, sometimes, specialText, visibleText } from '../texts.ts';

/** What is learned from answers to requests of the attacker's own client, used and unused. */
type Learned = 'states' | 'codes' | 'accessTokens' | 'refreshTokens' | 'grants' | 'faults';

/** What requests are made from. Nothing of the victim's is here but its id and the middle part of one of its states. */
export interface EmulatorFacts {
  readonly baseUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly victimId: string;
  readonly user: string;
  readonly password: string;
  /** The middle part of a state whose code waits at the helper. */
  readonly victimPayload: string;
  readonly known: KnownValues<Learned>;
}

/** What answers below 400 issue. */
export const EXTRACTION_RULES: readonly ExtractionRule<Learned>[] = [
  ['/_emulator/grants', 'grants', /"id":"([^"]+)"/],
  ['/_emulator/faults', 'faults', /"id":"(\d+)"/],
  ['/_emulator/login', 'codes', /[?&]code=([^&\s"\\]+)/],
  ['/sso/authorize', 'codes', /[?&]code=([^&\s"\\]+)/],
  ['/sso/token', 'accessTokens', /"access_token":"([^"]+)"/],
  ['/sso/token', 'refreshTokens', /"refresh_token":"([^"]+)"/],
  ['/external/oauth2helper/config', 'states', /code_url":"[^"]*state=([^"&]+)"/],
  ['/external/oauth2helper/code/get', 'codes', /"code":"([^"]+)"/],
];

/** @param good has every value be a good one, so that what lies behind the checks is reached */
export function valueGenerators(facts: EmulatorFacts, good: boolean) {
  const { known, clientId, victimId } = facts;
  /** `odd` in so many of a hundred cases, but never in a good request. */
  const odd = (percent: number, some: fc.Arbitrary<string>, usual: fc.Arbitrary<string>) =>
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
      return odd(50, fc.oneof(older, mutatedText(one), reversed, state, visibleText(80), fc.constant('')), one);
    },
    /** An entry of a path or a query: the good one, or something strange. */
    entry: (usual: string | fc.Arbitrary<string>) =>
      odd(70, specialText, typeof usual === 'string' ? fc.constant(usual) : usual),
  };
}

/** A state that is forged, now and then of the victim's. */
function oddState({ known, victimPayload, clientSecret }: EmulatorFacts): fc.Arbitrary<string> {
  const states = fc.tuple(known.one('states'), fc.boolean()).map(([state, foreign]) => {
    return foreign ? state.replace(/(?<=\.)[^.]*/, victimPayload) : state;
  });
  return sometimes(10, mutatedText(states), forgedJwt(states, ['', 'secret', clientSecret]));
}
