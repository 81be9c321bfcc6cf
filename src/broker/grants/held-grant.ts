import type { Instant } from '../../core/clock.ts';
import { Failure, messageWithoutAdvice } from '../../core/failure.ts';
import { carryOverRejection, type Grant, isFromLaterLogin } from '../../core/grants/grant.ts';
import type { RefreshHealth } from '../../core/grants/refresh-health.ts';
import { afterFailure, type RefreshFailure, type RefreshState, stateAtStart } from '../../core/grants/refresh-state.ts';
import type { Portal, RevokedTokens } from '../../core/portals/portal.ts';
import type { FoundGrant, SiteStore } from '../../core/site.ts';
import type { RefreshAttempt, StoredGrant } from '../../core/store.ts';
import { sha256 } from '../../system/secret-hash.ts';
import type { Environment } from '../environment.ts';
import type { BrokerStore, ConnectionPortal } from '../ports.ts';
import type { ReferenceClock } from '../time/reference-clock.ts';
import type { RefreshLogger } from './refresh-logger.ts';
import type { RefreshSchedule, ScheduledGrant } from './refresh-schedule.ts';

/** Where tokens are revoked, with the name of their connection. */
export interface RevokingPortal extends Pick<ConnectionPortal, 'name'> {
  readonly portal: Pick<Portal, 'revoke'>;
}

/** The part of the store that managed grants use. */
export interface GrantStore
  extends Pick<
    BrokerStore,
    'damagedGrants' | 'grant' | 'beginAttempt' | 'endAttempt' | 'markTokenRejected' | 'replaceGrant'
  > {
  readonly site: Pick<SiteStore, 'findGrants' | 'reconcile'> | null;
}

/** What all managed grants work with. */
export interface GrantContext {
  readonly environment: Pick<Environment, 'clock' | 'random' | 'log'>;
  readonly store: GrantStore;
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

/** Another hub's refresh of the grant. */
interface AttemptElsewhere {
  /** When its lease ends, on the boot clock in ms. */
  until: number;
  readonly ended: Promise<void>;
  readonly resolve: () => void;
}

/** Writes a grant that is only in memory. @returns false if the store has another one by now */
export type SaveGrant = () => Promise<boolean>;

/**
 * A grant and what this hub knows of it: its version in the store, its refresh health, and the attempt of another hub.
 */
export class HeldGrant implements ScheduledGrant {
  readonly #context: GrantContext;
  grant: Grant;
  health: RefreshHealth = { kind: 'good' };
  lastForcedRefresh: number | null = null;
  throttledUntil = Number.NEGATIVE_INFINITY;
  /** Writes a grant that could not be stored yet. Until then it is served from memory and not refreshed. */
  unsaved: SaveGrant | null;
  /** Writes the grant that this one began with, a new login, if that had failed; see {@link unsaved}. */
  readonly #saveLogin: SaveGrant | null;
  /** Whether the store has an attempt of this hub whose outcome is only in memory: it could not be written. */
  hasUnwrittenEnd = false;
  /** Whether the rejection of the access token is only in memory: its own write had failed, or that of the grant. */
  hasUnwrittenRejection = false;
  /** Whether this grant was replaced or deleted, see {@link end}. */
  hasEnded = false;
  /** Whether a refresh is being written ahead or was, and its outcome is not committed yet. */
  isSending = false;
  /** The attempt of another hub that is under way. */
  #attemptElsewhere: AttemptElsewhere | null = null;

  /** @param unsaved writes a new grant if that has failed so far */
  constructor(context: GrantContext, grant: Grant, unsaved: SaveGrant | null) {
    this.#context = context;
    this.grant = grant;
    this.unsaved = unsaved;
    this.#saveLogin = unsaved;
    if (unsaved !== null)
      this.applyFailure({
        kind: 'store_unwritable',
        detail: 'the new grant could not be saved and is only in memory',
      });
  }

  get leasedUntil(): number | null {
    return this.#attemptElsewhere?.until ?? null;
  }

  /** Resolves when another hub's attempt that is under way has ended; null if there is none. */
  get endedElsewhere(): Promise<void> | null {
    return this.#attemptElsewhere?.ended ?? null;
  }

  /** Marks the grant as replaced or deleted. The result of a refresh under way is discarded. */
  end(): void {
    this.hasEnded = true;
    this.setAttemptElsewhere(null);
  }

  /**
   * Another hub of the site has changed the grant.
   * @returns the grant as this hub held it if the database has lost it
   */
  applyNews({ stored, mayHaveLostWrites }: FoundGrant): Grant | null {
    const former = this.grant;
    const { generation } = former;
    // The write of a new login decides whether it replaces what the store has.
    const isUnsavedLogin = this.unsaved !== null && this.unsaved === this.#saveLogin;
    if (this.hasEnded) return null;
    if (isUnsavedLogin) {
      // The write may have been committed although it has failed, and another hub uses the token.
      const accessTokenRejectedAt =
        former.accessTokenRejectedAt ?? carryOverRejection(former.accessToken, stored.grant);
      this.grant = { ...former, accessTokenRejectedAt };
      return null;
    }
    // The database may have lost refreshes of the former login before somebody logged in.
    if (isFromLaterLogin(stored.grant, former)) {
      this.applyStored(stored);
      return mayHaveLostWrites ? former : null;
    }
    if (stored.grant.generation < generation) return mayHaveLostWrites ? this.grant : null;
    // Tokens of this generation, or the outcome of an attempt, are in memory only, or they are being refreshed, or the
    // database has lost what is known of them: it knows less than this hub.
    const isAhead = this.unsaved !== null || this.hasUnwrittenEnd || this.isSending;
    if (stored.grant.generation === generation && (mayHaveLostWrites || isAhead)) {
      const accessTokenRejectedAt = this.grant.accessTokenRejectedAt ?? stored.grant.accessTokenRejectedAt;
      this.grant = { ...this.grant, accessTokenRejectedAt };
      return mayHaveLostWrites ? this.grant : null;
    }
    this.applyStored(stored);
    return null;
  }

  /**
   * Writes what is only in memory: a grant, or the outcome of an attempt.
   * @returns false if another hub has written the grant
   * @throws Failure as `Store`
   */
  async save(): Promise<boolean> {
    if (this.hasUnwrittenEnd) {
      const isWritten = await this.#context.store.endAttempt(this.grant);
      this.hasUnwrittenEnd = false;
      if (!isWritten) return false;
    }
    const save = this.unsaved;
    // Until what the store has was read, the grant stays unsaved, so that it is not refreshed.
    if (!((await save?.()) ?? true)) return false;
    // A refresh may have produced another unsaved grant meanwhile.
    if (this.unsaved === save) this.#markSaved();
    if (this.hasUnwrittenRejection) await this.writeRejection();
    return true;
  }

  /** Writes that the access token was rejected. @throws Failure as `Store` */
  async writeRejection(): Promise<void> {
    const { connection, generation, accessTokenRejectedAt } = this.grant;
    this.hasUnwrittenRejection = accessTokenRejectedAt !== null;
    if (accessTokenRejectedAt === null) return;
    const isWritten = await this.#context.store.markTokenRejected(connection, generation, accessTokenRejectedAt);
    if (isWritten) this.hasUnwrittenRejection = false;
  }

  /** The store has the grant. Failures while it was only in memory concerned the store or the configuration. */
  #markSaved(): void {
    if (this.unsaved === null) return;
    this.unsaved = null;
    this.health = { kind: 'good' };
    this.#context.logger.storeWritten();
  }

  /** Records a failure that needs no write. @param sent when the refresh was sent; null if it was not */
  fail(outcome: RefreshFailure, sent: Instant | null = null): void {
    this.applyFailure(outcome);
    this.#context.logger.attemptFailed(this, sent);
  }

  /** Another hub has written this grant: the stored version is newer than the held one, unless the database lost it. */
  async reload(): Promise<void> {
    const { environment, store, logger } = this.#context;
    const { connection } = this.grant;
    try {
      const found = await this.findNewest();
      if (this.hasEnded) return;
      if (store.site === null) {
        environment.log.warn('grant_changed_elsewhere', { connection: logger.nameOf(connection) });
      }
      if (found !== null) return this.applyNewest(found);
      this.end();
      if (this.unsaved !== null) await this.#context.revoke(connection, this.grant);
    } catch (error) {
      this.fail({ kind: 'store_unwritable', detail: messageWithoutAdvice(error) });
    }
  }

  /**
   * The grant as it is stored; null if there is none.
   * @throws Failure as `Store`, also if the row is damaged: what is in memory is better
   */
  async #find(): Promise<FoundGrant | null> {
    const { store } = this.#context;
    const { connection } = this.grant;
    const found = await findGrant(store, connection);
    if (found !== null || !store.damagedGrants.has(connection)) return found;
    throw new Failure('store_unreadable', 'the grant in the store was damaged or changed by something else');
  }

  /** As {@link #find}, after what this hub knows was written again if the database has lost it. */
  async findNewest(): Promise<FoundGrant | null> {
    const { site } = this.#context.store;
    const found = await this.#find();
    if (site === null || this.hasEnded || !this.#isNewerThan(found)) return found;
    await site.reconcile([this.grant]);
    return this.#find();
  }

  /**
   * Whether this hub knows more of the grant than the database of the site, which has lost it, or may have.
   * @param found null if it has no such grant: it may have lost the whole row, or another hub has deleted the grant
   */
  #isNewerThan(found: FoundGrant | null): boolean {
    if (found === null) return true;
    return found.mayHaveLostWrites && found.stored.grant.generation <= this.grant.generation;
  }

  /** @param found what the store has */
  applyNewest(found: FoundGrant): void {
    const { grant, attempt } = found.stored;
    if (!this.#isNewerThan(found)) {
      this.applyStored(found.stored);
      return;
    }
    // It is written again, but another hub may know even more.
    this.setAttemptElsewhere(isAbout(attempt, this.grant) ? attempt : null);
    if (grant.generation === this.grant.generation) this.#markSaved();
  }

  /** Writes what this hub knows again if the database has lost it. @returns whether it has, or may have */
  async reconcileIfLost(): Promise<boolean> {
    const { site } = this.#context.store;
    if (site === null || this.hasEnded) return false;
    const found = await this.#find();
    if (found !== null && !found.mayHaveLostWrites) return false;
    await site.reconcile([this.grant]);
    return true;
  }

  /**
   * Takes over what the store has.
   * @param isKnown false if nothing is known yet but what is stored
   */
  applyStored({ grant: stored, attempt }: StoredGrant, isKnown = true): void {
    const { schedule, logger } = this.#context;
    // The rejection may be only in memory so far.
    const accessTokenRejectedAt = stored.accessTokenRejectedAt ?? carryOverRejection(stored.accessToken, this.grant);
    const grant = { ...stored, accessTokenRejectedAt };
    const isCurrent = isAbout(attempt, grant);
    this.setAttemptElsewhere(isCurrent ? attempt : null);
    const interruptedAt = isCurrent && attempt.leasedUntil === undefined ? attempt.at : null;
    const isSite = this.#context.store.site !== null;
    const isSameState = isKnown && isSite && interruptedAt === null && hasSameState(grant, this.grant);
    this.#markSaved();
    this.hasUnwrittenEnd = false;
    if (isSameState) {
      // Only the attempt has changed: what this hub knows about its own attempts stays.
      this.grant = grant;
      return;
    }
    const context = schedule.retryContext(grant.connection);
    const { health, ...fields } = stateAtStart(grant, interruptedAt, context);
    this.grant = { ...grant, ...fields };
    this.health = health;
    logger.grantRestored(grant, this);
  }

  /** @param attempt another hub's, or a time in which this hub may not begin one; null if there is none */
  setAttemptElsewhere(attempt: Pick<RefreshAttempt, 'leasedUntil'> | null): void {
    const until = attempt?.leasedUntil;
    const before = this.#attemptElsewhere;
    if (until !== undefined && before !== null) before.until = until;
    else if (until !== undefined) this.#attemptElsewhere = newAttemptElsewhere(until);
    else this.#attemptElsewhere = null;
    if (until === undefined) before?.resolve();
  }

  /** Changes the health after a failure that needs no write. */
  applyFailure(outcome: RefreshFailure): void {
    const context = this.#context.schedule.retryContext(this.grant.connection);
    this.applyState(afterFailure(this.grant, this.health, outcome, context));
  }

  /** What has followed from an outcome. */
  applyState({ health, ...fields }: RefreshState): void {
    const before = { grant: this.grant, health: this.health };
    this.grant = { ...this.grant, ...fields };
    this.health = health;
    this.#context.logger.failed(before, this);
  }
}

function newAttemptElsewhere(until: number): AttemptElsewhere {
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  return { until, ended, resolve };
}

/** Whether there is an attempt that is about the refresh token of a grant, and not one before it. */
function isAbout(attempt: RefreshAttempt | null, { refreshToken }: Grant): attempt is RefreshAttempt {
  return attempt !== null && refreshToken !== null && attempt.token === sha256(refreshToken.reveal());
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

async function findGrant(store: GrantStore, connection: string): Promise<FoundGrant | null> {
  if (store.site !== null) return (await store.site.findGrants(new Set([connection]))).get(connection) ?? null;
  const stored = await store.grant(connection);
  return stored === null ? null : { stored, mayHaveLostWrites: false };
}
