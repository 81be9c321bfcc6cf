import { describe, expect, test } from 'vitest';
import { FAILURE_REASONS, type FailureReason } from '../../src/core/pairings/pairing.ts';
import { hasLapsed, pairingFailure, recentFailure } from '../../src/core/reports/pairing-failure.ts';
import { at, DAY, LINK, MINUTE, pairingOf } from './samples.ts';

const reasons: Record<FailureReason, RegExp> = {
  refused_by_user: /refused at the login.*latchkey pair wallbox/,
  expired: /nobody logged in.*latchkey pair wallbox/,
  replaced: /another pairing.*latchkey status/,
  cancelled: /cancelled.*latchkey pair wallbox/,
  portal_rejected: /portal rejected.*base_url/,
  foreign_origin: /not its own.*base_url and frontend_url/,
  code_refused: /refused the authorization code.*latchkey pair wallbox/,
  answer_lost: /answer was lost.*latchkey pair wallbox/,
  misconfigured:
    /client_id and client secret; correct portals\.home\.client_id, or the client secret in \/x, run "latchkey reload" and then run "latchkey pair wallbox"/,
  client_unknown: /does not know this client_id; correct portals\.home\.client_id .*latchkey pair wallbox/,
};

test.each(FAILURE_REASONS)('a pairing that failed as %s is told with why and what to do', (reason) => {
  const { why, next } = pairingFailure(reason, 'wallbox', { portal: 'home', secretFile: '/x' });
  expect(`${why}; ${next}`).toMatch(reasons[reason]);
});

test('no file is named for a secret that is in none', () => {
  expect(pairingFailure('misconfigured', 'wallbox', { portal: 'home' }).next).toContain(
    'or the client secret, run "latchkey reload"',
  );
});

describe('why a pairing failed', () => {
  const failed = (reason: FailureReason) => ({ kind: 'ended', result: { kind: 'failed', reason } }) as const;
  const waiting = pairingOf({ kind: 'waiting', link: LINK });
  const paired = pairingOf({ kind: 'ended', result: { kind: 'paired', scope: null } });
  const refused = pairingOf(failed('refused_by_user'), { failed: at(MINUTE) });

  test('is told for a day from when it did, over a boot too', () => {
    const told = { reason: 'refused_by_user', at: at(MINUTE) };
    expect(recentFailure(refused, at(MINUTE), 0)).toEqual(told);
    expect(recentFailure(refused, at(MINUTE + DAY - 1), 0)).toEqual(told);
    expect(recentFailure(refused, at(MINUTE + DAY), 0)).toBeNull();
    expect(recentFailure(refused, { ...at(5, 'boot-2'), wall: at(DAY).wall }, 0)).toEqual(told);
    expect(recentFailure(refused, { ...at(5, 'boot-2'), wall: at(2 * DAY).wall }, 0)).toBeNull();
  });

  test('is told until the hub is started anew where the configuration was to blame', () => {
    const unknown = pairingOf(failed('client_unknown'), { failed: at(MINUTE) });
    expect(recentFailure(unknown, at(2 * MINUTE), at(MINUTE).uptime)).not.toBeNull();
    expect(recentFailure(unknown, at(2 * MINUTE), at(MINUTE).uptime + 1)).toBeNull();
    expect(recentFailure(unknown, { ...at(5, 'boot-2'), wall: at(2 * MINUTE).wall }, 0)).toBeNull();
    expect(recentFailure(refused, at(2 * MINUTE), at(MINUTE).uptime + 1)).not.toBeNull();
  });

  test('is nothing where it has not, or where nobody opened it', () => {
    expect(recentFailure(waiting, at(1), 0)).toBeNull();
    expect(recentFailure(paired, at(1), 0)).toBeNull();
    expect(recentFailure(pairingOf(failed('expired')), at(1), 0)).toBeNull();
    expect([refused, paired, waiting].some(hasLapsed)).toBe(false);
    expect(hasLapsed(pairingOf(failed('expired')))).toBe(true);
  });
});
