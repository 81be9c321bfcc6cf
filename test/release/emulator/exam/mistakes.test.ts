import { expect, test } from 'vitest';
import { clientWith, examine, namesOf } from '../../../emulator/exam/run-exam.ts';

/** Programs with their mistakes, and the situations that are about each. */
const PROGRAMS: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  'a hasty program': {
    'saves-too-late': ['kept-before-used', 'two-processes'],
    'ignores-retry-after': ['retry-after-seconds', 'retry-after-date', 'too-many-requests'],
    'state-file-for-all': ['readable-by-others'],
    'polls-too-fast': ['device-interval', 'slow-down'],
  },
  'a trusting program': {
    'follows-redirects': ['redirect-307'],
    'no-state-check': ['state-of-another', 'state-missing'],
    'basic-without-encoding': ['special-characters'],
    'prints-tokens': ['secrets-in-the-output'],
  },
  'a forgetful program': {
    'asks-for-ever': ['revoked', 'reused-by-a-thief'],
    'refresh-per-request': ['ten-requests-at-once'],
    'starts-from-environment': [
      'two-processes',
      'restart',
      'login-survives-restart',
      'device-login-survives-restart',
      'registers-once',
    ],
  },
};

test.each(Object.entries(PROGRAMS))('the exam finds each mistake of %s, and no other one', async (_, mistakes) => {
  const report = await examine(clientWith(...Object.keys(mistakes)));
  expect(namesOf(report, 'failed').sort()).toEqual(Object.values(mistakes).flat().sort());
});

test('a client that does not replace its refresh token fails where that is tried, and nowhere else', async () => {
  const report = await examine(clientWith('keeps-the-first-refresh-token'), 'rotation', 'storage', 'status-500');
  expect(namesOf(report, 'failed')).toEqual(['each-token-once', 'new-token-now-and-then']);
});

test('a client that forgets its refresh token with any error fails each fault that passes', async () => {
  const report = await examine(clientWith('forgets-on-any-error'), 'faults', 'invalid-client', 'readable-by-others');
  expect(namesOf(report, 'failed')).toEqual([
    'no-answer',
    'answer-lost-before-commit',
    'answer-lost-after-commit',
    'truncated',
    'status-500',
    'firewall-page',
    'captive-portal',
    'redirect-301',
    'redirect-307',
    'invalid-client',
  ]);
});
