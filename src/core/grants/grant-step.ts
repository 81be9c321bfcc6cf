import type { Instant } from '../clock.ts';
import { carryOverRejection, type Grant, grantFromTokenResponse } from './grant.ts';
import {
  after,
  type DiscardedTokens,
  type GrantEffect,
  type GrantEvent,
  type GrantState,
  type GrantStep,
  IDLE,
  idle,
  isAhead,
  isUnsaved,
  load,
  markStored,
  type Nudge,
  revocationOf,
  type StepContext,
  to,
  unchanged,
  versionOf,
  type WriteResult,
  withFailure,
} from './grant-state.ts';
import {
  afterClockSet,
  afterNetworkChange,
  afterPortalResponse,
  afterStoreWritable,
  type RefreshHealth,
} from './refresh-health.ts';
import { afterFailure, type RefreshFailure } from './refresh-state.ts';
import { throttledUntil } from './schedule.ts';
import { afterLoad, afterNews, checkedLater } from './stored-grant.ts';

/** The health after each nudge. */
const NUDGES: Readonly<Record<Nudge, (health: RefreshHealth, now: Instant, fraction: number) => RefreshHealth>> = {
  clock_set: afterClockSet,
  network_changed: afterNetworkChange,
  portal_responded: afterPortalResponse,
  store_writable: afterStoreWritable,
};

/** The state after an event, and what follows from it. */
export function step(state: GrantState, event: GrantEvent, context: StepContext): GrantStep {
  const { activity } = state;
  switch (event.kind) {
    case 'refresh':
      if (activity.kind === 'writing') return to(state, { ...activity, isRefreshing: true });
      if (activity.kind !== 'idle') return unchanged(state);
      if (isAhead(state) && !event.isWritten) return write(state, true);
      return beginRefresh(state, event.isDue, context);
    case 'write':
      if (activity.kind !== 'idle' || !isAhead(state)) return unchanged(state);
      return write(state, false);
    case 'written':
      return afterWrite(state, event, context);
    case 'prepared':
      if (activity.kind !== 'preparing') return unchanged(state);
      if (!event.isWanted || activity.generation !== state.grant.generation) return to(state, IDLE);
      if (event.problem !== null) return withFailure(idle(state), event.problem, null, context);
      return to(state, { kind: 'beginning', generation: state.grant.generation }, [{ kind: 'begin' }]);
    case 'begun':
      return afterBegin(state, event.result, context);
    case 'answered':
      return afterAnswer(state, event, context);
    case 'committed':
      return afterCommit(state, event.result, context);
    case 'found':
      return event.why === 'news' ? afterNews(state, event.found, context) : afterLoad(state, event.found, context);
    case 'not_found':
      if (activity.kind !== 'loading') return unchanged(state);
      return withFailure(
        activity.why === 'superseded' ? idle(state) : checkedLater(state, context),
        { kind: 'store_unwritable', detail: event.detail },
        null,
        context,
      );
    case 'superseded':
      return activity.kind === 'idle' || activity.kind === 'elsewhere' ? load(state) : unchanged(state);
    case 'lease_ended':
      if (activity.kind !== 'elsewhere') return unchanged(state);
      return to(state, { kind: 'loading', why: 'lease_ended', discarded: null }, [{ kind: 'load' }]);
    case 'rejected': {
      if (activity.kind === 'none' || state.grant.accessTokenRejectedAt !== null) return unchanged(state);
      const grant = { ...state.grant, accessTokenRejectedAt: context.now };
      return { state: { ...state, grant }, effects: [{ kind: 'rejected' }, { kind: 'mark' }] };
    }
    case 'marked':
      if (state.stored.generation !== event.generation) return unchanged(state);
      return unchanged({ ...state, stored: { ...state.stored, isRejected: true } });
    case 'nudged':
      return unchanged({ ...state, health: NUDGES[event.by](state.health, context.now, context.fraction) });
    case 'unusable':
      if (activity.kind !== 'idle') return unchanged(state);
      if (!isAhead(state)) return commitFailure(state, event.outcome, null, context);
      return after(withFailure(state, event.outcome, null, context), (failed) => write(failed, false));
    case 'ended':
      return end(state);
  }
}

function write(state: GrantState, isRefreshing: boolean): GrantStep {
  return to(state, { kind: 'writing', isRefreshing, hasNews: false }, [{ kind: 'write' }]);
}

/** Without a refresh token nothing is sent: if the access token has ended, the grant counts as refused from now on. */
function beginRefresh(state: GrantState, isDue: boolean, context: StepContext): GrantStep {
  const { grant, health } = state;
  const { generation } = grant;
  if (grant.refreshToken !== null) return to(state, { kind: 'preparing', generation }, [{ kind: 'prepare' }]);
  if (health.kind === 'refused') return to(state, IDLE);
  // Any failure so far only concerned the store or the configuration.
  const good = { ...idle(state), health: { kind: 'good' } as const };
  if (!isDue) return unchanged(good);
  return commitFailure(good, { kind: 'refused', detail: '', portalTime: null }, null, context);
}

function afterWrite(
  state: GrantState,
  { version, result }: Extract<GrantEvent, { kind: 'written' }>,
  context: StepContext,
): GrantStep {
  const { activity } = state;
  if (activity.kind !== 'writing') return unchanged(state);
  if (result === false) return load(state);
  if (result === true) {
    const written = markStored(idle(state), version);
    if (activity.hasNews) return { ...load(written.state), effects: [...written.effects, { kind: 'load' }] };
    // An appliance that waited for a refresh gets the tokens that are stored now.
    const refresh = { kind: 'refresh', onlyIfDue: isUnsaved(state) } as const;
    return activity.isRefreshing ? { ...written, effects: [...written.effects, refresh] } : written;
  }
  return activity.isRefreshing
    ? withFailure(idle(state), { kind: 'store_unwritable', detail: result.detail }, null, context)
    : { state: idle(state), effects: [{ kind: 'store_unwritable', error: result.error }] };
}

function afterBegin(
  state: GrantState,
  result: Extract<GrantEvent, { kind: 'begun' }>['result'],
  context: StepContext,
): GrantStep {
  const { activity, grant } = state;
  if (activity.kind !== 'beginning') return unchanged(state);
  if ('error' in result)
    return withFailure(idle(state), { kind: 'store_unwritable', detail: result.detail }, null, context);
  if (result.kind === 'superseded' || activity.generation !== grant.generation) return load(state);
  if (result.kind === 'under_way') return to(state, { kind: 'elsewhere', until: result.until });
  const { now: sent } = context;
  const sending = {
    ...state,
    throttledUntil: throttledUntil(state.throttledUntil, sent.uptime),
    lastForcedRefresh: grant.accessTokenRejectedAt === null ? state.lastForcedRefresh : sent.uptime,
  };
  const { generation } = activity;
  return to(sending, { kind: 'sent', generation, sent }, [{ kind: 'send', sendBefore: result.sendBefore }]);
}

function afterAnswer(
  state: GrantState,
  { outcome, issuer, portal, time }: Extract<GrantEvent, { kind: 'answered' }>,
  context: StepContext,
): GrantStep {
  const { activity, grant } = state;
  if (activity.kind === 'none')
    return {
      state,
      effects: [{ kind: 'superseded' }, ...(outcome.kind === 'granted' ? revoked(grant, outcome.tokens) : [])],
    };
  if (activity.kind !== 'sent') return unchanged(state);
  if (activity.generation !== grant.generation) return to(state, IDLE, [{ kind: 'superseded' }]);
  const { generation, sent } = activity;
  if (outcome.kind !== 'granted') return commitFailure(state, outcome, sent, context);
  const { impossibleLifetime, ...tokens } = outcome.tokens;
  const refreshToken = tokens.refreshToken ?? grant.refreshToken;
  const successor = grantFromTokenResponse({ ...grant, issuer }, refreshToken, tokens, sent, time);
  // After a lost answer the portal may send the same tokens again, and they may have ended since.
  const lifetimeProblem =
    impossibleLifetime === undefined || grant.doubt !== null
      ? null
      : `The portal says that its access tokens live ${impossibleLifetime} s, which can't be true: set portals.${portal}.token_lifetime`;
  const known = { kind: 'tokens', successor, sent, lifetimeProblem } as const;
  return to(state, { kind: 'ending', generation, outcome: known }, [
    { kind: 'commit', grant: successor, hasTokens: true },
  ]);
}

function commitFailure(
  state: GrantState,
  outcome: RefreshFailure,
  sent: Instant | null,
  context: StepContext,
): GrantStep {
  const { grant, health } = state;
  const next = afterFailure(grant, health, outcome, context);
  const { health: _, ...fields } = next;
  const known = { kind: 'failure', next, sent: outcome.kind === 'not_sent' ? null : sent } as const;
  return to(state, { kind: 'ending', generation: grant.generation, outcome: known }, [
    { kind: 'commit', grant: { ...grant, ...fields }, hasTokens: false },
  ]);
}

/** The grant was replaced or deleted. */
function end(state: GrantState): GrantStep {
  const { activity } = state;
  switch (activity.kind) {
    case 'none':
      return unchanged(state);
    case 'ending':
      return to(state, { kind: 'none', late: activity.outcome.kind === 'tokens' ? activity.outcome.successor : null });
    case 'loading':
      return to(
        state,
        { kind: 'none', late: null },
        activity.discarded === null ? [] : [revocationOf(activity.discarded)],
      );
    default:
      return to(state, { kind: 'none', late: null });
  }
}

function afterCommit(state: GrantState, result: WriteResult, context: StepContext): GrantStep {
  const { activity, grant } = state;
  if (activity.kind === 'none' && activity.late !== null)
    return to(state, { kind: 'none', late: null }, result === true ? [] : [revocationOf(activity.late)]);
  if (activity.kind !== 'ending') return unchanged(state);
  const { outcome, generation } = activity;
  if (result === false) return load(state, outcome.kind === 'tokens' ? outcome.successor : null);
  if (generation !== grant.generation) return to(state, IDLE);
  const ended = idle(state);
  const unwritten = result === true ? [] : [{ kind: 'store_unwritable', error: result.error } as const];
  switch (outcome.kind) {
    case 'tokens': {
      // The access token may have been rejected while a successor with the very same token was being written.
      const accessTokenRejectedAt = carryOverRejection(outcome.successor.accessToken, grant);
      const held = { ...ended, grant: { ...outcome.successor, accessTokenRejectedAt }, ends: 0 };
      if (result !== true)
        return withFailure(held, { kind: 'store_unwritable', detail: result.detail }, outcome.sent, context);
      const stored = { ...held, stored: versionOf({ grant: outcome.successor, ends: 0 }) };
      if (outcome.lifetimeProblem !== null)
        return withFailure(
          stored,
          { kind: 'lifetime_unknown', detail: outcome.lifetimeProblem },
          outcome.sent,
          context,
        );
      return {
        state: { ...stored, health: { kind: 'good' } },
        effects: [{ kind: 'refreshed', sent: outcome.sent }],
      };
    }
    case 'failure': {
      const ends = state.ends + 1;
      const { health, ...fields } = outcome.next;
      const next = { ...ended, ends, health, grant: { ...grant, ...fields } };
      return {
        state: result === true ? { ...next, stored: { ...next.stored, ends } } : next,
        effects: [
          ...unwritten,
          { kind: 'failed', before: { grant, health: state.health } },
          { kind: 'attempt_failed', sent: outcome.sent },
        ],
      };
    }
    case 'interrupted':
      if (result === true) return { state: ended, effects: [{ kind: 'attempt_failed', sent: null, at: outcome.at }] };
      return outcome.isLease
        ? withFailure(checkedLater(state, context), { kind: 'store_unwritable', detail: result.detail }, null, context)
        : { state: { ...ended, ends: state.ends + 1 }, effects: unwritten };
  }
}

function revoked({ refreshToken }: Grant, tokens: DiscardedTokens): readonly GrantEffect[] {
  return [revocationOf({ ...tokens, refreshToken: tokens.refreshToken ?? refreshToken })];
}
