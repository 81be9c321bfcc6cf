import { expect, test } from 'vitest';
import { clockFaultMessage } from '../../src/core/clock.ts';
import { afterFailure } from '../../src/core/grants/refresh-state.ts';
import { HOUR, instantAt, MINUTE, SECOND, sampleGrant } from './samples.ts';

const in1970 = { ...instantAt(30 * SECOND), wall: 30 * SECOND };

test('an unconfirmed hub clock is named as a possible cause of a rejected portal certificate', () => {
  expect(clockFaultMessage('not_yet_valid', in1970, null)).toBe(
    "The hub's clock says 1970-01-01T00:00:30Z, and nothing has confirmed it yet: by that clock the portal's certificate is not valid yet. The hub continues automatically as soon as the clock is set",
  );
  expect(clockFaultMessage('expired', instantAt(0), null)).toContain("the portal's certificate has expired");
});

test('a clock that jumped after it was confirmed is named with the right time if a certificate is rejected', () => {
  const confirmed = { wall: instantAt(0).wall, at: instantAt(0) };
  expect(clockFaultMessage('not_yet_valid', in1970, confirmed)).toContain('but it is 2031-05-05T06:00:30Z');
});

test('a certificate error does not blame the hub clock if it is less than five minutes off', () => {
  const fault = (off: number) =>
    clockFaultMessage('expired', instantAt(HOUR), { wall: instantAt(0).wall + off, at: instantAt(0) });
  expect([fault(0), fault(MINUTE), fault(5 * MINUTE - 1)]).toEqual([null, null, null]);
  expect(fault(5 * MINUTE)).toContain('but it is 2031-05-05T07:05:00Z');
  expect(fault(-5 * MINUTE)).toContain('but it is 2031-05-05T06:55:00Z');
});

test('a refresh that fails by an unconfirmed clock waits for the clock and keeps the grant', () => {
  const context = { now: in1970, confirmed: null, retryLostAnswer: 'early', fraction: 1 } as const;
  const outcome = {
    kind: 'not_sent',
    detail: 'certificate is not yet valid',
    certificateError: 'not_yet_valid',
  } as const;
  const state = afterFailure(sampleGrant(), { kind: 'good' }, outcome, context);
  expect(state).toMatchObject({
    doubt: null,
    refused: null,
    health: { kind: 'failing', waitsFor: 'clock', problem: { code: 'clock_unknown' } },
  });
  const right = { ...context, confirmed: { wall: in1970.wall, at: in1970 } };
  expect(afterFailure(sampleGrant(), { kind: 'good' }, outcome, right).health).toMatchObject({
    problem: { code: 'portal_unreachable' },
  });
});
