import {
  createLocalJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  errors,
  type JWK,
  type JWTPayload,
  jwtVerify,
} from 'jose';
import type { Appliance, PublicJwk } from '../../core/appliances/appliance.ts';
import type { LanService, TimeReading } from '../../core/lan-service.ts';
import { AssertionReplayCache } from './assertion-replay-cache.ts';
import {
  type ClientAuthenticationResult,
  invalidClient,
  invalidRequest,
  temporarilyUnavailable,
} from './client-authentication-result.ts';

/** RFC 7523, 2.2. */
export const CLIENT_ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

/** How an assertion may be signed: with a private key, and never with a secret that the hub would have to know. */
export const ASSERTION_ALGORITHMS = ['ES256', 'EdDSA', 'Ed25519', 'PS256', 'RS256'];

/** An assertion is made for one request: it may live so long, in s. */
const MAX_ASSERTION_LIFETIME = 60;
/** An appliance's clock may be off by so much, in s. */
const CLOCK_TOLERANCE = 30;
/** How long it may take until the clock is confirmed, as far as anybody can say, in s. */
const CLOCK_RETRY_AFTER = 30;

/** Says the same of an appliance that nobody knows, of one that has a secret, and of another key. */
const UNKNOWN_KEY_DESCRIPTION = 'the client_assertion is not signed with the key of an appliance that the hub knows';

const UNVERIFIABLE_AUDIENCE_DESCRIPTION =
  'the hub was asked by an address that it does not know for its own, and a client_assertion must be meant for it alone: ask it by its name, or by an address that its certificate is for';

/** What is required of the claims. */
interface ExpectedClaims {
  readonly subject: string;
  readonly audiences: readonly string[];
}

/** What an assertion is by one clock. */
type AssertionCheck =
  | { readonly kind: 'good'; readonly jti: string; readonly exp: number }
  /** By another clock it may be good. */
  | { readonly kind: 'untimely'; readonly answer: ClientAuthenticationResult }
  | { readonly kind: 'bad'; readonly answer: ClientAuthenticationResult };

/** Authenticates appliances by the JWTs that they sign (`private_key_jwt`: RFC 7523; RFC 7521, 4.2). */
export class ClientAssertionVerifier {
  readonly #service: LanService;
  readonly #replayCache: AssertionReplayCache;

  constructor(service: LanService, replayCache = new AssertionReplayCache()) {
    this.#service = service;
    this.#replayCache = replayCache;
  }

  /**
   * @param clientId the form's, where it has one
   * @param audiences what the assertion may be meant for, one of them at least; none where the hub was asked by an address that
   *   may be another's
   */
  async verify(
    assertion: string,
    clientId: string | undefined,
    audiences: readonly string[],
  ): Promise<ClientAuthenticationResult> {
    const said = decodeUnverified(assertion);
    if (said === null) return invalidClient('the client_assertion is no signed JWT');
    if (!ASSERTION_ALGORITHMS.includes(said.alg))
      return invalidClient(`sign the client_assertion with ${ASSERTION_ALGORITHMS.join(', ')}`);
    if (clientId !== undefined && clientId !== said.subject) {
      return invalidRequest('the client_id of the form is not the sub of the client_assertion');
    }
    if (this.#service.timeReadings().length === 0) await this.#service.confirmTime();
    const times = this.#service.timeReadings();
    if (times.length === 0) {
      return temporarilyUnavailable(
        'the hub does not know the time yet, and an assertion is only good for a time',
        CLOCK_RETRY_AFTER,
      );
    }
    const appliance = this.#service.findClient(said.subject);
    if (appliance?.credentials.kind !== 'keys') return invalidClient(UNKNOWN_KEY_DESCRIPTION);
    const expected = { subject: said.subject, audiences };
    let untimely: ClientAuthenticationResult | null = null;
    for (const time of times) {
      const verdict = await this.#verifyAt(assertion, appliance, appliance.credentials.keys, expected, time);
      if (verdict.kind === 'good') return this.#checkReplay(appliance, verdict);
      if (verdict.kind === 'bad') return verdict.answer;
      untimely ??= verdict.answer;
    }
    return untimely ?? invalidClient(UNKNOWN_KEY_DESCRIPTION);
  }

  async #verifyAt(
    assertion: string,
    appliance: Appliance,
    keys: readonly PublicJwk[],
    expected: ExpectedClaims,
    time: TimeReading,
  ): Promise<AssertionCheck> {
    try {
      const claims = await this.#verifiedClaims(assertion, keys, expected, new Date(time.now));
      return checkClaims(claims, time, this.#service.existedBeforeStart(appliance));
    } catch (error) {
      return {
        kind: isTimeError(error) ? 'untimely' : 'bad',
        answer: invalidClient(describeVerificationError(error, expected.audiences)),
      };
    }
  }

  /**
   * The claims of a good signature.
   * @throws what is wrong, one of jose's errors
   */
  async #verifiedClaims(
    assertion: string,
    keys: readonly PublicJwk[],
    { subject, audiences }: ExpectedClaims,
    currentDate: Date,
  ): Promise<JWTPayload> {
    const options = {
      algorithms: ASSERTION_ALGORITHMS,
      issuer: subject,
      subject,
      audience: [...audiences],
      requiredClaims: ['exp', 'jti'],
      currentDate,
      clockTolerance: CLOCK_TOLERANCE,
    };
    try {
      const set = createLocalJWKSet({ keys: keys as readonly JWK[] as JWK[] });
      return (await jwtVerify(assertion, set, options)).payload;
    } catch (error) {
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
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
      throw found;
    }
  }

  /** Remembers it for as long as any of the clocks may find it good. */
  #checkReplay(
    appliance: Appliance,
    { jti, exp }: Extract<AssertionCheck, { kind: 'good' }>,
  ): ClientAuthenticationResult {
    const slowest = Math.min(...this.#service.timeReadings().map(({ now }) => now));
    switch (this.#replayCache.recordUse(appliance.id, jti, (exp + CLOCK_TOLERANCE) * 1000, slowest)) {
      case 'again':
        return invalidClient(
          'this client_assertion was used before: sign a new one, with another jti, for each request',
        );
      case 'full':
        return temporarilyUnavailable(
          `${appliance.name} sends more assertions than the hub can remember`,
          MAX_ASSERTION_LIFETIME,
        );
      case 'first':
        return { kind: 'authenticated', appliance };
    }
  }
}

/** @param knewBefore whether an earlier run of the hub may have taken it, which this one knows nothing of */
function checkClaims({ exp, iat, jti }: JWTPayload, time: TimeReading, knewBefore: boolean): AssertionCheck {
  const [now, started] = [time.now / 1000, time.startedAt / 1000];
  if (typeof jti !== 'string' || jti === '' || exp === undefined) {
    return { kind: 'bad', answer: invalidClient('the jti is no text') };
  }
  if (iat !== undefined && iat > now + CLOCK_TOLERANCE) {
    const what = `the iat of the client_assertion is ${Math.ceil(iat - now)} s ahead: is the appliance's clock right?`;
    return { kind: 'untimely', answer: invalidClient(what) };
  }
  if (exp - (iat ?? now + CLOCK_TOLERANCE) > MAX_ASSERTION_LIFETIME) {
    const what = `the client_assertion may live ${MAX_ASSERTION_LIFETIME} s at most, from its iat to its exp`;
    return { kind: iat === undefined ? 'untimely' : 'bad', answer: invalidClient(what) };
  }
  // One that was used before the start was made before it, by a clock that may be ahead. A NumericDate has whole seconds, as
  // a rule.
  const made = iat ?? exp - MAX_ASSERTION_LIFETIME;
  const early = Math.floor(started) + CLOCK_TOLERANCE - made;
  if (knewBefore && early > 0) {
    const what = 'this client_assertion may have been used before the hub was started: sign a new one';
    return { kind: 'untimely', answer: temporarilyUnavailable(what, Math.ceil(early)) };
  }
  return { kind: 'good', jti, exp };
}

/** What an assertion says of itself; nothing of it is proved. */
function decodeUnverified(assertion: string): { alg: string; subject: string } | null {
  try {
    const { alg } = decodeProtectedHeader(assertion);
    const { sub } = decodeJwt(assertion);
    return alg === undefined || typeof sub !== 'string' ? null : { alg, subject: sub };
  } catch {
    return null;
  }
}

function isTimeError(error: unknown): boolean {
  if (error instanceof errors.JWTExpired) return true;
  return error instanceof errors.JWTClaimValidationFailed && error.claim === 'nbf' && error.reason === 'check_failed';
}

function describeVerificationError(error: unknown, audiences: readonly string[]): string {
  if (error instanceof errors.JWTExpired) return "the client_assertion has expired: is the appliance's clock right?";
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.claim === 'aud') {
      if (audiences.length === 0) return UNVERIFIABLE_AUDIENCE_DESCRIPTION;
      return `the aud of the client_assertion must be one of ${audiences.join(', ')}`;
    }
    if (error.claim === 'iss') return 'the iss of the client_assertion must be the client_id, as its sub';
    if (error.claim === 'nbf') return 'the client_assertion is not good yet: is the clock of the appliance right?';
    return `the client_assertion needs a proper ${error.claim}`;
  }
  return UNKNOWN_KEY_DESCRIPTION;
}
