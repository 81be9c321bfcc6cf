import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { exchange } from '../../scripts/fuzz.d/exchange.ts';
import { hubDial } from '../../scripts/fuzz.d/hub/dial.ts';
import type { HubFacts } from '../../scripts/fuzz.d/hub/facts.ts';
import { type FuzzedHome, startHome } from '../../scripts/fuzz.d/hub/home.ts';
import { wrongOf } from '../../scripts/fuzz.d/hub/judge.ts';
import { hubPlanner } from '../../scripts/fuzz.d/hub/plans.ts';
import { fuzzHub, onlyToHub } from '../../scripts/fuzz.d/hub/run.ts';
import { complaintsIn } from '../../scripts/fuzz.d/hub/subject.ts';
import { type FuzzRequest, requestOf } from '../../scripts/fuzz.d/requests.ts';
import { root } from '../project/checkout.ts';
import { rememberSecrets } from '../support/logs.ts';

let home: FuzzedHome;

beforeAll(async () => {
  home = await startHome(false);
});

afterAll(async () => {
  rememberSecrets(home.emulator.secretsIssued('code', 'access_token', 'refresh_token'));
  await home[Symbol.asyncDispose]();
});

const complaints = () => complaintsIn(readFileSync(home.hub.log, 'utf8'));

test('2,500 mutated requests get no 5xx, no secret and nothing that is not theirs out of a hub, and storm no portal', async () => {
  const heard: string[] = [];
  const memory = () => home.memory();
  const found = await fuzzHub(home, { requests: 2500, seed: 1, memory, said: (text) => heard.push(text) });
  expect(found.problems).toEqual([]);
  expect(found.sent).toBeGreaterThanOrEqual(2500);
  for (const status of [200, 201, 303, 400, 401, 404, 405, 413, 421, 429]) {
    expect(found.statuses.get(status), `${status}`).toBeTruthy();
  }
  for (const { name, good, unsent } of found.operations.all) {
    expect(good, `good answers of ${name}`).toBeGreaterThan(0);
    expect([...unsent], `never sent to ${name}`).toEqual([]);
  }
  expect(Math.max(...found.memory.map(({ resident }) => resident))).toBeLessThan(500);
  expect(heard.at(-1)).toMatch(/^the portal got \d+ requests: /);
  expect(home.hub.ended).toBeNull();
  expect(complaints()).toBe('');
});

test('a sender who is gone before its request is worked on makes nothing fail', async () => {
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
    given: 'reset',
  };
  for (let number = 0; number < 60; number += 1) {
    await exchange(hubDial(home.ports, 1, { number, request }), [request]);
  }
  const { got } = await exchange(hubDial(home.ports, 1, { number: 60, request }), [{ ...request, given: 'up' }]);
  expect(got[0]?.status).toBe(401);
  expect(complaints()).toBe('');
});

test('the judge knows a 5xx, a secret, a forgery that was taken and an error that is none', () => {
  const request: FuzzRequest = {
    origin: 'https',
    method: 'POST',
    path: '/oauth/token',
    bytes: '',
    sound: true,
    pipelined: true,
    pieces: 1,
    given: 'up',
  };
  const judged = (status: number, head: string, body: string, more: Partial<FuzzRequest> = {}) => {
    const text = `HTTP/1.1 ${status} Whatever\r\n${head}\r\n\r\n${body}`;
    return wrongOf('POST /oauth/token', { ...request, ...more }, { status, text }, ['hush']);
  };
  const noStore = 'cache-control: no-store';
  const problem = '{"error":"invalid_grant","error_description":"x"}';
  expect(judged(200, noStore, '{}')).toEqual([]);
  expect(judged(400, noStore, problem)).toEqual([]);
  expect(
    judged(503, `${noStore}\r\nretry-after: 5`, problem.replace('invalid_grant', 'temporarily_unavailable')),
  ).toEqual([]);
  expect(judged(503, noStore, problem)).toEqual(['answered 503 without an honest Retry-After']);
  expect(judged(500, noStore, problem)).toEqual(['answered 500']);
  expect(judged(200, noStore, '{"x":"hush"}')).toEqual(['tells a secret']);
  expect(judged(200, noStore, '{}', { forged: true })).toEqual(['took what was forged: 200']);
  expect(judged(200, noStore, '{}', { origin: 'http' })).toEqual(['exists without TLS: 200']);
  expect(judged(200, 'x: y', '{}')).toEqual(['may be kept by who passes it on: 200']);
  expect(judged(400, noStore, problem.replace('invalid_grant', 'odd'))).toEqual([
    'answered 400 with an error that no RFC has',
  ]);
  expect(judged(401, noStore, problem)).toEqual(['answered 401 without challenge']);
  expect(judged(400, noStore, '<p>')).toEqual(['answered 400 with a body that is no JSON']);
  expect(judged(200, `${noStore}\r\nX-Header: a`, '{}')).toEqual(['has a header that the request put there']);
});

test('a seed gives the same requests again, another one others', () => {
  const eight = (text: string) => Array.from({ length: 8 }, () => text);
  const client = (name: string) => ({ id: name, secret: `${name}-secret` });
  const facts: HubFacts = {
    own: client('a'),
    doubter: client('b'),
    keyed: { id: 'c', publicKey: 'd' },
    waiting: client('e'),
    victimId: 'f',
    session: { client: client('s'), deviceCode: 't', refreshToken: 'u' },
    invites: eight('g'),
    accessTokens: eight('h'),
    refreshTokens: eight('i'),
    deviceCodes: eight('j'),
    userCodes: eight('k'),
    nonces: eight('l'),
    registered: eight('m n'),
    assertions: eight('o.p.q'),
    now: () => 2_000_000_000,
    sign: (header, claims) => `${JSON.stringify(header)}.${JSON.stringify(claims)}.r`,
  };
  const planner = hubPlanner(facts);
  const some = (seed: number) => Array.from({ length: 500 }, (_, number) => requestOf(seed, number, planner));
  expect(some(1)).toEqual(some(1));
  expect(some(1)).not.toEqual(some(2));
});

test('one request of a run is sent again', async () => {
  expect(await onlyToHub(home, 2, 7)).toMatch(/^request: ".* HTTP\/1\.[01]\\r\\n.*"\nanswer: ".*"$/);
});

test('scripts/fuzz --target hub sums a run up', async () => {
  const command = [join(root, 'scripts/fuzz.ts'), '--target', 'hub', '--requests', '100', '--seed', '2'];
  const { stdout } = await promisify(execFile)(process.execPath, command);
  expect(stdout).toMatch(/^seed 2, 100 requests\n/);
  expect(stdout).toMatch(
    /\nmemory: \d+ MB resident, heap \d+\.\d MB; [\s\S]*POST \/oauth\/token\n[\s\S]*no problem found\n$/,
  );
});
