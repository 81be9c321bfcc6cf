import { messageOf } from '../../core/failure.ts';
import type { Grant } from '../../core/grants/grant.ts';
import { clockSet, endReplayHoldOff, networkChanged } from '../../core/grants/health.ts';
import { afterFailure, type RefreshFailure, type RefreshState, stateAtStart } from '../../core/grants/refresh.ts';
import { hasGiven, type Portal } from '../../core/portal.ts';
import type { Store, StoredGrant } from '../../core/store.ts';
import { sameSecret, sha256 } from '../../system/compare.ts';
import type { Environment } from '../environment.ts';
import type { PortalClock } from '../time/portal-clock.ts';
import type { Scheduler } from '../time/scheduler.ts';
import { ConcurrencyLimiter, type ConcurrencyLimits } from './concurrency-limiter.ts';
import { GrantNotices } from './grant-notices.ts';
import { GrantTimes } from './grant-times.ts';
import type { GrantHolder, Held, HeldGrant } from './held-grant.ts';
import { RefreshAttempts } from './refresh-attempt.ts';

/**
 * How many refreshes a portal is sent at once: docs/decisions/coming-back.md. Of those that an appliance waits for there
 * may be as many as a portal a tenth of a second away needs to serve a thousand within the time that one waits.
 */
const CONCURRENCY: ConcurrencyLimits = { background: 8, foreground: 32, total: 64, timeout: 5000 };

/** What there is of a grant's attempts before the first. */
const UNTRIED = { refreshing: null, lastForcedRefresh: null, throttledUntil: Number.NEGATIVE_INFINITY };

const DAY = 86_400_000;
/** A network that comes and goes hurries the refreshes no sooner after the last time, in ms. */
const HURRIED_REST = 60_000;

/**
 * Keeps every appliance's grant fresh. One that another portal gave than its appliance goes to now rests: it is kept, and
 * until the configuration is as it was nothing is done with it (docs/decisions/portals-of-grants.md).
 */
export class Grants implements AsyncDisposable {
  readonly #environment: Environment;
  readonly #store: Store;
  readonly #scheduler: Scheduler;
  readonly #holder: (appliance: string) => GrantHolder | undefined;
  readonly #notices: GrantNotices;
  readonly #attempts: RefreshAttempts;
  readonly #held = new Map<string, Held>();
  readonly #limiters = new WeakMap<Portal, ConcurrencyLimiter>();
  readonly times: GrantTimes;
  #stopping = false;
  /** When another address hurried the refreshes, on the boot clock in ms. */
  #hurried = Number.NEGATIVE_INFINITY;

  /**
   * @param holder what is known of an appliance; undefined where it was removed or its portal is not configured
   * @param jitterOffset from 0 to 1, for an appliance always the same: see `dueAt`
   */
  constructor(
    environment: Environment,
    store: Store,
    scheduler: Scheduler,
    portalClock: PortalClock,
    holder: (appliance: string) => GrantHolder | undefined,
    jitterOffset: (appliance: string) => number,
  ) {
    this.#environment = environment;
    this.#store = store;
    this.#scheduler = scheduler;
    this.#holder = holder;
    this.#notices = new GrantNotices(environment, holder);
    this.times = new GrantTimes(environment, portalClock, (appliance) => holder(appliance)?.replay, jitterOffset);
    this.#attempts = new RefreshAttempts(environment, store, portalClock, this.times, this.#notices, {
      keeps: (held) => this.#held.get(held.grant.appliance) === held,
      reload: (held) => this.#reload(held),
      apply: (held, outcome) => this.#apply(held, outcome),
      settle: (held, state) => this.#settle(held, state),
    });
    // The age of tokens from before this boot is known now.
    portalClock.whenConfirmed(() => this.#scheduleAll());
  }

  /** Takes up what the last run left, and starts to look after it. */
  async load(): Promise<void> {
    for (const stored of await this.#store.grants()) {
      const held = this.#takeUp(stored);
      if (stored.attempt !== null) {
        this.#notices.cutShort(held);
        const cutShort = held.health;
        await this.#store
          .endAttempt(held.grant)
          // Told once, however often the hub is started before that can be written.
          .then(() => this.#notices.attemptFailed({ ...held, health: cutShort }, null, stored.attempt?.at))
          .catch((error: unknown) => this.#notices.unwritable(held, error));
      }
      this.#schedule(held);
      const { appliance } = held.grant;
      const holder = this.#holder(appliance);
      if (holder !== undefined && this.resting(appliance) !== undefined) this.#notices.rests(held, holder.identity);
    }
    this.#planDay();
  }

  /** The grant at work; one that rests is none. */
  get(appliance: string): HeldGrant | undefined {
    return this.#atWork(appliance);
  }

  /** The grant that another portal gave than its appliance goes to now. */
  resting(appliance: string): Grant | undefined {
    const held = this.#held.get(appliance);
    return held === undefined || this.#serves(held) ? undefined : held.grant;
  }

  /**
   * Puts a new grant to work, in place of the one before.
   * @param unsaved writes it, where that has failed so far
   */
  adopt(grant: Grant, unsaved: (() => Promise<boolean>) | null = null): void {
    const held: Held = { ...UNTRIED, grant, health: { kind: 'good' }, unsaved };
    this.#held.set(grant.appliance, held);
    this.#schedule(held);
    if (unsaved !== null) this.#apply(held, { kind: 'store_unwritable', detail: 'the new grant is only in memory' });
  }

  /** @throws Failure `store_unwritable`, the grant being kept then */
  async forget(appliance: string): Promise<void> {
    const held = this.#held.get(appliance);
    if (held === undefined) return;
    if (!(await this.#store.forgetGrant(appliance, held.grant.generation))) {
      // What is held was not saved yet, or another hub has written: a person wants none of it.
      await this.#store.forgetGrant(appliance, await this.#store.generation(appliance));
    }
    this.drop(appliance);
  }

  /** Stops looking after a grant whose appliance was removed. */
  drop(appliance: string): void {
    this.#held.delete(appliance);
    this.#scheduler.cancel(appliance);
  }

  /**
   * Refreshes a grant for somebody who waits for it, or waits for the refresh that is under way.
   * @returns when the refresh has ended, however it did; at once where there is no grant
   */
  async refresh(appliance: string): Promise<void> {
    const held = this.#atWork(appliance);
    if (held !== undefined) await this.#refresh(held, true);
  }

  /**
   * The cloud refused the access token that the appliance holds. Where it is the one at hand, it is not handed out again,
   * and a refresh starts; any other token changes nothing.
   */
  async distrust(appliance: string, token: string): Promise<void> {
    const held = this.#atWork(appliance);
    if (held === undefined || held.grant.distrusted !== null) return;
    if (!sameSecret(token, held.grant.accessToken.reveal())) return;
    const distrusted = this.#environment.clock.now();
    held.grant = { ...held.grant, distrusted };
    held.health = endReplayHoldOff(held.health);
    this.#notices.distrusted(held);
    // False means that the grant itself is not written yet: the mark goes with it.
    await this.#store
      .distrust(appliance, held.grant.generation, distrusted)
      .catch((error: unknown) => this.#notices.unwritable(held, error));
    if (this.#held.get(appliance) !== held || held.grant.distrusted === null) return;
    if (held.refreshing !== null || this.times.mayRefreshOnDemand(held)) void this.#refresh(held, true);
    else this.#schedule(held);
  }

  /** The hub's clock was set: what waited for that is tried again. */
  clockSet(): void {
    const { clock, random } = this.#environment;
    for (const held of this.#held.values()) held.health = clockSet(held.health, clock.now(), random.fraction());
    this.#scheduleAll();
  }

  /** The hub has another address on the home network: what did not leave it is tried again soon. */
  networkChanged(): void {
    const { clock, random } = this.#environment;
    const now = clock.now();
    if (now.uptime - this.#hurried < HURRIED_REST) return;
    this.#hurried = now.uptime;
    for (const held of this.#held.values()) held.health = networkChanged(held.health, now, random.fraction());
    this.#scheduleAll();
  }

  /** Whether no further refresh is started. */
  get isStopping(): boolean {
    return this.#stopping;
  }

  /** Starts no further refresh. */
  stop(): void {
    this.#stopping = true;
  }

  /** Resolves when the refreshes that were sent have ended. */
  async settled(): Promise<void> {
    await Promise.all([...this.#held.values()].map((held) => held.refreshing));
  }

  /** Writes what is in memory alone. @returns whether nothing of it is left */
  async save(): Promise<boolean> {
    const left = [...this.#held.values()].filter((held) => held.unsaved !== null);
    await Promise.all(
      left.map((held) => this.#saveLast(held).catch((error: unknown) => this.#notices.unwritable(held, error))),
    );
    return left.every((held) => held.unsaved === null);
  }

  /** Starts nothing more; resolves when the refreshes that were sent have ended, and what can be written is. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.stop();
    await this.settled();
    const held = [...this.#held.values()];
    await Promise.all(held.map((one) => this.#saveLast(one).catch((error: unknown) => this.#notices.lost(one, error))));
  }

  async #saveLast(held: Held): Promise<void> {
    const { appliance, generation, distrusted } = held.grant;
    await held.unsaved?.();
    held.unsaved = null;
    if (distrusted !== null) await this.#store.distrust(appliance, generation, distrusted);
  }

  #takeUp({ grant, attempt }: StoredGrant): Held {
    const context = this.times.context(grant.appliance);
    const cutShort = attempt?.token === sha256(grant.refreshToken.reveal()) ? attempt.at : null;
    const { doubt, refused, health } = stateAtStart(grant, cutShort, context);
    const held: Held = { ...UNTRIED, grant: { ...grant, doubt, refused }, health, unsaved: null };
    this.#held.set(grant.appliance, held);
    this.#notices.takenUp(grant, held);
    return held;
  }

  #atWork(appliance: string): Held | undefined {
    const held = this.#held.get(appliance);
    return held !== undefined && this.#serves(held) ? held : undefined;
  }

  #serves({ grant }: Held): boolean {
    const holder = this.#holder(grant.appliance);
    return holder === undefined || hasGiven(grant.givenBy, holder.identity);
  }

  #schedule(held: Held): void {
    const { appliance } = held.grant;
    if (this.#stopping || this.#held.get(appliance) !== held) return;
    const at = this.#serves(held) ? this.times.dueAt(held) : null;
    if (at === null) this.#scheduler.cancel(appliance);
    else this.#scheduler.plan(appliance, at, () => this.#refreshIfDue(held));
  }

  /** A hub of which there is nothing to tell says once a day that it is there. */
  #planDay(): void {
    this.#scheduler.plan('the end of the day', this.#environment.clock.now().uptime + DAY, () => {
      this.#notices.day(this.#held.size);
      this.#planDay();
    });
  }

  #scheduleAll(): void {
    for (const held of this.#held.values()) if (held.refreshing === null) this.#schedule(held);
  }

  #refreshIfDue(held: Held): void {
    if (this.times.isDue(held)) void this.#refresh(held, false);
    else this.#schedule(held);
  }

  #limiterOf(portal: Portal): ConcurrencyLimiter {
    const limiter = this.#limiters.get(portal) ?? new ConcurrencyLimiter(CONCURRENCY, this.#environment.timers);
    this.#limiters.set(portal, limiter);
    return limiter;
  }

  #refresh(held: Held, prompted: boolean): Promise<void> {
    const { appliance } = held.grant;
    const holder = this.#holder(appliance);
    if (this.#stopping || !this.#serves(held)) return Promise.resolve();
    if (holder === undefined) {
      this.#apply(held, { kind: 'misconfigured', detail: 'its portal is not configured', portalTime: null });
      this.#notices.attemptFailed(held, null);
      return Promise.resolve();
    }
    const limiter = this.#limiterOf(holder.portal);
    if (prompted) limiter.promote(appliance);
    held.refreshing ??= limiter
      .run(appliance, prompted, async (stillPrompted) => {
        // Much may have happened before its turn came: an appliance removed, a token's age become known.
        if (this.#stopping || this.#held.get(appliance) !== held) return;
        if (stillPrompted || this.times.isDue(held)) await this.#attempts.run(held, holder);
      })
      .catch((error: unknown) => {
        this.#notices.unexpected(appliance, error);
        this.#apply(held, { kind: 'not_sent', detail: messageOf(error) });
        this.#notices.attemptFailed(held, null);
      })
      .finally(() => {
        held.refreshing = null;
        this.#schedule(held);
      });
    return held.refreshing;
  }

  #apply(held: Held, outcome: RefreshFailure): void {
    const { doubt, refused } = held.grant;
    const { health } = afterFailure(held.grant, held.health, outcome, this.times.context(held.grant.appliance));
    this.#settle(held, { doubt, refused, health });
  }

  #settle(held: Held, { doubt, refused, health }: RefreshState): void {
    const before = { grant: held.grant, health: held.health };
    held.grant = { ...held.grant, doubt, refused };
    held.health = held.grant.distrusted === null ? health : endReplayHoldOff(health);
    this.#notices.afterFailure(before, held);
    this.#schedule(held);
  }

  /** Another hub has written this grant: what is stored is newer than what this one holds. */
  async #reload(held: Held): Promise<void> {
    const { appliance } = held.grant;
    const stored = await this.#store.grant(appliance);
    if (this.#held.get(appliance) !== held) return;
    this.#environment.log.warn('grant was changed by another hub', { appliance: this.#holder(appliance)?.name });
    if (stored === null) this.drop(appliance);
    else {
      const { lastForcedRefresh, throttledUntil } = held;
      this.#schedule(Object.assign(this.#takeUp(stored), { lastForcedRefresh, throttledUntil }));
    }
  }
}
