import { messageOf } from '../../core/failure.ts';
import type { Grant } from '../../core/grants/grant.ts';
import type { afterPortalResponse, RefreshHealth } from '../../core/grants/refresh-health.ts';
import type { RefreshFailure } from '../../core/grants/refresh-state.ts';
import type { FoundGrant } from '../../core/site.ts';
import type { StoredGrant } from '../../core/store.ts';
import { timingSafeEqualText } from '../../system/secret-hash.ts';
import type { ConnectionPortal } from '../ports.ts';
import type { ConcurrencyLimiter } from './concurrency-limiter.ts';
import { type GrantContext, HeldGrant, type SaveGrant } from './held-grant.ts';
import { RefreshAttempts } from './refresh-attempts.ts';

/**
 * The grant of one connection: its tokens, its refresh health, and the refresh under way (never more than one). Only
 * this object and its parts, {@link HeldGrant} and {@link RefreshAttempts}, change them. After every `await`, it is the
 * same grant only if it has not ended and has the same generation.
 */
export class ManagedGrant {
  readonly #context: GrantContext;
  readonly #held: HeldGrant;
  readonly #attempts: RefreshAttempts;
  #refreshing: Promise<void> | null = null;

  /** @param unsaved writes a new grant if that has failed so far */
  constructor(context: GrantContext, grant: Grant, unsaved: SaveGrant | null = null) {
    this.#context = context;
    this.#held = new HeldGrant(context, grant, unsaved);
    this.#attempts = new RefreshAttempts(context, this.#held);
  }

  /** Resumes a grant as the last run of the hub left it. */
  static async resume(context: GrantContext, stored: StoredGrant): Promise<ManagedGrant> {
    const managed = new ManagedGrant(context, stored.grant);
    managed.#held.applyStored(stored, false);
    if (stored.attempt === null || managed.leasedUntil !== null) return managed;
    context.logger.refreshInterrupted(managed);
    await managed.#attempts
      .endInterrupted(stored.attempt.at)
      .catch((error: unknown) => context.logger.storeUnwritable(managed, error));
    return managed;
  }

  get grant(): Grant {
    return this.#held.grant;
  }

  get health(): RefreshHealth {
    return this.#held.health;
  }

  /** The refresh under way. It does not reject. */
  get refreshing(): Promise<void> | null {
    return this.#refreshing;
  }

  get lastForcedRefresh(): number | null {
    return this.#held.lastForcedRefresh;
  }

  get throttledUntil(): number {
    return this.#held.throttledUntil;
  }

  get leasedUntil(): number | null {
    return this.#held.leasedUntil;
  }

  /** See {@link HeldGrant.endedElsewhere}. */
  get endedElsewhere(): Promise<void> | null {
    return this.#held.endedElsewhere;
  }

  /** Whether the grant is only in memory. */
  get isUnsaved(): boolean {
    return this.#held.unsaved !== null;
  }

  /** See {@link HeldGrant.hasUnwrittenEnd}. */
  get hasUnwrittenEnd(): boolean {
    return this.#held.hasUnwrittenEnd;
  }

  /** Whether this grant was replaced or deleted, see {@link end}, or another hub has deleted it. */
  get hasEnded(): boolean {
    return this.#held.hasEnded;
  }

  /** Marks the grant as replaced or deleted. The result of a refresh under way is discarded. */
  end(): void {
    this.#held.end();
  }

  /** See {@link HeldGrant.applyNews}. */
  applyNews(found: FoundGrant): Grant | null {
    return this.#held.applyNews(found);
  }

  /** See {@link HeldGrant.reload}. */
  reload(): Promise<void> {
    return this.#held.reload();
  }

  /** See {@link HeldGrant.save}. @throws Failure as `Store` */
  save(): Promise<boolean> {
    return this.#held.save();
  }

  /**
   * Writes what is only in memory, when the store can be written again. It does not wait for a refresh that is queued:
   * until the tokens are written, a hub that is killed takes them with it.
   */
  async writeUnsaved(): Promise<void> {
    if (!(this.isUnsaved || this.hasUnwrittenEnd) || this.hasEnded) return;
    try {
      const isStored = await this.save();
      // A refresh that is under way has written it, and notices by itself if another hub has.
      if (!isStored && !this.#held.isSending) await this.#held.reload();
    } catch (error) {
      this.#context.logger.storeUnwritable(this, error);
    }
  }

  /**
   * The cloud refused an access token of the grant. If it is the current one, it is no longer issued.
   * @returns whether it is the current one and a refresh is needed
   */
  async markTokenRejected(token: string): Promise<boolean> {
    const { environment, logger } = this.#context;
    if (
      this.#held.grant.accessTokenRejectedAt !== null ||
      !timingSafeEqualText(token, this.#held.grant.accessToken.reveal())
    )
      return false;
    const accessTokenRejectedAt = environment.clock.now();
    this.#held.grant = { ...this.#held.grant, accessTokenRejectedAt };
    logger.tokenRejected(this);
    await this.#held.writeRejection().catch((error: unknown) => logger.storeUnwritable(this, error));
    return !this.#held.hasEnded && this.#held.grant.accessTokenRejectedAt !== null;
  }

  /** Applies an event that brings the next attempt forward. */
  advanceRetry(transition: typeof afterPortalResponse): void {
    const { clock, random } = this.#context.environment;
    this.#held.health = transition(this.#held.health, clock.now(), random.fraction());
  }

  /** Records a failure that needs no write. */
  fail(outcome: RefreshFailure): void {
    this.#held.fail(outcome);
  }

  /** Ends another hub's attempt if its lease has ended: see {@link RefreshAttempts.endElsewhere}. */
  endElsewhere(): Promise<void> {
    this.#refreshing ??= this.#attempts.endElsewhere().finally(() => {
      this.#refreshing = null;
    });
    return this.#refreshing;
  }

  /**
   * Refreshes the grant when the limiter of its portal permits it, or joins the refresh that is under way. Without a
   * refresh token nothing is sent: if the access token has ended, the grant counts as refused from now on.
   * @param isAwaited whether a caller waits for it; otherwise the grant is refreshed only if it is still due by then
   * @returns when the refresh has ended, whatever its outcome
   */
  refresh(connectionPortal: ConnectionPortal, limiter: ConcurrencyLimiter, isAwaited: boolean): Promise<void> {
    const { schedule, logger, stopping } = this.#context;
    const { health } = this.#held;
    const { connection } = this.#held.grant;
    if (isAwaited) limiter.promote(connection);
    const refresh = () =>
      limiter.run(connection, isAwaited, async (isStillAwaited) => {
        // While it waited, the connection may have been removed, the age of its token become known, or the refresh of
        // another hub have failed, so that it must not be repeated now.
        const mayStillRefresh = () => this.#held.health === health || schedule.mayRefreshOnDemand(this);
        const isWanted = () =>
          !stopping.aborted && !this.#held.hasEnded && (schedule.isDue(this) || (isStillAwaited && mayStillRefresh()));
        if (isWanted()) await this.#attempts.make(connectionPortal, isWanted);
      });
    this.#refreshing ??= (this.#held.grant.refreshToken === null ? this.#attempts.commitEnd() : refresh())
      .catch((error: unknown) => {
        logger.unexpectedError(connection, error);
        this.fail({ kind: 'not_sent', detail: messageOf(error) });
      })
      .finally(() => {
        this.#refreshing = null;
      });
    return this.#refreshing;
  }
}
