import type { Appliance } from '../../core/appliances/appliance.ts';
import { type Grant, wantsAnotherScope } from '../../core/grants/grant.ts';
import { clockSet, networkChanged, portalAnswered, roomMade } from '../../core/grants/health.ts';
import { hasGiven, type Portal } from '../../core/portal.ts';
import type { Store } from '../../core/store.ts';
import type { Environment } from '../environment.ts';
import type { ConnectedAppliance } from '../ports.ts';
import type { PortalClock } from '../time/portal-clock.ts';
import type { Scheduler } from '../time/scheduler.ts';
import { ConcurrencyLimiter, type ConcurrencyLimits } from './concurrency-limiter.ts';
import { type GrantContext, ManagedGrant, type SaveGrant } from './managed-grant.ts';
import { RefreshLogger } from './refresh-logger.ts';
import { RefreshSchedule } from './refresh-schedule.ts';

/**
 * How many refreshes a portal is sent at once: docs/decisions/coming-back.md. Of those that an appliance waits for there
 * may be as many as a portal a tenth of a second away needs to serve a thousand within the time that one waits.
 */
const CONCURRENCY: ConcurrencyLimits = { background: 8, foreground: 32, total: 64, timeout: 5000 };

const DAY = 86_400_000;
/** A network, or a portal, that comes and goes brings refreshes forward no sooner after the last time, in ms. */
const MIN_NEWS_INTERVAL = 60_000;

/**
 * Keeps every appliance's grant fresh. One that another portal gave than its appliance goes to now rests: it is kept, and
 * until the configuration is as it was nothing is done with it (docs/decisions/portals-of-grants.md).
 */
export class Grants implements AsyncDisposable {
  readonly #environment: Environment;
  readonly #store: Store;
  readonly #scheduler: Scheduler;
  readonly #connectionOf: (appliance: string) => ConnectedAppliance | undefined;
  readonly #logger: RefreshLogger;
  readonly #context: GrantContext;
  readonly #grants = new Map<string, ManagedGrant>();
  readonly #limiters = new WeakMap<Portal, ConcurrencyLimiter>();
  readonly #stopping = new AbortController();
  readonly schedule: RefreshSchedule;
  /** When another address brought the refreshes forward, on the boot clock in ms. */
  #lastNetworkChange = Number.NEGATIVE_INFINITY;
  /** When an answer brought the refreshes of a portal forward, on the boot clock in ms. */
  readonly #lastAnswers = new Map<string, number>();

  /**
   * @param connectionOf what is known of an appliance; undefined where it was removed or its portal is not configured
   * @param jitterOffset from 0 to 1, for an appliance always the same: see `ScheduleInput`
   */
  constructor(
    environment: Environment,
    store: Store,
    scheduler: Scheduler,
    portalClock: PortalClock,
    connectionOf: (appliance: string) => ConnectedAppliance | undefined,
    jitterOffset: (appliance: string) => number,
  ) {
    this.#environment = environment;
    this.#store = store;
    this.#scheduler = scheduler;
    this.#connectionOf = connectionOf;
    const retryLostAnswerOf = (appliance: string) => connectionOf(appliance)?.retryLostAnswer;
    this.schedule = new RefreshSchedule(environment, portalClock, retryLostAnswerOf, jitterOffset);
    const { schedule } = this;
    this.#logger = new RefreshLogger(environment, schedule, connectionOf);
    this.#context = {
      ...{ environment, store, portalClock, schedule },
      logger: this.#logger,
      stopping: this.#stopping.signal,
    };
    // The age of tokens from before this boot is known now.
    portalClock.whenConfirmed(() => this.#planAll());
  }

  /** Takes up what the last run left, and starts to look after it. */
  async load(): Promise<void> {
    for (const stored of await this.#store.grants()) {
      const managed = await ManagedGrant.resume(this.#context, stored);
      const { appliance } = managed.grant;
      this.#grants.set(appliance, managed);
      this.#plan(managed);
      const connection = this.#connectionOf(appliance);
      if (connection !== undefined && !this.#serves(managed)) this.#logger.rests(managed, connection.identity);
    }
    this.#planDay();
  }

  /** The grant at work; one that rests is none. */
  get(appliance: string): ManagedGrant | undefined {
    const managed = this.#grants.get(appliance);
    return managed !== undefined && this.#serves(managed) ? managed : undefined;
  }

  /** The grant that another portal gave than its appliance goes to now. */
  resting(appliance: string): Grant | undefined {
    const managed = this.#grants.get(appliance);
    return managed === undefined || this.#serves(managed) ? undefined : managed.grant;
  }

  /** Whether only a person's login can give an appliance a grant that it can go on with. */
  needsPairing(appliance: Appliance): boolean {
    const managed = this.get(appliance.id);
    return managed === undefined || managed.health.kind === 'refused' || wantsAnotherScope(appliance, managed.grant);
  }

  /**
   * Puts a new grant to work, in place of the one before.
   * @param save writes it, where that has failed so far
   */
  adopt(grant: Grant, save: SaveGrant | null = null): void {
    this.#grants.get(grant.appliance)?.end();
    const managed = new ManagedGrant(this.#context, grant, save);
    this.#grants.set(grant.appliance, managed);
    this.#plan(managed);
  }

  /** @throws Failure `store_unwritable`, the grant being kept then */
  async forget(appliance: string): Promise<void> {
    const managed = this.#grants.get(appliance);
    if (managed === undefined) return;
    if (!(await this.#store.forgetGrant(appliance, managed.grant.generation))) {
      // What is held was not saved yet, or another hub has written: a person wants none of it.
      await this.#store.forgetGrant(appliance, await this.#store.generation(appliance));
    }
    this.drop(appliance);
  }

  /** Stops looking after a grant whose appliance was removed. */
  drop(appliance: string): void {
    this.#grants.get(appliance)?.end();
    this.#grants.delete(appliance);
    this.#scheduler.cancel(appliance);
  }

  /**
   * Refreshes a grant for somebody who waits for it, or waits for the refresh that is under way.
   * @returns when the refresh has ended, however it did; at once where there is no grant
   */
  async refresh(appliance: string): Promise<void> {
    const managed = this.get(appliance);
    if (managed !== undefined) await this.#refresh(managed, true);
  }

  /**
   * The cloud refused the access token that the appliance holds. Where it is the one at hand, it is not handed out again,
   * and a refresh starts; any other token changes nothing.
   */
  async distrust(appliance: string, token: string): Promise<void> {
    const managed = this.get(appliance);
    if (managed === undefined || !(await managed.distrust(token))) return;
    if (managed.refreshing !== null || this.schedule.mayRefreshOnDemand(managed)) void this.#refresh(managed, true);
    else this.#plan(managed);
  }

  /** The hub's clock was set: what waited for that is tried again. */
  clockSet(): void {
    for (const managed of this.#grants.values()) managed.bringForward(clockSet);
    this.#planAll();
  }

  /** The hub has another address on the home network: what did not leave it is tried again soon. */
  networkChanged(): void {
    const now = this.#environment.clock.now().uptime;
    if (now - this.#lastNetworkChange < MIN_NEWS_INTERVAL) return;
    this.#lastNetworkChange = now;
    for (const managed of this.#grants.values()) managed.bringForward(networkChanged);
    this.#planAll();
  }

  /** A portal has answered some request as it does when it serves: what did not reach it is tried again soon. */
  portalAnswered(portal: string): void {
    const now = this.#environment.clock.now().uptime;
    if (now - (this.#lastAnswers.get(portal) ?? Number.NEGATIVE_INFINITY) < MIN_NEWS_INTERVAL) return;
    for (const managed of this.#grants.values()) {
      const { health, grant, refreshing } = managed;
      if (health.kind !== 'failing' || health.waitsForNetwork === undefined || refreshing !== null) continue;
      if (this.#connectionOf(grant.appliance)?.identity.name !== portal) continue;
      this.#lastAnswers.set(portal, now);
      managed.bringForward(portalAnswered);
      this.#plan(managed);
    }
  }

  /** Whether a refresh has found that the store can't be written. */
  get areUnwritable(): boolean {
    return [...this.#grants.values()].some(({ health }) => {
      return health.kind === 'failing' && health.problem.code === 'store_unwritable';
    });
  }

  /** There is room on the disk again. */
  roomMade(): void {
    for (const managed of this.#grants.values()) managed.bringForward(roomMade);
    this.#planAll();
  }

  /** Whether no further refresh is started. */
  get isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  /** Starts no further refresh. */
  stop(): void {
    this.#stopping.abort();
  }

  /** Resolves when the refreshes that were sent have ended. */
  async settled(): Promise<void> {
    await Promise.all([...this.#grants.values()].map((managed) => managed.refreshing));
  }

  /** Writes what is in memory alone. @returns whether nothing of it is left */
  async save(): Promise<boolean> {
    const unsaved = [...this.#grants.values()].filter(({ isUnsaved }) => isUnsaved);
    await Promise.all(
      unsaved.map((managed) => managed.save().catch((error: unknown) => this.#logger.unwritable(managed, error))),
    );
    return unsaved.every(({ isUnsaved }) => !isUnsaved);
  }

  /** Starts nothing more; resolves when the refreshes that were sent have ended, and what can be written is. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.stop();
    await this.settled();
    await Promise.all(
      [...this.#grants.values()].map((managed) =>
        managed.save().catch((error: unknown) => this.#logger.lost(managed, error)),
      ),
    );
  }

  #serves({ grant }: ManagedGrant): boolean {
    const connection = this.#connectionOf(grant.appliance);
    return connection === undefined || hasGiven(grant.givenBy, connection.identity);
  }

  /** Plans the next refresh; a grant that another hub has forgotten is dropped. */
  #plan(managed: ManagedGrant): void {
    const { appliance } = managed.grant;
    if (this.#grants.get(appliance) !== managed) return;
    if (managed.hasEnded) this.drop(appliance);
    if (managed.hasEnded || this.isStopping) return;
    const at = this.#serves(managed) ? this.schedule.dueAt(managed) : null;
    if (at === null) this.#scheduler.cancel(appliance);
    else this.#scheduler.plan(appliance, at, () => this.#refreshIfDue(managed));
  }

  #planAll(): void {
    for (const managed of this.#grants.values()) if (managed.refreshing === null) this.#plan(managed);
  }

  /** A hub of which there is nothing to report says once a day that it is there. */
  #planDay(): void {
    this.#scheduler.plan('the end of the day', this.#environment.clock.now().uptime + DAY, () => {
      this.#logger.day(this.#grants.size);
      this.#planDay();
    });
  }

  #refreshIfDue(managed: ManagedGrant): void {
    if (this.schedule.isDue(managed)) void this.#refresh(managed, false);
    else this.#plan(managed);
  }

  async #refresh(managed: ManagedGrant, isAwaited: boolean): Promise<void> {
    if (this.isStopping || !this.#serves(managed)) return;
    const connection = this.#connectionOf(managed.grant.appliance);
    const isFirst = managed.refreshing === null;
    if (connection !== undefined) await managed.refresh(connection, this.#limiterOf(connection.portal), isAwaited);
    else {
      managed.fail({ kind: 'misconfigured', detail: 'its portal is not in the configuration', portalTime: null });
      await this.#store.endAttempt(managed.grant).catch((error: unknown) => this.#logger.unwritable(managed, error));
    }
    if (isFirst) this.#plan(managed);
  }

  #limiterOf(portal: Portal): ConcurrencyLimiter {
    const limiter = this.#limiters.get(portal) ?? new ConcurrencyLimiter(CONCURRENCY, this.#environment.timers);
    this.#limiters.set(portal, limiter);
    return limiter;
  }
}
