import { DAY } from '../../core/clock.ts';
import type { Connection } from '../../core/connections/connection.ts';
import { type Grant, hasScopeChanged } from '../../core/grants/grant.ts';
import type { Nudge } from '../../core/grants/grant-state.ts';
import { waitsForNetwork } from '../../core/grants/refresh-health.ts';
import { isSameIssuer } from '../../core/portals/identity.ts';
import type { Portal, RevokedTokens } from '../../core/portals/portal.ts';
import type { BrokerStore, ConnectedPortal, Environment } from '../ports.ts';
import type { ReferenceClock } from '../time/reference-clock.ts';
import type { Scheduler } from '../time/scheduler.ts';
import { ConcurrencyLimiter, type ConcurrencyLimits } from './concurrency-limiter.ts';
import { GrantRunner, type RevokingPortal, type RunnerContext, type SaveGrant } from './grant-runner.ts';
import { RefreshLogger } from './refresh-logger.ts';
import { RefreshSchedule } from './refresh-schedule.ts';

/**
 * How many refreshes run at one portal at once: docs/decisions/coming-back.md. The foreground limit lets a portal that
 * responds in a tenth of a second serve a thousand waiting appliances within the time that one waits.
 */
const CONCURRENCY_LIMITS: ConcurrencyLimits = { background: 8, foreground: 32, total: 64, timeout: 5000 };

/** How often grants that are only in memory are written again during a stop, in ms. */
const SAVE_INTERVAL = 500;
/** If a network or portal comes and goes, it brings refreshes forward at most this often, in ms. */
const MIN_ADVANCE_INTERVAL = 60_000;

/** What all grants work with. */
interface GrantsOptions {
  readonly environment: Environment;
  readonly store: BrokerStore;
  readonly scheduler: Scheduler;
  readonly referenceClock: ReferenceClock;
  /** The portal of a connection; undefined if it was removed or its portal is not configured. */
  readonly portalOf: (connection: string) => ConnectedPortal | undefined;
  /** The name of a connection, or its id if it was removed. */
  readonly nameOf: (connection: string) => string;
  /** From 0 to 1, always the same for a connection: see `ScheduleInput`. */
  readonly jitterOffset: (connection: string) => number;
  /** Whether nothing may be issued for a connection, because its row in the store was damaged. */
  readonly isDamaged: (connection: string) => boolean;
  /** The place of this hub among those that refresh a connection: see `createHubRanking`. */
  readonly rankOf: (connection: string) => number;
  /** How long a stop waits until grants that are only in memory can be written, in ms. */
  readonly stopTime: number;
}

/**
 * Keeps every connection's grant fresh. A grant is suspended while another portal issued it than the one its connection
 * uses now: it is kept but not used until the configuration names that portal again
 * (docs/decisions/portals-of-grants.md).
 */
export class Grants implements AsyncDisposable {
  readonly #options: GrantsOptions;
  readonly #logger: RefreshLogger;
  readonly #context: RunnerContext;
  readonly #grants = new Map<string, GrantRunner>();
  /** The connections into which a grant is being imported. */
  readonly #importing = new Set<string>();
  /** How many logins are under way, by connection. */
  readonly #logins = new Map<string, number>();
  /** Those whose news waited for that, and could not be read then, because the database was away. */
  readonly #missedNews = new Set<string>();
  readonly #limiters = new WeakMap<Portal, ConcurrencyLimiter>();
  readonly #stopping = new AbortController();
  readonly schedule: RefreshSchedule;
  /** When an address change last brought the refreshes forward, on the boot clock in ms. */
  #lastNetworkChange = Number.NEGATIVE_INFINITY;
  /** When a response of a portal last brought its refreshes forward, on the boot clock in ms. */
  readonly #lastAvailableAt = new Map<string, number>();

  constructor(options: GrantsOptions) {
    const { environment, store, referenceClock, portalOf } = options;
    this.#options = options;
    this.schedule = new RefreshSchedule(environment, referenceClock, portalOf, options.jitterOffset, options.rankOf);
    const { schedule } = this;
    this.#logger = new RefreshLogger(environment, schedule, options);
    this.#context = {
      environment,
      store,
      referenceClock,
      schedule,
      logger: this.#logger,
      stopping: this.#stopping.signal,
      revoke: async (connection, tokens, revoking = this.#revokingPortal(connection)) =>
        revoking !== undefined && this.revoke(connection, revoking, tokens),
    };
    // The age of tokens from before this boot is known now.
    referenceClock.whenConfirmed(() => this.#scheduleAll());
  }

  /** Loads the grants that the last run left, and schedules their refreshes. */
  async load(): Promise<void> {
    for (const stored of await this.#options.store.grants.all()) {
      const managed = await GrantRunner.resume(this.#context, stored);
      const { connection } = managed.grant;
      this.#grants.set(connection, managed);
      this.#scheduleRefresh(managed);
      const connected = this.#options.portalOf(connection);
      if (connected !== undefined && !this.#isActive(managed)) this.#logger.grantSuspended(managed, connected.identity);
    }
    this.#scheduleDailySummary();
  }

  /**
   * The grant in use; undefined if it is suspended. That of a damaged connection is not used either, but refreshed, so
   * that it is not lost.
   */
  get(connection: string): GrantRunner | undefined {
    const managed = this.#grants.get(connection);
    return managed !== undefined && this.#isActive(managed) && !this.#options.isDamaged(connection)
      ? managed
      : undefined;
  }

  /** The grant of a connection that is not used, see {@link Grants} and {@link get}. */
  getSuspended(connection: string): Grant | undefined {
    return this.get(connection) === undefined ? this.#grants.get(connection)?.grant : undefined;
  }

  /** Whether a connection needs a new login: it has no usable grant, or its scope has changed. */
  needsPairing(connection: Connection): boolean {
    const managed = this.get(connection.id);
    return managed === undefined || managed.health.kind === 'refused' || hasScopeChanged(connection, managed.grant);
  }

  /**
   * Replaces the grant of its connection.
   * @param save writes the grant if it is not stored yet
   */
  replace(grant: Grant, save: SaveGrant | null = null): void {
    this.#manage(GrantRunner.hold(this.#context, grant, save));
  }

  /** Takes a connection's grant from the store as it is now, as after a restart. An open attempt counts as lost. */
  async resumeStored(connection: string): Promise<void> {
    const stored = await this.#options.store.grants.get(connection);
    if (stored === null) return;
    this.#manage(await GrantRunner.resume(this.#context, stored));
  }

  /** The former grant ends when there is a new one: what it has discarded is not revoked then, see {@link revoke}. */
  #manage(managed: GrantRunner): void {
    const { connection } = managed.grant;
    const former = this.#grants.get(connection);
    this.#grants.set(connection, managed);
    former?.end();
    this.#scheduleRefresh(managed);
  }

  /**
   * Deletes the grant of a connection, also a damaged one.
   * @returns the newest version of it, which is to be revoked; null if there is none that can be read
   * @throws Failure `store_unwritable`: the grant is kept then
   */
  async delete(connection: string): Promise<Grant | null> {
    const held = this.#grants.get(connection)?.grant ?? null;
    if (held === null && !this.#options.store.grants.damaged.has(connection)) return null;
    const { grant: stored } = await this.#options.store.grants.forget(connection);
    return newerOf(newerOf(held, stored), this.stopManaging(connection));
  }

  /**
   * Stops managing the grant of a connection that was removed.
   * @returns the grant as it was; null if there was none
   */
  stopManaging(connection: string): Grant | null {
    const managed = this.#grants.get(connection);
    managed?.end();
    this.#grants.delete(connection);
    this.#options.scheduler.cancel(connection);
    this.#logger.forget(connection);
    return managed?.grant ?? null;
  }

  /**
   * Revokes tokens that nobody uses: of a grant that was deleted, or that came too late. Those of a connection that has
   * another grant by now, or soon, are left, because a portal may end that one too: it is of the same account.
   * @param isDeleted whether a person has deleted the grant just now: the store has no other one then, and no login that
   * is under way is kept either
   * @returns whether the portal has revoked them
   */
  async revoke(
    connection: string,
    { name, portal }: RevokingPortal,
    tokens: RevokedTokens,
    isDeleted = false,
  ): Promise<boolean> {
    const current = this.#grants.get(connection);
    if (current !== undefined && !current.hasEnded) return false;
    if (!isDeleted && (this.#logins.has(connection) || (await this.#mayBeStored(connection)))) return false;
    const { log } = this.#options.environment;
    const outcome = await portal.revoke(tokens);
    if (outcome.kind === 'revoked') log.info('grant_revoked', { connection: name });
    if (outcome.kind === 'failed') log.warn('grant_revocation_failed', { connection: name, detail: outcome.detail });
    return outcome.kind === 'revoked';
  }

  /** Another hub of a site may have completed a login. If that can't be known, it may be so. */
  #mayBeStored(connection: string): Promise<boolean> {
    return this.#options.store.grants.get(connection).then(
      (stored) => stored !== null,
      () => true,
    );
  }

  /**
   * Refreshes a grant that a caller waits for, or joins the refresh that is under way.
   * @param isForced whether a person wants it: also at a time when an appliance may not cause one
   * @returns when the refresh has ended, whatever its outcome; at once if there is no grant
   */
  async refresh(connection: string, isForced = false): Promise<void> {
    const managed = this.get(connection);
    if (managed === undefined) return;
    const { generation } = managed.grant;
    if (managed.endedElsewhere === null) await this.#refresh(managed, true);
    if (managed.endedElsewhere === null) return;
    await managed.endedElsewhere;
    // The other hub has failed, or only waited for a switch of servers.
    const isUnchanged = this.get(connection) === managed && managed.grant.generation === generation;
    const mayRefresh = isForced || this.schedule.mayRefreshOnDemand(managed);
    if (isUnchanged && managed.endedElsewhere === null && mayRefresh) await this.#refresh(managed, true);
  }

  /**
   * Other hubs of the site have changed grants, or deleted them.
   * @param connections their ids
   * @param all whether any grant may have changed, and the database may have lost some
   */
  async applyNews(connections: ReadonlySet<string>, all: boolean): Promise<void> {
    if (connections.size === 0 && !all) return;
    const store = this.#options.store;
    const wanted = new Set([...connections, ...this.#missedNews]);
    let found = await store.grants.find(all ? null : wanted);
    // A replaced server may have lost the whole row of a new grant. One that another hub has deleted still has a row.
    const missing = all ? this.#held().filter(({ connection }) => !found.has(connection)) : [];
    if (missing.length > 0) {
      await store.grants.reconcile(missing);
      found = await store.grants.find(null);
    }
    const lost: Grant[] = [];
    for (const connection of all ? new Set([...this.#grants.keys(), ...found.keys()]) : wanted) {
      this.#missedNews.delete(connection);
      if (this.#importing.has(connection)) continue;
      const [managed, news] = [this.#grants.get(connection), found.get(connection)];
      if (news === undefined) {
        // A damaged row hides a grant that this hub may have in memory.
        const isGone = managed?.isUnsaved === false && !this.#options.store.grants.damaged.has(connection);
        if (isGone) this.stopManaging(connection);
      } else if (managed === undefined || managed.hasEnded) {
        this.#manage(await GrantRunner.resume(this.#context, news.stored));
      } else {
        const held = managed.applyNews(news);
        if (held !== null) lost.push(held);
        this.#scheduleRefresh(managed);
      }
    }
    if (lost.length > 0) await store.grants.reconcile(lost);
  }

  /**
   * Imports a grant of another program. Until that has ended, the grant of the connection is not refreshed, and news of
   * it wait.
   */
  async importing<Result>(connection: string, work: () => Promise<Result>): Promise<Result> {
    this.#importing.add(connection);
    try {
      return await work();
    } finally {
      this.#importing.delete(connection);
      await this.applyNews(new Set([connection]), false).catch(() => this.#missedNews.add(connection));
      // It may have become due meanwhile.
      const managed = this.#grants.get(connection);
      if (managed !== undefined) this.#scheduleRefresh(managed);
    }
  }

  /** Runs what ends a login of a connection: until then nothing of that connection is revoked. */
  async duringLogin(connection: string, work: () => Promise<void>): Promise<void> {
    this.#logins.set(connection, (this.#logins.get(connection) ?? 0) + 1);
    try {
      await work();
    } finally {
      const left = (this.#logins.get(connection) ?? 1) - 1;
      if (left > 0) this.#logins.set(connection, left);
      else this.#logins.delete(connection);
    }
  }

  /** The grants that this hub holds, and that were stored once. */
  #held(): Grant[] {
    return [...this.#grants.values()].flatMap((managed) => (managed.isUnsaved ? [] : managed.grant));
  }

  /**
   * The cloud refused the access token that an appliance holds. If it is the current one, it is no longer issued and a
   * refresh starts; without a refresh token, this resolves when the grant counts as refused. Any other token changes
   * nothing.
   */
  async reportRejectedToken(connection: string, token: string): Promise<void> {
    const managed = this.get(connection);
    if (managed === undefined || !(await managed.markTokenRejected(token))) return;
    if (managed.refreshing === null && !this.schedule.mayRefreshOnDemand(managed))
      return this.#scheduleRefresh(managed);
    const refreshed = this.#refresh(managed, true);
    if (managed.grant.refreshToken === null) await refreshed;
  }

  /** The hub's clock was set: refreshes that waited for that are retried. */
  onClockSet(): void {
    this.#nudgeAll('clock_set');
  }

  /** The hub has another address on the home network: refreshes that did not leave the hub are retried soon. */
  onNetworkChanged(): void {
    const now = this.#options.environment.clock.now().uptime;
    if (now - this.#lastNetworkChange < MIN_ADVANCE_INTERVAL) return;
    this.#lastNetworkChange = now;
    this.#nudgeAll('network_changed');
  }

  /** A portal has responded to a request normally: refreshes that did not reach it are retried soon. */
  onPortalAvailable(portal: string): void {
    const now = this.#options.environment.clock.now().uptime;
    if (now - (this.#lastAvailableAt.get(portal) ?? Number.NEGATIVE_INFINITY) < MIN_ADVANCE_INTERVAL) return;
    for (const [connection, managed] of this.#grants) {
      if (managed.refreshing !== null || !waitsForNetwork(managed.health)) continue;
      if (this.#options.portalOf(connection)?.identity.name !== portal) continue;
      this.#lastAvailableAt.set(portal, now);
      managed.nudge('portal_responded');
      this.#scheduleRefresh(managed);
    }
  }

  /** Whether a refresh has found the store unwritable. */
  get hasStoreFailure(): boolean {
    for (const { health } of this.#grants.values()) {
      if (health.kind === 'failing' && health.problem.code === 'store_unwritable') return true;
    }
    return false;
  }

  /** The store can be written again: the disk has free space, or the database of the site is back. */
  onStoreWritable(): void {
    this.#nudgeAll('store_writable');
  }

  /** Another hub of the site has come or gone. */
  onHubsChanged(): void {
    this.#scheduleAll();
  }

  /** The database of the site is back: tokens that are only in memory are written before anything is refreshed. */
  async onStoreReturned(): Promise<void> {
    // If it is away again, its next return is awaited.
    await this.applyNews(new Set(this.#missedNews), false).catch(() => undefined);
    await Promise.all([...this.#grants.values()].map((managed) => managed.save()));
    this.onStoreWritable();
  }

  /** Aborted when no further refresh will be started. */
  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  /** Prevents further refreshes. */
  stop(): void {
    this.#stopping.abort();
  }

  /** Resolves when the refreshes under way have ended. */
  async whenIdle(): Promise<void> {
    await Promise.all([...this.#grants.values()].map((managed) => managed.refreshing));
  }

  /**
   * Writes the grants, and the outcomes of attempts, that are only in memory.
   * @returns whether every grant is stored, or another hub has replaced it
   */
  async save(): Promise<boolean> {
    const written = await Promise.all([...this.#grants.values()].map((managed) => managed.save()));
    return !written.includes(false);
  }

  /**
   * Prevents further refreshes and resolves when those under way have ended and every grant that can be written is
   * stored. A hub of a site waits for its database, which is often back in seconds.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    const { clock, timers } = this.#options.environment;
    const deadline = clock.now().uptime + this.#options.stopTime;
    this.stop();
    await this.whenIdle();
    while (!(await this.save()) && clock.now().uptime < deadline) await timers.sleep(SAVE_INTERVAL);
    for (const managed of this.#grants.values())
      if (managed.isUnsaved && !managed.hasEnded) this.#logger.unsavedGrantLost(managed, managed.writeError);
  }

  #isActive({ grant }: GrantRunner): boolean {
    const connected = this.#options.portalOf(grant.connection);
    return connected === undefined || isSameIssuer(grant.issuer, connected.identity);
  }

  #nudgeAll(by: Nudge): void {
    for (const managed of this.#grants.values()) managed.nudge(by);
    this.#scheduleAll();
  }

  /** Schedules the next refresh, unless one is under way; drops a grant that another hub has deleted. */
  #scheduleRefresh(managed: GrantRunner): void {
    const { connection } = managed.grant;
    if (this.#grants.get(connection) !== managed || managed.refreshing !== null) return;
    if (managed.hasEnded) this.stopManaging(connection);
    if (managed.hasEnded || this.stopping.aborted) return;
    const at = this.#isActive(managed) ? this.schedule.dueAt(managed) : null;
    if (at === null) this.#options.scheduler.cancel(connection);
    else this.#options.scheduler.plan(connection, at, () => this.#refreshIfDue(managed));
  }

  #scheduleAll(): void {
    for (const managed of this.#grants.values()) this.#scheduleRefresh(managed);
  }

  /** Logs once a day that the hub is running, even if it has nothing to report. */
  #scheduleDailySummary(): void {
    this.#options.scheduler.plan('daily summary', this.#options.environment.clock.now().uptime + DAY, () => {
      this.#logger.dailySummary(this.#grants.size);
      this.#scheduleDailySummary();
    });
  }

  #refreshIfDue(managed: GrantRunner): void {
    if (this.schedule.isDue(managed)) void this.#refresh(managed, false);
    else this.#scheduleRefresh(managed);
  }

  async #refresh(managed: GrantRunner, isAwaited: boolean): Promise<void> {
    const { connection } = managed.grant;
    if (this.stopping.aborted || !this.#isActive(managed) || this.#importing.has(connection)) return;
    const connected = this.#options.portalOf(connection);
    const isFirst = managed.refreshing === null;
    if (connected !== undefined) {
      const { portal, identity } = connected;
      const named = { name: this.#options.nameOf(connection), portal, identity };
      await managed.refresh(named, this.#limiterOf(portal), isAwaited);
    } else if (managed.leasedUntil !== null) await managed.endElsewhere();
    else {
      const detail = `its portal (${managed.grant.issuer.origin}) is not in the configuration`;
      await managed.fail({ kind: 'misconfigured', detail, portalTime: null, isMissing: true });
    }
    if (isFirst) this.#scheduleRefresh(managed);
  }

  #revokingPortal(connection: string): RevokingPortal | undefined {
    const connected = this.#options.portalOf(connection);
    return connected && { name: this.#options.nameOf(connection), portal: connected.portal };
  }

  #limiterOf(portal: Portal): ConcurrencyLimiter {
    const limiter =
      this.#limiters.get(portal) ?? new ConcurrencyLimiter(CONCURRENCY_LIMITS, this.#options.environment.timers);
    this.#limiters.set(portal, limiter);
    return limiter;
  }
}

function newerOf(one: Grant | null, other: Grant | null): Grant | null {
  return (other?.generation ?? 0) > (one?.generation ?? 0) ? other : one;
}
