import { expect, test } from 'vitest';
import { refusal, StockClient, startCloud } from './stock-client.ts';

test('refreshRotation never: the refresh token stays valid, and its lifetime begins with each use', async () => {
  await using cloud = await startCloud({ refreshRotation: 'never', refreshLifetime: 10_000 });
  const stock = await StockClient.discover(cloud);
  const first = await stock.obtainTokens();
  for (let time = 0; time < 3; time += 1) {
    cloud.clock.pass(6000);
    const next = await stock.refresh(first.refresh_token);
    expect(next.refresh_token).toBe(first.refresh_token);
    expect(next.access_token).not.toBe(first.access_token);
  }
  expect(cloud.emulator.observations.refreshTokensRepeated).toBe(0);
  expect(cloud.emulator.findings().earlyRefreshes).toEqual([]);
  await stock.refresh(first.refresh_token);
  expect(cloud.emulator.findings().earlyRefreshes).toMatchObject([{ count: 1, earliest: 0 }]);
  cloud.clock.pass(10_000);
  await expect(stock.refresh(first.refresh_token)).rejects.toMatchObject(refusal('invalid_grant'));
});

test('refreshRotation late: the refresh token is replaced after 70 % of its lifetime, and the old one is refused', async () => {
  await using cloud = await startCloud({ refreshRotation: 'late', refreshLifetime: 10_000, onReuse: 'revoke-family' });
  const stock = await StockClient.discover(cloud);
  const first = await stock.obtainTokens();
  cloud.clock.pass(6999);
  expect((await stock.refresh(first.refresh_token)).refresh_token).toBe(first.refresh_token);
  cloud.clock.pass(1);
  const second = await stock.refresh(first.refresh_token);
  expect(second.refresh_token).not.toBe(first.refresh_token);
  await expect(stock.refresh(first.refresh_token)).rejects.toMatchObject(refusal('invalid_grant'));
  expect(cloud.emulator.observations.refreshTokensRepeated).toBe(1);
  await expect(stock.refresh(second.refresh_token)).rejects.toMatchObject(refusal('invalid_grant'));
});

test('graceEndsOnUse: a used refresh token gets the same tokens until the new access token is used', async () => {
  await using cloud = await startCloud({ refreshGraceTime: 28_800, graceEndsOnUse: true });
  const stock = await StockClient.discover(cloud);
  const first = await stock.obtainTokens();
  const second = await stock.refresh(first.refresh_token);
  expect((await stock.whoami(first.access_token)).status).toBe(200);
  expect((await stock.refresh(first.refresh_token)).refresh_token).toBe(second.refresh_token);
  expect((await stock.whoami(second.access_token)).status).toBe(200);
  await expect(stock.refresh(first.refresh_token)).rejects.toMatchObject(refusal('invalid_grant'));
  const third = await stock.refresh(second.refresh_token);
  cloud.clock.pass(28_800);
  await expect(stock.refresh(second.refresh_token)).rejects.toMatchObject(refusal('invalid_grant'));
  expect((await stock.refresh(third.refresh_token)).token_type).toBe('bearer');
});
