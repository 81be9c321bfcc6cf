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
  replaced: /newer pairing.*latchkey status/,
  cancelled: /cancelled.*latchkey pair wallbox/,
  portal_rejected: /portal rejected.*addresses and the scope/,
  foreign_origin: /not its own.*base_url and frontend_url/,
  code_refused: /refused the authorization code.*latchkey pair wallbox/,
  answer_lost: /answer was lost.*latchkey pair wallbox/,
  misconfigured:
    /client_id and client secret; correct portals\.home\.client_id, or the client secret in \/x, run "latchkey reload" and then run "latchkey pair wallbox"/,
  client_unknown:
    /does not know this client_id; correct portals\.home\.client_id, run "latchkey reload" and then run "latchkey pair wallbox/,
};

test.each(PAIRING_FAILURE_REASONS)('a pairing failure %s is explained with its cause and what to do', (reason) => {
  const { cause: why, advice: next } = explainPairingFailure(reason, 'wallbox', { portal: 'home', secretFile: '/x' });
  expect(`${why}; ${next}`).toMatch(reasons[reason]);
});

test('the explanation of a misconfigured pairing names no file if the client secret is not in one', () => {
  expect(explainPairingFailure('misconfigured', 'wallbox', { portal: 'home' }).advice).toContain(
    'or the client secret, run "latchkey reload"',
  );
});

test.each(['misconfigured', 'client_unknown'] as const)(
  'the explanation of a pairing that failed as %s asks to restart the app if the app options contain the credentials',
  (reason) => {
    const { advice } = explainPairingFailure(reason, 'wallbox', { portal: 'home', appliedBy: 'app_restart' });
    expect(advice).toContain(', restart the app in Home Assistant and then run');
  },
);

test.each<[PairingFailureReason, string, RegExp]>([
  ['portal_rejected', 'HTTP 400 invalid_scope', /: HTTP 400 invalid_scope; correct the scope of wallbox/],
  ['portal_rejected', 'there is no endpoint', /: there is no endpoint; correct what this names, and run/],
  ['code_refused', 'HTTP 400 invalid_grant', /: HTTP 400 invalid_grant; run/],
  ['foreign_origin', 'a URL on https://a.example', /: a URL on https:\/\/a\.example; check/],
  ['misconfigured', 'the secret may be wrong', /^the secret may be wrong; correct portals\.home\.client_id/],
  ['expired', 'HTTP 400', /^nobody logged in before the pairing expired; run/],
])('the explanation of the pairing failure %s has its detail "%s" if that belongs to it', (reason, detail, text) => {
  const { cause, advice } = explainPairingFailure(reason, 'wallbox', { portal: 'home' }, detail);
  expect(`${cause}; ${advice}`).toMatch(text);
});

describe('recent pairing failure', () => {
  const failed = (reason: PairingFailureReason) => ({ kind: 'ended', result: { kind: 'failed', reason } }) as const;
  const waiting = samplePairing({ kind: 'waiting', link: SAMPLE_LINK });
  const paired = samplePairing({ kind: 'ended', result: { kind: 'paired', scope: null } });
  const refused = samplePairing(failed('refused_by_user'), { failed: instantAt(MINUTE) });

  test('a pairing failure is reported for a day, also over a reboot', () => {
    const failure = { reason: 'refused_by_user', at: instantAt(MINUTE) };
    expect(recentPairingFailure(refused, instantAt(MINUTE), 0)).toEqual(failure);
    expect(recentPairingFailure(refused, instantAt(MINUTE + DAY - 1), 0)).toEqual(failure);
    expect(recentPairingFailure(refused, instantAt(MINUTE + DAY), 0)).toBeNull();
    expect(recentPairingFailure(refused, { ...instantAt(5, 'boot-2'), wall: instantAt(DAY).wall }, 0)).toEqual(failure);
    expect(recentPairingFailure(refused, { ...instantAt(5, 'boot-2'), wall: instantAt(2 * DAY).wall }, 0)).toBeNull();
  });

  test('a pairing failure that the configuration caused is reported until the hub is restarted', () => {
    const unknown = samplePairing(failed('client_unknown'), { failed: instantAt(MINUTE) });
    expect(recentPairingFailure(unknown, instantAt(2 * MINUTE), instantAt(MINUTE).uptime)).not.toBeNull();
    expect(recentPairingFailure(unknown, instantAt(2 * MINUTE), instantAt(MINUTE).uptime + 1)).toBeNull();
    expect(
      recentPairingFailure(unknown, { ...instantAt(5, 'boot-2'), wall: instantAt(2 * MINUTE).wall }, 0),
    ).toBeNull();
    expect(recentPairingFailure(refused, instantAt(2 * MINUTE), instantAt(MINUTE).uptime + 1)).not.toBeNull();
  });

  test('no pairing failure is reported for an open or successful pairing or an unopened device flow', () => {
    expect(recentPairingFailure(waiting, instantAt(1), 0)).toBeNull();
    expect(recentPairingFailure(paired, instantAt(1), 0)).toBeNull();
    expect(recentPairingFailure(samplePairing(failed('expired')), instantAt(1), 0)).toBeNull();
    expect([refused, paired, waiting].some(isUnopenedDeviceFlow)).toBe(false);
    expect(isUnopenedDeviceFlow(samplePairing(failed('expired')))).toBe(true);
  });
});
