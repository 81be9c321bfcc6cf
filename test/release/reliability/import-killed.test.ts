import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Emulator } from '../../../src/emulator/index.ts';
import { canTraceSystemCalls, killBeforeSystemCall, ONE_POOL_THREAD } from '../../chaos/system-calls.ts';
import { whoami } from '../../reliability/load.ts';
import { eventually, HubProcess } from '../../support/hub-process.ts';
import { OtherClient } from '../../support/other-client.ts';
import { startPortal } from '../../support/portal.ts';
import { isRunning } from '../../support/processes.ts';

const STORE_FILES = ['latchkey.db', 'latchkey.db-wal'];
/** More boundaries than this indicate an endless walk. */
const MAX_BOUNDARIES = 40;

/** System calls before which the hub is killed, and whether only those on the store count. */
const BOUNDARIES = [
  { call: 'fdatasync', onStore: true },
  { call: 'connect', onStore: false },
  { call: 'writev', onStore: false },
] as const;

describe.skipIf(!canTraceSystemCalls())('hub killed during an import', () => {
  it.concurrent.for(BOUNDARIES)(
    'a hub killed before any $call of an import never loses the token in silence',
    async (boundary, { expect }) => {
      // The portal repeats its answer to an interrupted refresh, so whatever was sent can be continued.
      await using emulator = await startPortal({ refreshGraceTime: 3600 });
      await using hub = await HubProcess.start({ emulator, env: ONE_POOL_THREAD });
      const files = boundary.onStore ? STORE_FILES.map((name) => join(hub.directory, 'state', name)) : [];
      let when = 1;
      for (; when < MAX_BOUNDARIES; when++) {
        const name = `taken-over-${when}`;
        const other = await OtherClient.logIn(emulator);
        const { pid } = hub;
        let isDone = false;
        {
          await using _watch = await killBeforeSystemCall(pid, [boundary.call], when, files);
          isDone = await importGrant(hub, name, other).then(
            () => true,
            () => false,
          );
          if (!isDone) await eventually(async () => !isRunning(pid), 5).catch(() => undefined);
        }
        if (isDone && isRunning(pid)) break;
        await eventually(async () => !isRunning(pid), 10);
        await hub.kill();
        await hub.launch();
        await expectNothingLost(hub, emulator, name, other);
      }
      expect(when, 'boundaries with a kill').toBeGreaterThan(1);
      expect(when).toBeLessThan(MAX_BOUNDARIES);
      expect(emulator.observations.codesRepeated).toBe(0);
    },
  );
});

function importGrant(hub: HubProcess, name: string, { refreshToken }: OtherClient): Promise<unknown> {
  return hub.ask((control) =>
    control.request('importGrant', { name, scope: 'Monitoring', refresh_token: refreshToken }),
  );
}

/**
 * After a kill the hub either has the token, and gets a new one by itself, or it has nothing of it, and then the other
 * program's token was not sent, so that the import can be repeated.
 */
async function expectNothingLost(hub: HubProcess, emulator: Emulator, name: string, other: OtherClient): Promise<void> {
  const stateOf = async () => {
    const { connections } = await hub.ask((control) => control.request('status'));
    return connections.find((connection) => connection.name === name)?.state ?? 'unpaired';
  };
  if ((await stateOf()) === 'unpaired') await importGrant(hub, name, other);
  await eventually(async () => (await stateOf()) === 'active', 30);
  const { access_token } = await hub.ask((control) => control.request('token', { name }));
  expect(await whoami(emulator, access_token)).toBe(200);
  const appliance = await hub.addAppliance(`user-of-${name}`, null, null, name);
  expect(await hub.requestToken(appliance)).toMatchObject({ status: 200 });
}
