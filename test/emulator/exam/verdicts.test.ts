import { expect, test } from 'vitest';
import { clientWith, examine, namesOf } from './run-exam.ts';

test('a client that is right passes a situation, and its report says what was seen, what is right and who says so', async () => {
  const report = await examine(clientWith(), 'access-token-refused-early');
  expect(report).toMatchObject({ passed: 1, failed: 0, not_applicable: 0 });
  expect(report.results).toEqual([
    {
      name: 'access-token-refused-early',
      group: 'ends',
      verdict: 'passed',
      seen: 'a call with status 401, one refresh, and calls with the new access token',
      right: expect.stringMatching(/\w/),
      source: expect.stringMatching(/^RFC 6750, 3\.1: /),
    },
  ]);
});

test('a client with a mistake fails the situation that is about it, and passes its neighbours', async () => {
  const report = await examine(clientWith('state-file-for-all'), 'readable-by-others', 'secrets-in-the-output');
  expect(namesOf(report, 'failed')).toEqual(['readable-by-others']);
  expect(report.results[0]?.seen).toBe('state.json contains a token and has the mode 644');
  expect(namesOf(report, 'passed')).toEqual(['secrets-in-the-output']);
});
