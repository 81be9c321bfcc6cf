import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sendBatch } from '../../../scripts/fuzz.d/batch.ts';
import { type FuzzedHub, startFuzzedHub } from '../../../scripts/fuzz.d/hub/fuzzed-hub.ts';
import { checkResponse } from '../../../scripts/fuzz.d/hub/response-check.ts';
import { hubSubject } from '../../../scripts/fuzz.d/hub/subject.ts';
import { memoryProblem } from '../../../scripts/fuzz.d/memory.ts';
import type { FuzzRequest } from '../../../scripts/fuzz.d/requests.ts';
import { type FuzzSubject, fuzz } from '../../../scripts/fuzz.d/run.ts';
import { root } from '../../project/checkout.ts';
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

test('a client that disconnects before the hub handles its request causes no error', async () => {
  const body = '{"client_name":"gone"}';
  const head = `POST /oauth/register HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
  const request: FuzzRequest = {
    origin: 'https',
    method: 'POST',
    path: '/oauth/register',
    bytes: `${head}\r\n\r\n${body}`,
    sound: true,
    pipelined: false,
    pieces: 1,
    isReset: true,
  };
  const part = await subject.begin();
  const received: number[] = [];
  const checkStatus = (_: FuzzRequest, { status }: { readonly status: number }) => {
    received.push(status);
    return [];
  };
  const connections = Array.from({ length: 60 }, (_, index) => {
    return { ...request, sound: false, via: { address: `127.9.${index}.1`, plain: false } };
  });
  expect(await sendBatch(connections, { ...part, judge: checkStatus })).toBeNull();
  expect(await sendBatch([{ ...request, isReset: false }], { ...part, judge: checkStatus })).toBeNull();
  expect(received).toEqual([401]);
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
  expect(checkRaw(200, noStore, '{}')).toEqual([]);
  expect(checkRaw(400, noStore, problem)).toEqual([]);
  expect(
    checkRaw(503, `${noStore}\r\nretry-after: 5`, problem.replace('invalid_grant', 'temporarily_unavailable')),
  ).toEqual([]);
  expect(checkRaw(503, noStore, problem)).toEqual(['answered 503 without a valid Retry-After']);
  expect(checkRaw(500, noStore, problem)).toEqual(['answered 500']);
  expect(checkRaw(200, noStore, '{"x":"hush"}')).toEqual(['reveals a secret']);
  expect(checkRaw(200, noStore, '{}', { forged: true })).toEqual(['accepted a forged authentication: 200']);
  expect(checkRaw(200, noStore, '{}', { origin: 'http' })).toEqual(['exists without TLS: 200']);
  expect(checkRaw(200, 'x: y', '{}')).toEqual(['lacks Cache-Control: no-store: 200']);
  expect(checkRaw(400, noStore, problem.replace('invalid_grant', 'odd'))).toEqual([
    'answered 400 with an unknown error code',
  ]);
  expect(checkRaw(401, noStore, problem)).toEqual(['answered 401 without challenge']);
  expect(checkRaw(400, noStore, '<p>')).toEqual(['answered 400 with a body that is not JSON']);
  expect(checkRaw(200, `${noStore}\r\nX-Header: a`, '{}')).toEqual(['has a header that the request injected']);
});

test('the fuzzer reports memory that keeps growing, and not memory that is high but constant', () => {
  const parts = Array.from({ length: 60 }, (_, index) => index);
  const flat = parts.map((index) => ({ resident: 400 + (index % 7), heap: 80 + (index % 3) / 10 }));
  expect(memoryProblem(flat)).toBeNull();
  expect(memoryProblem(flat.map(({ resident, heap }, index) => ({ resident, heap: heap + index / 5 })))).toMatch(
    /^in 100,000/,
  );
  expect(memoryProblem(flat.map(({ resident, heap }, index) => ({ resident: resident + index, heap })))).toMatch(
    /^in 100,000/,
  );
  expect(memoryProblem(parts.slice(0, 10).map((index) => ({ resident: 100 * index, heap: index })))).toBeNull();
});

test('scripts/fuzz --target hub prints a summary of its run', async () => {
  const command = [join(root, 'scripts/fuzz.ts'), '--target', 'hub', '--requests', '100', '--seed', '2'];
  const { stdout } = await promisify(execFile)(process.execPath, command);
  expect(stdout).toMatch(/^seed 2, 100 requests\n/);
  expect(stdout).toMatch(
    /\nmemory: \d+ MB resident, heap \d+\.\d MB; [\s\S]*POST \/oauth\/token\n[\s\S]*no problem found\n$/,
  );
});
