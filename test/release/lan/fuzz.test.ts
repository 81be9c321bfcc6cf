import { afterAll, beforeAll, expect, test } from 'vitest';
import { type FuzzedHub, startFuzzedHub } from '../../../scripts/fuzz.d/hub/fuzzed-hub.ts';
import { checkResponse } from '../../../scripts/fuzz.d/hub/response-check.ts';
import { hubSubject } from '../../../scripts/fuzz.d/hub/subject.ts';
import type { FuzzRequest } from '../../../scripts/fuzz.d/requests.ts';
import { type FuzzSubject, fuzz } from '../../../scripts/fuzz.d/run.ts';
import { rememberSecrets } from '../../support/logs.ts';

/** With this many requests, every member of every request occurs. */
const REQUESTS = 5000;

let home: FuzzedHub;
let subject: FuzzSubject;

beforeAll(async () => {
  home = await startFuzzedHub();
  subject = await hubSubject(home);
});

afterAll(async () => {
  rememberSecrets(home.emulator.secretsIssued('code', 'access_token', 'refresh_token'));
  await home[Symbol.asyncDispose]();
});

test('some 5,000 mutated requests get no 5xx, secret or data of others from a hub, and do not flood the portal', async () => {
  const found = await fuzz(subject, { requests: REQUESTS, seed: 1 });
  expect(found.problems).toEqual([]);
  expect(found.sent).toBeGreaterThan(REQUESTS / 2);
  for (const status of [200, 201, 303, 400, 401, 404, 405, 413, 421, 429]) {
    expect(found.statuses.get(status), `${status}`).toBeTruthy();
  }
  for (const { name, good, unsent } of found.operations.all) {
    expect(good, `good answers of ${name}`).toBeGreaterThan(0);
    expect([...unsent], `never sent to ${name}`).toEqual([]);
  }
  expect(Math.max(...found.memory.map(({ resident }) => resident))).toBeLessThan(500);
  expect(subject.ended()).toBeNull();
  expect(subject.complaints()).toBe('');
});

test('the fuzzer recognises a 5xx, a leaked secret, an accepted forgery and a malformed error', () => {
  const request: FuzzRequest = {
    origin: 'https',
    method: 'POST',
    path: '/oauth/token',
    bytes: '',
    sound: true,
    pipelined: true,
    pieces: 1,
    isReset: false,
  };
  const checkRaw = (status: number, head: string, body: string, more: Partial<FuzzRequest> = {}) => {
    const text = `HTTP/1.1 ${status} Whatever\r\n${head}\r\n\r\n${body}`;
    return checkResponse('POST /oauth/token', { ...request, ...more }, { status, text }, ['hush']);
  };
  const noStore = 'cache-control: no-store';
  const problem = '{"error":"invalid_grant","error_description":"x"}';
  expect(checkRaw(400, noStore, problem)).toEqual([]);
  expect(checkRaw(500, noStore, problem)).toEqual(['answered 500']);
  expect(checkRaw(200, noStore, '{"x":"hush"}')).toEqual(['reveals a secret']);
  expect(checkRaw(200, noStore, '{}', { forged: true })).toEqual(['accepted a forged authentication: 200']);
  expect(checkRaw(400, noStore, '<p>')).toEqual(['answered 400 with a body that is not JSON']);
});
