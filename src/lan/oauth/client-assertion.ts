import {
  createLocalJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  errors,
  type JWK,
  type JWTPayload,
  jwtVerify,
} from 'jose';
import type { Appliance, PublicKey } from '../../core/appliances/appliance.ts';
import type { LanService, TrueTime } from '../../core/lan-service.ts';
import { AssertionReplayCache } from './assertion-replay-cache.ts';
import { type ClientAuthentication, malformed, refused, unavailable } from './authentication-outcome.ts';

/** RFC 7523, 2.2. */
export const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

/** How an assertion may be signed: with a private key, and never with a secret that the hub would have to know. */
export const ASSERTION_ALGORITHMS = ['ES256', 'EdDSA', 'Ed25519', 'PS256', 'RS256'];

/** An assertion is made for one request: it may live so long, in s. */
const MAX_LIFETIME = 60;
/** An appliance's clock may be off by so much, in s. */
const TOLERANCE = 30;
/** How long it may take until the clock is confirmed, as far as anybody can say, in s. */
const UNTIL_CONFIRMED = 30;

/** Says the same of an appliance that nobody knows, of one that has a secret, and of another key. */
const UNKNOWN = 'the client_assertion is not signed with the key of an appliance that the hub knows';

const NOT_FOR_THE_HUB =
  'the hub was asked by an address that it does not know for its own, and a client_assertion must be meant for it alone: ask it by its name, or by an address that its certificate is for';

/** What is required of the claims. */
interface Expected {
  readonly subject: string;
  readonly audiences: readonly string[];
}

/** What an assertion is by one clock. */
type Verdict =
  | { readonly kind: 'good'; readonly jti: string; readonly exp: number }
  /** By another clock it may be good. */
  | { readonly kind: 'untimely'; readonly answer: ClientAuthentication }
  | { readonly kind: 'bad'; readonly answer: ClientAuthentication };

/** Authenticates appliances by the JWTs that they sign (`private_key_jwt`: RFC 7523; RFC 7521, 4.2). */
export class ClientAssertions {
  readonly #service: LanService;
  readonly #used: AssertionReplayCache;

  constructor(service: LanService, used = new AssertionReplayCache()) {
    this.#service = service;
    this.#used = used;
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
  ): Promise<ClientAuthentication> {
    const said = read(assertion);
    if (said === null) return refused('the client_assertion is no signed JWT');
    if (!ASSERTION_ALGORITHMS.includes(said.alg))
      return refused(`sign the client_assertion with ${ASSERTION_ALGORITHMS.join(', ')}`);
    if (clientId !== undefined && clientId !== said.subject) {
      return malformed('the client_id of the form is not the sub of the client_assertion');
    }
    if (this.#service.times().length === 0) await this.#service.confirmTime();
    const times = this.#service.times();
    if (times.length === 0) {
      return unavailable(
        'the hub does not know the time yet, and an assertion is only good for a time',
        UNTIL_CONFIRMED,
      );
    }
    const appliance = this.#service.client(said.subject);
    if (appliance?.credentials.kind !== 'keys') return refused(UNKNOWN);
    const expected = { subject: said.subject, audiences };
    let untimely: ClientAuthentication | null = null;
    for (const time of times) {
      const verdict = await this.#judge(assertion, appliance, appliance.credentials.keys, expected, time);
      if (verdict.kind === 'good') return this.#use(appliance, verdict);
      if (verdict.kind === 'bad') return verdict.answer;
      untimely ??= verdict.answer;
    }
    return untimely ?? refused(UNKNOWN);
  }

  async #judge(
    assertion: string,
    appliance: Appliance,
    keys: readonly PublicKey[],
    expected: Expected,
    time: TrueTime,
  ): Promise<Verdict> {
    try {
      const claims = await this.#claims(assertion, keys, expected, new Date(time.now));
      return judgeClaims(claims, time, this.#service.knewBefore(appliance));
    } catch (error) {
      return { kind: isOfTime(error) ? 'untimely' : 'bad', answer: refused(wrong(error, expected.audiences)) };
    }
  }

  /**
   * The claims of a good signature.
   * @throws what is wrong, one of jose's errors
   */
  async #claims(
    assertion: string,
    keys: readonly PublicKey[],
    { subject, audiences }: Expected,
    currentDate: Date,
  ): Promise<JWTPayload> {
    const options = {
      algorithms: ASSERTION_ALGORITHMS,
      issuer: subject,
      subject,
      audience: [...audiences],
      requiredClaims: ['exp', 'jti'],
      currentDate,
      clockTolerance: TOLERANCE,
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
  #use(appliance: Appliance, { jti, exp }: Extract<Verdict, { kind: 'good' }>): ClientAuthentication {
    const slowest = Math.min(...this.#service.times().map(({ now }) => now));
    switch (this.#used.use(appliance.id, jti, (exp + TOLERANCE) * 1000, slowest)) {
      case 'again':
        return refused('this client_assertion was used before: sign a new one, with another jti, for each request');
      case 'full':
        return unavailable(`${appliance.name} sends more assertions than the hub can remember`, MAX_LIFETIME);
      case 'first':
        return { kind: 'authenticated', appliance };
    }
  }
}

/** @param knewBefore whether an earlier run of the hub may have taken it, which this one knows nothing of */
function judgeClaims({ exp, iat, jti }: JWTPayload, time: TrueTime, knewBefore: boolean): Verdict {
  const [now, started] = [time.now / 1000, time.started / 1000];
  if (typeof jti !== 'string' || jti === '' || exp === undefined) {
    return { kind: 'bad', answer: refused('the jti is no text') };
  }
  if (iat !== undefined && iat > now + TOLERANCE) {
    const what = `the iat of the client_assertion is ${Math.ceil(iat - now)} s ahead: is the appliance's clock right?`;
    return { kind: 'untimely', answer: refused(what) };
  }
  if (exp - (iat ?? now + TOLERANCE) > MAX_LIFETIME) {
    const what = `the client_assertion may live ${MAX_LIFETIME} s at most, from its iat to its exp`;
    return { kind: iat === undefined ? 'untimely' : 'bad', answer: refused(what) };
  }
  // One that was used before the start was made before it, by a clock that may be ahead. A NumericDate has whole seconds, as
  // a rule.
  const made = iat ?? exp - MAX_LIFETIME;
  const early = Math.floor(started) + TOLERANCE - made;
  if (knewBefore && early > 0) {
    const what = 'this client_assertion may have been used before the hub was started: sign a new one';
    return { kind: 'untimely', answer: unavailable(what, Math.ceil(early)) };
  }
  return { kind: 'good', jti, exp };
}

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

function isOfTime(error: unknown): boolean {
  if (error instanceof errors.JWTExpired) return true;
  return error instanceof errors.JWTClaimValidationFailed && error.claim === 'nbf' && error.reason === 'check_failed';
}

function wrong(error: unknown, audiences: readonly string[]): string {
  if (error instanceof errors.JWTExpired) return "the client_assertion has expired: is the appliance's clock right?";
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.claim === 'aud') {
      if (audiences.length === 0) return NOT_FOR_THE_HUB;
      return `the aud of the client_assertion must be one of ${audiences.join(', ')}`;
    }
    if (error.claim === 'iss') return 'the iss of the client_assertion must be the client_id, as its sub';
    if (error.claim === 'nbf') return 'the client_assertion is not good yet: is the clock of the appliance right?';
    return `the client_assertion needs a proper ${error.claim}`;
  }
  return UNKNOWN;
}
