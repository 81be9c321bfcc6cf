import type { Instant } from '../../core/clock.ts';
import { Failure, messageOf, messageWithoutAdvice } from '../../core/failure.ts';
import { carryOverRejection, type Grant, grantFromTokenResponse } from '../../core/grants/grant.ts';
import type { afterPortalResponse, RefreshHealth } from '../../core/grants/refresh-health.ts';
import { afterFailure, type RefreshFailure, type RefreshState, stateAtStart } from '../../core/grants/refresh-state.ts';
import { throttledUntil } from '../../core/grants/schedule.ts';
import type { TokenOutcome } from '../../core/grants/token-outcome.ts';
import { type ConfiguredPortal, portalIdentityOf } from '../../core/portals/identity.ts';
import type { Secret } from '../../core/secret.ts';
import type { FoundGrant } from '../../core/site.ts';
import type { AttemptStart, RefreshAttempt, Store, StoredGrant } from '../../core/store.ts';
import { sha256, timingSafeEqualText } from '../../system/secret-hash.ts';
import type { Environment } from '../environment.ts';
import type { BrokerStore, ConnectionPortal } from '../ports.ts';
import type { ReferenceClock } from '../time/reference-clock.ts';
import type { ConcurrencyLimiter } from './concurrency-limiter.ts';
import type { RefreshLogger } from './refresh-logger.ts';
import type { RefreshSchedule } from './refresh-schedule.ts';

/** What all managed grants work with. */
export interface GrantContext {
  readonly environment: Pick<Environment, 'clock' | 'random' | 'log'>;
  readonly store: Pick<BrokerStore, 'site' | 'damagedGrants'> & Store;
  readonly referenceClock: ReferenceClock;
  readonly schedule: RefreshSchedule;
  readonly logger: RefreshLogger;
  /** Aborted when no further refresh may be sent. */
  readonly stopping: AbortSignal;
}

/** Another hub's refresh of the grant. */
interface AttemptElsewhere {
  /** When its lease ends, on the boot clock in ms. */
  until: number;
  readonly ended: Promise<void>;
  readonly resolve: () => void;
}

/** When the end of another hub's lease is looked at again if the store can't be read, in ms. */
const LEASE_CHECK_DELAY = 5000;

/** Writes a grant that is only in memory. @returns false if the store has another one by now */
export type SaveGrant = () => Promise<boolean>;

/**
 * The grant of one appliance: its tokens, its refresh health, and the refresh under way (never more than one). Nothing
 * else changes any of it. After every `await`, it is the same grant only if it has not ended and has the same
 * generation.
 */
export class ManagedGrant {
  readonly #context: GrantContext;
  #grant: Grant;
  #health: RefreshHealth = { kind: 'good' };
  #refreshing: Promise<void> | null = null;
  #lastForcedRefresh: number | null = null;
  #throttledUntil = Number.NEGATIVE_INFINITY;
  /** Writes a grant that could not be stored yet. Until then it is served from memory and not refreshed. */
  #save: SaveGrant | null;
  /** The attempt of another hub that is under way. */
  #attemptElsewhere: AttemptElsewhere | null = null;
  #hasEnded = false;
  /** Whether a refresh is being written ahead or was, and its outcome is not committed yet. */
  #isSending = false;

  /** @param save writes a new grant if that has failed so far */
  constructor(context: GrantContext, grant: Grant, save: SaveGrant | null = null) {
    this.#context = context;
    this.#grant = grant;
    this.#save = save;
    if (save !== null)
      this.#applyFailure({
        kind: 'store_unwritable',
        detail: 'the new grant could not be saved and is only in memory',
      });
  }

  /** Resumes a grant as the last run of the hub left it. */
  static async resume(context: GrantContext, stored: StoredGrant): Promise<ManagedGrant> {
    const managed = new ManagedGrant(context, stored.grant);
    managed.#applyStored(stored, false);
    if (stored.attempt === null || managed.leasedUntil !== null) return managed;
    context.logger.refreshInterrupted(managed);
    await managed
      .#endInterrupted(stored.attempt.at)
      .catch((error: unknown) => context.logger.storeUnwritable(managed, error));
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

  /** When the last refresh began because the cloud had refused the access token, on the boot clock in ms. */
  get lastForcedRefresh(): number | null {
    return this.#lastForcedRefresh;
  }

  /** The hub starts no background refresh before this, on the boot clock in ms: see `throttledUntil` in core. */
  get throttledUntil(): number {
    return this.#throttledUntil;
  }

  get leasedUntil(): number | null {
    return this.#attemptElsewhere?.until ?? null;
  }

  /** Resolves when another hub's attempt that is under way has ended; null if there is none. */
  get endedElsewhere(): Promise<void> | null {
    return this.#attemptElsewhere?.ended ?? null;
  }

  /** Whether the grant is only in memory. */
  get isUnsaved(): boolean {
    return this.#save !== null;
  }

  /** Whether this grant was replaced or deleted, see {@link end}, or another hub has deleted it. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Marks the grant as replaced or deleted. The result of a refresh under way is discarded. */
  end(): void {
    this.#hasEnded = true;
    this.#setAttemptElsewhere(null);
  }

  /**
   * Another hub of the site has changed the grant.
   * @returns the grant as this hub holds it if the database has lost it
   */
  applyNews({ stored, hasLostWrites }: FoundGrant): Grant | null {
    const { generation } = this.#grant;
    if (this.#hasEnded) return null;
    if (stored.grant.generation < generation) return hasLostWrites ? this.#grant : null;
    // Tokens of this generation are in memory only, or are being refreshed, or the database has lost what is known of
    // them: it knows less than this hub.
    if (stored.grant.generation === generation && (hasLostWrites || this.#save !== null || this.#isSending)) {
      const accessTokenRejectedAt = this.#grant.accessTokenRejectedAt ?? stored.grant.accessTokenRejectedAt;
      this.#grant = { ...this.#grant, accessTokenRejectedAt };
      return hasLostWrites ? this.#grant : null;
    }
    this.#applyStored(stored);
    return null;
  }

  /**
   * Writes a grant that is only in memory.
   * @returns false if the store has another grant by now.
   * @throws Failure as {@link Store}
   */
  async save(): Promise<boolean> {
    const save = this.#save;
    const isStored = (await save?.()) ?? true;
    // A refresh may have produced another unsaved grant meanwhile.
    if (this.#save === save) this.#save = null;
    const { connection, generation, accessTokenRejectedAt } = this.#grant;
    // The rejection may be only in memory, because its own write or that of the grant had failed.
    if (isStored && accessTokenRejectedAt !== null)
      await this.#context.store.markTokenRejected(connection, generation, accessTokenRejectedAt);
    return isStored;
  }

  /**
   * Writes a grant that is only in memory, when the store can be written again. It does not wait for a refresh that is
   * queued: until the tokens are written, a hub that is killed takes them with it.
   */
  async writeUnsaved(): Promise<void> {
    if (!this.isUnsaved || this.#hasEnded) return;
    try {
      if (!(await this.save())) return await this.#reload();
      this.#context.logger.storeWritten();
      this.#health = { kind: 'good' };
    } catch (error) {
      this.#context.logger.storeUnwritable(this, error);
    }
  }

  /**
   * The cloud refused an access token of the appliance. If it is the current one, it is no longer issued.
   * @returns whether it is the current one and a refresh is needed
   */
  async markTokenRejected(token: string): Promise<boolean> {
    const { environment, store, logger } = this.#context;
    if (this.#grant.accessTokenRejectedAt !== null || !timingSafeEqualText(token, this.#grant.accessToken.reveal()))
      return false;
    const accessTokenRejectedAt = environment.clock.now();
    const { connection, generation } = this.#grant;
    this.#grant = { ...this.#grant, accessTokenRejectedAt };
    logger.tokenRejected(this);
    // False means that the grant itself is not written yet; the rejection is written with it.
    await store
      .markTokenRejected(connection, generation, accessTokenRejectedAt)
      .catch((error: unknown) => logger.storeUnwritable(this, error));
    return !this.#hasEnded && this.#grant.accessTokenRejectedAt !== null;
  }

  /** Applies an event that brings the next attempt forward. */
  advanceRetry(transition: typeof afterPortalResponse): void {
    const { clock, random } = this.#context.environment;
    this.#health = transition(this.#health, clock.now(), random.fraction());
  }

  /** Records a failure that needs no write. @param sent when the refresh was sent; null if it was not */
  fail(outcome: RefreshFailure, sent: Instant | null = null): void {
    this.#applyFailure(outcome);
    this.#context.logger.attemptFailed(this, sent);
  }

  /**
   * Refreshes the grant when the limiter of its portal permits it, or joins the refresh that is under way. Without a
   * refresh token nothing is sent: if the access token has ended, the grant counts as refused from now on.
   * @param isAwaited whether a caller waits for it; otherwise the grant is refreshed only if it is still due by then
   * @returns when the refresh has ended, whatever its outcome
   */
  refresh(connectionPortal: ConnectionPortal, limiter: ConcurrencyLimiter, isAwaited: boolean): Promise<void> {
    const { schedule, logger, stopping } = this.#context;
    const { connection } = this.#grant;
    if (isAwaited) limiter.promote(connection);
    const refresh = () =>
      limiter.run(connection, isAwaited, async (isStillAwaited) => {
        // While the task was queued, the appliance may have been removed, or the age of its token become known.
        if (stopping.aborted || this.#hasEnded) return;
        if (isStillAwaited || schedule.isDue(this)) await this.#attempt(connectionPortal);
      });
    this.#refreshing ??= (this.#grant.refreshToken === null ? this.#commitEnd() : refresh())
      .catch((error: unknown) => {
        logger.unexpectedError(connection, error);
        this.fail({ kind: 'not_sent', detail: messageOf(error) });
      })
      .finally(() => {
        this.#refreshing = null;
      });
    return this.#refreshing;
  }

  /** Makes one attempt: written ahead, sent once, and its outcome committed before it becomes visible. */
  async #attempt(connectionPortal: ConnectionPortal): Promise<void> {
    const { refreshToken } = this.#grant;
    if (refreshToken === null) return this.#commitEnd();
    if (this.#attemptElsewhere !== null) return this.#endElsewhere();
    try {
      const writeAhead = await this.#writeAhead(refreshToken);
      if (writeAhead === 'postponed') return;
      const committed =
        writeAhead === 'superseded' ? writeAhead : await this.#send(refreshToken, writeAhead, connectionPortal);
      if (committed !== 'superseded') return;
    } finally {
      this.#isSending = false;
    }
    await this.#reload();
  }

  /** Sends an attempt once, and commits its outcome. */
  async #send(
    refreshToken: Secret,
    { sendBefore }: Extract<AttemptStart, { kind: 'begun' }>,
    { name, portal, identity }: ConnectionPortal,
  ): Promise<'committed' | 'superseded' | 'discarded'> {
    const { environment, referenceClock, logger } = this.#context;
    const { connection, generation } = this.#grant;
    // The age counts from before the portal can have issued the token: the response may be under way for long.
    const sent = environment.clock.now();
    this.#throttledUntil = throttledUntil(this.#throttledUntil, sent.uptime);
    if (this.#grant.accessTokenRejectedAt !== null) this.#lastForcedRefresh = sent.uptime;
    // Compare the generation, not the grant: its token may have been rejected meanwhile.
    const isCurrent = () => !this.#hasEnded && this.#grant.generation === generation;
    const maySend = () => isCurrent() && (sendBefore === null || environment.clock.now().uptime < sendBefore);
    const outcome = await portal.refresh(refreshToken, maySend).catch((error: unknown): TokenOutcome => {
      logger.unexpectedError(connection, error);
      return { kind: 'ambiguous', detail: messageOf(error) };
    });
    if ('portalTime' in outcome) referenceClock.recordPortalTime(outcome.portalTime);
    if (!isCurrent()) {
      environment.log.info('refresh_superseded', { connection: name });
      return 'discarded';
    }
    return outcome.kind === 'granted'
      ? this.#commitTokens(outcome, identity, sent)
      : this.#commitFailure(outcome, sent);
  }

  /** Commits that an attempt is about to be sent. No rotation is started if its result could not be saved. */
  async #writeAhead(
    refreshToken: Secret,
  ): Promise<Extract<AttemptStart, { kind: 'begun' }> | 'postponed' | 'superseded'> {
    const { environment, store, schedule, logger } = this.#context;
    const { generation } = this.#grant;
    try {
      const wasUnsaved = this.isUnsaved;
      if (!(await this.save())) return 'superseded';
      if (wasUnsaved) {
        logger.storeWritten();
        this.#health = { kind: 'good' };
        if ((schedule.dueAt(this) ?? 0) > environment.clock.now().uptime) return 'postponed';
      }
      // Another hub may have refreshed the grant while it was saved, or while this attempt was written ahead.
      const isSuperseded = () => this.#hasEnded || this.#grant.generation !== generation;
      if (isSuperseded()) return 'superseded';
      this.#isSending = true;
      const attempt = { token: sha256(refreshToken.reveal()), at: environment.clock.now() };
      const started = await store.beginAttempt(this.#grant, attempt);
      if (isSuperseded() || started.kind === 'superseded') return 'superseded';
      if (started.kind === 'begun') return started;
      this.#setAttemptElsewhere({ leasedUntil: started.until });
      return 'postponed';
    } catch (error) {
      this.fail({ kind: 'store_unwritable', detail: messageWithoutAdvice(error) });
      return 'postponed';
    }
  }

  /** Without a refresh token: stores the grant if that has failed so far, and its end if the access token has ended. */
  async #commitEnd(): Promise<void> {
    const { schedule, logger } = this.#context;
    try {
      const wasUnsaved = this.isUnsaved;
      if (!(await this.save())) return await this.#reload();
      if (wasUnsaved) logger.storeWritten();
    } catch (error) {
      return this.fail({ kind: 'store_unwritable', detail: messageWithoutAdvice(error) });
    }
    if (this.#hasEnded || this.#health.kind === 'refused') return;
    // Any failure so far only concerned the store or the configuration.
    this.#health = { kind: 'good' };
    if (!schedule.isDue(this)) return;
    const committed = await this.#commitFailure({ kind: 'refused', detail: '', portalTime: null }, null);
    if (committed === 'superseded') await this.#reload();
  }

  async #commitTokens(
    { tokens, portalTime }: Extract<TokenOutcome, { kind: 'granted' }>,
    identity: ConfiguredPortal,
    sent: Instant,
  ): Promise<'committed' | 'superseded'> {
    const { store, logger } = this.#context;
    const previous = { ...this.#grant, issuer: portalIdentityOf(identity) };
    const refreshToken = tokens.refreshToken ?? previous.refreshToken;
    const successor = grantFromTokenResponse(previous, refreshToken, tokens, sent, portalTime);
    const written = await this.#write(() => store.replaceGrant(successor)).catch((error: unknown) => ({ error }));
    if (written === false) return 'superseded';
    if (this.#hasEnded || this.#grant.generation !== previous.generation) return 'committed';
    // The access token may have been rejected while a successor with the very same token was being written.
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

  /**
   * Writes an outcome. If the database has lost the attempt, what this hub knows of that is written again first.
   * @returns false if another hub has written the grant
   */
  async #write(outcome: () => Promise<boolean>): Promise<boolean> {
    if (await outcome()) return true;
    const hasLostAttempt = this.#context.store.site !== null && !this.#hasEnded && (await this.#find())?.hasLostWrites;
    if (hasLostAttempt !== true) return false;
    await this.#context.store.site?.putBack([this.#grant]);
    return outcome();
  }

  async #commitFailure(outcome: RefreshFailure, sent: Instant | null): Promise<'committed' | 'superseded'> {
    const { store, schedule, logger } = this.#context;
    const { connection, generation } = this.#grant;
    const state = afterFailure(this.#grant, this.#health, outcome, schedule.retryContext(connection));
    // `invalid_grant` counts only if the refused token is still the one stored.
    const end = () => store.endAttempt({ connection, generation, ...state });
    const isCurrent = await this.#write(end).catch((error: unknown) => {
      logger.storeUnwritable(this, error);
      return true;
    });
    if (!isCurrent) return 'superseded';
    if (this.#hasEnded || this.#grant.generation !== generation) return 'committed';
    this.#applyState(state);
    logger.attemptFailed(this, outcome.kind === 'not_sent' ? null : sent);
    return 'committed';
  }

  /** The lease of another hub's attempt has ended without an outcome: it counts as sent, and its answer as lost. */
  async #endElsewhere(): Promise<void> {
    const { environment, logger } = this.#context;
    try {
      const found = await this.#findNewest();
      if (this.#hasEnded) return;
      if (found === null) return this.end();
      this.#applyNewest(found);
      const { leasedUntil, at } = found.stored.attempt ?? {};
      if (at === undefined || leasedUntil === undefined || leasedUntil > environment.clock.now().uptime) return;
      this.#applyStored({ ...found.stored, attempt: { token: found.stored.attempt?.token ?? '', at } });
      logger.refreshInterrupted(this);
      if (!(await this.#endInterrupted(at))) await this.#reload();
    } catch (error) {
      this.#setAttemptElsewhere({ leasedUntil: environment.clock.now().uptime + LEASE_CHECK_DELAY });
      this.fail({ kind: 'store_unwritable', detail: messageWithoutAdvice(error) });
    }
  }

  /**
   * Saves that the answer to an attempt was lost. The event is emitted once, even if the hub restarts several times
   * before this can be written, or several hubs try.
   * @returns false if another hub was faster
   */
  async #endInterrupted(at: Instant): Promise<boolean> {
    const isWritten = await this.#context.store.endAttempt(this.#grant);
    if (isWritten) this.#context.logger.attemptFailed(this, null, at);
    return isWritten;
  }

  /** Another hub has written this grant: the stored version is newer than the held one, unless the database lost it. */
  async #reload(): Promise<void> {
    const { environment, store, logger } = this.#context;
    const { connection } = this.#grant;
    try {
      const found = await this.#findNewest();
      if (this.#hasEnded) return;
      if (store.site === null) {
        environment.log.warn('grant_changed_elsewhere', { connection: logger.nameOf(connection) });
      }
      if (found === null) this.end();
      else this.#applyNewest(found);
    } catch (error) {
      this.fail({ kind: 'store_unwritable', detail: messageWithoutAdvice(error) });
    }
  }

  /**
   * The grant as it is stored; null if there is none.
   * @throws Failure as {@link Store}, also if the row is damaged: what is in memory is better
   */
  async #find(): Promise<FoundGrant | null> {
    const { store } = this.#context;
    const { connection } = this.#grant;
    const found = await findGrant(store, connection);
    if (found !== null || !store.damagedGrants.has(connection)) return found;
    throw new Failure('store_unreadable', 'the grant in the store was damaged or changed by something else');
  }

  /** As {@link #find}, after what this hub knows was written again if the database has lost it. */
  async #findNewest(): Promise<FoundGrant | null> {
    const found = await this.#find();
    if (this.#hasEnded || found === null || !this.#isNewerThan(found)) return found;
    await this.#context.store.site?.putBack([this.#grant]);
    return this.#find();
  }

  /** Whether this hub knows more of the grant than the database, which has lost it, or may have. */
  #isNewerThan({ stored, hasLostWrites }: FoundGrant): boolean {
    return hasLostWrites && stored.grant.generation <= this.#grant.generation;
  }

  /** @param found what the store has */
  #applyNewest(found: FoundGrant): void {
    const { grant, attempt } = found.stored;
    if (!this.#isNewerThan(found)) {
      this.#applyStored(found.stored);
      return;
    }
    // It is written again, but another hub may know even more.
    const { refreshToken } = this.#grant;
    const isCurrent = refreshToken !== null && attempt?.token === sha256(refreshToken.reveal());
    this.#setAttemptElsewhere(isCurrent ? attempt : null);
    if (grant.generation === this.#grant.generation) this.#save = null;
  }

  /** @param isKnown false if nothing is known yet but what is stored */
  #applyStored({ grant: stored, attempt }: StoredGrant, isKnown = true): void {
    const { schedule, logger } = this.#context;
    // The rejection may be only in memory so far.
    const accessTokenRejectedAt = stored.accessTokenRejectedAt ?? carryOverRejection(stored.accessToken, this.#grant);
    const grant = { ...stored, accessTokenRejectedAt };
    const { refreshToken } = grant;
    const isCurrent = refreshToken !== null && attempt?.token === sha256(refreshToken.reveal());
    this.#setAttemptElsewhere(isCurrent ? attempt : null);
    const interruptedAt = isCurrent && attempt.leasedUntil === undefined ? attempt.at : null;
    const isSite = this.#context.store.site !== null;
    const isSameState = isKnown && isSite && interruptedAt === null && hasSameState(grant, this.#grant);
    this.#save = null;
    if (isSameState) {
      // Only the attempt has changed: what this hub knows about its own attempts stays.
      this.#grant = grant;
      return;
    }
    const context = schedule.retryContext(grant.connection);
    const { health, ...fields } = stateAtStart(grant, interruptedAt, context);
    this.#grant = { ...grant, ...fields };
    this.#health = health;
    logger.grantRestored(grant, this);
  }

  #setAttemptElsewhere(attempt: Pick<RefreshAttempt, 'leasedUntil'> | null): void {
    const until = attempt?.leasedUntil;
    const before = this.#attemptElsewhere;
    if (until !== undefined && before !== null) before.until = until;
    else if (until !== undefined) this.#attemptElsewhere = newAttemptElsewhere(until);
    else this.#attemptElsewhere = null;
    if (until === undefined) before?.resolve();
  }

  #applyFailure(outcome: RefreshFailure): void {
    const context = this.#context.schedule.retryContext(this.#grant.connection);
    this.#applyState(afterFailure(this.#grant, this.#health, outcome, context));
  }

  #applyState({ health, ...fields }: RefreshState): void {
    const before = { grant: this.#grant, health: this.#health };
    this.#grant = { ...this.#grant, ...fields };
    this.#health = health;
    this.#context.logger.failed(before, this);
  }
}

function newAttemptElsewhere(until: number): AttemptElsewhere {
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  return { until, ended, resolve };
}

/** Whether two versions of a grant have the same tokens, and the same is known about them. */
function hasSameState(one: Grant, other: Grant): boolean {
  return (
    one.generation === other.generation &&
    one.doubt?.sends === other.doubt?.sends &&
    one.doubt?.kind === other.doubt?.kind &&
    (one.refused === null) === (other.refused === null) &&
    (one.misconfigured === null) === (other.misconfigured === null)
  );
}

async function findGrant(store: GrantContext['store'], connection: string): Promise<FoundGrant | null> {
  if (store.site !== null) return (await store.site.findGrants(new Set([connection]))).get(connection) ?? null;
  const stored = await store.grant(connection);
  return stored === null ? null : { stored, hasLostWrites: false };
}
