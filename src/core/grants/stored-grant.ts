import type { FoundGrant, RefreshAttempt, StoredGrant } from '../store.ts';
import { carryOverRejection, type Grant, isFromLaterLogin } from './grant.ts';
import {
  after,
  type GrantActivity,
  type GrantState,
  type GrantStep,
  heldGrant,
  IDLE,
  isLoginUnsaved,
  isUnsaved,
  markStored,
  revocationOf,
  type StepContext,
  to,
  unchanged,
  versionOf,
} from './grant-state.ts';
import { stateAtStart } from './refresh-state.ts';

/** No grant has it. */
const NO_GENERATION = 0;
/**
 * When the end of another hub's lease is looked at again if the store can't be read, or says that it goes on, in ms.
 */
const LEASE_CHECK_DELAY = 5000;

/** Another hub of the site has changed the grant, or the database may have lost what this hub knows of it. */
export function afterNews(state: GrantState, found: FoundGrant | null, context: StepContext): GrantStep {
  const { grant, activity } = state;
  if (found === null || activity.kind === 'none') return unchanged(state);
  const { stored, hasLostWrites } = found;
  const { generation } = stored.grant;
  const lost = hasLostWrites ? [{ kind: 'reconcile', grant } as const] : [];
  // The write of a new login decides whether it replaces what the store has.
  if (isLoginUnsaved(state)) {
    // That write may have been committed although it has failed, and another hub uses the token.
    const accessTokenRejectedAt = grant.accessTokenRejectedAt ?? carryOverRejection(grant.accessToken, stored.grant);
    const next = { ...state, grant: { ...grant, accessTokenRejectedAt } };
    return unchanged(activity.kind === 'writing' ? { ...next, activity: { ...activity, hasNews: true } } : next);
  }
  // The database may have lost refreshes of the former login before somebody logged in.
  const isLater = isFromLaterLogin(stored.grant, grant);
  if (!isLater && generation < grant.generation) return { state, effects: lost };
  // This hub knows more of its own attempt, and of what is only in memory, than the database does.
  const knowsMore = hasLostWrites || isAheadOfTokens(state) || isAttempting(activity);
  if (!isLater && generation === grant.generation && knowsMore) {
    const accessTokenRejectedAt = grant.accessTokenRejectedAt ?? stored.grant.accessTokenRejectedAt;
    return { state: { ...state, grant: { ...grant, accessTokenRejectedAt } }, effects: lost };
  }
  const taken = takeStored(state, stored, true, context);
  if (!isLater) return taken;
  return { state: withoutAttempt(taken.state), effects: [...taken.effects, ...lost] };
}

/** The attempt under way is of a former login, which may have had the same generation. */
function withoutAttempt(state: GrantState): GrantState {
  const { activity } = state;
  if (activity.kind !== 'beginning' && activity.kind !== 'sent' && activity.kind !== 'ending') return state;
  return { ...state, activity: { ...activity, generation: NO_GENERATION } };
}

/** Whether the tokens, or the outcome of an attempt, are only in memory. */
function isAheadOfTokens(state: GrantState): boolean {
  return isUnsaved(state) || state.stored.ends < state.ends;
}

function isAttempting({ kind }: GrantActivity): boolean {
  return kind === 'beginning' || kind === 'sent' || kind === 'ending';
}

/** What the store has, after a write has found another version, or the lease of another hub has ended. */
export function afterLoad(state: GrantState, found: FoundGrant | null, context: StepContext): GrantStep {
  const { activity, grant } = state;
  if (activity.kind !== 'loading') return unchanged(state);
  if (found === null) {
    const unsaved = isUnsaved(state) && activity.why === 'superseded' ? [revocationOf(grant)] : [];
    const discarded = activity.discarded === null ? [] : [revocationOf(activity.discarded)];
    return to(state, { kind: 'none', late: null }, [...unsaved, ...discarded]);
  }
  const { stored } = found;
  const taken = isNewerThan(state, found)
    ? keepOwn(state, stored, context)
    : takeStored({ ...state, activity: IDLE }, stored, true, context);
  if (activity.why === 'superseded') return laterIfOver(taken, context);
  const { attempt } = stored;
  const isOver = attempt?.leasedUntil !== undefined && attempt.leasedUntil <= context.now.uptime;
  if (!isOver) return taken;
  const { token, at } = attempt;
  return after(taken, (next) => interrupted(next, { grant: stored.grant, attempt: { token, at } }, true, context));
}

/** By the clock of the database, a lease that has ended by this hub's may go on. */
function laterIfOver(taken: GrantStep, context: StepContext): GrantStep {
  const { state } = taken;
  const isOver = state.activity.kind === 'elsewhere' && state.activity.until <= context.now.uptime;
  return isOver ? { ...taken, state: checkedLater(state, context) } : taken;
}

/** What this hub holds stays; it is written again, but another hub may know even more. */
function keepOwn(state: GrantState, { grant, attempt }: StoredGrant, context: StepContext): GrantStep {
  const until = isAbout(attempt, state.grant, context) ? attempt.leasedUntil : undefined;
  const next: GrantState = { ...state, activity: until === undefined ? IDLE : { kind: 'elsewhere', until } };
  if (grant.generation !== state.grant.generation || !isUnsaved(state)) return unchanged(next);
  return markStored(next, versionOf(state));
}

/**
 * The last run of the hub, or another hub, has sent an attempt without an outcome: its answer is lost, which is committed
 * once, even if the hub restarts several times before this can be written, or several hubs try.
 */
function interrupted(state: GrantState, stored: StoredGrant, isLease: boolean, context: StepContext): GrantStep {
  const taken = takeStored(state, stored, true, context);
  const { attempt } = stored;
  if (attempt === null) return taken;
  const { grant } = taken.state;
  const outcome = { kind: 'interrupted', at: attempt.at, isLease } as const;
  return {
    state: { ...taken.state, activity: { kind: 'ending', generation: grant.generation, outcome } },
    effects: [...taken.effects, { kind: 'interrupted' }, { kind: 'commit', grant, hasTokens: false }],
  };
}

/** A grant as the last run of the hub has left it. */
export function resumedGrant(stored: StoredGrant, context: StepContext): GrantStep {
  const state = heldGrant(stored.grant, true);
  const { attempt } = stored;
  // An import writes an attempt of another token ahead, beside the former grant.
  const isOwn = attempt?.leasedUntil === undefined && isAbout(attempt, stored.grant, context);
  if (!isOwn) return takeStored(state, stored, false, context);
  return interrupted(state, stored, false, context);
}

/** Takes over what the store has. @param isKnown false if nothing is known yet but what is stored */
function takeStored(
  state: GrantState,
  { grant: found, attempt }: StoredGrant,
  isKnown: boolean,
  context: StepContext,
): GrantStep {
  const { activity } = state;
  // The rejection may be only in memory so far.
  const accessTokenRejectedAt = found.accessTokenRejectedAt ?? carryOverRejection(found.accessToken, state.grant);
  const grant = { ...found, accessTokenRejectedAt };
  const isCurrent = isAbout(attempt, grant, context);
  const until = isCurrent ? attempt.leasedUntil : undefined;
  const interruptedAt = isCurrent && until === undefined ? attempt.at : null;
  const stored = versionOf({ grant: found, ends: 0 });
  const isSame = isKnown && interruptedAt === null && hasSameState(grant, state.grant);
  const waits = activity.kind === 'idle' || activity.kind === 'elsewhere' || activity.kind === 'preparing';
  const elsewhere: GrantActivity = until === undefined ? IDLE : { kind: 'elsewhere', until };
  const keepsTurn = activity.kind === 'preparing' && until === undefined;
  const next = { ...state, grant, ends: 0, stored, activity: waits && !keepsTurn ? elsewhere : activity };
  const effects = isUnsaved(state) ? [{ kind: 'stored' } as const] : [];
  // Only the attempt has changed: what this hub knows about its own attempts stays.
  if (isSame) return { state: isUnsaved(state) ? { ...next, health: { kind: 'good' } } : next, effects };
  const { health, ...fields } = stateAtStart(grant, interruptedAt, context);
  return {
    state: { ...next, grant: { ...grant, ...fields }, health },
    effects: [...effects, { kind: 'restored', before: grant }],
  };
}

/** Whether this hub knows more of the grant than the database of the site, which has lost it, or may have. */
export function isNewerThan({ grant }: GrantState, { stored, hasLostWrites }: FoundGrant): boolean {
  return hasLostWrites && stored.grant.generation <= grant.generation;
}

/** The end of another hub's lease is looked at again soon. */
export function checkedLater(state: GrantState, { now }: StepContext): GrantState {
  return { ...state, activity: { kind: 'elsewhere', until: now.uptime + LEASE_CHECK_DELAY } };
}

/** Whether there is an attempt that is about the refresh token of a grant, and not one before it. */
function isAbout(
  attempt: RefreshAttempt | null,
  { refreshToken }: Grant,
  { hashOf }: StepContext,
): attempt is RefreshAttempt {
  return attempt !== null && refreshToken !== null && attempt.token === hashOf(refreshToken);
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
