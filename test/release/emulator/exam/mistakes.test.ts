import { expect, test } from 'vitest';
import { SITUATIONS } from '../../../../src/emulator/exam/situations/all.ts';
import { clientWith, examine, namesOf } from '../../../emulator/exam/run-exam.ts';

/** Programs with their mistakes, and the situations that are about each. */
const PROGRAMS: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  'a hasty program': {
    'saves-too-late': ['kept-before-used', 'two-processes'],
    'ignores-retry-after': ['retry-after-seconds', 'retry-after-date', 'too-many-requests'],
    'state-file-for-all': ['readable-by-others'],
    'forgets-repeated-answer': ['grace-with-another-token'],
    'refreshes-after-403': ['insufficient-scope'],
    'always-post': ['only-basic'],
    'exchanges-twice': ['code-refused'],
    'exchanges-each-visit': ['page-loaded-twice'],
    'rejects-id-tokens': ['right-id-token'],
    'polls-too-fast': ['device-interval', 'slow-down'],
    'gives-up-lost-polls': ['poll-lost'],
  },
  'a trusting program': {
    'follows-redirects': ['redirect-307'],
    'no-state-check': ['state-of-another', 'state-missing'],
    'two-methods': ['one-method'],
    'basic-without-encoding': ['special-characters'],
    'prints-tokens': ['secrets-in-the-output'],
    'no-pkce': ['pkce', 'mcp-pkce'],
    'same-state': ['new-values-for-each-login'],
    'no-iss-check': ['iss-of-another', 'iss-missing'],
    'any-issuer': ['metadata-of-another', 'server-of-another'],
    'any-resource': ['resource-of-another'],
    'ignores-iss': ['id-token-issuer'],
    'ignores-aud': ['id-token-audience'],
    'ignores-exp': ['id-token-expired'],
    'ignores-nonce': ['id-token-nonce'],
    'takes-unsigned': ['id-token-unsigned'],
    'takes-unknown-keys': ['id-token-key'],
  },
  'a forgetful program': {
    'asks-for-ever': ['revoked', 'reused-by-a-thief'],
    'refresh-per-request': ['ten-requests-at-once'],
    'forgets-without-a-new-token': ['no-new-token'],
    'secret-in-the-address': ['one-method'],
    'empty-secret': ['public-client'],
    'exchanges-an-error': ['login-refused'],
    'polls-after-refusal': ['device-refused'],
    'polls-after-expiry': ['device-code-expired'],
    'no-resource': ['resource-parameter'],
    'starts-from-environment': [
      'two-processes',
      'restart',
      'login-survives-restart',
      'device-login-survives-restart',
      'registers-once',
    ],
  },
  'a narrow-minded program': {
    'trusts-expires-in': ['access-token-refused-early'],
    'forgets-before-asking': ['killed-before-the-answer'],
    'rejects-compression': ['gzip'],
    'rejects-unknown-members': ['unknown-members'],
    'rejects-capitals': ['token-type-in-capitals'],
    'always-basic': ['only-post'],
    'other-redirect': ['exact-redirect'],
    'no-registration': ['login-from-the-api'],
  },
};

test.each(Object.entries(PROGRAMS))('the exam finds each mistake of %s, and no other one', async (_, mistakes) => {
  const report = await examine(clientWith(...Object.keys(mistakes)));
  expect(namesOf(report, 'failed').sort()).toEqual(Object.values(mistakes).flat().sort());
});

/** Mistakes that hide much, with the groups and situations that show them, and those that are about them. */
const LONE_MISTAKES: Readonly<Record<string, readonly [only: readonly string[], failed: readonly string[]]>> = {
  'keeps-the-first-refresh-token': [
    ['rotation', 'storage', 'status-500'],
    ['each-token-once', 'new-token-now-and-then'],
  ],
  'forgets-on-any-error': [
    ['faults', 'invalid-client', 'readable-by-others'],
    [
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
    ],
  ],
};

test.each(Object.entries(LONE_MISTAKES))(
  'a client that %s fails where that is tried, and nowhere else',
  async (mistake, [only, failed]) => {
    const report = await examine(clientWith(mistake), ...only);
    expect(namesOf(report, 'failed')).toEqual(failed);
  },
);

test('each situation of the exam is seen to fail', () => {
  const found = [
    ...Object.values(PROGRAMS).flatMap(Object.values),
    ...Object.values(LONE_MISTAKES).map(([, names]) => names),
  ];
  expect([...new Set(found.flat())].sort()).toEqual(SITUATIONS.map(({ name }) => name).sort());
});
