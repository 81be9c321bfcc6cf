import { BoundedMap } from '../bounded-collections.ts';
import type { Client } from '../settings/client-registry.ts';

/** RFC 7523, 2.2. */
export const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

/** The algorithms of what clients sign, for `private_key_jwt` and DPoP: all asymmetric ones. */
export const ASSERTION_ALGORITHMS = ['ES256', 'ES384', 'EdDSA', 'PS256', 'RS256'];

/** Assertions remembered, so that none is used twice. */
const MAX_ASSERTIONS = 10_000;

/** Verifies client assertions (RFC 7523, 3), each once. */
export class ClientAssertions {
  readonly #used = new BoundedMap<true>(MAX_ASSERTIONS);
  readonly #wall: () => number;

  /** @param wall the time of the machine, by which clients sign, also after a test has advanced the emulator's */
  constructor(wall: () => number) {
    this.#wall = wall;
  }

  /**
   * Verifies signature, issuer, subject, audience, expiry and single use.
   * @param audiences the issuer's identifier and the addresses of its endpoints
   * @returns why the assertion is refused, or null
   */
  async reject(client: Client, assertion: string, audiences: readonly string[]): Promise<string | null> {
    if (client.jwks === null) return 'the client has no keys';
    const { createLocalJWKSet, jwtVerify } = await import('jose');
    try {
      const { payload } = await jwtVerify(assertion, createLocalJWKSet(client.jwks), {
        issuer: client.id,
        subject: client.id,
        audience: [...audiences],
        algorithms: ASSERTION_ALGORITHMS,
        requiredClaims: ['exp', 'jti'],
        currentDate: new Date(this.#wall()),
      });
      const key = `${client.id} ${payload.jti}`;
      if (this.#used.get(key) === true) return 'the assertion was used before';
      this.#used.set(key, true);
      return null;
    } catch (error) {
      // RFC 6749, 5.2 permits no quotation marks.
      return `the assertion is invalid (${error instanceof Error ? error.message : error})`.replaceAll('"', "'");
    }
  }
}
