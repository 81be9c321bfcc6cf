import { describe, expect, test } from 'vitest';
import { PAIRING_FAILURE_REASONS, type PairingFailureReason } from '../../src/core/pairings/pairing.ts';
import {
  explainPairingFailure,
  isUnopenedDeviceFlow,
  recentPairingFailure,
} from '../../src/core/reports/pairing-failure.ts';
import { DAY, instantAt, MINUTE, SAMPLE_LINK, samplePairing } from './samples.ts';

const reasons: Record<PairingFailureReason, RegExp> = {
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

test.each(PAIRING_FAILURE_REASONS)('a pairing that failed as %s is told with why and what to do', (reason) => {
  const { cause: why, advice: next } = explainPairingFailure(reason, 'wallbox', { portal: 'home', secretFile: '/x' });
  expect(`${why}; ${next}`).toMatch(reasons[reason]);
});

test('no file is named for a secret that is in none', () => {
  expect(explainPairingFailure('misconfigured', 'wallbox', { portal: 'home' }).advice).toContain(
    'or the client secret, run "latchkey reload"',
  );
});

describe('why a pairing failed', () => {
  const failed = (reason: PairingFailureReason) => ({ kind: 'ended', result: { kind: 'failed', reason } }) as const;
  const waiting = samplePairing({ kind: 'waiting', link: SAMPLE_LINK });
  const paired = samplePairing({ kind: 'ended', result: { kind: 'paired', scope: null } });
  const refused = samplePairing(failed('refused_by_user'), { failed: instantAt(MINUTE) });

  test('is told for a day from when it did, over a boot too', () => {
    const told = { reason: 'refused_by_user', at: instantAt(MINUTE) };
    expect(recentPairingFailure(refused, instantAt(MINUTE), 0)).toEqual(told);
    expect(recentPairingFailure(refused, instantAt(MINUTE + DAY - 1), 0)).toEqual(told);
    expect(recentPairingFailure(refused, instantAt(MINUTE + DAY), 0)).toBeNull();
    expect(recentPairingFailure(refused, { ...instantAt(5, 'boot-2'), wall: instantAt(DAY).wall }, 0)).toEqual(told);
    expect(recentPairingFailure(refused, { ...instantAt(5, 'boot-2'), wall: instantAt(2 * DAY).wall }, 0)).toBeNull();
  });

  test('is told until the hub is started anew where the configuration was to blame', () => {
    const unknown = samplePairing(failed('client_unknown'), { failed: instantAt(MINUTE) });
    expect(recentPairingFailure(unknown, instantAt(2 * MINUTE), instantAt(MINUTE).uptime)).not.toBeNull();
    expect(recentPairingFailure(unknown, instantAt(2 * MINUTE), instantAt(MINUTE).uptime + 1)).toBeNull();
    expect(
      recentPairingFailure(unknown, { ...instantAt(5, 'boot-2'), wall: instantAt(2 * MINUTE).wall }, 0),
    ).toBeNull();
    expect(recentPairingFailure(refused, instantAt(2 * MINUTE), instantAt(MINUTE).uptime + 1)).not.toBeNull();
  });

  test('is nothing where it has not, or where nobody opened it', () => {
    expect(recentPairingFailure(waiting, instantAt(1), 0)).toBeNull();
    expect(recentPairingFailure(paired, instantAt(1), 0)).toBeNull();
    expect(recentPairingFailure(samplePairing(failed('expired')), instantAt(1), 0)).toBeNull();
    expect([refused, paired, waiting].some(isUnopenedDeviceFlow)).toBe(false);
    expect(isUnopenedDeviceFlow(samplePairing(failed('expired')))).toBe(true);
  });
});
