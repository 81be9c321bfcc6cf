import type { TokenOutcome } from '../../../src/core/grants/token-outcome.ts';
import { Secret } from '../../../src/core/secret.ts';
import type { BegunAttempt } from './model-database.ts';

/** How a portal treats a refresh token that was replaced. */
export interface PortalPolicy {
  /** Lifetime of access tokens, in ms. */
  readonly lifetime: number;
  /** For how long the same answer is given again, in ms; after it the family is revoked. */
  readonly grace: number;
}

/** A refresh that a hub has asked for. */
export interface RefreshRequest {
  readonly number: number;
  readonly hub: string;
  /** The row of its grant as its attempt was begun. */
  readonly begun: BegunAttempt;
  readonly token: string;
  readonly maySend: () => boolean;
  readonly settle: (outcome: TokenOutcome) => void;
  state: 'connecting' | 'checked' | 'processed';
  /** Whether its hub has an outcome, or no longer waits for one. */
  isSettled: boolean;
  /** When its bytes were written. */
  writtenAt: number;
  outcome: TokenOutcome | null;
  /** What happened to its hub since the bytes were written, before it had saved the answer. */
  readonly mishaps: Set<string>;
  /** Whether the hub's store has the outcome. */
  isSaved: boolean;
}

/** A portal that rotates refresh tokens, and revokes the family of one that is used again. */
export class ModelPortal {
  readonly #policy: PortalPolicy;
  #issued = 1;
  #current = 'refresh-1';
  #rotatedAt = Number.NEGATIVE_INFINITY;
  /** The request whose token the current one has replaced. */
  #rotatedBy: RefreshRequest | null = null;
  /** The request that revoked the family, and the one that had used its token before. */
  revokedBy: { readonly request: RefreshRequest; readonly before: RefreshRequest | null } | null = null;
  readonly requests: RefreshRequest[] = [];
  /** The refreshes that wait for their turn, in order. */
  turns: { readonly hub: string; readonly begin: () => void }[] = [];

  constructor(policy: PortalPolicy) {
    this.#policy = policy;
  }

  /** Resolves when the turn of a refresh has come. */
  turn(hub: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.turns.push({ hub, begin: resolve });
    return promise;
  }

  /** The turn of a hub's first refresh that waits has come. */
  beginTurn(hub: string): void {
    const next = this.turns.find((one) => one.hub === hub);
    this.turns = this.turns.filter((one) => one !== next);
    next?.begin();
  }

  /** A hub was killed. */
  forgetTurns(hub: string): void {
    this.turns = this.turns.filter((one) => one.hub !== hub);
  }

  get current(): string {
    return this.#current;
  }

  /** How many tokens it has issued. */
  get issued(): number {
    return this.#issued;
  }

  refresh(hub: string, token: Secret, begun: BegunAttempt, maySend: () => boolean): Promise<TokenOutcome> {
    const { promise, resolve } = Promise.withResolvers<TokenOutcome>();
    this.requests.push({
      ...{
        number: this.requests.length,
        hub,
        begun,
        token: token.reveal(),
        maySend,
        settle: resolve,
        state: 'connecting',
      },
      ...{ writtenAt: 0, outcome: null, mishaps: new Set(), isSettled: false, isSaved: false },
    });
    return promise;
  }

  /** Acts on a request whose bytes were written. */
  process(request: RefreshRequest, time: number): void {
    request.state = 'processed';
    const { lifetime, grace } = this.#policy;
    const isRepeated = this.#rotatedBy?.token === request.token && time - this.#rotatedAt <= grace;
    if (this.revokedBy === null && request.token === this.#current) {
      this.#issued += 1;
      this.#current = `refresh-${this.#issued}`;
      [this.#rotatedAt, this.#rotatedBy] = [time, request];
    } else if (this.revokedBy !== null || !isRepeated) {
      const before = this.requests.findLast(
        (one) => one !== request && one.token === request.token && one.outcome !== null,
      );
      this.revokedBy ??= { request, before: before ?? null };
      request.outcome = { kind: 'refused', detail: 'invalid_grant', portalTime: null };
      return;
    }
    const tokens = {
      accessToken: new Secret(`access-${this.#issued}`),
      refreshToken: new Secret(this.#current),
      ...{ scope: null, lifetime },
    };
    request.outcome = { kind: 'granted', tokens, portalTime: null };
  }

  /** What everything that follows depends on. */
  fingerprint(): string {
    const requests = this.requests.map(
      ({ hub, begun, token, state, writtenAt, outcome, mishaps, isSettled, isSaved }) => [
        ...[hub, begun, token, state, writtenAt, outcome?.kind, [...mishaps].sort(), isSettled, isSaved],
      ],
    );
    const revoked = [this.revokedBy?.request.number, this.revokedBy?.before?.number];
    const turns = this.turns.map(({ hub }) => hub);
    return JSON.stringify([this.#issued, this.#rotatedAt, this.#rotatedBy?.number, revoked, requests, turns]);
  }
}

/** A hub gets the outcome of its request. */
export function settle(request: RefreshRequest, outcome: TokenOutcome): void {
  request.isSettled = true;
  if (request.state !== 'processed') {
    request.outcome = outcome;
    request.isSaved = true;
  }
  request.settle(outcome);
}
