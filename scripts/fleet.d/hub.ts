import { RefreshSchedule, type ScheduledGrant } from '../../src/broker/grants/refresh-schedule.ts';
import { ReferenceClock } from '../../src/broker/time/reference-clock.ts';
import type { Clock, Instant } from '../../src/core/clock.ts';
import { type Grant, grantFromTokenResponse, minRemaining } from '../../src/core/grants/grant.ts';
import type { RefreshHealth } from '../../src/core/grants/refresh-health.ts';
import { afterFailure, stateAtStart } from '../../src/core/grants/refresh-state.ts';
import { needsRefreshBeforeIssue } from '../../src/core/grants/schedule.ts';
import type { Log } from '../../src/core/log.ts';
import type { TokenOutcome } from '../../src/core/portals/token-outcome.ts';
import type { Random } from '../../src/core/random.ts';
import { logTo } from '../../test/support/log-to.ts';
import { EPOCH } from './portal.ts';

const SILENT: Log = logTo(() => undefined);
const PORTAL = 'portal';
const GOOD: RefreshHealth = { kind: 'good' };

/** A grant of the fleet. */
export interface FleetGrant extends ScheduledGrant {
  grant: Grant;
  health: RefreshHealth;
  readonly hub: FleetHub;
  /** Its index in the fleet. */
  readonly number: number;
  /** See `ScheduleInput` of the core. */
  readonly jitterOffset: number;
  /**
   * When an appliance first requests the token, in ms, and then every {@link TOKEN_REQUEST_INTERVAL_MS}; null if none
   * does.
   */
  readonly asksFrom: number | null;
  /** When the refresh was sent that a power cut interrupted. */
  cutShort: Instant | null;
}

/** The interval of an appliance's token requests, in ms. */
export const TOKEN_REQUEST_INTERVAL_MS = 120_000;

/**
 * One hub: its clock, and the broker's refreshes without the store and the connections. The daemon's own code decides
 * when to refresh and what an outcome means (`broker/grants/refresh-schedule.ts`, `broker/time/reference-clock.ts`,
 * `core/`). A whole broker (`openBroker`) per hub takes 35 times as long and 20 kB: a hundred thousand would take hours
 * and 2 GB. test/release/bench/fleet.test.ts shows that a simulated hub sends requests when a real one does.
 */
export class FleetHub implements Clock {
  readonly grants: FleetGrant[] = [];
  readonly #time: { readonly now: number };
  readonly #random: Pick<Random, 'fraction'>;
  #boots = 1;
  #boot = 'boot-1';
  /** The time of the current boot, in ms. */
  #booted: number;
  #portalClock: ReferenceClock;
  #schedule: RefreshSchedule;
  /** The time of the next power cut, in ms. */
  offAt = Number.POSITIVE_INFINITY;

  /** @param booted when, in ms */
  constructor(time: { readonly now: number }, random: Pick<Random, 'fraction'>, booted: number) {
    this.#time = time;
    this.#random = random;
    this.#booted = booted;
    [this.#portalClock, this.#schedule] = this.#parts();
  }

  now(): Instant {
    const { now } = this.#time;
    return { boot: this.#boot, uptime: now - this.#booted, wall: EPOCH + now };
  }

  /** Restarts the daemon. */
  restart(): void {
    [this.#portalClock, this.#schedule] = this.#parts();
    for (const held of this.grants) {
      const context = this.#schedule.retryContext(held.grant.connection);
      const { doubt, refused, health } = stateAtStart(held.grant, held.cutShort, context);
      held.grant = { ...held.grant, doubt, refused };
      held.health = health;
      held.cutShort = null;
    }
  }

  /** Boots the machine after a power cut. */
  boot(): void {
    this.#boots += 1;
    this.#boot = `boot-${this.#boots}`;
    this.#booted = this.#time.now;
    this.offAt = Number.POSITIVE_INFINITY;
    this.restart();
  }

  /** Whether the age of tokens from another boot is known. */
  get knowsTheTime(): boolean {
    return this.#portalClock.confirmed !== null;
  }

  /** When the hub's own schedule refreshes a grant, in ms. */
  dueAt(held: FleetGrant): number {
    return this.#booted + (this.#schedule.dueAt(held) ?? Number.POSITIVE_INFINITY);
  }

  isDue(held: FleetGrant): boolean {
    return this.#schedule.isDue(held);
  }

  /** The time of the next token request that may trigger a refresh, in ms. */
  nextAsk(held: FleetGrant): number {
    if (held.asksFrom === null) return Number.POSITIVE_INFINITY;
    const { now } = this.#time;
    const short = now + Math.max(0, (this.#schedule.remaining(held) ?? 0) - minRemaining(held.grant));
    const allowed = this.#booted + (this.#schedule.onDemandAt(held) ?? Number.POSITIVE_INFINITY);
    const asks = Math.ceil((Math.max(short, allowed) - held.asksFrom) / TOKEN_REQUEST_INTERVAL_MS);
    const at = held.asksFrom + asks * TOKEN_REQUEST_INTERVAL_MS;
    return at > now ? at : at + TOKEN_REQUEST_INTERVAL_MS;
  }

  /** Whether a token request now triggers a refresh: see `TokenIssuer`. */
  isWorthWaiting(held: FleetGrant): boolean {
    const left = this.#schedule.remaining(held) ?? 0;
    return needsRefreshBeforeIssue(held.grant, left, 0) && this.#schedule.mayRefreshOnDemand(held);
  }

  /** Applies the outcome of a refresh to a grant: see `GrantRunner`. @param sent when the refresh was sent */
  take(held: FleetGrant, outcome: TokenOutcome, sent: Instant): void {
    if ('portalTime' in outcome) this.#portalClock.recordPortalTime(PORTAL, outcome.portalTime);
    if (outcome.kind === 'granted') {
      const { tokens } = outcome;
      held.grant = grantFromTokenResponse(
        held.grant,
        tokens.refreshToken ?? held.grant.refreshToken,
        tokens,
        sent,
        this.#portalClock.timeAt(PORTAL, sent),
      );
      held.health = GOOD;
      return;
    }
    const state = afterFailure(held.grant, held.health, outcome, this.#schedule.retryContext(held.grant.connection));
    held.grant = { ...held.grant, doubt: state.doubt, refused: state.refused };
    held.health = state.health;
  }

  #parts(): [ReferenceClock, RefreshSchedule] {
    const portalClock = new ReferenceClock({ clock: this, log: SILENT });
    const random = this.#random as Random;
    const jitterOffset = (appliance: string) =>
      this.grants.find(({ grant }) => grant.connection === appliance)?.jitterOffset ?? 0;
    const portal = {
      identity: { name: PORTAL, origin: '', clientId: '', otherOrigins: [] },
      retryLostAnswer: 'early',
      loginLifetime: null,
      idleLifetime: null,
      refreshEndsAccessToken: false,
    } as const;
    return [portalClock, new RefreshSchedule({ clock: this, random }, portalClock, () => portal, jitterOffset)];
  }
}
