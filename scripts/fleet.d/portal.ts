import type { TokenOutcome } from '../../src/core/grants/token-outcome.ts';
import { Secret } from '../../src/core/secret.ts';
import type { RefreshTrigger, RequestRates } from './rates.ts';

/** Milliseconds that a token lives: the specification's. */
export const TOKEN_LIFETIME_MS = 3_600_000;
/** The true time at the beginning of all that is simulated, in ms since 1970. */
export const EPOCH = Date.UTC(2031, 4, 5);
/** Milliseconds from a refresh being sent to its answer being there. */
export const REFRESH_LATENCY_MS = 100;

/** A time in which nobody reaches the portal, in ms. */
export interface Downtime {
  readonly from: number;
  readonly to: number;
}

export interface SimulatedPortalOptions {
  /** How many refreshes it answers a second, over ten seconds; the others are told to come back later. */
  readonly capacity: number;
  /** What it asks those to wait, in ms. */
  readonly retryAfter: number;
  readonly down: readonly Downtime[];
  readonly grants: number;
}

const OUT_OF_REACH: TokenOutcome = { kind: 'not_sent', detail: 'ECONNREFUSED' };
const LOST: TokenOutcome = { kind: 'ambiguous', detail: 'the connection was closed' };

/**
 * A portal with room for so many refreshes a second. It rotates at each, and keeps the token before good until the next; an
 * older one it refuses for good.
 */
export class SimulatedPortal {
  readonly #options: SimulatedPortalOptions;
  readonly #rates: RequestRates;
  /** The number of each grant's newest refresh token. */
  readonly #newest: Uint32Array;
  /** The ten seconds in which `#answered` were answered. */
  #window = 0;
  #answered = 0;
  /** Refreshes that were told to come back later. */
  deferred = 0;

  constructor(options: SimulatedPortalOptions, rates: RequestRates) {
    this.#options = options;
    this.#rates = rates;
    this.#newest = new Uint32Array(options.grants);
  }

  /**
   * Takes a refresh.
   * @param at when it is sent, in ms
   * @param grant its number
   * @param isHeard whether the hub is there to take the answer
   */
  refresh(at: number, wanted: RefreshTrigger, grant: number, refreshToken: Secret, isHeard: boolean): TokenOutcome {
    this.#rates.count(at, wanted);
    if (this.#isDown(at)) return OUT_OF_REACH;
    if (!this.#hasRoom(at)) {
      this.deferred += 1;
      return { kind: 'deferred', detail: 'HTTP 429', retryAfter: this.#options.retryAfter, portalTime: EPOCH + at };
    }
    const newest = this.#newest[grant] ?? 0;
    const sent = Number(refreshToken.reveal());
    if (sent < newest - 1) return { kind: 'refused', detail: 'invalid_grant', portalTime: EPOCH + at };
    this.#newest[grant] = newest + 1;
    if (!isHeard || this.#isDown(at + REFRESH_LATENCY_MS)) return LOST;
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

  #hasRoom(at: number): boolean {
    const window = Math.floor(at / 10_000);
    if (window !== this.#window) [this.#window, this.#answered] = [window, 0];
    if (this.#answered >= 10 * this.#options.capacity) return false;
    this.#answered += 1;
    return true;
  }
}

const tokens: Secret[] = [];

/** A grant's token with this number: all grants have the same, so that there are few. */
export function tokenOf(number: number): Secret {
  const token = tokens[number] ?? new Secret(String(number));
  tokens[number] = token;
  return token;
}
