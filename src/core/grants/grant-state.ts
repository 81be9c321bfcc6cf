import type { Instant } from '../clock.ts';
import type { NotSent, TokenOutcome } from '../portals/token-outcome.ts';
import type { Secret } from '../secret.ts';
import type { AttemptStart, FoundGrant } from '../store.ts';
import type { RetryContext } from './backoff.ts';
import type { Grant } from './grant.ts';
import type { RefreshHealth } from './refresh-health.ts';
import { afterFailure, type RefreshFailure, type RefreshState } from './refresh-state.ts';

/** What must be stored of a grant, as numbers that only grow. */
interface GrantVersion {
  readonly generation: number;
  /** How many attempts of this generation have ended without new tokens. */
  readonly ends: number;
  /** Whether the access token was rejected. */
  readonly isRejected: boolean;
}

/** What is under way with a grant; docs/decisions/one-state.md has the table of these and of the events. */
export type GrantActivity =
  | { readonly kind: 'idle' }
  /**
   * What is only in memory is being written; `isRefreshing`: before a refresh; `hasNews`: there was news, which may be
   * of what follows the write.
   */
  | { readonly kind: 'writing'; readonly isRefreshing: boolean; readonly hasNews: boolean }
  /** A refresh waits for its turn at the portal. Nothing is written, and nothing is sent. */
  | { readonly kind: 'preparing'; readonly generation: number }
  /** The attempt is being written ahead. */
  | { readonly kind: 'beginning'; readonly generation: number }
  /** The attempt is on disk, and the refresh token was handed to the portal's client. */
  | { readonly kind: 'sent'; readonly generation: number; readonly sent: Instant }
  /** The outcome of an attempt is being written. */
  | { readonly kind: 'ending'; readonly generation: number; readonly outcome: KnownOutcome }
  /** The store has another version, which is being read, or the lease of another hub has ended without an outcome. */
  | { readonly kind: 'loading'; readonly why: 'superseded' | 'lease_ended'; readonly discarded: DiscardedTokens | null }
  /** Another hub of the site may use the refresh token until then, on the boot clock in ms. */
  | { readonly kind: 'elsewhere'; readonly until: number }
  /** The grant was replaced or deleted; `late`: tokens that were being written then. */
  | { readonly kind: 'none'; readonly late: DiscardedTokens | null };

/** The outcome of an attempt, and what follows from it as soon as it is written. */
type KnownOutcome =
  | {
      readonly kind: 'tokens';
      readonly successor: Grant;
      readonly sent: Instant;
      /** Why it is not known how long the tokens live; null if it is. */
      readonly lifetimeProblem: string | null;
    }
  | { readonly kind: 'failure'; readonly next: RefreshState; readonly sent: Instant | null }
  /** The attempt was found without an outcome; `at` is when it was begun. */
  | { readonly kind: 'interrupted'; readonly at: Instant; readonly isLease: boolean };

/** Tokens that the store does not have. */
export type DiscardedTokens = Pick<Grant, 'accessToken' | 'refreshToken'>;

/** All that a hub knows of the grant of one connection. */
export interface GrantState {
  readonly grant: Grant;
  readonly health: RefreshHealth;
  readonly activity: GrantActivity;
  /** See {@link GrantVersion}. */
  readonly ends: number;
  /** What the store is known to have; generation 0: nothing of this login. */
  readonly stored: GrantVersion;
  /** When the last refresh began because the cloud had refused the access token, on the boot clock in ms. */
  readonly lastForcedRefresh: number | null;
  /** No background refresh begins before, on the boot clock in ms: see `throttledUntil` in schedule.ts. */
  readonly throttledUntil: number;
}

/** The result of a write: whether the store had the version that was to be replaced; or why nothing can be written. */
export type WriteResult = boolean | { readonly error: unknown; readonly detail: string };

/** What brings the next attempt forward, if it waits for this. */
export type Nudge = 'clock_set' | 'network_changed' | 'portal_responded' | 'store_writable';

/** What happens to a grant. */
export type GrantEvent =
  /** A refresh is due or wanted; `isDue`: by the schedule; `isWritten`: what can be written has just been. */
  | { readonly kind: 'refresh'; readonly isDue: boolean; readonly isWritten?: true }
  /** What is only in memory can be written. */
  | { readonly kind: 'write' }
  | { readonly kind: 'written'; readonly version: GrantVersion; readonly result: WriteResult }
  /** The turn at the portal has come, unless there is a problem. */
  | { readonly kind: 'prepared'; readonly isWanted: boolean; readonly problem: NotSent | null }
  | {
      readonly kind: 'begun';
      readonly result: AttemptStart | Exclude<WriteResult, boolean>;
    }
  /** `time`: the true time when it was sent, as in {@link Grant.portalTime}. */
  | {
      readonly kind: 'answered';
      readonly outcome: TokenOutcome;
      readonly issuer: Grant['issuer'];
      readonly portal: string;
      readonly time: number | null;
    }
  | { readonly kind: 'committed'; readonly result: WriteResult }
  /** What the store has; null for nothing. `why`: news of another hub, or what was asked for. */
  | { readonly kind: 'found'; readonly why: 'news' | 'asked'; readonly found: FoundGrant | null }
  /** The store can't be read. */
  | { readonly kind: 'not_found'; readonly detail: string }
  /** The lease of another hub's attempt has ended. */
  | { readonly kind: 'lease_ended' }
  /** Something else has written or deleted the grant. */
  | { readonly kind: 'superseded' }
  /** The cloud refuses the access token. */
  | { readonly kind: 'rejected' }
  /** The store knows that the access token of this generation was rejected. */
  | { readonly kind: 'marked'; readonly generation: number }
  | { readonly kind: 'nudged'; readonly by: Nudge }
  /** It is due, and no request can be made. */
  | { readonly kind: 'unusable'; readonly outcome: RefreshFailure }
  /** The grant was replaced or deleted. */
  | { readonly kind: 'ended' };

/** What the runner has to do. Its result is another event. */
export type GrantEffect =
  /** Writes what is only in memory. */
  | { readonly kind: 'write' }
  | { readonly kind: 'refresh'; readonly onlyIfDue: boolean }
  | { readonly kind: 'prepare' }
  | { readonly kind: 'begin' }
  | { readonly kind: 'send'; readonly sendBefore: number | null }
  | { readonly kind: 'commit'; readonly grant: Grant; readonly hasTokens: boolean }
  /** Reads what the store has. */
  | { readonly kind: 'load' }
  /** Writes that the access token was rejected. */
  | { readonly kind: 'mark' }
  /** Writes a grant again that the database of a site may have lost. */
  | { readonly kind: 'reconcile'; readonly grant: Grant }
  | { readonly kind: 'revoke'; readonly tokens: DiscardedTokens }
  | GrantReport;

/** What is to be logged, and told to those who watch. */
type GrantReport =
  /** A failure, or what was found, changed the state. */
  | { readonly kind: 'failed'; readonly before: Pick<GrantState, 'grant' | 'health'> }
  | { readonly kind: 'restored'; readonly before: Grant }
  | { readonly kind: 'attempt_failed'; readonly sent: Instant | null; readonly at?: Instant }
  | { readonly kind: 'interrupted' }
  | { readonly kind: 'refreshed'; readonly sent: Instant }
  | { readonly kind: 'superseded' }
  | { readonly kind: 'stored' }
  | { readonly kind: 'store_unwritable'; readonly error: unknown }
  | { readonly kind: 'rejected' };

/** What a step depends on beside its state and its event. */
export interface StepContext extends RetryContext {
  /** The hash of a refresh token, as in {@link RefreshAttempt}. */
  readonly hashOf: (refreshToken: Secret) => string;
}

/** A state, and what follows from it. */
export interface GrantStep {
  readonly state: GrantState;
  readonly effects: readonly GrantEffect[];
}

/** Nothing is under way. */
export const IDLE = { kind: 'idle' } as const;

/** A grant that is held from now on. @param isStored whether the store has it */
export function heldGrant(grant: Grant, isStored: boolean): GrantState {
  return {
    grant,
    health: { kind: 'good' },
    activity: IDLE,
    ends: 0,
    stored: isStored ? versionOf({ grant, ends: 0 }) : { generation: 0, ends: 0, isRejected: false },
    lastForcedRefresh: null,
    throttledUntil: Number.NEGATIVE_INFINITY,
  };
}

/** What must be stored of a state. */
export function versionOf({ grant, ends }: Pick<GrantState, 'grant' | 'ends'>): GrantVersion {
  return { generation: grant.generation, ends, isRejected: grant.accessTokenRejectedAt !== null };
}

/** Whether the tokens are only in memory. */
export function isUnsaved({ grant, stored }: GrantState): boolean {
  return stored.generation < grant.generation;
}

/** Whether the login itself is only in memory, so that no generation of it was ever stored. */
export function isLoginUnsaved({ stored }: GrantState): boolean {
  return stored.generation === 0;
}

/** Whether the tokens, or what is known of them, are only in memory. */
export function isAhead(state: GrantState): boolean {
  const { generation, ends, isRejected } = versionOf(state);
  const { stored } = state;
  return (
    isUnsaved(state) || (stored.generation === generation && (stored.ends < ends || (isRejected && !stored.isRejected)))
  );
}

/** Whether something is under way that this hub has begun. */
export function isBusy({ activity: { kind } }: GrantState): boolean {
  return kind !== 'idle' && kind !== 'elsewhere' && kind !== 'none';
}

/** The store has a version. Failures while its tokens were only in memory concerned the store or the configuration. */
export function markStored(state: GrantState, version: GrantVersion): GrantStep {
  const wasUnsaved = state.stored.generation < version.generation;
  const stored = { ...state, stored: version };
  return wasUnsaved && version.generation === state.grant.generation
    ? { state: { ...stored, health: { kind: 'good' } }, effects: [{ kind: 'stored' }] }
    : unchanged(stored);
}

/** A failure that needs no write. @param sent when the refresh was sent; null if it was not */
export function withFailure(
  state: GrantState,
  outcome: RefreshFailure,
  sent: Instant | null,
  context: StepContext,
): GrantStep {
  const { grant, health: before } = state;
  const { health, ...fields } = afterFailure(grant, before, outcome, context);
  return {
    state: { ...state, grant: { ...grant, ...fields }, health },
    effects: [
      { kind: 'failed', before: { grant, health: before } },
      { kind: 'attempt_failed', sent },
    ],
  };
}

/** Something else has written the grant. @param discarded tokens that the store does not have */
export function load(state: GrantState, discarded: DiscardedTokens | null = null): GrantStep {
  return to(state, { kind: 'loading', why: 'superseded', discarded }, [{ kind: 'load' }]);
}

/** A step, and another one that begins where it has led. */
export function after({ state, effects }: GrantStep, then: (state: GrantState) => GrantStep): GrantStep {
  const next = then(state);
  return { state: next.state, effects: [...effects, ...next.effects] };
}

/** The state when nothing is under way any more. */
export function idle(state: GrantState): GrantState {
  return { ...state, activity: IDLE };
}

/** A step to another activity. */
export function to(state: GrantState, activity: GrantActivity, effects: readonly GrantEffect[] = []): GrantStep {
  return { state: { ...state, activity }, effects };
}

/** A step after which nothing is to be done. */
export function unchanged(state: GrantState): GrantStep {
  return { state, effects: [] };
}

/** Revokes tokens that nobody uses; nothing is revoked if the connection has another grant by then. */
export function revocationOf({ accessToken, refreshToken }: DiscardedTokens): GrantEffect {
  return { kind: 'revoke', tokens: { accessToken, refreshToken } };
}
