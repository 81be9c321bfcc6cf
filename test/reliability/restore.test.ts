import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { RestoreReport } from '../../src/core/administration.ts';
import { type Emulator, startEmulator } from '../../src/emulator/index.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { applianceStatus, ask, pairFleet, rememberIssued, until } from './fleet.ts';

const PASSPHRASE = 'correct horse battery staple';
rememberSecrets([PASSPHRASE]);

/** A passphrase and a copy for both of two hubs. */
async function backUp(hub: HubProcess) {
  const file = join(hub.directory, 'hub.copy');
  const passphrase = join(hub.directory, 'passphrase');
  writeFileSync(passphrase, PASSPHRASE, { mode: 0o600 });
  const given = ['--passphrase-file', passphrase];
  await hub.json('backup', file, ...given);
  return { restoreOn: (other: HubProcess) => other.json<RestoreReport>('restore', file, '--yes', ...given) };
}

/** Waits until the hub has started again on what was restored. */
async function startedAgain(hub: HubProcess, id: string): Promise<void> {
  await eventually(async () => (await hub.status().catch(() => null))?.hub.id === id);
}

async function restoredOnAnother(emulator: Emulator, between: (old: HubProcess) => Promise<unknown>) {
  await using parts = new AsyncDisposableStack();
  const old = parts.use(await HubProcess.start({ emulator }));
  const [credentials] = await pairFleet(old, emulator, ['wallbox']);
  if (credentials === undefined) throw new Error('nothing was paired');
  const { id } = (await old.status()).hub;
  const authority = await ask(old, (control) => control.authority());
  const copy = await backUp(old);
  await between(old);
  await old.kill('SIGTERM');
  const hub = parts.use(await HubProcess.start({ emulator }));
  const report = await copy.restoreOn(hub);
  expect(report).toMatchObject({ hub_id: id, restored: ['wallbox'], kept: [] });
  await startedAgain(hub, id);
  expect(await ask(hub, (control) => control.authority())).toEqual(authority);
  const kept = parts.move();
  return {
    hub,
    credentials,
    copy,
    report,
    async [Symbol.asyncDispose]() {
      rememberIssued(emulator);
      await kept.disposeAsync();
    },
  };
}

describe('a hub whose card died', () => {
  it('lives on in another one, by the same id and CA, and its appliances notice nothing', async () => {
    await using emulator = await startEmulator({ tokenLifetime: 3600 });
    await using home = await restoredOnAnother(emulator, async () => undefined);
    const { hub, credentials } = home;
    expect(await hub.requestToken(credentials)).toMatchObject({ status: 200 });
    expect(await ask(hub, (control) => control.refresh('wallbox'))).toMatchObject({ state: 'active', problem: null });
    expect(emulator.grants()[0]?.generation).toBeGreaterThan(1);
  });

  it('says of a grant that was used since the copy which copy it was, and serves its token to the end', async () => {
    await using emulator = await startEmulator({ tokenLifetime: 3600 });
    await using home = await restoredOnAnother(emulator, (old) => ask(old, (control) => control.refresh('wallbox')));
    const { hub, report } = home;
    const status = await until(hub, 'wallbox', ({ state }) => state === 'needs_pairing');
    expect(status.problem?.message).toMatch(
      /restored from a copy of .*Z, and the portal no longer accepts its refresh token, which another hub, or this one since then, has used/,
    );
    expect(Date.parse(/copy of (\S+),/.exec(status.problem?.message ?? '')?.[1] ?? '')).toBeCloseTo(
      Date.parse(report.made),
      -4,
    );
  });
});

describe('restoring on the hub itself', () => {
  it('keeps grants that are newer than the copy, and goes on', async () => {
    await using emulator = await startEmulator({ tokenLifetime: 3600 });
    await using hub = await HubProcess.start({ emulator });
    await pairFleet(hub, emulator, ['wallbox', 'heater']);
    const before = (await hub.status()).hub;
    const copy = await backUp(hub);
    await ask(hub, (control) => control.refresh('wallbox'));
    await ask(hub, (control) => control.unpair('heater'));
    expect(await copy.restoreOn(hub)).toMatchObject({ restored: ['heater'], kept: ['wallbox'] });
    const pid = hub.pid;
    await eventually(async () => {
      const status = await hub.status().catch(() => null);
      return status?.appliances.every(({ state }) => state !== 'unpaired');
    });
    expect(hub.pid).toBe(pid);
    expect((await hub.status()).hub).toMatchObject({ id: before.id, ca_fingerprint: before.ca_fingerprint });
    expect(await ask(hub, (control) => control.refresh('wallbox'))).toMatchObject({ state: 'active' });
    expect(await applianceStatus(hub, 'heater')).toMatchObject({ name: 'heater' });
    rememberIssued(emulator);
    await hub.kill('SIGTERM');
  });
});
