// The values in requests to a hub: good ones, and those of an attacker.
import fc from 'fast-check';
import { mutatedText, noMembers, repeatedText, sometimes, specialText, visibleText } from '../texts.ts';
import { type FaultyAssertion, faultyAssertion, JWT_BEARER, validAssertion } from './assertions.ts';
import type { FuzzCredentials, HubFacts } from './facts.ts';

type Members = Readonly<Record<string, string>>;

/** The client authentication of a request. */
export interface AuthenticationParts {
  readonly heads: readonly string[];
  readonly members: Members;
  /** It is forged, and the hub must reject it. */
  readonly forged: boolean;
}

/** Generators of values. @param good every value is valid, so that requests get past the validation */
export function valueGenerators(facts: HubFacts, good: boolean) {
  const { known, keyed, victimId, waiting } = facts;
  /** `some` in `percent` of the cases, but never in a good request. */
  const odd = <T>(percent: number, some: fc.Arbitrary<T>, usual: fc.Arbitrary<T>) =>
    good ? usual : sometimes(percent, some, usual);
  const others = fc.oneof(
    ...(['accessTokens', 'refreshTokens', 'deviceCodes', 'userCodes', 'nonces'] as const).map((kind) =>
      known.one(kind),
    ),
  );
  const other = fc.oneof(
    { arbitrary: fc.constantFrom('', '__proto__', victimId, keyed.id, '\r\nX: y'), weight: 5 },
    repeatedText('x', 3000),
  );
  const wrong = (right: fc.Arbitrary<FuzzCredentials>): fc.Arbitrary<FuzzCredentials> =>
    fc.oneof(
      fc.tuple(right, mutatedText(right.map(({ secret }) => secret))).map(([{ id }, secret]) => ({ id, secret })),
      right.map(({ id }) => ({ id, secret: '' })),
      right.map(({ secret }) => ({ id: victimId, secret })),
      visibleText(60).map((secret) => ({ id: victimId, secret })),
      fc.constant({ id: keyed.id, secret: keyed.publicKey }),
      right.map(({ id, secret }) => ({ id: id.toUpperCase(), secret })),
      fc.record({ id: other, secret: visibleText(300) }),
      fc.constant(waiting),
    );
  const assertion = fc
    .record({
      type: odd(10, fc.oneof(specialText, fc.constant('urn:ietf:params:oauth:jwt')), fc.constant(JWT_BEARER)),
      assertion: odd<FaultyAssertion>(
        80,
        faultyAssertion(facts),
        validAssertion(facts).map((text) => ({ text, forged: false })),
      ),
      more: odd<Members>(20, fc.record({ client_id: other, client_secret: visibleText(50) }), noMembers),
    })
    .map(({ type, assertion: { text, forged }, more }): AuthenticationParts => {
      return { heads: [], members: { client_assertion_type: type, client_assertion: text, ...more }, forged };
    });
  return {
    odd,
    /** The valid text, or a similar or odd one. */
    one: (right: fc.Arbitrary<string>) =>
      odd(
        50,
        fc.oneof(
          mutatedText(right),
          others,
          visibleText(120),
          fc.constant(''),
          right.map((text) => text + text),
        ),
        right,
      ),
    /** The valid text, or an odd one. */
    entry: (right: string) => odd(50, specialText, fc.constant(right)),
    /** The client authentication of one of these appliances, or an assertion of the keyed one. */
    proof(appliances: fc.Arbitrary<FuzzCredentials>): fc.Arbitrary<AuthenticationParts> {
      const chosen = appliances.map((right) => ({ ...right, forged: false }));
      // From one appliance only: the credentials of another one are valid, and a mutation may leave a secret unchanged.
      const forged = appliances.chain((right) =>
        wrong(fc.constant(right)).map(({ id, secret }) => {
          return { id, secret, forged: id !== right.id || secret !== right.secret };
        }),
      );
      const more = odd<Members>(
        10,
        other.map((client_id) => ({ client_id })),
        noMembers,
      );
      const ways = odd(6, fc.constant('both'), fc.constantFrom('form', 'basic'));
      const bySecret = fc.tuple(odd(30, forged, chosen), ways, more).map(
        ([{ id, secret, forged }, way, more]): AuthenticationParts => ({
          heads: way === 'form' ? [] : [basic(id, secret)],
          members: way === 'basic' ? more : { client_id: id, client_secret: secret },
          forged,
        }),
      );
      // Rare in good requests: the hub remembers a limited number of assertions per appliance, and then accepts none
      // for a minute.
      return sometimes(good ? 3 : 15, assertion, bySecret);
    },
  };
}

function basic(id: string, secret: string): string {
  const [user, password] = [id, secret].map((text) => encodeURIComponent(text));
  return `Authorization: Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
}
