import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { Secret } from '../../src/core/secret.ts';
import { instantAt, sampleGrant } from '../core/samples.ts';
import { addAppliance, WALLBOX } from '../store/test-store.ts';
import { addressOf, openSiteStore, siteServer, useSiteServer } from './site-harness.ts';

useSiteServer();

test('a hub sees what another hub of its site has written', async () => {
  const server = await siteServer();
  const { url } = await server.createDatabase();
  await using first = await openSiteStore(addressOf(url), 'latchkey-00000001');
  await using second = await openSiteStore(addressOf(url), 'latchkey-00000002');
  const news: string[] = [];
  second.onNews(async ({ grants }) => void news.push(...grants));
  await addAppliance(first, WALLBOX);
  expect(await second.appliances()).toEqual([WALLBOX]);
  const grant = { ...sampleGrant(), connection: WALLBOX.connection };
  expect(await first.replaceGrant(grant)).toBe(true);
  const stored = await second.grant(grant.connection);
  expect(stored?.grant.refreshToken?.reveal()).toBe(grant.refreshToken?.reveal());
  await expect.poll(() => news).toEqual([grant.connection]);
  const attempt = { token: 'hash', at: instantAt(1) };
  expect(await first.beginAttempt(grant, attempt)).toMatchObject({ kind: 'begun' });
  expect(await second.beginAttempt(grant, attempt)).toEqual({ kind: 'superseded' });
  expect(await second.grant(grant.connection)).toMatchObject({ attempt: { leasedUntil: expect.any(Number) } });
  expect(await second.beginAttempt(grant, attempt)).toMatchObject({ kind: 'under_way' });
  expect(await second.endAttempt(grant)).toBe(false);
  expect(await first.replaceGrant({ ...grant, generation: 2, accessToken: new Secret(randomUUID()) })).toBe(true);
  expect(await second.beginAttempt({ ...grant, generation: 2 }, attempt)).toEqual({ kind: 'superseded' });
  await second.grant(grant.connection);
  expect(await second.beginAttempt({ ...grant, generation: 2 }, attempt)).toMatchObject({ kind: 'begun' });
});
