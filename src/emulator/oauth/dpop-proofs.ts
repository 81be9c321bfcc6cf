import { systemRandom } from '../../system/random.ts';
import { sha256 } from '../../system/secret-hash.ts';
import { BoundedMap } from '../bounded-collections.ts';
import { ASSERTION_ALGORITHMS } from './client-assertions.ts';

/** Seconds since a proof was made, at most. */
const MAX_AGE = 300;
/** Seconds by which the clock of a client may be ahead. */
const CLOCK_TOLERANCE = 60;
/** Milliseconds for which a nonce is the newest; the one before is still accepted. */
const NONCE_LIFETIME_MS = 300_000;
/** Proofs remembered, so that none is used twice. */
const MAX_PROOFS = 10_000;

export interface ProvenRequest {
  readonly method: string;
  /** Without query and fragment. */
  readonly url: string;
  /** The access token in it, or null. */
  readonly accessToken: string | null;
  /** Whether the proof must contain a nonce of this server. */
  readonly needsNonce: boolean;
}

/** Why a proof is refused (RFC 9449, 5 and 8). */
export interface ProofRejection {
  readonly refused: 'invalid_dpop_proof' | 'use_dpop_nonce';
  readonly description: string;
}

/** Verifies proofs of possession (RFC 9449, 4.3), each once, and issues nonces for them. */
export class DpopProofs {
  readonly #used = new BoundedMap<true>(MAX_PROOFS);
  readonly #key = systemRandom.token(32);
  readonly #now: () => number;
  readonly #wall: () => number;

  /**
   * @param now the emulator's time, by which nonces expire
   * @param wall the time of the machine, by which clients make proofs, also after a test has advanced the emulator's
   */
  constructor(now: () => number, wall: () => number) {
    this.#now = now;
    this.#wall = wall;
  }

  /** @returns the thumbprint of the client's key (RFC 7638), or why the proof is refused */
  async verify(proof: string, request: ProvenRequest): Promise<{ readonly jkt: string } | ProofRejection> {
    const { calculateJwkThumbprint, EmbeddedJWK, jwtVerify } = await import('jose');
    const refuse = (description: string): ProofRejection => ({ refused: 'invalid_dpop_proof', description });
    try {
      const { payload, protectedHeader } = await jwtVerify(proof, EmbeddedJWK, {
        typ: 'dpop+jwt',
        algorithms: ASSERTION_ALGORITHMS,
        requiredClaims: ['jti', 'htm', 'htu'],
        maxTokenAge: MAX_AGE,
        clockTolerance: CLOCK_TOLERANCE,
        currentDate: new Date(this.#wall()),
      });
      if (payload['htm'] !== request.method) return refuse('htm is not the method of the request');
      if (withoutQuery(String(payload['htu'])) !== request.url) return refuse(`htu is not ${request.url}`);
      if (request.accessToken !== null && payload['ath'] !== sha256(request.accessToken))
        return refuse('ath is not the hash of the access token');
      if (request.needsNonce && ![0, 1].some((age) => payload['nonce'] === this.nonce(age)))
        return { refused: 'use_dpop_nonce', description: 'use the nonce in the header DPoP-Nonce' };
      const jkt = await calculateJwkThumbprint(protectedHeader.jwk ?? {});
      const key = sha256(`${jkt} ${payload.jti}`);
      if (this.#used.get(key) === true) return refuse('the proof was used before');
      this.#used.set(key, true);
      return { jkt };
    } catch (error) {
      // RFC 6749, 5.2 permits no quotation marks.
      return refuse(`the proof is invalid (${error instanceof Error ? error.message : error})`.replaceAll('"', "'"));
    }
  }

  /** A nonce for the next proofs (RFC 9449, 8). @param age 0 for the newest, 1 for the one before */
  nonce(age = 0): string {
    return sha256(`${this.#key} ${Math.floor(this.#now() / NONCE_LIFETIME_MS) - age}`);
  }
}

function withoutQuery(url: string): string {
  return URL.canParse(url) ? new URL(url).href.replace(/[?#].*/, '') : '';
}
