import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { RestoreReport } from '../../src/core/administration.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { startPortal } from '../support/portal.ts';
import { pairFleet } from './fleet.ts';

const PASSPHRASE = 'correct horse battery staple';
rememberSecrets([PASSPHRASE]);

/** Writes a passphrase file and a backup of a hub. */
async function backUp(hub: HubProcess) {
  const file = join(hub.directory, 'hub.copy');
  const passphrase = join(hub.directory, 'passphrase');
  writeFileSync(passphrase, PASSPHRASE, { mode: 0o600 });
  const given = ['--passphrase-file', passphrase];
  await hub.json('backup', file, ...given);
  return { restoreOn: (other: HubProcess) => other.json<RestoreReport>('restore', file, '--yes', ...given) };
}

/** Waits until the hub has restarted with the restored state. */
async function startedAgain(hub: HubProcess, id: string): Promise<void> {
  await eventually(async () => (await hub.status().catch(() => null))?.hub.id === id);
}

it('a backup restored on a new hub continues the old one, and a refused grant names the time of the copy', async () => {
  await using emulator = await startPortal({ tokenLifetime: 3600 });
  await using old = await HubProcess.start({ emulator, here: true });
  const [wallbox = expect.fail()] = await pairFleet(old, emulator, ['wallbox', 'heater']);
  const { id } = (await old.status()).hub;
  const authority = await old.ask((control) => control.request('authority'));
  const copy = await backUp(old);
  await old.ask((control) => control.request('refresh', { name: 'heater' }));
  await old.kill('SIGTERM');

  await using hub = await HubProcess.start({ emulator, here: true });
  const report = await copy.restoreOn(hub);
  expect(report).toMatchObject({ hub_id: id, kept: [] });
  expect(report.restored.toSorted()).toEqual(['heater', 'wallbox']);
  await startedAgain(hub, id);
  expect(await hub.ask((control) => control.request('authority'))).toEqual(authority);
  expect(await hub.requestToken(wallbox)).toMatchObject({ status: 200 });
  expect(await hub.ask((control) => control.request('refresh', { name: 'wallbox' }))).toMatchObject({
    state: 'active',
    problem: null,
  });
  expect(emulator.grants()[0]?.generation).toBeGreaterThan(1);

  const status = await hub.until('heater', ({ state }) => state === 'needs_pairing');
  expect(status.problem?.message).toMatch(
    /restored from a copy of .*Z, and the portal no longer accepts its refresh token, because another hub has used it, or this one after the copy was made/,
  );
  // The report's time has a resolution of one second.
  expect(status.problem?.message).toContain(`copy of ${report.made.slice(0, -1)}`);
});

it('a backup restored on the same hub keeps newer grants, and the hub continues with its id and CA', async () => {
  await using emulator = await startPortal({ tokenLifetime: 3600 });
  await using hub = await HubProcess.start({ emulator, here: true });
  await pairFleet(hub, emulator, ['wallbox', 'heater']);
  const before = (await hub.status()).hub;
  const copy = await backUp(hub);
  await hub.ask((control) => control.request('refresh', { name: 'wallbox' }));
  await hub.ask((control) => control.request('unpair', { name: 'heater' }));
  expect(await copy.restoreOn(hub)).toMatchObject({ restored: ['heater'], kept: ['wallbox'] });
  await eventually(async () => {
    const status = await hub.status().catch(() => null);
    return status?.appliances.every(({ state }) => state !== 'unpaired');
  });
  expect((await hub.status()).hub).toMatchObject({ id: before.id, ca_fingerprint: before.ca_fingerprint });
  expect(await hub.ask((control) => control.request('refresh', { name: 'wallbox' }))).toMatchObject({
    state: 'active',
  });
});
