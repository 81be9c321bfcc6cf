// The values that requests to a hub carry: good ones, and such as an attacker would send.
import fc from 'fast-check';
import { mutated, none, repeated, sometimes, soup, special } from '../texts.ts';
import { goodAssertion, JWT_BEARER, type OddAssertion, oddAssertion } from './assertions.ts';
import type { Credentials, HubFacts } from './facts.ts';

type Members = Readonly<Record<string, string>>;

/** How a request says who sends it. */
export interface Proof {
  readonly heads: readonly string[];
  readonly members: Members;
  /** No hub may believe it. */
  readonly forged: boolean;
}

/** @param good has every value be a good one, so that what lies behind the checks is reached */
export function valuesOf(facts: HubFacts, good: boolean) {
  const { known, keyed, victimId, waiting } = facts;
  /** `odd` in so many of a hundred cases, but never in a good request. */
  const odd = <T>(percent: number, some: fc.Arbitrary<T>, usual: fc.Arbitrary<T>) =>
    good ? usual : sometimes(percent, some, usual);
  const others = fc.oneof(
    ...(['accessTokens', 'refreshTokens', 'deviceCodes', 'userCodes', 'nonces'] as const).map((kind) =>
      known.one(kind),
    ),
  );
  const other = fc.oneof(
    { arbitrary: fc.constantFrom('', '__proto__', victimId, keyed.id, '\r\nX: y'), weight: 5 },
    repeated('x', 3000),
  );
  const wrong = (right: fc.Arbitrary<Credentials>): fc.Arbitrary<Credentials> =>
    fc.oneof(
      fc.tuple(right, mutated(right.map(({ secret }) => secret))).map(([{ id }, secret]) => ({ id, secret })),
      right.map(({ id }) => ({ id, secret: '' })),
      right.map(({ secret }) => ({ id: victimId, secret })),
      soup(60).map((secret) => ({ id: victimId, secret })),
      fc.constant({ id: keyed.id, secret: keyed.publicKey }),
      right.map(({ id, secret }) => ({ id: id.toUpperCase(), secret })),
      fc.record({ id: other, secret: soup(300) }),
      fc.constant(waiting),
    );
  const assertion = fc
    .record({
      type: odd(10, fc.oneof(special, fc.constant('urn:ietf:params:oauth:jwt')), fc.constant(JWT_BEARER)),
      assertion: odd<OddAssertion>(
        80,
        oddAssertion(facts),
        goodAssertion(facts).map((text) => ({ text, forged: false })),
      ),
      more: odd<Members>(20, fc.record({ client_id: other, client_secret: soup(50) }), none),
    })
    .map(({ type, assertion: { text, forged }, more }): Proof => {
      return { heads: [], members: { client_assertion_type: type, client_assertion: text, ...more }, forged };
    });
  return {
    odd,
    /** This, or something like it. */
    one: (right: fc.Arbitrary<string>) =>
      odd(
        50,
        fc.oneof(
          mutated(right),
          others,
          soup(120),
          fc.constant(''),
          right.map((text) => text + text),
        ),
        right,
      ),
    /** The good text, or something strange. */
    entry: (right: string) => odd(50, special, fc.constant(right)),
    /** The client authentication of one of these appliances, or of the one that signs. */
    proof(appliances: fc.Arbitrary<Credentials>): fc.Arbitrary<Proof> {
      const chosen = appliances.map((right) => ({ ...right, forged: false }));
      // Of one appliance throughout: another one's own credentials are good, and a mutation may leave a secret as it is.
      const forged = appliances.chain((right) =>
        wrong(fc.constant(right)).map(({ id, secret }) => {
          return { id, secret, forged: id !== right.id || secret !== right.secret };
        }),
      );
      const more = odd<Members>(
        10,
        other.map((client_id) => ({ client_id })),
        none,
      );
      const ways = odd(6, fc.constant('both'), fc.constantFrom('form', 'basic'));
      const bySecret = fc.tuple(odd(30, forged, chosen), ways, more).map(
        ([{ id, secret, forged }, way, more]): Proof => ({
          heads: way === 'form' ? [] : [basic(id, secret)],
          members: way === 'basic' ? more : { client_id: id, client_secret: secret },
          forged,
        }),
      );
      // The hub remembers so many assertions of one appliance, and then takes none for a minute.
      return sometimes(good ? 3 : 15, assertion, bySecret);
    },
  };
}

function basic(id: string, secret: string): string {
  const [user, password] = [id, secret].map((text) => encodeURIComponent(text));
  return `Authorization: Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
}
