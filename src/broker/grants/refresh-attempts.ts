import type { Instant } from '../../core/clock.ts';
import { messageOf, messageWithoutAdvice } from '../../core/failure.ts';
import { carryOverRejection, grantFromTokenResponse } from '../../core/grants/grant.ts';
import { afterFailure, type RefreshFailure } from '../../core/grants/refresh-state.ts';
import { throttledUntil } from '../../core/grants/schedule.ts';
import type { TokenOutcome } from '../../core/grants/token-outcome.ts';
import { type ConfiguredPortal, portalIdentityOf } from '../../core/portals/identity.ts';
import type { Portal } from '../../core/portals/portal.ts';
import type { Secret } from '../../core/secret.ts';
import type { AttemptStart } from '../../core/store.ts';
import { sha256 } from '../../system/secret-hash.ts';
import type { ConnectionPortal } from '../ports.ts';
import type { GrantContext, HeldGrant } from './held-grant.ts';

/**
 * When the end of another hub's lease is looked at again if the store can't be read, or says that it goes on, in ms.
 */
const LEASE_CHECK_DELAY = 5000;

/** Where an attempt is sent. */
interface RefreshingPortal extends Pick<ConnectionPortal, 'name' | 'identity'> {
  readonly portal: Pick<Portal, 'prepareTokenRequest' | 'refresh' | 'revoke'>;
}

/** The attempts to refresh a grant, one after another: each is written ahead, sent once, and its outcome committed. */
export class RefreshAttempts {
  readonly #context: GrantContext;
  readonly #held: HeldGrant;

  constructor(context: GrantContext, held: HeldGrant) {
    this.#context = context;
    this.#held = held;
  }

  /**
   * Makes one attempt, when the portal's turn has come: written ahead, sent once, and its outcome committed before it
   * becomes visible.
   * @param isWanted asked after the wait for the turn
   */
  async make(connectionPortal: RefreshingPortal, isWanted: () => boolean): Promise<void> {
    const { refreshToken, generation } = this.#held.grant;
    if (refreshToken === null) return this.commitEnd();
    if (this.#held.leasedUntil !== null) return this.endElsewhere();
    const problem = await connectionPortal.portal.prepareTokenRequest(this.#context.stopping);
    if (!isWanted() || this.#held.grant.generation !== generation) return;
    if (problem !== null) return this.#held.fail(problem);
    try {
      const writeAhead = await this.#writeAhead(refreshToken);
      if (writeAhead === 'postponed') return;
      const committed =
        writeAhead === 'superseded' ? writeAhead : await this.#send(refreshToken, writeAhead, connectionPortal);
      if (committed !== 'superseded') return;
    } finally {
      this.#held.isSending = false;
    }
    await this.#held.reload();
  }

  /** Sends an attempt once, and commits its outcome. */
  async #send(
    refreshToken: Secret,
    { sendBefore }: Extract<AttemptStart, { kind: 'begun' }>,
    { name, portal, identity }: RefreshingPortal,
  ): Promise<'committed' | 'superseded' | 'discarded'> {
    const { environment, logger } = this.#context;
    const { connection, generation } = this.#held.grant;
    // The age counts from before the portal can have issued the token: the response may be under way for long.
    const sent = environment.clock.now();
    this.#held.throttledUntil = throttledUntil(this.#held.throttledUntil, sent.uptime);
    if (this.#held.grant.accessTokenRejectedAt !== null) this.#held.lastForcedRefresh = sent.uptime;
    // Compare the generation, not the grant: its token may have been rejected meanwhile.
    const isCurrent = () => !this.#held.hasEnded && this.#held.grant.generation === generation;
    const maySend = () => isCurrent() && (sendBefore === null || environment.clock.now().uptime < sendBefore);
    const outcome = await portal.refresh(refreshToken, maySend).catch((error: unknown): TokenOutcome => {
      logger.unexpectedError(connection, error);
      return { kind: 'ambiguous', detail: messageOf(error) };
    });
    let committed: 'committed' | 'superseded' | 'discarded' = 'discarded';
    if (!isCurrent()) environment.log.info('refresh_superseded', { connection: name });
    else if (outcome.kind === 'granted') committed = await this.#commitTokens(outcome, identity, sent);
    else committed = await this.#commitFailure(outcome, sent);
    if (committed === 'committed' || outcome.kind !== 'granted') return committed;
    // Another hub may have deleted the grant.
    if (committed === 'superseded') await this.#held.reload();
    const tokens = { ...outcome.tokens, refreshToken: outcome.tokens.refreshToken ?? refreshToken };
    if (this.#held.hasEnded) await this.#context.revoke(connection, tokens, { name, portal });
    return 'discarded';
  }

  /** Commits that an attempt is about to be sent. No rotation is started if its result could not be saved. */
  async #writeAhead(
    refreshToken: Secret,
  ): Promise<Extract<AttemptStart, { kind: 'begun' }> | 'postponed' | 'superseded'> {
    const { environment, store, schedule } = this.#context;
    const { generation } = this.#held.grant;
    try {
      const wasUnsaved = this.#held.unsaved !== null;
      if (!(await this.#held.save())) return 'superseded';
      if (wasUnsaved && (schedule.dueAt(this.#held) ?? 0) > environment.clock.now().uptime) return 'postponed';
      // Another hub may have refreshed the grant while it was saved, or while this attempt was written ahead.
      const isSuperseded = () => this.#held.hasEnded || this.#held.grant.generation !== generation;
      if (isSuperseded()) return 'superseded';
      this.#held.isSending = true;
      const attempt = { token: sha256(refreshToken.reveal()), at: environment.clock.now() };
      const started = await store.beginAttempt(this.#held.grant, attempt);
      if (isSuperseded() || started.kind === 'superseded') return 'superseded';
      if (started.kind === 'begun') return started;
      this.#held.setAttemptElsewhere({ leasedUntil: started.until });
      return 'postponed';
    } catch (error) {
      this.#held.fail({ kind: 'store_unwritable', detail: messageWithoutAdvice(error) });
      return 'postponed';
    }
  }

  /** Without a refresh token: stores the grant if that has failed so far, and its end if the access token has ended. */
  async commitEnd(): Promise<void> {
    const { schedule } = this.#context;
    try {
      if (!(await this.#held.save())) return await this.#held.reload();
    } catch (error) {
      return this.#held.fail({ kind: 'store_unwritable', detail: messageWithoutAdvice(error) });
    }
    if (this.#held.hasEnded || this.#held.health.kind === 'refused') return;
    // Any failure so far only concerned the store or the configuration.
    this.#held.health = { kind: 'good' };
    if (!schedule.isDue(this.#held)) return;
    const committed = await this.#commitFailure({ kind: 'refused', detail: '', portalTime: null }, null);
    if (committed === 'superseded') await this.#held.reload();
  }

  async #commitTokens(
    { tokens: received }: Extract<TokenOutcome, { kind: 'granted' }>,
    identity: ConfiguredPortal,
    sent: Instant,
  ): Promise<'committed' | 'superseded' | 'discarded'> {
    const { store, logger, referenceClock } = this.#context;
    const previous = { ...this.#held.grant, issuer: portalIdentityOf(identity) };
    const { impossibleLifetime, ...tokens } = received;
    // After a lost answer the portal may send the same tokens again, and they may have ended since.
    const isUnknown = impossibleLifetime !== undefined && previous.doubt === null;
    const refreshToken = tokens.refreshToken ?? previous.refreshToken;
    const time = referenceClock.timeAt(identity.name, sent);
    const successor = grantFromTokenResponse(previous, refreshToken, tokens, sent, time);
    const written = await this.#write(() => store.replaceGrant(successor)).catch((error: unknown) => ({ error }));
    if (written === false) return 'superseded';
    if (this.#held.hasEnded || this.#held.grant.generation !== previous.generation)
      return written === true ? 'committed' : 'discarded';
    // The access token may have been rejected while a successor with the very same token was being written.
    const accessTokenRejectedAt = carryOverRejection(successor.accessToken, this.#held.grant);
    this.#held.hasUnwrittenRejection = accessTokenRejectedAt !== successor.accessTokenRejectedAt;
    this.#held.grant = { ...successor, accessTokenRejectedAt };
    if (written === true && isUnknown) {
      const detail = `The portal says that its access tokens live ${impossibleLifetime} s, which can't be true: set portals.${identity.name}.token_lifetime`;
      this.#held.fail({ kind: 'lifetime_unknown', detail }, sent);
    } else if (written === true) {
      this.#held.health = { kind: 'good' };
      logger.refreshed(successor, tokens.lifetime, sent);
    } else {
      this.#held.unsaved = () => store.replaceGrant(this.#held.grant);
      this.#held.fail({ kind: 'store_unwritable', detail: messageWithoutAdvice(written.error) }, sent);
    }
    return 'committed';
  }

  /**
   * Writes an outcome. If the database has lost the attempt, what this hub knows of that is written again first.
   * @returns false if another hub has written the grant
   */
  async #write(outcome: () => Promise<boolean>): Promise<boolean> {
    if (await outcome()) return true;
    return (await this.#held.reconcileIfLost()) && outcome();
  }

  async #commitFailure(outcome: RefreshFailure, sent: Instant | null): Promise<'committed' | 'superseded'> {
    const { store, schedule, logger } = this.#context;
    const { connection, generation } = this.#held.grant;
    const state = afterFailure(this.#held.grant, this.#held.health, outcome, schedule.retryContext(connection));
    // `invalid_grant` counts only if the refused token is still the one stored.
    const end = () => store.endAttempt({ connection, generation, ...state });
    const written = await this.#write(end).catch((error: unknown) => {
      logger.storeUnwritable(this.#held, error);
      return null;
    });
    if (written === false) return 'superseded';
    if (this.#held.hasEnded || this.#held.grant.generation !== generation) return 'committed';
    // Without a site the next attempt overwrites it.
    this.#held.hasUnwrittenEnd = written === null && store.site !== null;
    this.#held.applyState(state);
    logger.attemptFailed(this.#held, outcome.kind === 'not_sent' ? null : sent);
    return 'committed';
  }

  /** The lease of another hub's attempt has ended without an outcome: it counts as sent, and its answer as lost. */
  async endElsewhere(): Promise<void> {
    const { environment, logger } = this.#context;
    try {
      const found = await this.#held.findNewest();
      if (this.#held.hasEnded) return;
      if (found === null) return this.#held.end();
      this.#held.applyNewest(found);
      const { attempt } = found.stored;
      if (attempt?.leasedUntil === undefined || attempt.leasedUntil > environment.clock.now().uptime) return;
      const { token, at } = attempt;
      this.#held.applyStored({ ...found.stored, attempt: { token, at } });
      logger.refreshInterrupted(this.#held);
      if (await this.endInterrupted(at)) return;
      await this.#held.reload();
      // By the database's clock it may go on.
      const now = environment.clock.now().uptime;
      if (this.#held.leasedUntil !== null && this.#held.leasedUntil <= now)
        this.#held.setAttemptElsewhere({ leasedUntil: now + LEASE_CHECK_DELAY });
    } catch (error) {
      this.#held.setAttemptElsewhere({ leasedUntil: environment.clock.now().uptime + LEASE_CHECK_DELAY });
      this.#held.fail({ kind: 'store_unwritable', detail: messageWithoutAdvice(error) });
    }
  }

  /**
   * Saves that the answer to an attempt was lost. The event is emitted once, even if the hub restarts several times
   * before this can be written, or several hubs try.
   * @returns false if another hub was faster
   */
  async endInterrupted(at: Instant): Promise<boolean> {
    const isWritten = await this.#context.store.endAttempt(this.#held.grant);
    if (isWritten) this.#context.logger.attemptFailed(this.#held, null, at);
    return isWritten;
  }
}
