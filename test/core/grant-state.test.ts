import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Grant } from '../../src/core/grants/grant.ts';
import {
  type GrantActivity,
  type GrantEvent,
  type GrantState,
  heldGrant,
  isAhead,
  type StepContext,
  versionOf,
} from '../../src/core/grants/grant-state.ts';
import { step } from '../../src/core/grants/grant-step.ts';
import { resumedGrant } from '../../src/core/grants/stored-grant.ts';
import type { TokenOutcome } from '../../src/core/portals/token-outcome.ts';
import { Secret } from '../../src/core/secret.ts';
import type { FoundGrant, RefreshAttempt } from '../../src/core/store.ts';
import { HOUR, instantAt, MINUTE, SECOND, sampleGrant } from './samples.ts';

const NOW = 10 * MINUTE;
const context: StepContext = {
  now: instantAt(NOW),
  confirmed: null,
  retryLostAnswer: 'early',
  fraction: 0.5,
  hashOf: (token) => `hash of ${token.reveal()}`,
};

const login = (pairing: string, at: number) => ({
  login: { pairing, at: instantAt(at), portalTime: null, refreshTokenLifetime: null },
});
const own = sampleGrant({ generation: 3, ...login('first', 0) });
/** A version of the grant that another hub has written. */
const other = (changes: Partial<Grant> = {}) =>
  sampleGrant({ ...own, accessToken: new Secret('other'), refreshToken: new Secret('other-r'), ...changes });
const rejectedAt = instantAt(8 * MINUTE);

const attemptFor = ({ refreshToken }: Grant, leasedUntil?: number): RefreshAttempt => ({
  token: `hash of ${refreshToken?.reveal()}`,
  at: instantAt(9 * MINUTE),
  ...(leasedUntil !== undefined && { leasedUntil }),
});

const found = (grant: Grant, attempt: RefreshAttempt | null = null, hasLostWrites = false): FoundGrant => ({
  stored: { grant, attempt },
  hasLostWrites,
});
const news = (...stored: Parameters<typeof found>) =>
  ({ kind: 'found', why: 'news', found: found(...stored) }) as const;
const asked = (stored: FoundGrant | null) => ({ kind: 'found', why: 'asked', found: stored }) as const;

const held = heldGrant(own, true);
const doing = (activity: GrantActivity, state = held): GrantState => ({ ...state, activity });
const next = (state: GrantState, event: GrantEvent) => step(state, event, context).state;
const effectsOf = (state: GrantState, event: GrantEvent) => step(state, event, context).effects;

const failure = { kind: 'ambiguous', detail: 'HTTP 500' } as const;
const tokens: TokenOutcome = {
  kind: 'granted',
  tokens: { accessToken: new Secret('new'), refreshToken: new Secret('new-r'), scope: null, lifetime: HOUR },
  portalTime: null,
};
const answered = (outcome: TokenOutcome) =>
  ({ kind: 'answered', outcome, issuer: own.issuer, portal: 'home', time: null }) as const;
const unwritable = { error: new Error('full'), detail: 'full' };
const sent = doing({ kind: 'sent', generation: 3, sent: instantAt(NOW - SECOND) });
const endingWithTokens = next(sent, answered(tokens));
const endingWithFailure = next(sent, answered(failure));
const laterLogin = news(other({ ...login('another', 5 * MINUTE) }));
const loading = doing({ kind: 'loading', why: 'superseded', discarded: null });

const STATES = {
  idle: held,
  'idle, ahead': { ...held, ends: 1 },
  writing: doing({ kind: 'writing', isRefreshing: true, hasNews: false }, { ...held, ends: 1 }),
  preparing: doing({ kind: 'preparing', generation: 3 }),
  beginning: doing({ kind: 'beginning', generation: 3 }),
  sent,
  'sent, then a later login': next(sent, laterLogin),
  'ending, tokens': endingWithTokens,
  'ending, failure': endingWithFailure,
  'ending, interrupted': resumedGrant({ grant: own, attempt: attemptFor(own) }, context).state,
  loading,
  'loading, with tokens that were not written': next(endingWithTokens, { kind: 'committed', result: false }),
  elsewhere: doing({ kind: 'elsewhere', until: HOUR }),
  none: doing({ kind: 'none', late: null }),
  'none, tokens are written': next(endingWithTokens, { kind: 'ended' }),
};

const EVENTS: Readonly<Record<string, GrantEvent>> = {
  refresh: { kind: 'refresh', isDue: true },
  write: { kind: 'write' },
  written: { kind: 'written', version: versionOf({ ...held, ends: 1 }), result: true },
  'written: a newer version is there': { kind: 'written', version: versionOf(held), result: false },
  'written: not possible': { kind: 'written', version: versionOf(held), result: unwritable },
  prepared: { kind: 'prepared', isWanted: true, problem: null },
  'prepared: not wanted': { kind: 'prepared', isWanted: false, problem: null },
  'prepared: a problem': { kind: 'prepared', isWanted: true, problem: { kind: 'not_sent', detail: 'no route' } },
  begun: { kind: 'begun', result: { kind: 'begun', sendBefore: null } },
  'begun: a newer version is there': { kind: 'begun', result: { kind: 'superseded' } },
  'begun: another hub has begun': { kind: 'begun', result: { kind: 'under_way', until: HOUR } },
  'begun: not possible': { kind: 'begun', result: unwritable },
  'answered: tokens': answered(tokens),
  'answered: no tokens': answered(failure),
  committed: { kind: 'committed', result: true },
  'committed: a newer version is there': { kind: 'committed', result: false },
  'committed: not possible': { kind: 'committed', result: unwritable },
  'news: newer': news(other({ generation: 4 })),
  'news: the same': news(other()),
  'news: of a later login': laterLogin,
  'news: older': news(other({ generation: 2 })),
  'news: older, writes are lost': news(other({ generation: 2 }), null, true),
  'news: another hub refreshes': news(own, attemptFor(own, HOUR)),
  'found: newer': asked(found(other({ generation: 4 }))),
  'found: lost': asked(found(other({ generation: 2 }), null, true)),
  'found: nothing': asked(null),
  'found: not readable': { kind: 'not_found', detail: 'away' },
  'lease ended': { kind: 'lease_ended' },
  superseded: { kind: 'superseded' },
  rejected: { kind: 'rejected' },
  marked: { kind: 'marked', generation: 3 },
  nudged: { kind: 'nudged', by: 'network_changed' },
  unusable: { kind: 'unusable', outcome: { kind: 'misconfigured', detail: 'no portal', portalTime: null } },
  ended: { kind: 'ended' },
};

function isReplaced(before: Grant, now: Grant): boolean {
  return now.generation === before.generation && now.accessToken !== before.accessToken;
}

/** What follows from an event: the activity if it changes, what is held if that changes, and the effects. */
function cell(state: GrantState, event: GrantEvent): string {
  const { state: reached, effects } = step(state, event, context);
  const { activity, grant, health } = reached;
  const changes = [
    ...(activity.kind === state.activity.kind ? [] : [`**${activity.kind}**`]),
    ...(grant.generation === state.grant.generation ? [] : [`generation ${grant.generation}`]),
    ...(isReplaced(state.grant, grant) ? ['other tokens'] : []),
    ...(health === state.health ? [] : [health.kind === 'good' ? 'good' : health.problem.code]),
    ...(isAhead(reached) === isAhead(state) ? [] : [isAhead(reached) ? 'ahead' : 'stored']),
    ...effects.map(({ kind }) => `[${kind}]`),
  ];
  return changes.length === 0 ? '–' : changes.join(' ').replaceAll('_', ' ');
}

test('docs/grant-states.md has what follows from every event in every state', async () => {
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const page = [
    '# What follows from every event of a grant',
    '',
    'Computed from `step` in `src/core/grants/grant-step.ts`; [one-state.md](decisions/one-state.md) says why. A new state is bold, an effect is in brackets, and',
    '"–" means that nothing follows. After a change: `./scripts/test --update core/grant-state`',
    '',
    row(['event', ...Object.keys(STATES)]),
    row(['event', ...Object.keys(STATES)].map(() => '---')),
    ...Object.entries(EVENTS).map(([name, event]) =>
      row([name, ...Object.values(STATES).map((state) => cell(state, event))]),
    ),
    '',
  ].join('\n');
  await expect(page).toMatchFileSnapshot(join(import.meta.dirname, '../../docs/grant-states.md'));
});

describe('news of a grant', () => {
  test('newer tokens of another hub are taken over, and those of the same generation', () => {
    for (const generation of [3, 4])
      expect(next(held, news(other({ generation }))).grant).toEqual(other({ generation }));
  });

  test('newer tokens than those of the database stay, and are written again only if it may have lost them', () => {
    const older = other({ generation: 2 });
    expect(step(held, news(older), context)).toEqual({ state: held, effects: [] });
    expect(step(held, news(older, null, true), context)).toEqual({
      state: held,
      effects: [{ kind: 'reconcile', grant: own }],
    });
  });

  test('a rejection by another hub counts for tokens of which this hub knows more, and no news take it back', () => {
    for (const state of [sent, endingWithFailure, { ...held, ends: 1 }]) {
      const rejected = next(state, news(other({ accessTokenRejectedAt: rejectedAt })));
      expect(rejected.grant).toEqual({ ...own, accessTokenRejectedAt: rejectedAt });
      expect(next(rejected, news(other())).grant.accessTokenRejectedAt).toEqual(rejectedAt);
      expect(next(rejected, news(other({ generation: 4 }))).grant).toEqual(other({ generation: 4 }));
    }
  });

  test('a new login that is not written yet stays, and only a rejection of its committed token counts', () => {
    const unsaved = heldGrant(own, false);
    const later = news(other({ generation: 9, ...login('later', HOUR) }), null, true);
    expect(step(unsaved, later, context)).toEqual({ state: unsaved, effects: [] });
    expect(next(unsaved, news({ ...own, accessTokenRejectedAt: rejectedAt })).grant).toEqual({
      ...own,
      accessTokenRejectedAt: rejectedAt,
    });
  });

  test('a later login of any generation is taken over, and what the database may have lost before it is written again', () => {
    const former = heldGrant({ ...own, ...login('former', 0) }, true);
    const later = other({ generation: 2, ...login('later', SECOND) });
    for (const hasLostWrites of [false, true]) {
      const { state, effects } = step(former, news(later, null, hasLostWrites), context);
      expect(state.grant).toEqual(later);
      const lost = effects.filter(({ kind }) => kind === 'reconcile');
      expect(lost).toEqual(hasLostWrites ? [{ kind: 'reconcile', grant: former.grant }] : []);
    }
  });

  test('a rejected access token stays rejected in a version that does not say so, and a new one is not', () => {
    const rejected = heldGrant({ ...own, accessTokenRejectedAt: rejectedAt }, true);
    expect(next(rejected, news({ ...own, generation: 4 })).grant.accessTokenRejectedAt).toEqual(rejectedAt);
    const later = { ...own, accessTokenRejectedAt: instantAt(9 * MINUTE) };
    expect(next(rejected, news(later)).grant.accessTokenRejectedAt).toEqual(instantAt(9 * MINUTE));
    expect(next(rejected, news(other({ generation: 4 }))).grant.accessTokenRejectedAt).toBeNull();
  });
});

describe('state of a grant in the store', () => {
  const problem = { code: 'portal_unreachable', message: '', since: instantAt(0) } as const;
  const failing = { kind: 'failing', problem, failures: 4, retryAt: HOUR } as const;
  const doubt = { lostAt: instantAt(MINUTE), sends: 1 };

  test('a hub goes on with its own backoff if only the attempt of another hub has changed', () => {
    for (const known of [{}, { doubt }, { refused: instantAt(MINUTE) }, { misconfigured: instantAt(MINUTE) }]) {
      const grant = { ...own, ...known };
      const state = { ...heldGrant(grant, true), health: failing };
      const reached = next(state, news({ ...grant, obtained: instantAt(1) }, attemptFor(own, HOUR)));
      expect(reached).toMatchObject({ health: failing, activity: { kind: 'elsewhere', until: HOUR } });
      expect(reached.grant.obtained).toEqual(instantAt(1));
    }
  });

  test.each<[string, Partial<Grant>, Partial<Grant>]>([
    ['has new tokens', {}, { generation: 4 }],
    ['is in doubt', {}, { doubt }],
    ['was sent once more', { doubt }, { doubt: { ...doubt, sends: 2 } }],
    ['is from a copy', { doubt }, { doubt: { ...doubt, kind: 'copy' } }],
    ['was refused', {}, { refused: instantAt(MINUTE) }],
    ['has wrong credentials', {}, { misconfigured: instantAt(MINUTE) }],
    ['has the right credentials', { misconfigured: instantAt(MINUTE) }, {}],
  ])('a hub begins anew with a grant that, by the outcome of another hub, %s', (_, before, changes) => {
    const state = { ...heldGrant({ ...own, ...before }, true), health: failing };
    const reached = next(state, news({ ...own, ...changes }));
    expect(reached.health).not.toBe(failing);
    expect(reached.grant).toEqual({ ...own, ...changes });
  });

  test('an attempt of the last run without an end counts as a lost answer, which is committed before it is emitted', () => {
    const { state, effects } = resumedGrant({ grant: own, attempt: attemptFor(own) }, context);
    expect(state.grant.doubt).toEqual({ lostAt: instantAt(9 * MINUTE), sends: 1 });
    expect(state.health).toMatchObject({ kind: 'failing', problem: { code: 'answer_lost' } });
    expect(effects.map(({ kind }) => kind)).toEqual(['restored', 'interrupted', 'commit']);
    expect(effectsOf(state, { kind: 'committed', result: true })).toEqual([
      { kind: 'attempt_failed', sent: null, at: instantAt(9 * MINUTE) },
    ]);
  });

  test('after an attempt for another refresh token, of an import, what is known of the grant counts', () => {
    const doubt = { lostAt: instantAt(0), sends: 1 };
    const health = (changes: Partial<Grant>) =>
      resumedGrant({ grant: { ...own, ...changes }, attempt: attemptFor(other()) }, context).state.health;
    expect(health({ doubt })).toMatchObject({ kind: 'failing', problem: { code: 'answer_lost' } });
    expect(health({ refused: instantAt(0) })).toMatchObject({ kind: 'refused' });
  });

  test.each([undefined, HOUR])('an attempt for another refresh token, or without one, does not count (%s)', (until) => {
    for (const grant of [own, { ...own, refreshToken: null }]) {
      const { state } = resumedGrant({ grant, attempt: attemptFor(other(), until) }, context);
      expect(state.activity.kind).not.toBe('elsewhere');
      expect([state.health, state.grant.doubt]).toEqual([{ kind: 'good' }, null]);
    }
  });
});

describe('what is only in memory', () => {
  test('a login is stored once its generation is, and failures until then no longer count', () => {
    const unsaved = heldGrant(own, false);
    expect(isAhead(unsaved)).toBe(true);
    const writing = next(unsaved, { kind: 'write' });
    const failed = next(writing, { kind: 'written', version: versionOf(unsaved), result: unwritable });
    expect([isAhead(failed), failed.activity.kind]).toEqual([true, 'idle']);
    const written = next(next(failed, { kind: 'write' }), {
      kind: 'written',
      version: versionOf(unsaved),
      result: true,
    });
    expect([isAhead(written), written.health]).toEqual([false, { kind: 'good' }]);
  });

  test('a rejection is ahead until the store knows it, and that of an earlier generation is not its own', () => {
    const rejected = next(held, { kind: 'rejected' });
    expect(isAhead(rejected)).toBe(true);
    expect(isAhead(next(rejected, { kind: 'marked', generation: 2 }))).toBe(true);
    expect(isAhead(next(rejected, { kind: 'marked', generation: 3 }))).toBe(false);
  });

  test('a write of what another hub has replaced is followed by a look at what the store has', () => {
    const writing = next({ ...held, ends: 1 }, { kind: 'write' });
    const version = versionOf(writing);
    expect(effectsOf(writing, { kind: 'written', version, result: false })).toEqual([{ kind: 'load' }]);
  });
});

describe('a version that another hub has written', () => {
  test('a grant that the store has no more ends, and tokens that only this hub has are revoked', () => {
    expect(step(loading, asked(null), context)).toEqual({ state: doing({ kind: 'none', late: null }), effects: [] });
    const unsaved = doing(loading.activity, heldGrant(own, false));
    expect(effectsOf(unsaved, asked(null))).toMatchObject([
      { kind: 'revoke', tokens: { refreshToken: own.refreshToken } },
    ]);
    const late = next(endingWithTokens, { kind: 'committed', result: false });
    expect(effectsOf(late, asked(null))).toMatchObject([
      { kind: 'revoke', tokens: { accessToken: new Secret('new') } },
    ]);
    expect(effectsOf(late, asked(found(other({ generation: 4 })))).map(({ kind }) => kind)).not.toContain('revoke');
  });

  test('what the store may still lack stays, and only attempts about it count', () => {
    for (const [attempt, until] of [
      [attemptFor(own, HOUR), HOUR],
      [attemptFor(other(), HOUR), null],
    ] as const) {
      const { grant, activity } = next(loading, asked(found(other(), attempt, true)));
      expect(grant).toBe(own);
      expect(activity).toEqual(until === null ? { kind: 'idle' } : { kind: 'elsewhere', until });
    }
  });

  test('an outcome of an earlier version changes nothing, whether it could be written or not', () => {
    const newer = next(endingWithTokens, news(other({ generation: 5 })));
    for (const result of [true, unwritable]) {
      const reached = next(newer, { kind: 'committed', result });
      expect([reached.activity.kind, reached.grant, isAhead(reached)]).toEqual(['idle', newer.grant, false]);
    }
  });

  test('tokens that came late are revoked, unless another login has taken the place of the grant', () => {
    const ended = next(sent, { kind: 'ended' });
    expect(effectsOf(ended, answered(tokens)).map(({ kind }) => kind)).toEqual(['superseded', 'revoke']);
    const written = next(endingWithTokens, { kind: 'ended' });
    expect(effectsOf(written, { kind: 'committed', result: unwritable }).map(({ kind }) => kind)).toEqual(['revoke']);
    expect(effectsOf(written, { kind: 'committed', result: true })).toEqual([]);
    const late = next(endingWithTokens, { kind: 'committed', result: false });
    expect(effectsOf(late, { kind: 'ended' }).map(({ kind }) => kind)).toEqual(['revoke']);
    const replaced = { ...sent, grant: other({ generation: 4 }) };
    expect(effectsOf(replaced, answered(tokens))).toEqual([{ kind: 'superseded' }]);
  });
});

describe('lease of another hub that has ended', () => {
  const checking = next(doing({ kind: 'elsewhere', until: NOW }), { kind: 'lease_ended' });

  test('its attempt counts as a lost answer as soon as that is written', () => {
    const { state, effects } = step(checking, asked(found(own, attemptFor(own, NOW))), context);
    expect(effects.map(({ kind }) => kind)).toEqual(['restored', 'interrupted', 'commit']);
    expect(state.grant.doubt).toMatchObject({ sends: 1 });
    expect(effectsOf(state, { kind: 'committed', result: true })).toMatchObject([
      { kind: 'attempt_failed', sent: null },
    ]);
  });

  test('nothing counts while the lease goes on, or after its hub has ended the attempt', () => {
    const longer = next(checking, asked(found(own, attemptFor(own, NOW + 1))));
    expect([longer.activity, longer.grant.doubt]).toEqual([{ kind: 'elsewhere', until: NOW + 1 }, null]);
    const ended = next(checking, asked(found(other({ generation: 4 }))));
    expect([ended.activity.kind, ended.grant.generation]).toEqual(['idle', 4]);
  });

  test('it is looked at again 5 s later if the store cannot be read, or says that it goes on', () => {
    const soon = { kind: 'elsewhere', until: NOW + 5 * SECOND };
    expect(next(checking, { kind: 'not_found', detail: 'away' }).activity).toEqual(soon);
    const interrupted = next(checking, asked(found(own, attemptFor(own, NOW))));
    expect(next(interrupted, { kind: 'committed', result: unwritable }).activity).toEqual(soon);
    const again = next(interrupted, { kind: 'committed', result: false });
    expect(next(again, asked(found(own, attemptFor(own, NOW)))).activity).toEqual(soon);
  });
});
