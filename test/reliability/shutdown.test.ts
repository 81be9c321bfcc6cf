import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { type EmulatorOptions, startEmulator } from '../../src/emulator/index.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { logFile } from '../support/logs.ts';
import { MAIN, SHARED_CACHE } from '../support/program.ts';
import {
  addAppliance,
  applianceStatus,
  ask,
  beginPairing,
  codeSends,
  pairFleet,
  refreshSends,
  rememberIssued,
  startRefresh,
  until,
  visit,
} from './fleet.ts';
import { storeFleet } from './stored-fleet.ts';

/** How long the portal takes to answer, in ms. */
const SLOW = 3000;

describe.concurrent('a hub that is told to end', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)(
    'by %s waits for the answer to a refresh, keeps the successor and ends with 0',
    async (signal) => {
      await using portal = await slowPortal();
      const { emulator } = portal;
      await using hub = await HubProcess.start({ emulator });
      await pairFleet(hub, emulator, ['wallbox', 'heatpump']);
      await hub.kill('SIGTERM');

      const daemon = await serve(hub);
      portal.slow = true;
      startRefresh(hub, 'wallbox');
      startRefresh(hub, 'heatpump');
      await eventually(async () => refreshSends(emulator).length === 2);
      const told = Date.now();
      daemon.child.kill(signal);
      expect(await daemon.ended).toEqual({ status: 0, signal: null });
      expect(Date.now() - told).toBeGreaterThan(SLOW - 700);
      // The hub has patience for a minute.
      expect(Date.now() - told).toBeLessThan(SLOW + 20_000);

      portal.slow = false;
      await hub.launch();
      for (const name of ['wallbox', 'heatpump']) {
        expect(await applianceStatus(hub, name)).toMatchObject({ state: 'active', problem: null });
        expect(await ask(hub, (control) => control.refresh(name))).toMatchObject({ state: 'active' });
      }
      expect(refreshSends(emulator).map(({ sends }) => sends)).toEqual([1, 1, 1, 1]);
      expect(emulator.grants().map(({ generation }) => generation)).toEqual([3, 3]);
      rememberIssued(emulator);
    },
  );

  it('sends no refresh that has not been sent yet', async () => {
    await using portal = await slowPortal();
    const { emulator } = portal;
    await using hub = await HubProcess.prepare({ emulator });
    const names = Array.from({ length: 40 }, (_, index) => `appliance-${index}`);
    await storeFleet(hub, emulator, names, 0);
    const daemon = await serve(hub);
    portal.slow = true;
    for (const name of names) startRefresh(hub, name);
    // Some wait for their turn: no portal is sent all at once.
    await eventually(async () => refreshSends(emulator).length >= 32);
    daemon.child.kill('SIGTERM');
    expect(await daemon.ended).toEqual({ status: 0, signal: null });
    const sent = refreshSends(emulator).length;
    expect(sent).toBeLessThan(names.length);

    portal.slow = false;
    await hub.launch();
    const { appliances } = await ask(hub, (control) => control.status());
    expect(appliances).toHaveLength(names.length);
    for (const status of appliances) expect(status).toMatchObject({ state: 'active', problem: null });
    expect(emulator.grants().filter(({ generation }) => generation === 2)).toHaveLength(sent);
    rememberIssued(emulator);
  });

  it('waits for the exchange of a code as well', async () => {
    await using portal = await slowPortal();
    const { emulator } = portal;
    await using hub = await HubProcess.prepare({ emulator });
    const daemon = await serve(hub);
    await addAppliance(hub, 'wallbox');
    const { location } = await emulator.login({ state: await beginPairing(hub, 'wallbox'), user: 'demo' });
    portal.slow = true;
    void visit(location).catch(() => undefined);
    await eventually(async () => codeSends(emulator).length === 1);
    daemon.child.kill('SIGTERM');
    expect(await daemon.ended).toEqual({ status: 0, signal: null });
    await hub.launch();
    expect(await applianceStatus(hub, 'wallbox')).toMatchObject({ state: 'active', problem: null });
    expect(codeSends(emulator)).toEqual([1]);
    rememberIssued(emulator);
  });

  it('sends no refresh that comes due while it waits for the exchange of a code', async () => {
    await using portal = await slowPortal({ tokenLifetime: 10 });
    const { emulator } = portal;
    await using hub = await HubProcess.prepare({ emulator });
    const daemon = await serve(hub);
    await pairFleet(hub, emulator, ['wallbox']);
    await addAppliance(hub, 'heatpump');
    const { location } = await emulator.login({ state: await beginPairing(hub, 'heatpump'), user: 'demo' });
    portal.slow = true;
    portal.patience = 12_000;
    void visit(location).catch(() => undefined);
    await eventually(async () => codeSends(emulator).length === 2);
    const sent = refreshSends(emulator).length;
    daemon.child.kill('SIGTERM');
    expect(await daemon.ended).toEqual({ status: 0, signal: null });
    expect(refreshSends(emulator)).toHaveLength(sent);
    await hub.launch();
    // Where this machine is slow its token has run out by now, and another one is on its way.
    await until(hub, 'heatpump', ({ state }) => state === 'active');
    rememberIssued(emulator);
  });

  it('twice ends at once; the next run knows that an answer was lost', async () => {
    await using portal = await slowPortal();
    const { emulator } = portal;
    await using hub = await HubProcess.start({ emulator });
    await pairFleet(hub, emulator, ['wallbox']);
    await hub.kill('SIGTERM');
    const daemon = await serve(hub);
    portal.slow = true;
    startRefresh(hub, 'wallbox');
    await eventually(async () => refreshSends(emulator).length === 1);
    // Two of one kind that come before the first was looked at are one signal.
    daemon.child.kill('SIGTERM');
    daemon.child.kill('SIGINT');
    expect(await daemon.ended).toEqual({ status: 130, signal: null });

    await hub.launch();
    expect(await applianceStatus(hub, 'wallbox')).toMatchObject({
      state: 'retrying',
      problem: { code: 'answer_lost' },
    });
    portal.slow = false;
    await until(hub, 'wallbox', ({ state }) => state === 'active');
    expect(refreshSends(emulator).map(({ sends }) => sends)).toEqual([2]);
    rememberIssued(emulator);
  });
});

/** A portal whose token endpoint does what it is asked, and while `slow` takes its time to say so. */
async function slowPortal(options: Partial<EmulatorOptions> = {}) {
  const portal = { slow: false, patience: SLOW };
  const emulator = await startEmulator({
    refreshGrace: 1,
    ...options,
    intercept: {
      async answering({ endpoint }) {
        if (endpoint === 'token' && portal.slow) await sleep(portal.patience);
      },
    },
  });
  return Object.assign(portal, { emulator, [Symbol.asyncDispose]: () => emulator.close() });
}

/** Starts a prepared hub's daemon in a way that lets its end be seen. */
async function serve(hub: HubProcess): Promise<{
  readonly child: ChildProcess;
  readonly ended: Promise<{ status: number | null; signal: NodeJS.Signals | null }>;
}> {
  const child = spawn(process.execPath, [MAIN, 'serve', '--config', join(hub.directory, 'latchkey.toml')], {
    env: { PATH: process.env['PATH'], HOME: hub.directory, XDG_CACHE_HOME: SHARED_CACHE },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  child.stderr.pipe(createWriteStream(logFile('hub'), { mode: 0o600 }));
  const ended = once(child, 'exit').then(([status, signal]) => ({ status, signal }));
  await eventually(() => ask(hub, (control) => control.status()).catch(() => null));
  return { child, ended };
}
