// What a hub makes of the grant that its site's database has, which another hub, or a switch of servers, has changed.
import { describe, expect, test } from 'vitest';
import type { HeldGrant } from '../../src/broker/grants/held-grant.ts';
import type { Grant } from '../../src/core/grants/grant.ts';
import { Secret } from '../../src/core/secret.ts';
import type { RefreshAttempt } from '../../src/core/store.ts';
import { HOUR, instantAt, MINUTE, SECOND, sampleGrant } from '../core/samples.ts';
import { attemptFor, found, type GrantDatabase, holdGrant } from './grant-database.ts';

const login = (pairing: string, at: number) => ({
  login: { pairing, at: instantAt(at), portalTime: null, refreshTokenLifetime: null },
});

/** A version of the grant that another hub has written. */
const other = (changes: Partial<Grant> = {}) =>
  sampleGrant({ generation: 3, accessToken: new Secret('other'), refreshToken: new Secret('other-r'), ...changes });

/** The version of the grant that the hub holds. */
const own = sampleGrant({ generation: 3 });

const rejectedAt = instantAt(8 * MINUTE);

describe('news of a grant', () => {
  test('a hub takes over newer tokens of another hub, and those of its own generation', () => {
    for (const generation of [3, 4]) {
      const { held } = holdGrant(own);
      const news = other({ generation });
      expect(held.applyNews(found(news))).toBeNull();
      expect(held.grant).toEqual(news);
    }
  });

  test('a hub keeps newer tokens than those of the database, and writes them again only if it may have lost them', () => {
    for (const mayHaveLostWrites of [false, true]) {
      const { held } = holdGrant(own);
      const news = found(other({ generation: 2 }), null, mayHaveLostWrites);
      expect(held.applyNews(news)).toBe(mayHaveLostWrites ? own : null);
      expect(held.grant).toBe(own);
    }
  });

  test.each<[string, Partial<HeldGrant>]>([
    ['are being refreshed', { isSending: true }],
    ['have an attempt whose outcome is not written', { hasUnwrittenEnd: true }],
    ['are not written', { unsaved: async () => true }],
  ])('a hub keeps tokens of the same generation that %s, but a rejection by another hub counts', (_, state) => {
    const { held } = holdGrant(own);
    Object.assign(held, state);
    expect(held.applyNews(found(other({ accessTokenRejectedAt: rejectedAt })))).toBeNull();
    expect(held.grant).toEqual({ ...own, accessTokenRejectedAt: rejectedAt });
    expect(held.applyNews(found(other({ accessTokenRejectedAt: null })))).toBeNull();
    expect(held.grant.accessTokenRejectedAt).toEqual(rejectedAt);
    const newer = other({ generation: 4 });
    expect(held.applyNews(found(newer))).toBeNull();
    expect(held.grant).toEqual(newer);
  });

  test('a login that is not written counts as rejected if another hub has found its committed token rejected', () => {
    const { held } = holdGrant(own, async () => true);
    expect(held.applyNews(found({ ...own, accessTokenRejectedAt: rejectedAt }))).toBeNull();
    expect(held.grant).toEqual({ ...own, accessTokenRejectedAt: rejectedAt });
  });

  test('a new login that is not written yet stays, whatever the database has, until its write decides', () => {
    const { held } = holdGrant(own, async () => true);
    expect(held.applyNews(found(other({ generation: 9, ...login('later', HOUR) }), null, true))).toBeNull();
    expect(held.grant).toEqual(own);
    expect(held.unsaved).not.toBeNull();
  });

  test('a hub takes over a later login of any generation, and returns what the database may have lost before it', () => {
    for (const mayHaveLostWrites of [false, true]) {
      const former = { ...own, ...login('former', 0) };
      const { held } = holdGrant(former);
      const later = other({ generation: 2, ...login('later', SECOND) });
      expect(held.applyNews(found(later, null, mayHaveLostWrites))).toBe(mayHaveLostWrites ? former : null);
      expect(held.grant).toEqual(later);
    }
  });
});

describe('state of a grant in the database', () => {
  const problem = { code: 'portal_unreachable', message: '', since: instantAt(0) } as const;
  const failing = { kind: 'failing', problem, failures: 4, retryAt: HOUR } as const;
  const doubt = { lostAt: instantAt(MINUTE), sends: 1 };

  test('a hub goes on with its own backoff if only the attempt of another hub has changed', () => {
    for (const state of [{}, { doubt }, { refused: instantAt(MINUTE) }, { misconfigured: instantAt(MINUTE) }]) {
      const { held } = holdGrant({ ...own, ...state });
      held.health = failing;
      held.applyStored({ grant: { ...own, ...state, obtained: instantAt(1) }, attempt: attemptFor(own, HOUR) });
      expect(held).toMatchObject({ health: failing, leasedUntil: HOUR, grant: { obtained: instantAt(1) } });
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
    const { held } = holdGrant({ ...own, ...before });
    held.health = failing;
    held.applyStored({ grant: { ...own, ...changes }, attempt: null });
    expect(held.health).not.toBe(failing);
    expect(held.grant).toEqual({ ...own, ...changes });
  });

  test('a hub begins anew with a grant that nothing but the database tells of, and without a site always', () => {
    const { held, database } = holdGrant(own);
    held.health = failing;
    held.applyStored({ grant: own, attempt: null }, false);
    expect(held.health).toEqual({ kind: 'good' });
    held.health = failing;
    database.site = null;
    held.applyStored({ grant: own, attempt: null });
    expect(held.health).toEqual({ kind: 'good' });
  });

  test('an attempt of this hub without an end counts as a lost answer, and is logged', () => {
    const { held, logged } = holdGrant(own);
    held.applyStored({ grant: own, attempt: attemptFor(own) });
    expect(held.grant.doubt).toEqual({ lostAt: instantAt(9 * MINUTE), sends: 1 });
    expect(held).toMatchObject({ leasedUntil: null, health: { kind: 'failing', problem: { code: 'answer_lost' } } });
    expect(logged).toEqual(['answer_lost']);
  });

  test.each([undefined, HOUR])('an attempt for another refresh token, or without one, does not count (%s)', (until) => {
    for (const grant of [own, { ...own, refreshToken: null }]) {
      const { held } = holdGrant(grant);
      held.applyStored({ grant, attempt: attemptFor(other(), until) });
      expect(held).toMatchObject({ leasedUntil: null, health: { kind: 'good' }, grant: { doubt: null } });
    }
  });

  test('an access token that was rejected stays rejected if the database does not say so, and a new one is not', () => {
    const { held } = holdGrant({ ...own, accessTokenRejectedAt: rejectedAt });
    held.applyStored({ grant: { ...own, generation: 4 }, attempt: null });
    expect(held.grant.accessTokenRejectedAt).toEqual(rejectedAt);
    const later = instantAt(9 * MINUTE);
    held.applyStored({ grant: { ...own, accessTokenRejectedAt: later }, attempt: null });
    expect(held.grant.accessTokenRejectedAt).toEqual(later);
    held.applyStored({ grant: other({ generation: 5 }), attempt: null });
    expect(held.grant.accessTokenRejectedAt).toBeNull();
  });
});

test('who waits for the attempt of another hub learns of its end, whether it has an outcome or the grant ends', async () => {
  for (const end of [(held: HeldGrant) => held.setAttemptElsewhere(null), (held: HeldGrant) => held.end()]) {
    const { held } = holdGrant(own);
    expect(held.endedElsewhere).toBeNull();
    held.setAttemptElsewhere({ leasedUntil: HOUR });
    const ended = held.endedElsewhere;
    expect(held.leasedUntil).toBe(HOUR);
    held.setAttemptElsewhere({ leasedUntil: 2 * HOUR });
    expect(held.leasedUntil).toBe(2 * HOUR);
    expect(held.endedElsewhere).toBe(ended);
    const first = await Promise.race([ended?.then(() => 'ended'), new Promise((resolve) => setImmediate(resolve))]);
    expect(first).toBeUndefined();
    end(held);
    await ended;
    expect([held.leasedUntil, held.endedElsewhere]).toEqual([null, null]);
  }
});

describe('writing what is only in memory', () => {
  test('a new login that is not written counts as a failure of the store until it is', async () => {
    const results = [false, true];
    const { held, logged } = holdGrant(own, async () => results.shift() ?? expect.fail());
    expect(held.health).toMatchObject({
      problem: {
        code: 'store_unwritable',
        message: "The hub can't write its store: the new grant could not be saved and is only in memory",
      },
    });
    expect(await held.save()).toBe(false);
    expect(held).toMatchObject({ unsaved: expect.any(Function), health: { kind: 'failing' } });
    expect(logged).toEqual(['refresh_failed']);
    expect(await held.save()).toBe(true);
    expect(held).toMatchObject({ unsaved: null, health: { kind: 'good' } });
    expect(await held.save()).toBe(true);
    expect(logged).toEqual(['refresh_failed', 'store_writable']);
  });

  test('the outcome of an attempt is written before the grant, and only once', async () => {
    const { held, database } = holdGrant(own, async () => database.replaceGrant(own));
    held.hasUnwrittenEnd = true;
    database.isAway = true;
    await expect(held.save()).rejects.toMatchObject({ code: 'store_unwritable' });
    expect(held.hasUnwrittenEnd).toBe(true);
    database.isAway = false;
    expect(await held.save()).toBe(true);
    expect(database.written).toEqual(['endAttempt', 'replaceGrant']);
    expect(held.hasUnwrittenEnd).toBe(false);
  });

  test('if another hub has written the grant, neither the outcome of an attempt nor the grant is written', async () => {
    const { held, database } = holdGrant(own, async () => expect.fail());
    held.hasUnwrittenEnd = true;
    database.hasGeneration = false;
    expect(await held.save()).toBe(false);
    expect(held.hasUnwrittenEnd).toBe(false);
  });

  test('a rejection that could not be written is written with the grant, until a write reaches the generation', async () => {
    const { held, database } = holdGrant({ ...own, accessTokenRejectedAt: rejectedAt });
    database.isAway = true;
    await expect(held.writeRejection()).rejects.toMatchObject({ code: 'store_unwritable' });
    expect(held.hasUnwrittenRejection).toBe(true);
    database.isAway = false;
    database.hasGeneration = false;
    await held.writeRejection();
    expect(held.hasUnwrittenRejection).toBe(true);
    database.hasGeneration = true;
    expect(await held.save()).toBe(true);
    expect(held.hasUnwrittenRejection).toBe(false);
    expect(database.writes).toHaveLength(2);
    expect(await held.save()).toBe(true);
    expect(database.writes).toHaveLength(2);
  });
});

describe('grant that another hub has written', () => {
  test('a hub takes over the newer version of the database, and writes nothing', async () => {
    const { held, database, logged } = holdGrant(own);
    database.found = found(other({ generation: 4 }), null, true);
    await held.reload();
    expect(held.grant).toEqual(other({ generation: 4 }));
    expect(database.writes).toEqual([]);
    expect(logged).toEqual([]);
  });

  test('a hub without a site takes over what its store has, and logs that something else has changed it', async () => {
    for (const generation of [2, 3, 4]) {
      const { held, database, logged } = holdGrant(own);
      database.site = null;
      database.found = found(other({ generation }));
      await held.reload();
      expect(held.grant).toEqual(other({ generation }));
      expect(logged).toEqual(['grant_changed_elsewhere']);
    }
  });

  test('a grant that the database has no more ends, after a hub of a site has tried to write it again', async () => {
    const { held, database } = holdGrant(own);
    database.found = null;
    await held.reload();
    expect(held.hasEnded).toBe(true);
    expect(database.writes).toEqual([{ write: 'reconcile', grant: own }]);
  });

  test('tokens that only this hub has are revoked if another one has deleted the grant meanwhile', async () => {
    for (const save of [null, async () => false]) {
      const { held, database, revoked } = holdGrant(own, save);
      database.found = null;
      await held.reload();
      expect([held.hasEnded, revoked]).toEqual([true, save === null ? [] : ['the-refresh-token']]);
    }
  });

  test('a hub keeps its grant if the database cannot be read, or only a damaged row of it', async () => {
    const cases: [string, (database: GrantDatabase) => void][] = [
      ['the database is away', (database) => Object.assign(database, { isAway: true })],
      [
        'the grant in the store was damaged or changed by something else',
        (database) => {
          database.found = null;
          database.damagedGrants.add(own.connection);
        },
      ],
    ];
    for (const [why, prepare] of cases) {
      const { held, database, emitted } = holdGrant(own);
      prepare(database);
      await held.reload();
      const message = `The hub can't write its store: ${why}`;
      expect(held).toMatchObject({ hasEnded: false, health: { problem: { code: 'store_unwritable', message } } });
      expect(emitted).toMatchObject([{ kind: 'refresh_failed', took: null }]);
      expect(database.writes).toEqual([]);
    }
  });

  test('a hub writes its grant again if the database has lost it, and then takes over what that has made of it', async () => {
    for (const generation of [2, 3]) {
      const { held, database } = holdGrant(own);
      database.found = found(other({ generation }), null, true);
      const newest = other({ generation: 4 });
      database.reconciled = found(newest);
      await held.reload();
      expect(database.writes).toEqual([{ write: 'reconcile', grant: own }]);
      expect(held.grant).toEqual(newest);
    }
  });

  test('a hub keeps its grant if the database may have lost it still, and learns only of attempts', async () => {
    const attempts: [RefreshAttempt, number | null][] = [
      [attemptFor(own, HOUR), HOUR],
      [attemptFor(other(), HOUR), null],
    ];
    for (const [attempt, until] of attempts) {
      const { held, database } = holdGrant(own);
      held.setAttemptElsewhere({ leasedUntil: MINUTE });
      database.found = found(other(), attempt, true);
      await held.reload();
      expect(held.grant).toBe(own);
      expect(held.leasedUntil).toBe(until);
    }
  });

  test('what the hub knows is written again only if the database may have lost it', async () => {
    const { held, database } = holdGrant(own);
    expect(await held.reconcileIfLost()).toBe(false);
    expect(database.writes).toEqual([]);
    for (const lost of [null, found(own, null, true)]) {
      database.found = lost;
      expect(await held.reconcileIfLost()).toBe(true);
      expect(database.writes.splice(0)).toEqual([{ write: 'reconcile', grant: own }]);
    }
    held.end();
    expect(await held.reconcileIfLost()).toBe(false);
    const alone = holdGrant(own);
    alone.database.site = null;
    alone.database.found = null;
    expect(await alone.held.reconcileIfLost()).toBe(false);
    expect([...database.writes, ...alone.database.writes]).toEqual([]);
  });
});
