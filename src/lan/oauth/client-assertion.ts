import {
  createLocalJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  errors,
  type JWK,
  type JWTPayload,
  jwtVerify,
} from 'jose';
import type { Appliance, PublicKey } from '../../core/appliance.ts';
import type { LanService } from '../../core/lan-service.ts';
import { type ClientAuthentication, malformed, refused, unavailable } from './authentication-outcome.ts';
import { UsedAssertions } from './used-assertions.ts';

/** RFC 7523, 2.2. */
export const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

/** How an assertion may be signed: with a private key, and never with a secret that the hub would have to know. */
export const ASSERTION_ALGORITHMS = ['ES256', 'EdDSA', 'Ed25519', 'PS256', 'RS256'] as const;

/** An assertion is made for one request: it may live so long, in s. */
const LONGEST_LIFE = 60;
/** An appliance's clock may be off by so much, in s. */
const TOLERANCE = 30;
/** How long it may take until the clock is confirmed, as far as anybody can say, in s. */
const UNTIL_CONFIRMED = 30;

/** Says the same of an appliance that nobody knows, of one that has a secret, and of another key. */
const UNKNOWN = 'the client_assertion is not signed with the key of an appliance that the hub knows';

type JwkSet = ReturnType<typeof createLocalJWKSet>;

/** Authenticates appliances by the JWTs that they sign (`private_key_jwt`: RFC 7523; RFC 7521, 4.2). */
export class ClientAssertions {
  readonly #service: LanService;
  readonly #used = new UsedAssertions();
  /** An appliance's keys, imported once. */
  readonly #sets = new WeakMap<readonly PublicKey[], JwkSet>();

  constructor(service: LanService) {
    this.#service = service;
  }

  /**
   * @param clientId the form's, where it has one
   * @param audiences what the assertion may be meant for, one of them at least
   */
  async verify(
    assertion: string,
    clientId: string | undefined,
    audiences: readonly string[],
  ): Promise<ClientAuthentication> {
    const said = read(assertion);
    if (said === null) return refused('the client_assertion is no signed JWT');
    if (!ALGORITHMS.has(said.alg)) return refused(`sign the client_assertion with ${ASSERTION_ALGORITHMS.join(', ')}`);
    if (clientId !== undefined && clientId !== said.subject) {
      return malformed('the client_id of the form is not the sub of the client_assertion');
    }
    const now = this.#service.trueTime();
    const started = this.#service.startedAt();
    if (now === null || started === null) {
      return unavailable(
        'the hub does not know the time yet, and an assertion is only good for a time',
        UNTIL_CONFIRMED,
      );
    }
    const appliance = this.#service.client(said.subject);
    if (appliance?.credentials.kind !== 'keys') return refused(UNKNOWN);
    const claims = await this.#claims(assertion, appliance.credentials.keys, said.subject, audiences, now);
    if (typeof claims === 'string') return refused(claims);
    return this.#accept(appliance, claims, now / 1000, started / 1000);
  }

  /** The claims of a good signature, or what is wrong in words. */
  async #claims(
    assertion: string,
    keys: readonly PublicKey[],
    subject: string,
    audiences: readonly string[],
    now: number,
  ): Promise<JWTPayload | string> {
    const options = {
      algorithms: [...ASSERTION_ALGORITHMS],
      issuer: subject,
      subject,
      audience: [...audiences],
      requiredClaims: ['exp', 'jti'],
      currentDate: new Date(now),
      clockTolerance: TOLERANCE,
    };
    try {
      return (await jwtVerify(assertion, this.#set(keys), options)).payload;
    } catch (error) {
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) return wrong(error, audiences);
      // An appliance in the middle of a change of keys need not say which one it used.
      let found: unknown = error;
      for await (const key of error) {
        try {
          return (await jwtVerify(assertion, key, options)).payload;
        } catch (reason) {
          found = reason;
          if (!(reason instanceof errors.JWSSignatureVerificationFailed)) break;
        }
      }
      return wrong(found, audiences);
    }
  }

  #accept(appliance: Appliance, { exp, iat, jti }: JWTPayload, now: number, started: number): ClientAuthentication {
    if (typeof jti !== 'string' || jti === '' || exp === undefined) return refused('the jti is no text');
    if (iat !== undefined && iat > now + TOLERANCE) return refused(notYet('iat', iat, now));
    if (exp - (iat ?? now + TOLERANCE) > LONGEST_LIFE) {
      return refused(`the client_assertion may live ${LONGEST_LIFE} s at most, from its iat to its exp`);
    }
    // The hub has forgotten what was used before it was started. A NumericDate has whole seconds, as a rule.
    const made = iat ?? exp - LONGEST_LIFE;
    const early = Math.floor(started) - made;
    if (early > 0) {
      return unavailable('the hub was started after this client_assertion was made: sign a new one', Math.ceil(early));
    }
    switch (this.#used.use(appliance.id, jti, (exp + TOLERANCE) * 1000, now * 1000)) {
      case 'again':
        return refused('this client_assertion was used before: sign a new one, with another jti, for each request');
      case 'full':
        return unavailable(`${appliance.name} sends more assertions than the hub can remember`, LONGEST_LIFE);
      case 'first':
        return { kind: 'authenticated', appliance };
    }
  }

  #set(keys: readonly PublicKey[]): JwkSet {
    const known = this.#sets.get(keys);
    if (known !== undefined) return known;
    const set = createLocalJWKSet({ keys: keys as readonly JWK[] as JWK[] });
    this.#sets.set(keys, set);
    return set;
  }
}

const ALGORITHMS: ReadonlySet<string> = new Set(ASSERTION_ALGORITHMS);

/** What an assertion says of itself; nothing of it is proved. */
function read(assertion: string): { alg: string; subject: string } | null {
  try {
    const { alg } = decodeProtectedHeader(assertion);
    const { sub } = decodeJwt(assertion);
    return alg === undefined || typeof sub !== 'string' ? null : { alg, subject: sub };
  } catch {
    return null;
  }
}

function wrong(error: unknown, audiences: readonly string[]): string {
  if (error instanceof errors.JWTExpired) return "the client_assertion has expired: is the appliance's clock right?";
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.claim === 'aud') return `the aud of the client_assertion must be one of ${audiences.join(', ')}`;
    if (error.claim === 'iss') return 'the iss of the client_assertion must be the client_id, as its sub';
    if (error.claim === 'nbf') return 'the client_assertion is not good yet: is the clock of the appliance right?';
    return `the client_assertion needs a proper ${error.claim}`;
  }
  return UNKNOWN;
}

function notYet(claim: string, time: number, now: number): string {
  return `the ${claim} of the client_assertion is ${Math.ceil(time - now)} s ahead: is the appliance's clock right?`;
}
