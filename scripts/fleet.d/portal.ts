import type { TokenOutcome } from '../../src/core/portals/token-outcome.ts';
import { Secret } from '../../src/core/secret.ts';
import type { RefreshTrigger, RequestRates } from './rates.ts';

/** The lifetime of an access token, in ms. */
export const TOKEN_LIFETIME_MS = 3_600_000;
/** The true time at the beginning of the simulation, in ms since 1970. */
export const EPOCH = Date.UTC(2031, 4, 5);
/** The time from sending a refresh to receiving its response, in ms. */
export const REFRESH_LATENCY_MS = 100;

/** A period in which the portal is unreachable, in ms. */
export interface Downtime {
  readonly from: number;
  readonly to: number;
}

export interface SimulatedPortalOptions {
  /** Refreshes per second that it accepts, averaged over ten seconds; the others get a 429. */
  readonly capacity: number;
  /** The `Retry-After` of the 429 responses, in ms. */
  readonly retryAfter: number;
  readonly down: readonly Downtime[];
  readonly grants: number;
}

const UNREACHABLE: TokenOutcome = { kind: 'not_sent', detail: 'ECONNREFUSED' };
const LOST: TokenOutcome = { kind: 'ambiguous', detail: 'the connection was closed' };

/**
 * A portal with a limited capacity. It rotates the refresh token at each refresh. The previous token stays valid until
 * the next refresh; an older one is refused permanently.
 */
export class SimulatedPortal {
  readonly #options: SimulatedPortalOptions;
  readonly #rates: RequestRates;
  /** The number of each grant's newest refresh token. */
  readonly #newest: Uint32Array;
  /** The number of the ten-second window to which `#accepted` belongs. */
  #window = 0;
  #accepted = 0;
  /** Refreshes that got a 429. */
  deferred = 0;

  constructor(options: SimulatedPortalOptions, rates: RequestRates) {
    this.#options = options;
    this.#rates = rates;
    this.#newest = new Uint32Array(options.grants);
  }

  /**
   * Handles a refresh.
   * @param at when it is sent, in ms
   * @param grant the number of the grant
   * @param isReceived whether the hub receives the response
   */
  refresh(at: number, trigger: RefreshTrigger, grant: number, refreshToken: Secret, isReceived: boolean): TokenOutcome {
    this.#rates.count(at, trigger);
    if (this.#isDown(at)) return UNREACHABLE;
    if (!this.#hasCapacity(at)) {
      this.deferred += 1;
      return { kind: 'deferred', detail: 'HTTP 429', retryAfter: this.#options.retryAfter, portalTime: EPOCH + at };
    }
    const newest = this.#newest[grant] ?? 0;
    const sent = Number(refreshToken.reveal());
    if (sent < newest - 1) return { kind: 'refused', detail: 'invalid_grant', portalTime: EPOCH + at };
    this.#newest[grant] = newest + 1;
    if (!isReceived || this.#isDown(at + REFRESH_LATENCY_MS)) return LOST;
    const token = tokenOf(newest + 1);
    return {
      kind: 'granted',
      tokens: { accessToken: token, refreshToken: token, scope: null, lifetime: TOKEN_LIFETIME_MS },
      portalTime: EPOCH + at,
    };
  }

  #isDown(at: number): boolean {
    return this.#options.down.some(({ from, to }) => at >= from && at < to);
  }

  #hasCapacity(at: number): boolean {
    const window = Math.floor(at / 10_000);
    if (window !== this.#window) [this.#window, this.#accepted] = [window, 0];
    if (this.#accepted >= 10 * this.#options.capacity) return false;
    this.#accepted += 1;
    return true;
  }
}

const tokens: Secret[] = [];

/** The token with this number. All grants share the tokens, to save memory. */
export function tokenOf(number: number): Secret {
  const token = tokens[number] ?? new Secret(String(number));
  tokens[number] = token;
  return token;
}
