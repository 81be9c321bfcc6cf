import { sameScope } from '../../core/appliances/appliance.ts';
import type { Instant } from '../../core/clock.ts';
import { leavesTooLittle } from '../../core/grants/schedule.ts';
import type { TokenResult, WhyUnavailable } from '../../core/grants/token-result.ts';
import type { TokenRequest } from '../../core/lan-service.ts';
import { within } from '../../system/within.ts';
import type { Environment } from '../environment.ts';
import type { Grants } from './grants.ts';
import type { HeldGrant } from './held-grant.ts';

/** Nobody is kept waiting for a refresh longer than this, in ms: clients often give up after 10 s. */
const LONGEST_WAIT = 9500;

/** Hands tokens out: from memory, or after the one refresh that is under way. */
export class TokenIssuer {
  readonly #grants: Grants;
  readonly #environment: Pick<Environment, 'clock' | 'timers'>;

  constructor(grants: Grants, environment: Pick<Environment, 'clock' | 'timers'>) {
    this.#grants = grants;
    this.#environment = environment;
  }

  /**
   * @param appliance its id
   * @param scope what the appliance asks for; null where it does not say
   */
  async issue(
    appliance: string,
    scope: string | null,
    { minTtl = 0, timeout = LONGEST_WAIT }: Partial<Omit<TokenRequest, 'scope'>> = {},
  ): Promise<TokenResult> {
    const held = this.#grants.get(appliance);
    if (held === undefined || !this.#serves(held, scope)) return this.#whatIsThere(held, scope);
    const now = this.#environment.clock.now();
    if (!this.#isWorthWaiting(held, minTtl, now)) return this.#whatIsThere(held, scope, now);
    const longest = Math.min(timeout, LONGEST_WAIT);
    await within(this.#grants.refresh(appliance), longest, this.#environment.timers);
    return this.#whatIsThere(this.#grants.get(appliance), scope);
  }

  #serves({ grant }: HeldGrant, scope: string | null): boolean {
    return scope === null || sameScope(scope, grant.scope);
  }

  #isWorthWaiting(held: HeldGrant, minTtl: number, now: Instant): boolean {
    const left = this.#grants.times.remaining(held, now) ?? 0;
    return (
      leavesTooLittle(held.grant, left, minTtl) &&
      (held.refreshing !== null || this.#grants.times.mayRefreshOnDemand(held))
    );
  }

  #whatIsThere(held: HeldGrant | undefined, wanted: string | null, now = this.#environment.clock.now()): TokenResult {
    if (held === undefined) return { kind: 'not_paired' };
    if (!this.#serves(held, wanted)) return { kind: 'other_scope', scope: held.grant.scope };
    const { accessToken, scope } = held.grant;
    const remaining = this.#grants.times.remaining(held, now);
    const expiresIn = Math.floor((remaining ?? 0) / 1000);
    if (expiresIn >= 1) return { kind: 'token', accessToken, expiresIn, scope };
    if (held.health.kind === 'refused') return { kind: 'needs_pairing' };
    const known = remaining === null ? 'age_unknown' : 'run_out';
    const atHand = held.grant.distrusted === null ? known : 'distrusted';
    const at = this.#grants.times.onDemandAt(held) ?? 0;
    const wait = Math.ceil((at - now.uptime) / 1000);
    return { kind: 'unavailable', retryAfter: Math.max(1, wait), why: whyUnavailable(held), atHand };
  }
}

function whyUnavailable({ health }: HeldGrant): WhyUnavailable {
  if (health.kind === 'good' || health.problem.code === 'refused') return 'no_answer_yet';
  return health.problem.code;
}
