import type { Instant } from '../../core/clock.ts';
import { messageOf, messageWithoutAdvice } from '../../core/failure.ts';
import { carryOverRejection, type Grant, grantFromTokenResponse } from '../../core/grants/grant.ts';
import type { afterPortalResponse, RefreshHealth } from '../../core/grants/refresh-health.ts';
import { afterFailure, type RefreshFailure, type RefreshState, stateAtStart } from '../../core/grants/refresh-state.ts';
import { throttledUntil } from '../../core/grants/schedule.ts';
import type { TokenOutcome } from '../../core/grants/token-outcome.ts';
import { type ConfiguredPortal, issuerOf } from '../../core/portal.ts';
import type { Store, StoredGrant } from '../../core/store.ts';
import { sha256, timingSafeEqualText } from '../../system/secret-hash.ts';
import type { Environment } from '../environment.ts';
import type { AppliancePortal } from '../ports.ts';
import type { ReferenceClock } from '../time/reference-clock.ts';
import type { ConcurrencyLimiter } from './concurrency-limiter.ts';
import type { RefreshLogger } from './refresh-logger.ts';
import type { RefreshSchedule } from './refresh-schedule.ts';

/** What all managed grants work with. */
export interface GrantContext {
  readonly environment: Pick<Environment, 'clock' | 'random' | 'log'>;
  readonly store: Store;
  readonly referenceClock: ReferenceClock;
  readonly schedule: RefreshSchedule;
  readonly logger: RefreshLogger;
  /** Aborted when no further refresh may be sent. */
  readonly stopping: AbortSignal;
}

/** Writes a grant that is in memory alone. @returns false where the store has another one by now */
export type SaveGrant = () => Promise<boolean>;

/**
 * The grant of one appliance: its tokens, how its refreshes go, and the refresh under way, of which there is never more than
 * one. Nothing else changes any of it. After each wait it is the same grant only if it has not ended and has the same generation.
 */
export class ManagedGrant {
  readonly #context: GrantContext;
  #grant: Grant;
  #health: RefreshHealth = { kind: 'good' };
  #refreshing: Promise<void> | null = null;
  #lastForcedRefresh: number | null = null;
  #throttledUntil = Number.NEGATIVE_INFINITY;
  /** Writes what could not be written yet; until then the grant is served from memory and not refreshed. */
  #save: SaveGrant | null;
  #hasEnded = false;

  /** @param save writes a new grant, where that has failed so far */
  constructor(context: GrantContext, grant: Grant, save: SaveGrant | null = null) {
    this.#context = context;
    this.#grant = grant;
    this.#save = save;
    if (save !== null) this.#applyFailure({ kind: 'store_unwritable', detail: 'the new grant is only in memory' });
  }

  /** Takes a grant up as the last run of the hub has left it. */
  static async resume(context: GrantContext, stored: StoredGrant): Promise<ManagedGrant> {
    const managed = new ManagedGrant(context, stored.grant);
    managed.#applyStored(stored);
    if (stored.attempt === null) return managed;
    const { at } = stored.attempt;
    const { store, logger } = context;
    logger.refreshInterrupted(managed);
    // The event is emitted once, however often the hub is started before what follows from the attempt can be written.
    await store
      .endAttempt(managed.grant)
      .then(() => logger.attemptFailed(managed, null, at))
      .catch((error: unknown) => logger.storeUnwritable(managed, error));
    return managed;
  }

  get grant(): Grant {
    return this.#grant;
  }

  get health(): RefreshHealth {
    return this.#health;
  }

  /** The refresh under way. It does not reject. */
  get refreshing(): Promise<void> | null {
    return this.#refreshing;
  }

  /** When the last refresh was begun because the cloud had refused the token at hand, on the boot clock in ms. */
  get lastForcedRefresh(): number | null {
    return this.#lastForcedRefresh;
  }

  /** Before this the hub does not refresh it on its own, on the boot clock in ms: see `throttledUntil` of the core. */
  get throttledUntil(): number {
    return this.#throttledUntil;
  }

  /** Whether it is in memory alone. */
  get isUnsaved(): boolean {
    return this.#save !== null;
  }

  /** Whether it is no longer the grant of its appliance: see {@link end}; or another hub has forgotten it. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Another grant has taken its place, or it was forgotten: what a refresh under way brings is dropped. */
  end(): void {
    this.#hasEnded = true;
  }

  /** Writes what is in memory alone. @returns false where the store has another grant by now. @throws Failure as the store */
  async save(): Promise<boolean> {
    const save = this.#save;
    const isStored = (await save?.()) ?? true;
    // A refresh may have brought another one meanwhile that is not written either.
    if (this.#save === save) this.#save = null;
    const { appliance, generation, accessTokenRejectedAt } = this.#grant;
    // The mark may be in memory alone, because it could not be written, or its grant could not.
    if (isStored && accessTokenRejectedAt !== null)
      await this.#context.store.markTokenRejected(appliance, generation, accessTokenRejectedAt);
    return isStored;
  }

  /**
   * The cloud refused an access token of its appliance. If it is the one at hand, it is not handed out again.
   * @returns whether it was, and another one is to be fetched for it
   */
  async markTokenRejected(token: string): Promise<boolean> {
    const { environment, store, logger } = this.#context;
    if (this.#grant.accessTokenRejectedAt !== null || !timingSafeEqualText(token, this.#grant.accessToken.reveal()))
      return false;
    const accessTokenRejectedAt = environment.clock.now();
    const { appliance, generation } = this.#grant;
    this.#grant = { ...this.#grant, accessTokenRejectedAt };
    logger.tokenRejected(this);
    // False means that the grant itself is not written yet: the mark goes with it.
    await store
      .markTokenRejected(appliance, generation, accessTokenRejectedAt)
      .catch((error: unknown) => logger.storeUnwritable(this, error));
    return !this.#hasEnded && this.#grant.accessTokenRejectedAt !== null;
  }

  /** Something has happened that an attempt may wait for. */
  advanceRetry(news: typeof afterPortalResponse): void {
    const { clock, random } = this.#context.environment;
    this.#health = news(this.#health, clock.now(), random.fraction());
  }

  /** A failure that leaves nothing to write. @param sent when the refresh was sent; null where it was not */
  fail(outcome: RefreshFailure, sent: Instant | null = null): void {
    this.#applyFailure(outcome);
    this.#context.logger.attemptFailed(this, sent);
  }

  /**
   * Refreshes the grant when the limiter of its portal lets it, or joins the refresh that is under way.
   * @param isAwaited whether somebody waits for it; otherwise it is refreshed only if it is still due by then
   * @returns when the refresh has ended, however it did
   */
  refresh(connection: AppliancePortal, limiter: ConcurrencyLimiter, isAwaited: boolean): Promise<void> {
    const { schedule, logger, stopping } = this.#context;
    const { appliance } = this.#grant;
    if (isAwaited) limiter.promote(appliance);
    this.#refreshing ??= limiter
      .run(appliance, isAwaited, async (isStillAwaited) => {
        // Much may have happened before its turn came: an appliance removed, a token's age become known.
        if (stopping.aborted || this.#hasEnded) return;
        if (isStillAwaited || schedule.isDue(this)) await this.#attempt(connection);
      })
      .catch((error: unknown) => {
        logger.unexpectedError(appliance, error);
        this.fail({ kind: 'not_sent', detail: messageOf(error) });
      })
      .finally(() => {
        this.#refreshing = null;
      });
    return this.#refreshing;
  }

  /** One attempt: written ahead, sent once, and its outcome committed before anybody sees it. */
  async #attempt({ name, portal, identity }: AppliancePortal): Promise<void> {
    const { environment, referenceClock: portalClock, logger } = this.#context;
    const begun = await this.#writeAhead();
    if (begun !== 'written') return begun === 'superseded' ? this.#reload() : undefined;
    const { appliance, generation, refreshToken } = this.#grant;
    // A token's age counts from before the portal can have issued it: an answer may be long under way.
    const sent = environment.clock.now();
    this.#throttledUntil = throttledUntil(this.#throttledUntil, sent.uptime);
    if (this.#grant.accessTokenRejectedAt !== null) this.#lastForcedRefresh = sent.uptime;
    const outcome = await portal.refresh(refreshToken).catch((error: unknown): TokenOutcome => {
      logger.unexpectedError(appliance, error);
      return { kind: 'ambiguous', detail: messageOf(error) };
    });
    if ('portalTime' in outcome) portalClock.recordPortalTime(outcome.portalTime);
    // The generation, and not the grant: its token may have been distrusted while the answer was under way.
    if (this.#hasEnded || this.#grant.generation !== generation) {
      environment.log.info('refresh_superseded', { appliance: name });
      return;
    }
    const committed =
      outcome.kind === 'granted'
        ? await this.#commitTokens(outcome, identity, sent)
        : await this.#commitFailure(outcome, sent);
    if (committed === 'superseded') await this.#reload();
  }

  /** Commits that an attempt is about to be sent. A rotation is not started when its result could not be kept. */
  async #writeAhead(): Promise<'written' | 'put_off' | 'superseded'> {
    const { environment, store, schedule, logger } = this.#context;
    try {
      const wasUnsaved = this.isUnsaved;
      if (!(await this.save())) return 'superseded';
      if (wasUnsaved) {
        logger.storeWritten();
        this.#health = { kind: 'good' };
        if ((schedule.dueAt(this) ?? 0) > environment.clock.now().uptime) return 'put_off';
      }
      const attempt = { token: sha256(this.#grant.refreshToken.reveal()), at: environment.clock.now() };
      return (await store.beginAttempt(this.#grant, attempt)) ? 'written' : 'superseded';
    } catch (error) {
      this.fail({ kind: 'store_unwritable', detail: messageWithoutAdvice(error) });
      return 'put_off';
    }
  }

  async #commitTokens(
    { tokens, portalTime }: Extract<TokenOutcome, { kind: 'granted' }>,
    identity: ConfiguredPortal,
    sent: Instant,
  ): Promise<'committed' | 'superseded'> {
    const { store, logger } = this.#context;
    const previous = { ...this.#grant, issuer: issuerOf(identity) };
    const refreshToken = tokens.refreshToken ?? previous.refreshToken;
    const successor = grantFromTokenResponse(previous, refreshToken, tokens, sent, portalTime);
    const written = await store.replaceGrant(successor).catch((error: unknown) => ({ error }));
    if (written === false) return 'superseded';
    // The token at hand may have been distrusted while a successor with the very same one was being written.
    this.#grant = { ...successor, accessTokenRejectedAt: carryOverRejection(successor.accessToken, this.#grant) };
    if (written === true) {
      this.#health = { kind: 'good' };
      logger.refreshed(successor, tokens.lifetime, sent);
    } else {
      this.#save = () => store.replaceGrant(this.#grant);
      this.fail({ kind: 'store_unwritable', detail: messageWithoutAdvice(written.error) }, sent);
    }
    return 'committed';
  }

  async #commitFailure(outcome: RefreshFailure, sent: Instant): Promise<'committed' | 'superseded'> {
    const { store, schedule, logger } = this.#context;
    const { appliance, generation } = this.#grant;
    const state = afterFailure(this.#grant, this.#health, outcome, schedule.retryContext(appliance));
    // `invalid_grant` counts only if the token refused is still the one stored.
    const isCurrent = await store.endAttempt({ appliance, generation, ...state }).catch((error: unknown) => {
      logger.storeUnwritable(this, error);
      return true;
    });
    if (!isCurrent) return 'superseded';
    this.#applyState(state);
    logger.attemptFailed(this, outcome.kind === 'not_sent' ? null : sent);
    return 'committed';
  }

  /** Another hub has written this grant: what is stored is newer than what this one holds. */
  async #reload(): Promise<void> {
    const { environment, store, logger } = this.#context;
    const { appliance } = this.#grant;
    const stored = await store.grant(appliance).catch((error: unknown) => ({ error }));
    if (this.#hasEnded) return;
    if (stored !== null && 'error' in stored) {
      return this.fail({ kind: 'store_unwritable', detail: messageWithoutAdvice(stored.error) });
    }
    environment.log.warn('grant_changed_elsewhere', { appliance: logger.nameOf(appliance) });
    if (stored === null) this.end();
    else this.#applyStored(stored);
  }

  #applyStored({ grant, attempt }: StoredGrant): void {
    const { schedule, logger } = this.#context;
    const cutShort = attempt?.token === sha256(grant.refreshToken.reveal()) ? attempt.at : null;
    const context = schedule.retryContext(grant.appliance);
    const { health, ...kept } = stateAtStart(grant, cutShort, context);
    this.#grant = { ...grant, ...kept };
    this.#health = health;
    this.#save = null;
    logger.grantRestored(grant, this);
  }

  #applyFailure(outcome: RefreshFailure): void {
    const context = this.#context.schedule.retryContext(this.#grant.appliance);
    this.#applyState(afterFailure(this.#grant, this.#health, outcome, context));
  }

  #applyState({ health, ...kept }: RefreshState): void {
    const before = { grant: this.#grant, health: this.#health };
    this.#grant = { ...this.#grant, ...kept };
    this.#health = health;
    this.#context.logger.failed(before, this);
  }
}
