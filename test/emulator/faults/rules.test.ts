import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { FAULT_KINDS } from '../../../src/emulator/faults/kinds.ts';
import type { Emulator } from '../../../src/emulator/index.ts';
import { root } from '../../project/checkout.ts';
import {
  errorOf,
  exchangeCode,
  expectRejections,
  get,
  HEATER,
  obtainCode,
  PUMP,
  parseTokens,
  postConfig,
  refreshTokens,
  requestEmulatorApi,
  startTestEmulator,
  test,
  whoami,
} from '../portal-client.ts';

const BUSY = { endpoint: 'whoami', kind: 'status', status: 503 } as const;

/** The statuses of `count` requests, one after another. */
async function statuses(emulator: Emulator, count: number): Promise<number[]> {
  const all: number[] = [];
  for (let i = 0; i < count; i += 1) all.push((await whoami(emulator, 'x')).status);
  return all;
}

test('a fault hits once, as often as its times say, or until it is removed', async ({ emulator }) => {
  emulator.addFault(BUSY);
  expect(await statuses(emulator, 2)).toEqual([503, 401]);
  emulator.addFault({ ...BUSY, times: 2 });
  expect(await statuses(emulator, 3)).toEqual([503, 503, 401]);
  const { id } = emulator.addFault({ ...BUSY, times: null });
  expect(await statuses(emulator, 4)).toEqual([503, 503, 503, 503]);
  expect(emulator.faults.map(({ hits, left }) => [hits, left])).toEqual([
    [1, 0],
    [2, 0],
    [4, null],
  ]);
  await emulator.removeFault(id);
  expect(await statuses(emulator, 1)).toEqual([401]);
  await emulator.clearFaults();
  expect(emulator.faults).toEqual([]);
});

test('faults of the same endpoint hit in the order in which they were added, one per request', async ({ emulator }) => {
  emulator.addFault({ ...BUSY, status: 500, times: 2 });
  emulator.addFault({ ...BUSY, status: 501 });
  emulator.addFault({ endpoint: '*', kind: 'status', status: 502 });
  expect(await statuses(emulator, 5)).toEqual([500, 500, 501, 502, 401]);
});

test('a fault with every: N hits only each Nth request', async ({ emulator }) => {
  emulator.addFault({ ...BUSY, every: 3, times: 2 });
  expect(await statuses(emulator, 10)).toEqual([401, 401, 503, 401, 401, 503, 401, 401, 401, 401]);
});

test('the same seed repeats the hits of a fault, another seed changes them, and the probability is met', async () => {
  const run = async (seed?: number) => {
    await using emulator = await startTestEmulator({ seed });
    emulator.addFault({ ...BUSY, probability: 0.5, times: null });
    return await statuses(emulator, 100);
  };
  const [seeded, repeated, otherSeed, unseeded, unseededRepeated] = [
    await run(7),
    await run(7),
    await run(8),
    await run(),
    await run(),
  ];
  expect(repeated).toEqual(seeded);
  expect(otherSeed).not.toEqual(seeded);
  expect(unseededRepeated).toEqual(unseeded);
  const hitCount = seeded.filter((status) => status === 503).length;
  expect(hitCount).toBeGreaterThan(30);
  expect(hitCount).toBeLessThan(70);
});

test('a fault with probability 0 never hits, and its times are not used up', async ({ emulator }) => {
  emulator.addFault({ ...BUSY, probability: 0 });
  expect(await statuses(emulator, 20)).toEqual(Array.from({ length: 20 }, () => 401));
  expect(emulator.faults).toMatchObject([{ hits: 0, left: 1 }]);
});

test('client and grant_type restrict a fault', async ({ emulator }) => {
  emulator.addFault({ endpoint: 'config', kind: 'status', status: 500, client: PUMP.id, times: null });
  expect([(await postConfig(emulator)).status, (await postConfig(emulator, undefined, PUMP.id)).status]).toEqual([
    200, 500,
  ]);
  emulator.addFault({ endpoint: 'token', grantType: 'refresh_token', kind: 'status', status: 500 });
  const first = await parseTokens(await exchangeCode(emulator, await obtainCode(emulator)));
  expect((await refreshTokens(emulator, first.refresh_token)).status).toBe(500);
  expect((await refreshTokens(emulator, first.refresh_token)).status).toBe(200);
});

test("a fault hits one endpoint, or all of them with `*`, but never the emulator's own paths", async () => {
  await using emulator = await startTestEmulator();
  const cases = [
    ['config', 'POST', `/external/oauth2helper/config/${HEATER.id}`],
    ['code/get', 'GET', `/external/oauth2helper/code/get/${HEATER.id}`],
    ['code/set', 'GET', `/external/oauth2helper/code/set/${HEATER.id}`],
    ['authorize', 'GET', '/sso/authorize'],
    ['token', 'POST', '/sso/token'],
    ['revoke', 'POST', '/oauth2/revoke'],
    ['discovery', 'GET', '/.well-known/openid-configuration'],
    ['device_authorization', 'POST', '/oauth2/device_authorization'],
    ['device', 'GET', '/oauth2/device'],
    ['whoami', 'GET', '/api/whoami'],
  ] as const;
  for (const [named, method, path] of cases) {
    const url = (/^.(sso|oauth2.device|.well)/.test(path) ? emulator.frontendUrl : emulator.baseUrl) + path;
    for (const endpoint of [named, '*'] as const) {
      emulator.addFault({ endpoint, kind: 'status', status: 507 });
      expect((await get(`${emulator.baseUrl}/_emulator/faults`)).status).toBe(200);
      expect((await fetch(url, { method })).status, path).toBe(507);
      expect((await fetch(url, { method })).status, path).not.toBe(507);
    }
  }
  expect(emulator.requests.filter(({ fault }) => fault !== undefined).map(({ endpoint }) => endpoint)).toEqual(
    cases.flatMap(([endpoint]) => [endpoint, endpoint]),
  );
});

test("the emulator's API adds, lists, removes and clears faults, and shows their hits", async ({ emulator }) => {
  const added = await requestEmulatorApi(emulator, 'POST', 'faults', {
    kind: 'slow_body',
    endpoint: 'token',
    grant_type: 'refresh_token',
    bytes_per_second: 9,
    times: null,
  });
  const fault = {
    id: '1',
    kind: 'slow_body',
    endpoint: 'token',
    grant_type: 'refresh_token',
    times: null,
    probability: 1,
    every: 1,
    bytes_per_second: 9,
    hits: 0,
    left: null,
  };
  expect([added.status, await added.json()]).toEqual([201, fault]);
  await requestEmulatorApi(emulator, 'POST', 'faults', { kind: 'status', endpoint: 'whoami', status: 500 });
  await whoami(emulator, 'x');
  expect(await (await requestEmulatorApi(emulator, 'GET', 'faults')).json()).toEqual({
    faults: [fault, expect.objectContaining({ id: '2', hits: 1, left: 0 })],
  });
  expect(emulator.faults[0]).toMatchObject({ grantType: 'refresh_token', bytesPerSecond: 9 });
  const removed = await requestEmulatorApi(emulator, 'DELETE', 'faults/1');
  expect([removed.status, await removed.text()]).toEqual([204, '']);
  expect(await errorOf(await requestEmulatorApi(emulator, 'DELETE', 'faults/1'))).toEqual([404, 'not_found']);
  expect((await requestEmulatorApi(emulator, 'DELETE', 'faults')).status).toBe(204);
  expect(emulator.faults).toEqual([]);
  const log = await (await get(`${emulator.baseUrl}/_emulator/requests`)).json();
  expect(log).toMatchObject({ requests: [{ endpoint: 'whoami', status: 500, fault: '2' }] });
});

test("the emulator's API rejects an invalid fault and names the member", async ({ emulator }) => {
  await expectRejections(emulator, 'POST', 'faults', [
    [{ kind: 'meltdown' }, /^kind: must be status, .+ or origin_down \(found "meltdown"\)$/],
    [{ kind: 'hangs' }, /^kind: must be .+ \(found "hangs"; did you mean hang\?\)$/],
    [{ kind: 'hang' }, /^endpoint: is missing$/],
    [{ kind: 'hang', endpoint: 'tokens' }, /^endpoint: must be .+ \(found "tokens"; did you mean token\?\)$/],
    [{ kind: 'hang', endpoint: 'token', seconds: 1 }, /^seconds: is unknown; allowed: kind, endpoint, grant_type, /],
    [{ kind: 'hang', endpiont: 'token' }, /^endpiont: is unknown \(did you mean endpoint\?\)$/],
    [{ kind: 'hang', endpoint: 'token', commit: 'yes' }, /^commit: must be .+ \(found "yes"\)$/],
    [{ kind: 'hang', endpoint: 'token', times: 0 }, /^times: must be .+ \(found 0\)$/],
    [{ kind: 'hang', endpoint: 'token', probability: 2 }, /^probability: must be .+ \(found 2\)$/],
    [{ kind: 'hang', endpoint: 'token', every: 0 }, /^every: must be .+ \(found 0\)$/],
    [{ kind: 'hang', endpoint: 'token', client: 'nobody' }, /^client: must be the ID of a registered client$/],
    [{ kind: 'hang', endpoint: 'token', client: `${HEATER.id}x` }, /registered client \(did you mean 6a8f.+\?\)$/],
    [
      { kind: 'hang', endpoint: 'token', grant_type: 'refresh-token' },
      /^grant_type: must be authorization_code, refresh_token, .+ \(found "refresh-token"; did you mean refresh_token\?\)$/,
    ],
    [
      { kind: 'hang', endpoint: 'config', grant_type: 'refresh_token' },
      /^endpoint: must be token for a fault with a grant type \(found "config"\)$/,
    ],
    [{ kind: 'delay', endpoint: 'token' }, /^seconds: is missing$/],
    [{ kind: 'delay', endpoint: 'token', seconds: 1e9 }, /^seconds: must be .+ \(found 1000000000\)$/],
    [{ kind: 'status', endpoint: 'token', status: 99 }, /^status: must be .+ \(found 99\)$/],
    [
      { kind: 'status', endpoint: 'token', status: 503, headers: { a: 'x\r\nb: y' } },
      /^headers\.a: must be header values \(found /,
    ],
    [{ kind: 'redirect', endpoint: 'token', location: 'x y' }, /^location: must be .+ \(found "x y"\)$/],
    [{ kind: 'slow_body', endpoint: 'token', bytes_per_second: 0 }, /^bytes_per_second: must be .+ \(found 0\)$/],
    [{ kind: 'change_members', endpoint: 'token', members: '[0]' }, /^members: must be the text of a JSON object/],
    [{ kind: 'oversize', endpoint: 'token', bytes: 1e12 }, /^bytes: must be .+ \(found 1000000000000\)$/],
    [{ kind: 'origin_down', origin: 'both' }, /^origin: must be .+ \(found "both"\)$/],
    [{ kind: 'tls_failure', origin: 'base' }, /^kind: tls_failure needs an origin with TLS/],
    [[], /^body: must be .+ \(found an array\)$/],
    ['{', /^body: must be valid JSON$/],
  ]);
  expect(emulator.faults).toEqual([]);
});

test('the emulator library rejects an invalid fault, and a start with one fails', async ({ emulator }) => {
  expect(() => emulator.addFault({ ...BUSY, status: 99 })).toThrow(/^status: must be .*\(found 99\)$/);
  const slow = { kind: 'slow_body', endpoint: 'token', bytesPerSecond: 0 } as const;
  expect(() => emulator.addFault(slow)).toThrow(/^bytesPerSecond: must be .*\(found 0\)$/);
  await expect(startTestEmulator({ faults: [{ ...BUSY, every: 0 }] })).rejects.toThrow(
    /^faults: every: must be .*\(found 0\)$/,
  );
  await expect(startTestEmulator({ seed: -1 })).rejects.toThrow(/^seed: must be .*\(found -1\)$/);
});

test("faults of the emulator's start are in force from the first request", async () => {
  await using emulator = await startTestEmulator({ faults: [{ ...BUSY, times: 2 }] });
  expect(await statuses(emulator, 3)).toEqual([503, 503, 401]);
});

test('the guide lists all kinds of faults as the code declares them', () => {
  const spelled = (name: string) => `\`${name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}\``;
  const declared = Object.entries(FAULT_KINDS).map(([kind, { target, own, effect }]) => {
    const members = [...(target === 'requests' ? [] : ['origin']), ...Object.keys(own)];
    return [spelled(kind), members.map(spelled).join(', '), effect];
  });
  const guide = readFileSync(join(root, 'docs/emulator.md'), 'utf8');
  const [, table = ''] = /\| `kind` \| members \|.*\n.*\n((?:\|.*\n)+)/.exec(guide) ?? [];
  const rows = table.trim().split('\n');
  expect(
    rows.map((row) =>
      row
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    ),
  ).toEqual(declared);
});
