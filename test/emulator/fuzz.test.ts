import { expect, test } from 'vitest';
import { requestOf } from '../../scripts/fuzz-requests.ts';
import { fuzz } from '../../scripts/fuzz-run.ts';
import { start } from '../cli/command.ts';
import { rememberSecrets } from '../support/logs.ts';

const clients = [
  { id: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1a01', secret: 'attacker-client-secret' },
  { id: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1a02', secret: 'victim-client-secret' },
] as const;
const users = [
  { id: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1abb', secret: 'attacker-password' },
  { id: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1acc', secret: 'victim-password' },
] as const;

test('20,000 mutated requests neither stop the emulator nor get a 5xx or a secret out of it', async () => {
  const flags = [
    ...clients.flatMap(({ id, secret }) => ['--client', `${id}:${secret}`]),
    ...users.flatMap(({ id, secret }) => ['--user', `${id}:${secret}`]),
  ];
  rememberSecrets([...clients, ...users].map(({ secret }) => secret));
  const emulator = start(['emulator', '--json', ...flags]);
  try {
    const line = JSON.parse(await emulator.stdout(/\n/)) as { base_url: string; frontend_url: string };
    const [baseUrl, frontendUrl] = [line.base_url, line.frontend_url];
    const outcome = await fuzz({ baseUrl, frontendUrl, clients, users, pid: emulator.process.pid ?? 0 }, 20_000, 1);
    expect(outcome.problems).toEqual([]);
    expect(outcome.sent).toBeGreaterThan(19_000);
    for (const status of [200, 303, 400, 401, 404, 405]) expect(outcome.statuses.get(status), `${status}`).toBeTruthy();
    expect(Math.max(...outcome.memory)).toBeLessThan(500);
  } finally {
    emulator.process.kill('SIGINT');
  }
  expect(await emulator.ended).toMatchObject({ status: 0, stderr: '' });
}, 120_000);

test('a seed gives the same requests again, another one others', () => {
  const facts = {
    clientId: 'a',
    clientSecret: 'b',
    victimId: 'c',
    user: 'd',
    password: 'e',
    states: ['f.g.h'],
    codes: ['i'],
    accessTokens: ['j.1.2.3'],
    refreshTokens: ['k.1.2.3'],
    victimPayload: 'l',
  };
  const some = (seed: number) => Array.from({ length: 500 }, (_, number) => requestOf(seed, number, facts));
  expect(some(1)).toEqual(some(1));
  expect(some(1)).not.toEqual(some(2));
});
