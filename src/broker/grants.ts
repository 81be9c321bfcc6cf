import type { Instant } from '../core/clock.ts';
import { messageOf } from '../core/failure.ts';
import { type Grant, remaining, succeed } from '../core/grant.ts';
import type { TokenOutcome } from '../core/outcome.ts';
import type { Portal } from '../core/portal.ts';
import {
  clockSet,
  dueAt,
  type Health,
  promptedAt,
  type Replay,
  restIn,
  type Setback,
  type SetbackContext,
  setBack,
  standingAtStart,
} from '../core/refresh.ts';
import type { Store, StoredGrant } from '../core/store.ts';
import { sha256 } from '../system/compare.ts';
import { GrantNotices } from './grant-notices.ts';
import type { PortalClock } from './portal-clock.ts';
import type { Scheduler } from './scheduler.ts';
import type { Surroundings } from './surroundings.ts';
import { Turns } from './turns.ts';

/** A grant at work. */
export interface HeldGrant {
  readonly grant: Grant;
  readonly health: Health;
  /** The refresh under way: there is never more than one. It does not reject. */
  readonly refreshing: Promise<void> | null;
}

interface Held {
  grant: Grant;
  health: Health;
  refreshing: Promise<void> | null;
  /** Writes what could not be written yet; until then the grant is served from memory and not refreshed. */
  unsaved: (() => Promise<boolean>) | null;
}

/** What the grants need to know of an appliance. */
export interface GrantHolder {
  readonly name: string;
  readonly portal: Portal;
  readonly replay: Replay;
}

/** How many refreshes a portal is sent at once. */
const MOST_AT_ONCE = 8;

/** Keeps every appliance's grant fresh. */
export class Grants implements AsyncDisposable {
  readonly #surroundings: Surroundings;
  readonly #store: Store;
  readonly #scheduler: Scheduler;
  readonly #portalClock: PortalClock;
  readonly #holder: (appliance: string) => GrantHolder | undefined;
  readonly #spread: (appliance: string) => number;
  readonly #notices: GrantNotices;
  readonly #held = new Map<string, Held>();
  readonly #turns = new WeakMap<Portal, Turns>();
  /** When this run of the hub began, on the boot clock in ms. */
  readonly since: number;
  #stopping = false;

  /**
   * @param holder what is known of an appliance; undefined where it was removed or its portal is not configured
   * @param spread from 0 to 1, for an appliance always the same: see `dueAt`
   */
  constructor(
    surroundings: Surroundings,
    store: Store,
    scheduler: Scheduler,
    portalClock: PortalClock,
    holder: (appliance: string) => GrantHolder | undefined,
    spread: (appliance: string) => number,
  ) {
    this.#surroundings = surroundings;
    this.#store = store;
    this.#scheduler = scheduler;
    this.#portalClock = portalClock;
    this.#holder = holder;
    this.#spread = spread;
    this.#notices = new GrantNotices(surroundings, (appliance) => holder(appliance)?.name);
    this.since = surroundings.clock.now().uptime;
    // The age of tokens from before this boot is known now.
    portalClock.whenConfirmed(() => this.#scheduleAll());
  }

  /** Takes up what the last run left, and starts to look after it. */
  async load(): Promise<void> {
    for (const stored of await this.#store.grants()) {
      const held = this.#takeUp(stored);
      if (stored.attempt !== null) {
        this.#notices.setBack(held, 'refresh was cut short');
        await this.#store.endAttempt(held.grant).catch((error: unknown) => this.#notices.unwritable(held, error));
      }
      this.#schedule(held);
    }
  }

  get(appliance: string): HeldGrant | undefined {
    return this.#held.get(appliance);
  }

  /**
   * Puts a new grant to work, in place of the one before.
   * @param unsaved writes it, where that has failed so far
   */
  adopt(grant: Grant, unsaved: (() => Promise<boolean>) | null = null): void {
    const held: Held = { grant, health: { kind: 'good' }, refreshing: null, unsaved };
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
    const held = this.#held.get(appliance);
    if (held !== undefined) await this.#refresh(held, true);
  }

  /**
   * The cloud refused the access token that the appliance holds. Where it is the one at hand, it is not handed out again,
   * and a refresh starts.
   */
  async distrust(_appliance: string, _token: string): Promise<void> {}

  /** When the grant will be refreshed next, on the boot clock in ms; null for never. */
  dueAt({ grant, health }: HeldGrant): number | null {
    const context = this.#context(grant.appliance);
    const timetable = { ...context, since: this.since, spread: this.#spread(grant.appliance) };
    return rested(dueAt(grant, health, timetable), grant, context);
  }

  /** When an appliance that waits for a token may have it refreshed, on the boot clock in ms; null for never. */
  promptedAt({ grant, health }: HeldGrant): number | null {
    const context = this.#context(grant.appliance);
    return rested(promptedAt(grant, health, context.now), grant, context);
  }

  /** The hub's clock was set: what waited for that is tried again. */
  clockSet(): void {
    const { clock, random } = this.#surroundings;
    for (const held of this.#held.values()) held.health = clockSet(held.health, clock.now(), random.fraction());
    this.#scheduleAll();
  }

  /** Milliseconds that the token at hand lives; null where that can't be known yet. */
  remaining(held: HeldGrant): number | null {
    return remaining(held.grant, this.#surroundings.clock.now(), this.#portalClock.confirmed);
  }

  /** Starts nothing more; resolves when the refreshes that were sent have ended, and what can be written is. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping = true;
    const held = [...this.#held.values()];
    await Promise.all(held.map((one) => one.refreshing));
    await Promise.all(
      held.map((one) => one.unsaved?.().catch((error: unknown) => this.#notices.unwritable(one, error))),
    );
  }

  #takeUp({ grant, attempt }: StoredGrant): Held {
    const context = this.#context(grant.appliance);
    const cutShort = attempt?.token === sha256(grant.refreshToken.reveal()) ? attempt.at : null;
    const { doubt, refused, health } = standingAtStart(grant, cutShort, context);
    const held: Held = { grant: { ...grant, doubt, refused }, health, refreshing: null, unsaved: null };
    this.#held.set(grant.appliance, held);
    this.#notices.changed({ grant, health: { kind: 'good' } }, held);
    return held;
  }

  #schedule(held: Held): void {
    const { appliance } = held.grant;
    if (this.#stopping || this.#held.get(appliance) !== held) return;
    const at = this.dueAt(held);
    if (at === null) this.#scheduler.cancel(appliance);
    else this.#scheduler.plan(appliance, at, () => this.#refreshIfDue(held));
  }

  #scheduleAll(): void {
    for (const held of this.#held.values()) if (held.refreshing === null) this.#schedule(held);
  }

  #isDue(held: Held): boolean {
    const due = this.dueAt(held);
    return due !== null && due <= this.#surroundings.clock.now().uptime;
  }

  #refreshIfDue(held: Held): void {
    if (this.#isDue(held)) void this.#refresh(held, false);
    else this.#schedule(held);
  }

  #turnsOf(portal: Portal): Turns {
    const turns = this.#turns.get(portal) ?? new Turns(MOST_AT_ONCE);
    this.#turns.set(portal, turns);
    return turns;
  }

  #refresh(held: Held, prompted: boolean): Promise<void> {
    const { appliance } = held.grant;
    const holder = this.#holder(appliance);
    if (this.#stopping) return Promise.resolve();
    if (holder === undefined) {
      this.#apply(held, { kind: 'misconfigured', detail: 'its portal is not configured', portalTime: null });
      return Promise.resolve();
    }
    const turns = this.#turnsOf(holder.portal);
    if (prompted) turns.hurry(appliance);
    held.refreshing ??= turns
      .take(appliance, prompted, async (stillPrompted) => {
        // Much may have happened before its turn came: an appliance removed, a token's age become known.
        if (this.#stopping || this.#held.get(appliance) !== held) return;
        if (stillPrompted || this.#isDue(held)) await this.#attempt(held, holder);
      })
      .catch((error: unknown) => {
        this.#surroundings.log.error('refresh failed unexpectedly', { error: messageOf(error) });
        this.#apply(held, { kind: 'not_sent', detail: messageOf(error) });
      })
      .finally(() => {
        held.refreshing = null;
        this.#schedule(held);
      });
    return held.refreshing;
  }

  async #attempt(held: Held, holder: GrantHolder): Promise<void> {
    const { grant } = held;
    if (!(await this.#writtenAhead(held))) return;
    // A token's age counts from before the portal can have issued it: an answer may be long under way.
    const sent = this.#surroundings.clock.now();
    const outcome = await holder.portal.refresh(grant.refreshToken).catch((error: unknown): TokenOutcome => {
      this.#surroundings.log.error('refresh failed unexpectedly', { error: messageOf(error) });
      return { kind: 'ambiguous', detail: messageOf(error) };
    });
    if ('portalTime' in outcome) this.#portalClock.learn(outcome.portalTime);
    if (this.#held.get(grant.appliance) !== held || held.grant !== grant) {
      this.#surroundings.log.info('refresh came too late for its grant', { appliance: holder.name });
      return;
    }
    await (outcome.kind === 'granted' ? this.#succeed(held, outcome, sent) : this.#fail(held, outcome));
  }

  /** Commits the attempt. A rotation is not started when its result could not be kept. */
  async #writtenAhead(held: Held): Promise<boolean> {
    const { clock } = this.#surroundings;
    try {
      if (held.unsaved !== null) {
        if (!(await held.unsaved())) return this.#reload(held);
        held.unsaved = null;
        held.health = { kind: 'good' };
        if ((this.dueAt(held) ?? 0) > clock.now().uptime) return false;
      }
      const attempt = { token: sha256(held.grant.refreshToken.reveal()), at: clock.now() };
      return (await this.#store.beginAttempt(held.grant, attempt)) || this.#reload(held);
    } catch (error) {
      this.#apply(held, { kind: 'store_unwritable', detail: messageOf(error) });
      return false;
    }
  }

  async #succeed(held: Held, outcome: Extract<TokenOutcome, { kind: 'granted' }>, sent: Instant): Promise<void> {
    const { tokens, portalTime } = outcome;
    const { log } = this.#surroundings;
    const successor = succeed(held.grant, tokens.refreshToken ?? held.grant.refreshToken, tokens, sent, portalTime);
    try {
      if (!(await this.#store.replaceGrant(successor))) {
        await this.#reload(held);
        return;
      }
    } catch (error) {
      held.grant = successor;
      held.unsaved = () => this.#store.replaceGrant(successor);
      this.#apply(held, { kind: 'store_unwritable', detail: messageOf(error) });
      return;
    }
    held.grant = successor;
    held.health = { kind: 'good' };
    const name = this.#holder(successor.appliance)?.name;
    log.info('refreshed', { appliance: name, expires_in: tokens.lifetime / 1000, generation: successor.generation });
  }

  async #fail(held: Held, outcome: Setback): Promise<void> {
    const before = held.grant;
    const standing = setBack(before, held.health, outcome, this.#context(before.appliance));
    const { doubt, refused } = standing;
    // `invalid_grant` counts only if the token refused is still the one stored.
    const current = await this.#store.endAttempt({ ...before, doubt, refused }).catch((error: unknown) => {
      this.#notices.unwritable(held, error);
      return true;
    });
    if (current) this.#settle(held, { ...before, doubt, refused }, standing.health);
    else await this.#reload(held);
  }

  /** A setback that leaves nothing to write. */
  #apply(held: Held, outcome: Setback): void {
    const { health } = setBack(held.grant, held.health, outcome, this.#context(held.grant.appliance));
    this.#settle(held, held.grant, health);
  }

  #settle(held: Held, grant: Grant, health: Health): void {
    const before = { grant: held.grant, health: held.health };
    held.grant = grant;
    held.health = health;
    this.#notices.setBack(held, 'refresh did not succeed');
    this.#notices.changed(before, held);
    this.#schedule(held);
  }

  /** Another hub has written this grant: what is stored is newer than what this one holds. */
  async #reload(held: Held): Promise<false> {
    const { appliance } = held.grant;
    const stored = await this.#store.grant(appliance);
    if (this.#held.get(appliance) !== held) return false;
    this.#surroundings.log.warn('grant was changed by another hub', { appliance: this.#holder(appliance)?.name });
    if (stored === null) this.drop(appliance);
    else this.#schedule(this.#takeUp(stored));
    return false;
  }

  #context(appliance: string): SetbackContext {
    const { clock, random } = this.#surroundings;
    const replay = this.#holder(appliance)?.replay ?? 'late';
    return { now: clock.now(), confirmed: this.#portalClock.confirmed, replay, fraction: random.fraction() };
  }
}

/** How long the token at hand lives, and with it the rest, may become known only after a time to try again was set. */
function rested(at: number | null, grant: Grant, context: SetbackContext): number | null {
  const rest = restIn(grant, context);
  return at === null || rest === 0 ? at : Math.max(at, context.now.uptime + rest);
}
