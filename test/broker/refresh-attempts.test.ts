// One attempt to refresh a grant: what is written before and after it, and what another hub of the site changes meanwhile.
import { describe, expect, test } from 'vitest';
import { RefreshAttempts } from '../../src/broker/grants/refresh-attempts.ts';
import type { Grant } from '../../src/core/grants/grant.ts';
import type { NotSent, TokenOutcome } from '../../src/core/grants/token-outcome.ts';
import { Secret } from '../../src/core/secret.ts';
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
const GRANTED = granted();
const refused: TokenOutcome = { kind: 'refused', detail: 'HTTP 400 invalid_grant', portalTime: null };
const notSent: NotSent = { kind: 'not_sent', detail: 'no route' };
const ambiguous: TokenOutcome = { kind: 'ambiguous', detail: 'HTTP 500' };

/** A version of the grant that another hub has written. */
const other = sampleGrant({ generation: 2, accessToken: new Secret('other'), refreshToken: new Secret('other-r') });

/** The time passes at a hub. */
const pass = (ms: number) => (hub: GrantHolder) => {
  hub.uptime += ms;
};
const replace = (hub: GrantHolder) => {
  hub.held.grant = other;
};
const end = (hub: GrantHolder) => hub.held.end();
const reject = (hub: GrantHolder) => {
  hub.held.grant = { ...hub.held.grant, accessTokenRejectedAt: rejectedAt };
};
/** What may happen to a grant while an attempt waits. */
const CHANGES = [replace, end];

/**
 * A hub that may attempt to refresh a grant.
 * @param respond what the portal responds; `maySend` asks the hub once more, right before the request
 */
function attempting(
  grant: Partial<Grant> = {},
  respond: (maySend: () => boolean) => TokenOutcome | Promise<TokenOutcome> = () => granted(),
  unsaved: Parameters<typeof holdGrant>[1] = null,
) {
  const holder = holdGrant(sampleGrant(grant), unsaved);
  const sent: string[] = [];
  const portal = {
    prepareTokenRequest: async () => hub.prepare(),
    refresh: async (token: Secret, maySend: () => boolean = () => true) => {
      if (maySend()) sent.push(token.reveal());
      return respond(maySend);
    },
    revoke: async () => ({ kind: 'revoked' }) as const,
  };
  const attempts = new RefreshAttempts(holder.context, holder.held);
  const make = (isWanted = () => true) => attempts.make({ name: 'wallbox', portal, identity }, isWanted);
  /** What happens while the attempt waits for the portal's turn. */
  const prepare = (): NotSent | null => null;
  const hub = Object.assign(holder, { sent, attempts, make, prepare });
  return hub;
}

const problemOf = ({ held: { health } }: GrantHolder) => (health.kind === 'good' ? null : health.problem.code);

describe('attempt that brings new tokens', () => {
  test('it is written ahead, sent once, and committed, and the age of the tokens counts from when it was sent', async () => {
    const hub = attempting({}, () => {
      expect(hub.held.isSending).toBe(true);
      hub.uptime += 20 * SECOND;
      return granted();
    });
    await hub.make();
    expect(hub.database.writes).toMatchObject([
      { write: 'beginAttempt', attempt: { ...attemptFor(sampleGrant()), at: instantAt(START) } },
      { write: 'replaceGrant', grant: { generation: 2, obtained: instantAt(START) } },
    ]);
    expect(hub.sent).toEqual(['the-refresh-token']);
    expect(hub.held).toMatchObject({
      ...{ isSending: false, unsaved: null, health: { kind: 'good' }, lastForcedRefresh: null },
      grant: {
        generation: 2,
        accessToken: new Secret('new'),
        refreshToken: new Secret('new-r'),
        obtained: instantAt(START),
      },
    });
    expect(hub.held.grant.issuer).toEqual({ ...sampleGrant().issuer, origin: 'https://moved.example' });
    expect(hub.held.throttledUntil).toBe(START - 59 * 30 * SECOND);
    expect(hub.emitted).toMatchObject([{ kind: 'refreshed', took: 20 * SECOND }]);
  });

  test('a response without a refresh token keeps the former one', async () => {
    const hub = attempting({}, () => granted({ refreshToken: null }));
    await hub.make();
    expect(hub.held.grant.refreshToken).toEqual(new Secret('the-refresh-token'));
  });

  test('an attempt for a rejected access token is the last forced one, and the next token is not rejected', async () => {
    const hub = attempting({ accessTokenRejectedAt: rejectedAt });
    await hub.make();
    expect(hub.held).toMatchObject({ lastForcedRefresh: START, grant: { accessTokenRejectedAt: null } });
    expect(hub.held.hasUnwrittenRejection).toBe(false);
  });
});

describe('attempt that brings no tokens', () => {
  test('its outcome is committed before it counts', async () => {
    const hub = attempting({}, () => refused);
    hub.database.meanwhile = () => expect(hub.held.grant.refused).toBeNull();
    await hub.make();
    expect(hub.database.writes.at(-1)).toMatchObject({ write: 'endAttempt', grant: { refused: instantAt(START) } });
    expect(hub.held).toMatchObject({ grant: { refused: instantAt(START) }, isSending: false, hasUnwrittenEnd: false });
    expect(hub.emitted).toMatchObject([{ kind: 'refresh_failed', problem: 'refused', took: 0 }]);
  });

  test('an outcome that could not be written counts, and a hub of a site writes it later', async () => {
    for (const isSite of [true, false]) {
      const hub = attempting({}, () => ambiguous);
      if (!isSite) hub.database.site = null;
      hub.database.isAway = ['endAttempt'];
      await hub.make();
      expect(problemOf(hub)).toBe('answer_lost');
      expect(hub.held.hasUnwrittenEnd).toBe(isSite);
      expect(hub.logged).toContain('store_unwritable');
    }
  });

  test('a portal whose client fails in an unknown way may have got the request', async () => {
    const hub = attempting({}, () => Promise.reject(new Error('unexpected')));
    await hub.make();
    expect(hub.held.grant.doubt).toEqual({ lostAt: instantAt(START), sends: 1 });
    expect(hub.logged).toContain('refresh_crashed');
  });
});

describe('attempt that is not sent', () => {
  test('nothing is written ahead before the portal can be asked, or if it is no longer wanted then', async () => {
    const unreachable = attempting();
    unreachable.prepare = () => notSent;
    await unreachable.make();
    expect([unreachable.database.writes, unreachable.sent, problemOf(unreachable)]).toEqual([
      [],
      [],
      'portal_unreachable',
    ]);
    for (const change of CHANGES) {
      const hub = attempting();
      hub.prepare = () => {
        change(hub);
        return null;
      };
      await hub.make(() => !hub.held.hasEnded);
      expect([hub.database.writes, hub.sent, hub.held.health]).toEqual([[], [], { kind: 'good' }]);
    }
  });

  test('nothing is sent while another hub refreshes the grant, and its lease is known from then on', async () => {
    const hub = attempting();
    hub.database.start = { kind: 'under_way', until: HOUR };
    await hub.make();
    expect(hub.sent).toEqual([]);
    expect(hub.held).toMatchObject({ leasedUntil: HOUR, isSending: false, health: { kind: 'good' } });
  });

  test('nothing is sent if another hub has written the grant, which is taken over', async () => {
    const hub = attempting();
    hub.database.start = { kind: 'superseded' };
    hub.database.found = found(other);
    await hub.make();
    expect([hub.sent, hub.held.grant, hub.held.isSending]).toEqual([[], other, false]);
  });

  test('nothing is sent if the grant changed or ended while the attempt was written ahead', async () => {
    for (const change of CHANGES) {
      const hub = attempting();
      hub.database.found = found(other);
      hub.database.meanwhile = () => change(hub);
      await hub.make();
      expect(hub.sent).toEqual([]);
      expect(hub.database.written).toEqual(['beginAttempt']);
    }
  });

  test('a grant that was only in memory is written first, and refreshed only if it is still due then', async () => {
    const late = attempting({}, undefined, async () => true);
    late.uptime = 48 * MINUTE;
    await late.make();
    expect(late.sent).toHaveLength(1);
    const early = attempting({}, undefined, async () => true);
    early.uptime = 48 * MINUTE - 1;
    await early.make();
    expect([early.sent, early.database.written]).toEqual([[], []]);
    expect(early.held).toMatchObject({ unsaved: null, health: { kind: 'good' } });
    // The same grant, if it was saved before: a person forces the refresh.
    await early.make();
    expect(early.sent).toHaveLength(1);
  });

  test('a grant that was only in memory, and that another hub has replaced, is taken over', async () => {
    for (const isWritten of [false, true]) {
      const hub = attempting({}, undefined, async () => {
        hub.held.grant = { ...hub.held.grant, generation: 7 };
        return isWritten;
      });
      hub.uptime = 48 * MINUTE;
      hub.database.found = found(other);
      await hub.make();
      expect([hub.sent, hub.database.written]).toEqual([[], []]);
      expect(hub.held.grant).toEqual(other);
    }
  });

  test('right before it is sent, an attempt is given up if its grant has changed or ended, or its time is over', async () => {
    const sends = async (change: (hub: GrantHolder) => void) => {
      const answers: boolean[] = [];
      const hub = attempting({}, (maySend) => {
        answers.push(maySend());
        change(hub);
        answers.push(maySend());
        return notSent;
      });
      hub.database.start = { kind: 'begun', sendBefore: START + SECOND };
      await hub.make();
      return answers;
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
  test.each([GRANTED, refused])(
    'an outcome for a grant that has changed or ended is discarded: $kind',
    async (outcome) => {
      for (const change of CHANGES) {
        const hub = attempting({}, () => {
          change(hub);
          return outcome;
        });
        await hub.make();
        expect(hub.database.written).toEqual(['beginAttempt']);
        expect(hub.logged).toContain('refresh_superseded');
        // Those of a grant that another login has replaced may be of the same account.
        expect(hub.revoked).toEqual(change === end && outcome === GRANTED ? ['new-r'] : []);
        expect(hub.held).toMatchObject({ isSending: false, health: { kind: 'good' } });
      }
    },
  );

  test.each([granted(), refused])('what changed while the outcome was written stays: $kind', async (outcome) => {
    for (const change of CHANGES) {
      const hub = attempting({}, () => outcome);
      hub.database.meanwhile = () => hub.database.writes.length === 1 && change(hub);
      await hub.make();
      expect(hub.database.written).toHaveLength(2);
      expect([sampleGrant(), other]).toContainEqual(hub.held.grant);
      expect(hub.held.health).toEqual({ kind: 'good' });
      expect(hub.emitted).toEqual([]);
    }
  });

  test.each([granted(), refused])(
    'an outcome does not count if another hub has written the grant: $kind',
    async (outcome) => {
      const hub = attempting({}, () => outcome);
      hub.database.hasGeneration = false;
      hub.database.found = found(other);
      await hub.make();
      expect(hub.database.written).toHaveLength(2);
      expect(hub.held).toMatchObject({ grant: other, isSending: false, health: { kind: 'good' } });
      expect(hub.emitted).toEqual([]);
    },
  );

  test('new tokens of a grant that another hub has deleted meanwhile are revoked', async () => {
    const hub = attempting({}, () => granted({ refreshToken: null }));
    hub.database.hasGeneration = false;
    hub.database.found = null;
    await hub.make();
    expect([hub.held.hasEnded, hub.revoked]).toEqual([true, ['the-refresh-token']]);
  });

  test('an outcome is written once more after the database has got back the attempt that it had lost', async () => {
    const hub = attempting();
    hub.database.hasGeneration = [false, true];
    hub.database.found = found(sampleGrant(), null, true);
    await hub.make();
    expect(hub.database.written).toEqual(['beginAttempt', 'replaceGrant', 'reconcile', 'replaceGrant']);
    expect(hub.held.grant).toMatchObject({ generation: 2, accessToken: new Secret('new') });
  });
});

test('the end of a grant without a refresh token does not count if it was replaced, before or while that was written', async () => {
  const ended = attempting({ refreshToken: null, lifetime: START });
  ended.held.end();
  await ended.make();
  expect(ended.database.written).toEqual([]);
  const hub = attempting({ refreshToken: null, lifetime: START });
  hub.database.hasGeneration = false;
  hub.database.found = found(other);
  await hub.make();
  expect(hub.held.grant).toEqual(other);
  const unsaved = attempting({ refreshToken: null, lifetime: START }, undefined, () =>
    Promise.reject(new Error('away')),
  );
  await unsaved.make();
  expect([problemOf(unsaved), unsaved.database.written]).toEqual(['store_unwritable', []]);
});

describe('lease of another hub that has ended', () => {
  /** A hub that waits for the refresh of another one, whose lease ends now. */
  function waiting(leasedUntil = START) {
    const hub = attempting();
    hub.database.found = found(sampleGrant(), attemptFor(sampleGrant(), leasedUntil));
    hub.held.setAttemptElsewhere({ leasedUntil: START });
    return hub;
  }

  test('its attempt counts as a lost answer, which is written and reported once, and nothing is sent', async () => {
    const hub = waiting();
    await hub.make();
    expect(hub.sent).toEqual([]);
    const doubt = { lostAt: attemptFor(sampleGrant()).at, sends: 1 };
    expect(hub.database.writes).toMatchObject([{ write: 'endAttempt', grant: { doubt } }]);
    expect(hub.held).toMatchObject({ leasedUntil: null, grant: { doubt } });
    expect(hub.logged).toEqual(['answer_lost', 'refresh_interrupted']);
    expect(hub.emitted).toMatchObject([{ kind: 'refresh_failed', at: doubt.lostAt, took: null }]);
  });

  test('nothing counts while the lease goes on, or after its hub has ended the attempt', async () => {
    const longer = waiting(START + 1);
    await longer.make();
    expect(longer.held).toMatchObject({ leasedUntil: START + 1, grant: { doubt: null } });
    const ended = waiting();
    ended.database.found = found(other);
    await ended.make();
    expect(ended.held).toMatchObject({ leasedUntil: null, grant: other });
    const own = waiting();
    own.database.found = found(other, attemptFor(sampleGrant()));
    await own.make();
    expect(own.held).toMatchObject({ leasedUntil: null, grant: other });
    for (const hub of [longer, ended, own]) expect([hub.database.writes, hub.emitted]).toEqual([[], []]);
  });

  test('while the database is away, or says that the lease goes on, it is looked at again 5 s later', async () => {
    const away = waiting();
    away.database.isAway = true;
    const going = waiting();
    going.database.hasGeneration = false;
    going.database.meanwhile = () => {
      going.database.found = found(sampleGrant(), attemptFor(sampleGrant(), START));
    };
    for (const hub of [away, going]) {
      await hub.make();
      expect(hub.held).toMatchObject({ leasedUntil: START + 5 * SECOND, grant: { doubt: null } });
    }
    expect([problemOf(away), problemOf(going)]).toEqual(['store_unwritable', null]);
  });
});
