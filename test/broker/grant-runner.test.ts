// What a runner of a grant does: what is written before and after an attempt, and what changes elsewhere meanwhile.
import { describe, expect, test } from 'vitest';
import { ConcurrencyLimiter } from '../../src/broker/grants/concurrency-limiter.ts';
import type { SaveGrant } from '../../src/broker/grants/grant-runner.ts';
import type { Grant } from '../../src/core/grants/grant.ts';
import type { NotSent, TokenOutcome } from '../../src/core/portals/token-outcome.ts';
import { Secret } from '../../src/core/secret.ts';
import { systemTimers } from '../../src/system/clock.ts';
import { HOUR, instantAt, MINUTE, SECOND, sampleGrant } from '../core/samples.ts';
import { attemptFor, found, type GrantHolder, holdGrant, START } from './grant-database.ts';

const identity = { ...sampleGrant().issuer, origin: 'https://moved.example', otherOrigins: [] };
const rejectedAt = instantAt(START - MINUTE);

const granted = (changes: Partial<Extract<TokenOutcome, { kind: 'granted' }>['tokens']> = {}): TokenOutcome => ({
  kind: 'granted',
  tokens: {
    accessToken: new Secret('new'),
    refreshToken: new Secret('new-r'),
    scope: null,
    lifetime: HOUR,
    ...changes,
  },
  portalTime: instantAt(START).wall,
});
const refused: TokenOutcome = { kind: 'refused', detail: 'HTTP 400 invalid_grant', portalTime: null };
const notSent: NotSent = { kind: 'not_sent', detail: 'no route' };
const ambiguous: TokenOutcome = { kind: 'ambiguous', detail: 'HTTP 500' };

/** A version of the grant that another hub has written. */
const other = sampleGrant({ generation: 2, accessToken: new Secret('other'), refreshToken: new Secret('other-r') });

const replace = ({ runner }: GrantHolder) => void runner.applyNews(found(other));
const end = ({ runner }: GrantHolder) => runner.end();
const reject = ({ runner }: GrantHolder) => void runner.markTokenRejected(runner.grant.accessToken.reveal());
/** What may happen to a grant while an attempt waits. */
const CHANGES = [replace, end];

/**
 * A hub that may refresh a grant.
 * @param respond what the portal responds; `maySend` asks the hub once more, right before the request
 */
function refreshing(
  grant: Partial<Grant> = {},
  respond: (maySend: () => boolean) => TokenOutcome | Promise<TokenOutcome> = () => granted(),
  saveLogin: SaveGrant | null = null,
) {
  const holder = holdGrant(sampleGrant(grant), saveLogin);
  const sent: string[] = [];
  const portal = {
    prepareTokenRequest: async () => hub.prepare(),
    refresh: async (token: Secret, maySend: () => boolean = () => true) => {
      if (maySend()) sent.push(token.reveal());
      return respond(maySend);
    },
    revoke: async () => ({ kind: 'revoked' }) as const,
  };
  const limiter = new ConcurrencyLimiter({ background: 1, foreground: 1, total: 1, timeout: HOUR }, systemTimers);
  const refresh = () => holder.runner.refresh({ name: 'wallbox', portal, identity }, limiter, true);
  /** What happens while the attempt waits for the portal's turn. */
  const prepare = (): NotSent | null => null;
  const hub = Object.assign(holder, { sent, refresh, prepare });
  return hub;
}

const problemOf = ({ runner: { health } }: GrantHolder) => (health.kind === 'good' ? null : health.problem.code);

describe('attempt that brings new tokens', () => {
  test('it is written ahead, sent once, and committed, and the age of the tokens counts from when it was sent', async () => {
    const hub = refreshing({}, () => {
      hub.uptime += 20 * SECOND;
      return granted();
    });
    await hub.refresh();
    expect(hub.database.writes).toMatchObject([
      { write: 'beginAttempt', attempt: { ...attemptFor(sampleGrant()), at: instantAt(START) } },
      { write: 'replace', grant: { generation: 2, obtained: instantAt(START) } },
    ]);
    expect(hub.sent).toEqual(['the-refresh-token']);
    expect(hub.runner).toMatchObject({ isAhead: false, health: { kind: 'good' }, lastForcedRefresh: null });
    expect(hub.runner.grant).toMatchObject({
      generation: 2,
      accessToken: new Secret('new'),
      refreshToken: new Secret('new-r'),
      obtained: instantAt(START),
      issuer: { ...sampleGrant().issuer, origin: 'https://moved.example' },
    });
    expect(hub.runner.throttledUntil).toBe(START - 59 * 30 * SECOND);
    expect(hub.emitted).toMatchObject([{ kind: 'refreshed', took: 20 * SECOND }]);
  });

  test('a response without a refresh token keeps the former one', async () => {
    const hub = refreshing({}, () => granted({ refreshToken: null }));
    await hub.refresh();
    expect(hub.runner.grant.refreshToken).toEqual(new Secret('the-refresh-token'));
  });

  test('an attempt for a rejected access token is the last forced one, and the next token is not rejected', async () => {
    const hub = refreshing({ accessTokenRejectedAt: rejectedAt });
    await hub.refresh();
    expect(hub.runner).toMatchObject({ lastForcedRefresh: START, isAhead: false });
    expect(hub.runner.grant.accessTokenRejectedAt).toBeNull();
  });

  test('tokens that could not be written are issued, and written before the next refresh', async () => {
    const hub = refreshing();
    hub.database.isAway = ['replace'];
    await hub.refresh();
    expect(hub.runner).toMatchObject({ isUnsaved: true, grant: { generation: 2, accessToken: new Secret('new') } });
    expect([problemOf(hub), hub.sent]).toEqual(['store_unwritable', ['the-refresh-token']]);
    hub.uptime += HOUR;
    await hub.refresh();
    expect(hub.sent).toHaveLength(1);
    hub.database.isAway = false;
    expect(await hub.runner.save()).toBe(true);
    expect(hub.database.writes.at(-1)).toMatchObject({ write: 'replace', grant: { generation: 2 } });
    expect(hub.runner).toMatchObject({ isAhead: false, health: { kind: 'good' } });
  });
});

describe('attempt that brings no tokens', () => {
  test('its outcome is committed before it counts', async () => {
    const hub = refreshing({}, () => refused);
    hub.database.meanwhile = () => expect(hub.runner.grant.refused).toBeNull();
    await hub.refresh();
    expect(hub.database.writes.at(-1)).toMatchObject({ write: 'endAttempt', grant: { refused: instantAt(START) } });
    expect(hub.runner).toMatchObject({ isAhead: false, grant: { refused: instantAt(START) } });
    expect(hub.emitted).toMatchObject([{ kind: 'refresh_failed', problem: 'refused', took: 0 }]);
  });

  test('an outcome that could not be written counts, and is written later', async () => {
    const hub = refreshing({}, () => ambiguous);
    hub.database.isAway = ['endAttempt'];
    await hub.refresh();
    expect([problemOf(hub), hub.runner.isAhead]).toEqual(['answer_lost', true]);
    expect(hub.logged).toContain('store_unwritable');
    hub.database.isAway = false;
    await hub.runner.save();
    expect(hub.database.writes.at(-1)).toMatchObject({ write: 'endAttempt', grant: { doubt: { sends: 1 } } });
    expect([problemOf(hub), hub.runner.isAhead]).toEqual(['answer_lost', false]);
  });

  test('a portal whose client fails in an unknown way may have got the request', async () => {
    const hub = refreshing({}, () => Promise.reject(new Error('unexpected')));
    await hub.refresh();
    expect(hub.runner.grant.doubt).toEqual({ lostAt: instantAt(START), sends: 1 });
    expect(hub.logged).toContain('refresh_crashed');
  });
});

describe('attempt that is not sent', () => {
  test('nothing is written ahead before the portal can be asked, or if the grant has changed by then', async () => {
    const unreachable = refreshing();
    unreachable.prepare = () => notSent;
    await unreachable.refresh();
    expect([unreachable.database.writes, unreachable.sent]).toEqual([[], []]);
    expect(problemOf(unreachable)).toBe('portal_unreachable');
    for (const change of CHANGES) {
      const hub = refreshing();
      hub.prepare = () => {
        change(hub);
        return null;
      };
      await hub.refresh();
      expect([hub.database.writes, hub.sent, hub.runner.health]).toEqual([[], [], { kind: 'good' }]);
    }
  });

  test('nothing is sent while another hub refreshes the grant, and who waits learns of its end', async () => {
    const hub = refreshing();
    hub.database.start = { kind: 'under_way', until: HOUR };
    await hub.refresh();
    expect([hub.sent, hub.runner.leasedUntil, hub.runner.health]).toEqual([[], HOUR, { kind: 'good' }]);
    const ended = hub.runner.endedElsewhere;
    const first = await Promise.race([ended?.then(() => 'ended'), new Promise((resolve) => setImmediate(resolve))]);
    expect(first).toBeUndefined();
    replace(hub);
    await ended;
    expect([hub.runner.leasedUntil, hub.runner.endedElsewhere]).toEqual([null, null]);
  });

  test('nothing is sent if another hub has written the grant, which is taken over', async () => {
    const hub = refreshing();
    hub.database.start = { kind: 'superseded' };
    hub.database.found = found(other);
    await hub.refresh();
    expect([hub.sent, hub.runner.grant]).toEqual([[], other]);
  });

  test('nothing is sent if the grant changed or ended while the attempt was written ahead', async () => {
    for (const change of CHANGES) {
      const hub = refreshing();
      hub.database.meanwhile = () => hub.database.writes.length === 0 && change(hub);
      await hub.refresh();
      expect([hub.sent, hub.database.written]).toEqual([[], ['beginAttempt']]);
    }
  });

  test('a login that was only in memory is written first, and refreshed only if it is still due then', async () => {
    const late = refreshing({}, undefined, async () => true);
    late.uptime = 48 * MINUTE;
    await late.refresh();
    expect(late.sent).toHaveLength(1);
    const early = refreshing({}, undefined, async () => true);
    early.uptime = 48 * MINUTE - 1;
    await early.refresh();
    expect([early.sent, early.database.written]).toEqual([[], []]);
    expect(early.runner).toMatchObject({ isAhead: false, health: { kind: 'good' } });
    // The same grant, if it was saved before: a person forces the refresh.
    await early.refresh();
    expect(early.sent).toHaveLength(1);
  });

  test('right before it is sent, an attempt is given up if its grant has changed or ended, or its time is over', async () => {
    const sends = async (change: (hub: GrantHolder) => void) => {
      const answers: boolean[] = [];
      const hub = refreshing({}, (maySend) => {
        answers.push(maySend());
        change(hub);
        answers.push(maySend());
        return notSent;
      });
      hub.database.start = { kind: 'begun', sendBefore: START + SECOND };
      await hub.refresh();
      return answers;
    };
    const pass = (ms: number) => (hub: GrantHolder) => {
      hub.uptime += ms;
    };
    expect(await sends(() => undefined)).toEqual([true, true]);
    expect(await sends(pass(SECOND - 1))).toEqual([true, true]);
    expect(await sends(pass(SECOND))).toEqual([true, false]);
    expect(await sends(replace)).toEqual([true, false]);
    expect(await sends(end)).toEqual([true, false]);
    // A rejection of its access token is no reason.
    expect(await sends(reject)).toEqual([true, true]);
  });
});

describe('grant that changes while an attempt is under way', () => {
  test.each([granted(), refused])(
    'an outcome for a grant that has changed or ended is discarded: $kind',
    async (outcome) => {
      for (const change of CHANGES) {
        const hub = refreshing({}, () => {
          change(hub);
          return outcome;
        });
        await hub.refresh();
        expect([hub.database.written, hub.runner.health]).toEqual([['beginAttempt'], { kind: 'good' }]);
        expect(hub.logged).toContain('refresh_superseded');
        // Those of a grant that another login has replaced may be of the same account.
        expect(hub.revoked).toEqual(change === end && outcome.kind === 'granted' ? ['new-r'] : []);
      }
    },
  );

  test.each([granted(), refused])(
    'an outcome does not count if another hub has written the grant: $kind',
    async (outcome) => {
      const hub = refreshing({}, () => outcome);
      hub.database.hasGeneration = false;
      hub.database.found = found(other);
      await hub.refresh();
      expect(hub.database.written).toHaveLength(2);
      expect(hub.runner).toMatchObject({ grant: other, isAhead: false, health: { kind: 'good' } });
      expect(hub.emitted).toEqual([]);
    },
  );

  test('new tokens of a grant that another hub has deleted meanwhile are revoked', async () => {
    const hub = refreshing({}, () => granted({ refreshToken: null }));
    hub.database.hasGeneration = false;
    hub.database.found = null;
    await hub.refresh();
    expect([hub.runner.hasEnded, hub.revoked]).toEqual([true, ['the-refresh-token']]);
  });

  test('an outcome is written once more after the database has got back the attempt that it had lost', async () => {
    const hub = refreshing();
    hub.database.hasGeneration = [false, true];
    hub.database.found = found(sampleGrant(), null, true);
    await hub.refresh();
    expect(hub.database.written).toEqual(['beginAttempt', 'replace', 'reconcile', 'replace']);
    expect(hub.runner.grant).toMatchObject({ generation: 2, accessToken: new Secret('new') });
  });
});

describe('grant that another hub has written', () => {
  test('the newer version of the database is taken over, and nothing is written', async () => {
    const hub = holdGrant(sampleGrant());
    hub.database.found = found(other, null, true);
    await hub.runner.reload();
    expect([hub.runner.grant, hub.database.writes, hub.logged]).toEqual([other, [], []]);
  });

  test('a grant that the database has no more ends, after a hub of a site has tried to write it again', async () => {
    const hub = holdGrant(sampleGrant());
    hub.database.found = null;
    await hub.runner.reload();
    expect(hub.runner.hasEnded).toBe(true);
    expect(hub.database.writes).toEqual([{ write: 'reconcile', grant: sampleGrant() }]);
  });

  test('the grant stays if the database cannot be read, or only a damaged row of it', async () => {
    const away = holdGrant(sampleGrant());
    away.database.isAway = true;
    const damaged = holdGrant(sampleGrant());
    damaged.database.found = null;
    damaged.database.damaged.add(sampleGrant().connection);
    for (const hub of [away, damaged]) {
      await hub.runner.reload();
      expect(hub.runner.hasEnded).toBe(false);
      expect([problemOf(hub), hub.database.writes]).toEqual(['store_unwritable', []]);
    }
  });

  test('it is written again if the database has lost it, and then what that has made of it is taken over', async () => {
    const hub = holdGrant(sampleGrant());
    hub.database.found = found(sampleGrant({ accessToken: new Secret('lost') }), null, true);
    hub.database.reconciled = found(other);
    await hub.runner.reload();
    expect(hub.database.writes).toEqual([{ write: 'reconcile', grant: sampleGrant() }]);
    expect(hub.runner.grant).toEqual(other);
  });

  test.each([true, false])(
    'a rejection is written once, with the next write if it could not be: %s',
    async (isAway) => {
      const hub = refreshing();
      hub.database.isAway = isAway;
      expect(await hub.runner.markTokenRejected('the-access-token')).toBe(true);
      expect(await hub.runner.markTokenRejected('the-access-token')).toBe(false);
      expect([hub.runner.isAhead, hub.logged.includes('store_unwritable')]).toEqual([isAway, isAway]);
      hub.database.isAway = false;
      await hub.refresh();
      expect(hub.database.written).toEqual(['rejectAccessToken', 'beginAttempt', 'replace']);
    },
  );
});
