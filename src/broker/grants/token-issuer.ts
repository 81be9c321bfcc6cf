import type { Instant } from '../../core/clock.ts';
import { isWithinScope } from '../../core/connections/scope.ts';
import { needsRefreshBeforeIssue } from '../../core/grants/schedule.ts';
import {
  MAX_RESPONSE_TIME,
  type TokenRequest,
  type TokenResult,
  type UnavailableReason,
} from '../../core/lan-service.ts';
import { withTimeout } from '../../system/clock.ts';
import type { Environment } from '../ports.ts';
import type { GrantRunner } from './grant-runner.ts';
import type { Grants } from './grants.ts';

/** When an appliance may ask again for a token that cannot be refreshed and whose age is not known yet, in ms. */
const UNKNOWN_AGE_DELAY = 10_000;
/** An appliance is told to wait at most this long, in s: a person may end the hub's own wait. */
const MAX_RETRY_AFTER = 3600;

/** The result for one connection. */
type IssueResult = Exclude<TokenResult, { readonly kind: 'other_connection' }>;

/** Issues tokens to appliances: from memory, or after the one refresh that is under way. */
export class TokenIssuer {
  readonly #grants: Grants;
  readonly #environment: Pick<Environment, 'clock' | 'timers'>;

  constructor(grants: Grants, environment: Pick<Environment, 'clock' | 'timers'>) {
    this.#grants = grants;
    this.#environment = environment;
  }

  /**
   * @param connection its id
   * @param scope the scope that the appliance requests; null if it names none
   */
  async issue(
    connection: string,
    scope: string | null,
    { minTtl = 0, deadline }: Partial<Pick<TokenRequest, 'minTtl' | 'deadline'>> = {},
  ): Promise<IssueResult> {
    const managed = this.#grants.get(connection);
    if (managed === undefined || !hasScope(managed, scope)) return this.#result(managed, scope);
    const { clock, timers } = this.#environment;
    const now = clock.now();
    if (!this.#isWorthWaiting(managed, minTtl, now)) return this.#result(managed, scope, now);
    const timeout = deadline === undefined ? MAX_RESPONSE_TIME : deadline - now.uptime;
    await withTimeout(this.#refresh(managed, now), timeout, timers);
    return this.#result(this.#grants.get(connection), scope);
  }

  async #refresh(managed: GrantRunner, now: Instant): Promise<void> {
    const { schedule } = this.#grants;
    const { generation, connection } = managed.grant;
    if (schedule.endsAccessToken(managed)) {
      // Appliances may use the current token until then.
      await this.#environment.timers.sleep(schedule.usable(managed, now) ?? 0);
      // A refresh that a person asked for may have failed meanwhile.
      const current = this.#grants.get(connection);
      if (current?.grant.generation !== generation || !this.#mayRefresh(current)) return;
    }
    await this.#grants.refresh(connection);
  }

  #isWorthWaiting(managed: GrantRunner, minTtl: number, now: Instant): boolean {
    const { schedule } = this.#grants;
    const left = schedule.usable(managed, now) ?? 0;
    // A refresh because of `min_ttl` would end the token of the other appliances before the time that they were told.
    const isNeeded = schedule.endsAccessToken(managed)
      ? left < 1000
      : needsRefreshBeforeIssue(managed.grant, left, minTtl);
    return isNeeded && this.#mayRefresh(managed);
  }

  #mayRefresh(managed: GrantRunner): boolean {
    const isRefreshing = managed.refreshing !== null || managed.endedElsewhere !== null;
    return isRefreshing || this.#grants.schedule.mayRefreshOnDemand(managed);
  }

  /** The result for the current state of the grant. */
  #result(
    managed: GrantRunner | undefined,
    requestedScope: string | null,
    now = this.#environment.clock.now(),
  ): IssueResult {
    if (managed === undefined) return { kind: 'not_paired' };
    const { accessToken, scope, idToken, accessTokenRejectedAt } = managed.grant;
    if (!hasScope(managed, requestedScope)) return { kind: 'other_scope', scope };
    const { schedule } = this.#grants;
    const remaining = schedule.usable(managed, now);
    const expiresIn = Math.floor((remaining ?? 0) / 1000);
    if (expiresIn >= 1) {
      const hasIdToken = idToken !== undefined && hasOpenIdScope(scope);
      return { kind: 'token', accessToken, expiresIn, scope, ...(hasIdToken && { idToken }) };
    }
    if (managed.health.kind === 'refused') return { kind: 'needs_pairing' };
    const expiryReason = remaining === null ? 'age_unknown' : 'expired';
    const unusableTokenReason = accessTokenRejectedAt === null ? expiryReason : 'rejected';
    // The lease of another hub ends long after its refresh, which takes a moment as one of this hub does.
    const at =
      managed.endedElsewhere === null ? (schedule.onDemandAt(managed) ?? now.uptime + UNKNOWN_AGE_DELAY) : now.uptime;
    const wait = Math.ceil((at - now.uptime) / 1000);
    return {
      kind: 'unavailable',
      retryAfter: Math.min(Math.max(1, wait), MAX_RETRY_AFTER),
      reason: whyUnavailable(managed, wait > 0),
      unusableTokenReason,
    };
  }
}

function hasScope({ grant }: GrantRunner, scope: string | null): boolean {
  return isWithinScope(scope, grant.scope);
}

/** Whether the appliance gets an ID token (OpenID Connect Core 1.0, 3.1.2.1). */
function hasOpenIdScope(scope: string | null): boolean {
  return scope?.split(' ').includes('openid') === true;
}

/** @param isEarly whether the time of the next refresh is still to come */
function whyUnavailable({ health, grant, refreshing }: GrantRunner, isEarly: boolean): UnavailableReason {
  if (health.kind !== 'good' && health.problem.code !== 'refused') return health.problem.code;
  const isHeldBack = grant.accessTokenRejectedAt !== null && refreshing === null && isEarly;
  return isHeldBack ? 'replaced_recently' : 'no_answer_yet';
}
