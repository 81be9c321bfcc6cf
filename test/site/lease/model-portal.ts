import type { TokenOutcome } from '../../../src/core/portals/token-outcome.ts';
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

/** The logins of the check, as their refresh tokens begin: the hubs' own one, and another program's. */
type LoginName = 'refresh' | 'imported';

/** The tokens that follow from one login. Each refresh replaces the refresh token. */
export class TokenFamily {
  readonly #name: LoginName;
  issued = 1;
  rotatedAt = Number.NEGATIVE_INFINITY;
  /** The request whose token the current one has replaced. */
  rotatedBy: RefreshRequest | null = null;
  /** The request that revoked the family, and the one that had used its token before. */
  revokedBy: { readonly request: RefreshRequest; readonly before: RefreshRequest | null } | null = null;
  /** Whether a hub has revoked it. */
  isDiscarded = false;

  constructor(name: LoginName) {
    this.#name = name;
  }

  get current(): string {
    return `${this.#name}-${this.issued}`;
  }

  get hasEnded(): boolean {
    return this.revokedBy !== null || this.isDiscarded;
  }

  /** What everything that follows depends on. */
  get state(): unknown {
    const revoked = [this.revokedBy?.request.number, this.revokedBy?.before?.number, this.isDiscarded];
    return [this.issued, this.rotatedAt, this.rotatedBy?.number, revoked];
  }
}

/** A portal that rotates refresh tokens, and revokes the family of one that is used again. */
export class ModelPortal {
  readonly #policy: PortalPolicy;
  readonly families: Readonly<Record<LoginName, TokenFamily>> = {
    refresh: new TokenFamily('refresh'),
    imported: new TokenFamily('imported'),
  };
  readonly requests: RefreshRequest[] = [];
  constructor(policy: PortalPolicy) {
    this.#policy = policy;
  }

  /** How many tokens it has issued. */
  get issued(): number {
    return this.families.refresh.issued + this.families.imported.issued;
  }

  /** @param token a refresh token */
  familyOf(token: string): TokenFamily {
    return this.families[loginOf(token)];
  }

  /** A hub revokes a refresh token. One that was replaced says nothing to the portal. */
  revoke(token: string): void {
    const family = this.familyOf(token);
    if (family.current === token) family.isDiscarded = true;
  }

  refresh(hub: string, token: Secret, begun: BegunAttempt, maySend: () => boolean): Promise<TokenOutcome> {
    const { promise, resolve } = Promise.withResolvers<TokenOutcome>();
    this.requests.push({
      number: this.requests.length,
      hub,
      begun,
      token: token.reveal(),
      maySend,
      settle: resolve,
      state: 'connecting',
      writtenAt: 0,
      outcome: null,
      mishaps: new Set(),
      isSettled: false,
      isSaved: false,
    });
    return promise;
  }

  /** Acts on a request whose bytes were written. */
  process(request: RefreshRequest, time: number): void {
    request.state = 'processed';
    const { lifetime, grace } = this.#policy;
    const family = this.familyOf(request.token);
    const isRepeated = family.rotatedBy?.token === request.token && time - family.rotatedAt <= grace;
    if (!family.hasEnded && request.token === family.current) {
      family.issued += 1;
      [family.rotatedAt, family.rotatedBy] = [time, request];
    } else if (family.hasEnded || !isRepeated) {
      const before = this.requests.findLast(
        (one) => one !== request && one.token === request.token && one.outcome !== null,
      );
      if (!family.isDiscarded) family.revokedBy ??= { request, before: before ?? null };
      request.outcome = { kind: 'refused', detail: 'invalid_grant', portalTime: null };
      return;
    }
    const tokens = {
      accessToken: new Secret(family.current.replace('refresh', 'access')),
      refreshToken: new Secret(family.current),
      scope: null,
      lifetime,
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
    return JSON.stringify([this.families.refresh.state, this.families.imported.state, requests]);
  }
}

/** @param token a refresh token */
export function loginOf(token: string): LoginName {
  return token.startsWith('imported') ? 'imported' : 'refresh';
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
