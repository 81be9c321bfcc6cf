import { Failure, messageOf, messageWithoutAdvice } from '../../core/failure.ts';
import type { Grant } from '../../core/grants/grant.ts';
import {
  type GrantEffect,
  type GrantEvent,
  type GrantState,
  type GrantStep,
  heldGrant,
  idle,
  isAhead,
  isBusy,
  isLoginUnsaved,
  isUnsaved,
  type Nudge,
  type StepContext,
  type WriteResult,
  withFailure,
} from '../../core/grants/grant-state.ts';
import { step } from '../../core/grants/grant-step.ts';
import type { RefreshHealth } from '../../core/grants/refresh-health.ts';
import type { RefreshFailure } from '../../core/grants/refresh-state.ts';
import { isNewerThan, resumedGrant } from '../../core/grants/stored-grant.ts';
import { portalIdentityOf } from '../../core/portals/identity.ts';
import type { Portal, RevokedTokens } from '../../core/portals/portal.ts';
import type { TokenOutcome } from '../../core/portals/token-outcome.ts';
import type { FoundGrant, GrantStore, StoredGrant } from '../../core/store.ts';
import { sha256, timingSafeEqualText } from '../../system/secret-hash.ts';
import type { ConnectedPortal, Environment } from '../ports.ts';
import type { ReferenceClock } from '../time/reference-clock.ts';
import type { ConcurrencyLimiter } from './concurrency-limiter.ts';
import type { RefreshLogger } from './refresh-logger.ts';
import type { RefreshSchedule, ScheduledGrant } from './refresh-schedule.ts';

/** Where tokens are revoked, with the name of their connection. */
export interface RevokingPortal {
  readonly name: string;
  readonly portal: Pick<Portal, 'revoke'>;
}

/** Where a refresh is sent. */
interface RefreshingPortal extends Pick<ConnectedPortal, 'identity'>, RevokingPortal {
  readonly portal: Pick<Portal, 'prepareTokenRequest' | 'refresh' | 'revoke'>;
}

/** What runners use of the store. */
export type RunnerStore = Pick<
  GrantStore,
  'damaged' | 'find' | 'reconcile' | 'beginAttempt' | 'endAttempt' | 'rejectAccessToken' | 'replace'
>;

/** What all runners work with. */
export interface RunnerContext {
  readonly environment: Pick<Environment, 'clock' | 'log'>;
  readonly store: { readonly grants: RunnerStore };
  readonly referenceClock: ReferenceClock;
  readonly schedule: RefreshSchedule;
  readonly logger: RefreshLogger;
  /** Aborted when no further refresh may be sent. */
  readonly stopping: AbortSignal;
  /**
   * Revokes tokens that only this hub has of a grant that was deleted, see {@link Grants.revoke}.
   * @param portal left out for that of the connection, if it still exists
   */
  readonly revoke: (connection: string, tokens: RevokedTokens, portal?: RevokingPortal) => Promise<unknown>;
}

/** Writes a login that is only in memory. @returns false if it has written nothing, because the store has it already, or another one */
export type SaveGrant = () => Promise<boolean>;

/** A refresh that was asked for. */
interface WantedRefresh {
  readonly portal: RefreshingPortal;
  readonly limiter: ConcurrencyLimiter;
  readonly isAwaited: boolean;
}

/**
 * Runs the grant of one connection: takes its events, one after another, and carries out what {@link step} says. Only
 * the runner changes the state; everybody else reads it.
 */
export class GrantRunner implements ScheduledGrant {
  readonly #context: RunnerContext;
  /** Writes the login that the grant is from, if that has failed so far. */
  readonly #saveLogin: SaveGrant | null;
  #state: GrantState;
  #wanted: WantedRefresh | null = null;
  /** Resolves when nothing is under way any more. */
  #busy: PromiseWithResolvers<void> | null = null;
  /** Resolves when another hub's attempt has ended. */
  #elsewhere: PromiseWithResolvers<void> | null = null;
  #marking: Promise<unknown> = Promise.resolve();
  #writeError: unknown;
  /** Requests to the portal that are under way. */
  #requests = 0;

  private constructor(context: RunnerContext, state: GrantState, saveLogin: SaveGrant | null) {
    this.#context = context;
    this.#state = state;
    this.#saveLogin = saveLogin;
  }

  /** Runs a grant from now on. @param saveLogin writes it, if that has failed so far */
  static hold(context: RunnerContext, grant: Grant, saveLogin: SaveGrant | null = null): GrantRunner {
    const runner = new GrantRunner(context, heldGrant(grant, saveLogin === null), saveLogin);
    if (saveLogin !== null) {
      const detail = 'the new grant could not be saved and is only in memory';
      const failed = withFailure(runner.#state, { kind: 'store_unwritable', detail }, null, runner.#stepContext());
      runner.#apply({ ...failed, effects: failed.effects.filter(({ kind }) => kind !== 'attempt_failed') });
    }
    return runner;
  }

  /** Resumes a grant as the last run of the hub left it. */
  static async resume(context: RunnerContext, stored: StoredGrant): Promise<GrantRunner> {
    const runner = new GrantRunner(context, heldGrant(stored.grant, true), null);
    runner.#apply(resumedGrant(stored, runner.#stepContext()));
    await runner.refreshing;
    return runner;
  }

  get grant(): Grant {
    return this.#state.grant;
  }

  get health(): RefreshHealth {
    return this.#state.health;
  }

  /** Resolves when what is under way has ended; null if nothing is. It does not reject. */
  get refreshing(): Promise<void> | null {
    return this.#busy?.promise ?? null;
  }

  get lastForcedRefresh(): number | null {
    return this.#state.lastForcedRefresh;
  }

  get throttledUntil(): number {
    return this.#state.throttledUntil;
  }

  get leasedUntil(): number | null {
    const { activity } = this.#state;
    return activity.kind === 'elsewhere' ? activity.until : null;
  }

  /** Resolves when another hub's attempt that is under way has ended; null if there is none. */
  get endedElsewhere(): Promise<void> | null {
    return this.#elsewhere?.promise ?? null;
  }

  /** Whether the grant is only in memory. */
  get isUnsaved(): boolean {
    return isUnsaved(this.#state);
  }

  /** Whether something of the grant is only in memory. */
  get isAhead(): boolean {
    return isAhead(this.#state);
  }

  /** Whether this grant was replaced or deleted, see {@link end}, or another hub has deleted it. */
  get hasEnded(): boolean {
    return this.#state.activity.kind === 'none';
  }

  /** Why the last write of what is only in memory has failed. */
  get writeError(): unknown {
    return this.#writeError;
  }

  /** Marks the grant as replaced or deleted. The result of a refresh under way is discarded. */
  end(): void {
    this.#dispatch({ kind: 'ended' });
  }

  /**
   * Another hub of the site has changed the grant.
   * @returns the grant as this hub held it if the database has lost it
   */
  applyNews(found: FoundGrant): Grant | null {
    const next = step(this.#state, { kind: 'found', why: 'news', found }, this.#stepContext());
    this.#apply(next);
    return next.effects.find((effect) => effect.kind === 'reconcile')?.grant ?? null;
  }

  /**
   * Writes what is only in memory, unless something is under way.
   * @returns whether the grant is stored, or another hub has replaced it
   */
  async save(): Promise<boolean> {
    this.#dispatch({ kind: 'write' });
    await this.refreshing;
    return !this.isUnsaved || this.hasEnded;
  }

  /** Reads what the store has: another hub has changed or deleted it. */
  async reload(): Promise<void> {
    this.#dispatch({ kind: 'superseded' });
    await this.refreshing;
  }

  /**
   * The cloud refused an access token of the grant. If it is the current one, it is no longer issued.
   * @returns whether it is the current one and a refresh is needed
   */
  async markTokenRejected(token: string): Promise<boolean> {
    const { accessTokenRejectedAt, accessToken } = this.grant;
    if (accessTokenRejectedAt !== null || !timingSafeEqualText(token, accessToken.reveal())) return false;
    this.#dispatch({ kind: 'rejected' });
    await this.#marking;
    return !this.hasEnded && this.grant.accessTokenRejectedAt !== null;
  }

  /** Brings the next attempt forward, if it waits for this. */
  nudge(by: Nudge): void {
    this.#dispatch({ kind: 'nudged', by });
  }

  /** Records why no refresh can be sent. */
  async fail(outcome: RefreshFailure): Promise<void> {
    this.#dispatch({ kind: 'unusable', outcome });
    await this.refreshing;
  }

  /** The lease of another hub's attempt has ended, by this hub's clock. */
  async endElsewhere(): Promise<void> {
    this.#dispatch({ kind: 'lease_ended' });
    await this.refreshing;
  }

  /**
   * Refreshes the grant when the limiter of its portal permits it, or joins the refresh that is under way.
   * @param isAwaited whether a caller waits for it; otherwise the grant is refreshed only if it is still due by then
   * @returns when the refresh has ended, whatever its outcome
   */
  async refresh(portal: RefreshingPortal, limiter: ConcurrencyLimiter, isAwaited: boolean): Promise<void> {
    if (isAwaited) limiter.promote(this.grant.connection);
    if (this.#busy === null || this.#state.activity.kind === 'writing') {
      this.#wanted = { portal, limiter, isAwaited };
      if (this.leasedUntil === null) this.#dispatch({ kind: 'refresh', isDue: this.#isDue });
      else this.#dispatch({ kind: 'lease_ended' });
    }
    await this.refreshing;
  }

  get #isDue(): boolean {
    return this.#context.schedule.isDue(this);
  }

  #stepContext(): StepContext {
    const retry = this.#context.schedule.retryContext(this.grant.connection);
    return { ...retry, hashOf: (token) => sha256(token.reveal()) };
  }

  #dispatch(event: GrantEvent): void {
    this.#apply(step(this.#state, event, this.#stepContext()));
  }

  #apply({ state, effects }: GrantStep): void {
    this.#state = state;
    if (isBusy(state)) this.#busy ??= Promise.withResolvers();
    if (waitsElsewhere(state)) this.#elsewhere ??= Promise.withResolvers();
    for (const effect of effects) this.#run(effect);
    this.#settle();
    if (!waitsElsewhere(this.#state)) {
      this.#elsewhere?.resolve();
      this.#elsewhere = null;
    }
  }

  /** An effect may have led on; and the requests to the portal are awaited even if the grant has ended. */
  #settle(): void {
    if (isBusy(this.#state) || this.#requests > 0) return;
    this.#busy?.resolve();
    this.#busy = null;
  }

  #run(effect: GrantEffect): void {
    const isRequest = effect.kind === 'send' || effect.kind === 'revoke';
    if (isRequest) this.#requests += 1;
    const work = this.#begun(effect);
    if (work === null) this.#report(effect);
    void work
      ?.catch((error: unknown) => this.#crashed(error))
      .finally(() => {
        if (isRequest) this.#requests -= 1;
        this.#settle();
      });
  }

  /** Carries out an effect that takes time; null for any other. */
  #begun(effect: GrantEffect): Promise<unknown> | null {
    switch (effect.kind) {
      case 'prepare':
        return this.#prepare();
      case 'begin':
        return this.#begin();
      case 'send':
        return this.#send(effect.sendBefore);
      case 'commit':
        return this.#commit(effect);
      case 'write':
        return this.#write();
      case 'mark':
        this.#marking = this.#mark();
        return this.#marking;
      case 'load':
        return this.#load();
      case 'revoke':
        return this.#context.revoke(this.grant.connection, effect.tokens, this.#wanted?.portal);
      default:
        return null;
    }
  }

  #report(effect: GrantEffect): void {
    const { logger } = this.#context;
    switch (effect.kind) {
      case 'refresh':
        if (this.#isDue || !effect.onlyIfDue) this.#dispatch({ kind: 'refresh', isDue: this.#isDue, isWritten: true });
        break;
      case 'failed':
        logger.failed(effect.before, this);
        break;
      case 'restored':
        logger.grantRestored(effect.before, this);
        break;
      case 'attempt_failed':
        logger.attemptFailed(this, effect.sent, effect.at);
        break;
      case 'interrupted':
        logger.refreshInterrupted(this);
        break;
      case 'refreshed':
        logger.refreshed(this.grant, effect.sent);
        break;
      case 'superseded':
        logger.superseded(this.grant.connection);
        break;
      case 'stored':
        logger.storeWritten();
        break;
      case 'store_unwritable':
        logger.storeUnwritable(this, effect.error);
        break;
      case 'rejected':
        logger.tokenRejected(this);
        break;
      // A grant that the database may have lost is written again with all others: see `applyNews`.
      default:
    }
  }

  /** An exception that no outcome covers: nothing is known to be under way any more. */
  #crashed(error: unknown): void {
    this.#context.logger.unexpectedError(this.grant.connection, error);
    if (this.hasEnded) return;
    const problem = { kind: 'not_sent', detail: messageOf(error) } as const;
    this.#apply(withFailure(idle(this.#state), problem, null, this.#stepContext()));
  }

  /** Waits for a place among the refreshes of the portal, and for its turn there; keeps the place until the end. */
  async #prepare(): Promise<void> {
    const wanted = this.#wanted;
    if (wanted === null) return this.#dispatch({ kind: 'prepared', isWanted: false, problem: null });
    const { portal, limiter, isAwaited } = wanted;
    const { stopping, schedule } = this.#context;
    const { health } = this.#state;
    const { connection } = this.grant;
    await limiter.run(connection, isAwaited, async (isStillAwaited) => {
      // While it waited, the age of its token may have become known, or the refresh of another hub have failed, so that it
      // must not be repeated now.
      const mayStillRefresh = () => this.#state.health === health || schedule.mayRefreshOnDemand(this);
      const isWanted = () => !stopping.aborted && (this.#isDue || (isStillAwaited && mayStillRefresh()));
      const isCurrent = this.#state.activity.kind === 'preparing';
      const problem = isCurrent && isWanted() ? await portal.portal.prepareTokenRequest(stopping) : null;
      this.#dispatch({ kind: 'prepared', isWanted: isWanted(), problem });
      await this.refreshing;
    });
  }

  async #begin(): Promise<void> {
    const { store, environment } = this.#context;
    const { grant } = this.#state;
    const token = sha256(grant.refreshToken?.reveal() ?? '');
    const begun = store.grants.beginAttempt(grant, { token, at: environment.clock.now() }).catch(unwritable);
    this.#dispatch({ kind: 'begun', result: await begun });
  }

  /** Sends an attempt once. The age of the tokens counts from before the portal can have issued them. */
  async #send(sendBefore: number | null): Promise<void> {
    const { activity, grant } = this.#state;
    const wanted = this.#wanted;
    if (activity.kind !== 'sent' || wanted === null || grant.refreshToken === null) return;
    const { environment, referenceClock, logger } = this.#context;
    const { portal, identity } = wanted.portal;
    // Compare the generation, not the grant: its token may have been rejected meanwhile.
    const isCurrent = () => this.#state.activity.kind === 'sent' && this.grant.generation === grant.generation;
    const maySend = () => isCurrent() && (sendBefore === null || environment.clock.now().uptime < sendBefore);
    const outcome = await portal.refresh(grant.refreshToken, maySend).catch((error: unknown): TokenOutcome => {
      logger.unexpectedError(grant.connection, error);
      return { kind: 'ambiguous', detail: messageOf(error) };
    });
    const issued = { issuer: portalIdentityOf(identity), portal: identity.name };
    this.#dispatch({
      kind: 'answered',
      outcome,
      ...issued,
      time: referenceClock.timeAt(identity.name, activity.sent),
    });
  }

  /** Writes an outcome. If the database has lost the attempt, what this hub knows of that is written again first. */
  async #commit({ grant, hasTokens }: Extract<GrantEffect, { kind: 'commit' }>): Promise<void> {
    const { store } = this.#context;
    const write = () => (hasTokens ? store.grants.replace(grant) : store.grants.endAttempt(grant));
    const commit = async () => (await write()) || ((await this.#reconcileIfLost()) && write());
    this.#dispatch({ kind: 'committed', result: await commit().catch(unwritable) });
  }

  async #reconcileIfLost(): Promise<boolean> {
    if (this.hasEnded) return false;
    const found = await this.#find();
    if (found !== null && !found.hasLostWrites) return false;
    await this.#context.store.grants.reconcile([this.grant]);
    return true;
  }

  async #write(): Promise<void> {
    const { grant, stored, ends } = this.#state;
    const version = { generation: grant.generation, ends };
    try {
      const isWritten = await this.#writeAhead();
      const isRejected = isWritten ? await this.#mark() : stored.isRejected;
      this.#writeError = undefined;
      this.#dispatch({ kind: 'written', version: { ...version, isRejected }, result: isWritten });
    } catch (error) {
      this.#writeError = error;
      this.#dispatch({ kind: 'written', version: stored, result: unwritable(error) });
    }
  }

  async #writeAhead(): Promise<boolean> {
    const { store } = this.#context;
    const { stored, ends, grant } = this.#state;
    if (stored.generation === grant.generation) return stored.ends === ends || store.grants.endAttempt(grant);
    return isLoginUnsaved(this.#state) && this.#saveLogin !== null ? this.#saveLogin() : store.grants.replace(grant);
  }

  /** Writes that the access token was rejected. @returns whether the store knows that */
  async #mark(): Promise<boolean> {
    const { store, logger } = this.#context;
    const { connection, generation, accessTokenRejectedAt } = this.grant;
    if (accessTokenRejectedAt === null) return false;
    if (this.#state.stored.isRejected && this.#state.stored.generation === generation) return true;
    try {
      const isMarked = await store.grants.rejectAccessToken(connection, generation, accessTokenRejectedAt);
      if (isMarked) this.#dispatch({ kind: 'marked', generation });
      return isMarked;
    } catch (error) {
      logger.storeUnwritable(this, error);
      return false;
    }
  }

  async #load(): Promise<void> {
    try {
      this.#dispatch({ kind: 'found', why: 'asked', found: await this.#findNewest() });
    } catch (error) {
      this.#dispatch({ kind: 'not_found', detail: messageWithoutAdvice(error) });
    }
  }

  /** What the store has, after what this hub knows was written again if the database has lost it. */
  async #findNewest(): Promise<FoundGrant | null> {
    const found = await this.#find();
    // It may have lost the whole row, or another hub has deleted the grant.
    const mayBeLost = found === null || isNewerThan(this.#state, found);
    if (this.hasEnded || !mayBeLost) return found;
    await this.#context.store.grants.reconcile([this.grant]);
    return this.#find();
  }

  /** @throws Failure as `Store`, also if the row is damaged: what is in memory is better */
  async #find(): Promise<FoundGrant | null> {
    const { store } = this.#context;
    const { connection } = this.grant;
    const found = (await store.grants.find(new Set([connection]))).get(connection);
    if (found !== undefined || !store.grants.damaged.has(connection)) return found ?? null;
    throw new Failure('store_unreadable', 'the grant in the store was damaged or changed by something else');
  }
}

function waitsElsewhere({ activity }: GrantState): boolean {
  return activity.kind === 'elsewhere' || (activity.kind === 'loading' && activity.why === 'lease_ended');
}

function unwritable(error: unknown): Exclude<WriteResult, boolean> {
  return { error, detail: messageWithoutAdvice(error) };
}
