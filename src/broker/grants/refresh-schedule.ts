import type { ConfirmedTime, Instant } from '../../core/clock.ts';
import { type RetryContext, refreshPeriod } from '../../core/grants/backoff.ts';
import { type Grant, remainingLifetime, tokenAge } from '../../core/grants/grant.ts';
import type { PortalPolicy } from '../../core/grants/login-end.ts';
import { nextAttemptAt, onDemandAttemptAt, type RefreshHealth } from '../../core/grants/refresh-health.ts';
import type { SiteHub, SiteStore } from '../../core/site.ts';
import type { ConnectedPortal, Environment } from '../ports.ts';
import type { ReferenceClock } from '../time/reference-clock.ts';

/** The part of a grant that its next refresh depends on. */
export interface ScheduledGrant {
  readonly grant: Grant;
  readonly health: RefreshHealth;
  /** When the last refresh began because the cloud had refused the access token, on the boot clock in ms. */
  readonly lastForcedRefresh: number | null;
  /** The hub starts no background refresh before this, on the boot clock in ms: see `throttledUntil` in core. */
  readonly throttledUntil: number;
  /** Until when another hub of the site has the grant to itself, on the boot clock in ms; null if none has. */
  readonly leasedUntil: number | null;
}

/**
 * For this share of the time within which a grant must be refreshed, each hub of a site leaves it to the one before it.
 */
const STAND_IN_SHARE = 0.1;

/** What a portal says about the refreshes of its grants. */
type ScheduledPortal = Pick<ConnectedPortal, 'identity' | keyof PortalPolicy>;

/**
 * When grants are refreshed, and how long their tokens live. Callers that process thousands of grants pass `now`:
 * reading the boot clock for each takes longer than everything else.
 */
export class RefreshSchedule {
  readonly #environment: Pick<Environment, 'clock' | 'random'>;
  readonly #referenceClock: ReferenceClock;
  readonly #portalOf: (connection: string) => ScheduledPortal | undefined;
  readonly #jitterOffset: (connection: string) => number;
  readonly #rankOf: (connection: string) => number;
  /** When this run of the hub began, on the boot clock in ms. */
  readonly startedAt: number;

  /**
   * @param jitterOffset from 0 to 1, always the same for a connection: see `ScheduleInput`
   * @param rankOf the place of this hub among those of its site that refresh a connection: see {@link createHubRanking}
   */
  constructor(
    environment: Pick<Environment, 'clock' | 'random'>,
    referenceClock: ReferenceClock,
    portalOf: (connection: string) => ScheduledPortal | undefined,
    jitterOffset: (connection: string) => number,
    rankOf: (connection: string) => number = () => 0,
  ) {
    this.#rankOf = rankOf;
    this.#environment = environment;
    this.#referenceClock = referenceClock;
    this.#portalOf = portalOf;
    this.#jitterOffset = jitterOffset;
    this.startedAt = environment.clock.now().uptime;
  }

  /** When the grant is refreshed next, on the boot clock in ms; null for never, or if that is not known yet. */
  dueAt(managed: ScheduledGrant, now?: Instant): number | null {
    return managed.leasedUntil ?? this.#dueAt(managed, this.#rankOf(managed.grant.connection), now);
  }

  /** @param rank of the hub that refreshes it, see `rankOf` */
  #dueAt(
    { grant, health, lastForcedRefresh, throttledUntil }: ScheduledGrant,
    rank: number,
    now?: Instant,
  ): number | null {
    const jitterOffset = this.#jitterOffset(grant.connection);
    const input = {
      ...this.retryContext(grant.connection, now),
      startedAt: this.startedAt,
      jitterOffset,
      lastForcedRefresh,
      endsAccessToken: this.endsAccessToken({ grant }),
    };
    const due = nextAttemptAt(grant, health, input);
    return due === null ? null : Math.max(due + rank * STAND_IN_SHARE * refreshPeriod(grant, input), throttledUntil);
  }

  isDue(managed: ScheduledGrant): boolean {
    return this.#hasPassed(this.dueAt(managed));
  }

  /** When an appliance that waits for a token may trigger a refresh, on the boot clock in ms; null as for {@link dueAt}. */
  onDemandAt({ grant, health, lastForcedRefresh, leasedUntil }: ScheduledGrant): number | null {
    if (leasedUntil !== null) return leasedUntil;
    const context = this.retryContext(grant.connection);
    return onDemandAttemptAt(grant, health, { ...context, lastForcedRefresh, startedAt: this.startedAt });
  }

  /**
   * Whether an appliance that waits may trigger a refresh now. During a backoff it may not: that would flood the
   * portal.
   */
  mayRefreshOnDemand(managed: ScheduledGrant): boolean {
    return this.#hasPassed(this.onDemandAt(managed));
  }

  /** Remaining lifetime of the access token in ms; null if it is not known yet. */
  remaining({ grant }: ScheduledGrant, now = this.#environment.clock.now()): number | null {
    return remainingLifetime(grant, now, this.#confirmed(this.#portalOf(grant.connection)));
  }

  /**
   * How long appliances may use the access token, in ms: until it expires or, if a refresh ends it, until the next one is
   * due, at whichever hub of the site. Null if that is not known yet.
   */
  usable(managed: ScheduledGrant, now = this.#environment.clock.now()): number | null {
    const remaining = this.remaining(managed, now);
    if (remaining === null || !this.endsAccessToken(managed)) return remaining;
    const due = this.#dueAt(managed, 0, now);
    return due === null ? remaining : Math.max(0, Math.min(remaining, due - now.uptime));
  }

  /** Whether a refresh of the grant ends its access token at once. */
  endsAccessToken({ grant }: Pick<ScheduledGrant, 'grant'>): boolean {
    return this.#portalOf(grant.connection)?.refreshEndsAccessToken === true;
  }

  /** Milliseconds since the access token was obtained; null if that is not known yet. */
  age({ grant }: ScheduledGrant, now = this.#environment.clock.now()): number | null {
    return tokenAge(grant, now, this.#confirmed(this.#portalOf(grant.connection)));
  }

  /** The current inputs for the delay before the next attempt. */
  retryContext(connection: string, now = this.#environment.clock.now()): RetryContext {
    const { random } = this.#environment;
    const portal = this.#portalOf(connection);
    return {
      now,
      confirmed: this.#confirmed(portal),
      retryLostAnswer: portal?.retryLostAnswer ?? 'late',
      fraction: random.fraction(),
      ...(portal && { loginLimits: portal }),
    };
  }

  /** The true time that gives the age of a portal's tokens; null if it is unknown, or the portal is not configured. */
  #confirmed(portal: ScheduledPortal | undefined): ConfirmedTime | null {
    return portal === undefined ? null : this.#referenceClock.confirmedBy(portal.identity.name);
  }

  #hasPassed(at: number | null): boolean {
    return at !== null && at <= this.#environment.clock.now().uptime;
  }
}

/** The hubs of a site, as one of them sees them. */
interface RankedSite extends Pick<SiteStore, 'hubId'> {
  readonly hubs: readonly Pick<SiteHub, 'id' | 'isAlive'>[];
}

/**
 * Which hub of a site refreshes a connection: the place of this hub among those that are alive, 0 for the first. Each
 * connection has an order of its own, in which a hub that comes or goes moves no other (rendezvous hashing). The others
 * stand in if the first one does not refresh it in time. Without a site it is always 0.
 */
export function createHubRanking(site: RankedSite | null): (connection: string) => number {
  if (site === null) return () => 0;
  return (connection) => {
    const own = weight(site.hubId, connection);
    return site.hubs.filter(({ id, isAlive }) => isAlive && weight(id, connection) > own).length;
  };
}

/** 32 bits that look random (FNV-1a with a final mix). */
function weight(hub: string, connection: string): number {
  let hash = 0x811c9dc5;
  for (const character of `${hub} ${connection}`) {
    hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  return (hash ^ (hash >>> 13)) >>> 0;
}
