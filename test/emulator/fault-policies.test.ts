import { expect, test } from 'vitest';
import type { EmulatorOptions } from '../../src/emulator/index.ts';
import { errorOf, exchange, obtainCode, obtainTokens, refresh, start, tokens, whoami } from './portal-client.ts';

/** A refresh whose answer is lost, and the same refresh token once more. */
async function lostAnswer(options: EmulatorOptions) {
  const emulator = await start(options);
  const first = await obtainTokens(emulator);
  emulator.addFault({ endpoint: 'token', grantType: 'refresh_token', kind: 'commit_then_drop' });
  await expect(refresh(emulator, first.refresh_token)).rejects.toThrow();
  expect(emulator.grants()).toMatchObject([{ generation: 2, revoked: false }]);
  const [, lost] = emulator.secretsIssued('refresh_token');
  return { emulator, first, lost: lost ?? '', replay: await refresh(emulator, first.refresh_token) };
}

test('after a lost answer, a portal that only refuses reuse refuses the replay and leaves the family alive', async () => {
  const { emulator, first, lost, replay } = await lostAnswer({ onReuse: 'refuse' });
  await using _ = emulator;
  expect(await errorOf(replay)).toEqual([400, 'invalid_grant']);
  expect((await whoami(emulator, first.access_token)).status).toBe(200);
  expect((await refresh(emulator, lost)).status).toBe(200);
  expect(emulator.observations.refreshTokensRepeated).toBe(1);
});

test('after a lost answer, a portal that revokes on reuse revokes the family at the replay', async () => {
  const { emulator, first, lost, replay } = await lostAnswer({ onReuse: 'revoke-family' });
  await using _ = emulator;
  expect(await errorOf(replay)).toEqual([400, 'invalid_grant']);
  expect((await whoami(emulator, first.access_token)).status).toBe(401);
  expect(await errorOf(await refresh(emulator, lost))).toEqual([400, 'invalid_grant']);
  expect(emulator.grants()).toMatchObject([{ revoked: true }]);
});

test.for(['refuse', 'revoke-family'] as const)(
  'after a lost answer, a grace of one generation gives the replay new tokens (on reuse: %s)',
  async (onReuse) => {
    const { emulator, first, lost, replay } = await lostAnswer({ onReuse, refreshGrace: 1 });
    await using _ = emulator;
    const second = await tokens(replay);
    expect(second.refresh_token).not.toBe(lost);
    expect(emulator.grants()).toMatchObject([{ generation: 3, revoked: false }]);
    expect(await errorOf(await refresh(emulator, first.refresh_token))).toEqual([400, 'invalid_grant']);
    expect((await refresh(emulator, second.refresh_token)).status).toBe(onReuse === 'refuse' ? 200 : 400);
  },
);

test.for(['refuse', 'revoke-family'] as const)(
  'after a lost answer, a grace time gives the replay the very tokens that were lost (on reuse: %s)',
  async (onReuse) => {
    const { emulator, first, lost, replay } = await lostAnswer({ onReuse, refreshGraceTime: 30 });
    await using _ = emulator;
    const second = await tokens(replay);
    expect(second.refresh_token).toBe(lost);
    expect(emulator.grants()).toMatchObject([{ generation: 2, revoked: false }]);
    emulator.advance(30);
    expect(await errorOf(await refresh(emulator, first.refresh_token))).toEqual([400, 'invalid_grant']);
    expect((await refresh(emulator, second.refresh_token)).status).toBe(onReuse === 'refuse' ? 200 : 400);
  },
);

test('a code whose exchange was lost is used up, and its second use takes back what the first one gave', async () => {
  await using emulator = await start();
  const code = await obtainCode(emulator);
  emulator.addFault({ endpoint: 'token', grantType: 'authorization_code', kind: 'commit_then_drop' });
  await expect(exchange(emulator, code)).rejects.toThrow();
  const [lost = ''] = emulator.secretsIssued('refresh_token');
  expect(await errorOf(await exchange(emulator, code))).toEqual([400, 'invalid_grant']);
  expect(await errorOf(await refresh(emulator, lost))).toEqual([400, 'invalid_grant']);
});

test('a code whose exchange was reset before it was done is good for another one', async () => {
  await using emulator = await start();
  const code = await obtainCode(emulator);
  emulator.addFault({ endpoint: 'token', kind: 'reset_before' });
  await expect(exchange(emulator, code)).rejects.toThrow();
  expect((await exchange(emulator, code)).status).toBe(200);
});
