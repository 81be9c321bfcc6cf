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
