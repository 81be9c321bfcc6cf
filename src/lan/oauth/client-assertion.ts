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
import type { AssertionReplayCache } from './assertion-replay-cache.ts';
import {
  type ClientAuthenticationResult,
  invalidClient,
  invalidRequest,
  temporarilyUnavailable,
} from './client-authentication-result.ts';
import { ASSERTION_ALGORITHMS } from './server-metadata.ts';

/** The longest lifetime of an assertion, in s: it is for one request. */
const MAX_ASSERTION_LIFETIME = 60;
/** How far an appliance's clock may be off, in s. */
const CLOCK_TOLERANCE = 30;
/** `Retry-After` while the clock is not confirmed, in s: an estimate. */
const CLOCK_RETRY_AFTER = 30;

/** The same if the appliance is unknown, has a secret or has another key, so that it reveals none of this. */
const UNKNOWN_KEY_DESCRIPTION = 'the client_assertion is not signed with the key of an appliance that the hub knows';

const UNVERIFIABLE_AUDIENCE_DESCRIPTION =
  'the Host of the request is not a known address of this hub, so the hub cannot check the aud of the client_assertion: use its host name, or an address in its certificate';

/** The required claims. */
interface ExpectedClaims {
  readonly subject: string;
  readonly audiences: readonly string[];
}

/** The result of checking an assertion against one clock. */
type AssertionCheck =
  | { readonly kind: 'good'; readonly jti: string; readonly exp: number }
  /** Not valid at this clock's time, but perhaps at another's. */
  | { readonly kind: 'untimely'; readonly result: ClientAuthenticationResult }
  | { readonly kind: 'bad'; readonly result: ClientAuthenticationResult };

/** Authenticates appliances by the JWTs that they sign (`private_key_jwt`: RFC 7523; RFC 7521, 4.2). */
export class ClientAssertionVerifier {
  readonly #service: LanService;
  readonly #replayCache: AssertionReplayCache;

  constructor(service: LanService, replayCache: AssertionReplayCache) {
    this.#service = service;
    this.#replayCache = replayCache;
  }

  /**
   * Authenticates the sender of an assertion.
   * @param clientId the `client_id` in the form; undefined if there is none
   * @param audiences the accepted values of `aud`; empty if the address in the request may belong to another host
   * @param deadline when the response is due, on the boot clock in ms
   */
  async verify(
    assertion: string,
    clientId: string | undefined,
    audiences: readonly string[],
    deadline: number,
  ): Promise<ClientAuthenticationResult> {
    const unverified = decodeUnverified(assertion);
    if (unverified === null) return invalidClient('the client_assertion is not a signed JWT with a sub');
    if (!ASSERTION_ALGORITHMS.includes(unverified.alg))
      return invalidClient(`sign the client_assertion with ${ASSERTION_ALGORITHMS.join(', ')}`);
    if (clientId !== undefined && clientId !== unverified.subject) {
      return invalidRequest('the client_id in the form differs from the sub of the client_assertion');
    }
    if (this.#service.timeReadings().length === 0) await this.#service.confirmTime(deadline);
    const times = this.#service.timeReadings();
    if (times.length === 0) {
      return temporarilyUnavailable(
        'the hub does not know the time yet, so it cannot check when the client_assertion expires',
        CLOCK_RETRY_AFTER,
      );
    }
    const appliance = this.#service.findClient(unverified.subject);
    const result = await this.#verifyAs(appliance, assertion, { subject: unverified.subject, audiences }, times);
    return result.kind === 'refused' ? { ...result, appliance } : result;
  }

  async #verifyAs(
    appliance: Appliance | undefined,
    assertion: string,
    expected: ExpectedClaims,
    times: readonly TimeReading[],
  ): Promise<ClientAuthenticationResult> {
    if (appliance?.credentials.kind !== 'keys') return invalidClient(UNKNOWN_KEY_DESCRIPTION);
    let untimely: ClientAuthenticationResult | null = null;
    for (const time of times) {
      const check = await this.#verifyAt(assertion, appliance, appliance.credentials.keys, expected, time);
      if (check.kind === 'good') return this.#checkReplay(appliance, check);
      if (check.kind === 'bad') return check.result;
      untimely ??= check.result;
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
        result: invalidClient(describeVerificationError(error, expected.audiences)),
      };
    }
  }

  /**
   * The claims, after the signature and the registered claims were verified.
   * @throws one of jose's errors
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
      // During a key change an appliance may omit the `kid`, so every matching key is tried.
      let lastError: unknown = error;
      for await (const key of error) {
        try {
          return (await jwtVerify(assertion, key, options)).payload;
        } catch (reason) {
          lastError = reason;
          if (!(reason instanceof errors.JWSSignatureVerificationFailed)) break;
        }
      }
      throw lastError;
    }
  }

  /** Records the assertion for as long as it may be valid on any of the clocks. */
  #checkReplay(
    appliance: Appliance,
    { jti, exp }: Extract<AssertionCheck, { kind: 'good' }>,
  ): ClientAuthenticationResult {
    const slowest = Math.min(...this.#service.timeReadings().map(({ now }) => now));
    switch (this.#replayCache.recordUse(appliance.id, jti, (exp + CLOCK_TOLERANCE) * 1000, slowest)) {
      case 'again':
        return invalidClient('this client_assertion was used before: sign a new one with a new jti for each request');
      case 'full':
        return temporarilyUnavailable(
          `${appliance.name} has sent too many client_assertions in a short time: wait before the next one`,
          MAX_ASSERTION_LIFETIME,
        );
      case 'first':
        return { kind: 'authenticated', appliance };
    }
  }
}

/** @param mayBeReplay whether an earlier run of the hub may have accepted it: the replay cache is lost at a restart */
function checkClaims({ exp, iat, jti }: JWTPayload, time: TimeReading, mayBeReplay: boolean): AssertionCheck {
  const [now, started] = [time.now / 1000, time.startedAt / 1000];
  if (typeof jti !== 'string' || jti === '' || exp === undefined) {
    return { kind: 'bad', result: invalidClient('the jti of the client_assertion must be a non-empty string') };
  }
  if (iat !== undefined && iat > now + CLOCK_TOLERANCE) {
    const what = `the iat of the client_assertion is ${Math.ceil(iat - now)} s ahead: check the appliance's clock`;
    return { kind: 'untimely', result: invalidClient(what) };
  }
  if (exp - (iat ?? now + CLOCK_TOLERANCE) > MAX_ASSERTION_LIFETIME) {
    const what = `the exp of the client_assertion must be at most ${MAX_ASSERTION_LIFETIME} s after its iat`;
    return { kind: iat === undefined ? 'untimely' : 'bad', result: invalidClient(what) };
  }
  // An assertion that was used before this start was also signed before it, on a clock that may be ahead. A NumericDate
  // is usually in whole seconds.
  const issuedAt = iat ?? exp - MAX_ASSERTION_LIFETIME;
  const early = Math.floor(started) + CLOCK_TOLERANCE - issuedAt;
  if (mayBeReplay && early > 0) {
    const what = 'this client_assertion may have been used before the hub was restarted: sign a new one';
    return { kind: 'untimely', result: temporarilyUnavailable(what, Math.ceil(early)) };
  }
  return { kind: 'good', jti, exp };
}

/** Reads `alg` and `sub` without verifying anything; null if it is not a JWT that has both. */
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
  if (error instanceof errors.JWTExpired) return "the client_assertion has expired: check the appliance's clock";
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.claim === 'aud') {
      if (audiences.length === 0) return UNVERIFIABLE_AUDIENCE_DESCRIPTION;
      return `the aud of the client_assertion must be one of ${audiences.join(', ')}`;
    }
    if (error.claim === 'iss') return 'the iss of the client_assertion must be the client_id, like its sub';
    if (error.claim === 'nbf') return "the client_assertion is not valid yet: check the appliance's clock";
    return `the ${error.claim} of the client_assertion is missing or invalid`;
  }
  return UNKNOWN_KEY_DESCRIPTION;
}
