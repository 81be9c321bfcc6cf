import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Emulator } from '../../../src/emulator/index.ts';
import { eventually, HubProcess } from '../../support/hub-process.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { startPortal } from '../../support/portal.ts';
import { setUpOnce } from '../../support/set-up.ts';

let emulator: Emulator;
let hub: HubProcess;

setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal());
});

beforeEach(async () => {
  hub = await HubProcess.start({ emulator });
});

afterEach(() => hub[Symbol.asyncDispose]());

const keyFile = () => join(hub.directory, 'state/store.key');

test('a running hub rotates its store key, issues tokens meanwhile, and keeps its grants over restarts', async () => {
  const wallbox = await hub.addAppliance('wallbox');
  await hub.pair('wallbox', emulator);
  const before = readFileSync(keyFile(), 'utf8');
  rememberSecrets([before.trim()]);
  const { code } = await hub.setupCode();
  const done = new AbortController();
  const statuses = new Set<number>();
  const customer = (async () => {
    while (!done.signal.aborted) {
      statuses.add((await hub.requestToken(wallbox)).status);
      await sleep(5);
    }
  })();
  for (let round = 0; round < 2; round++) {
    expect(await hub.json('store-key', '--rotate')).toEqual({
      leftovers: [],
      snapshot_problem: null,
      is_credential: false,
    });
    await hub.ask((control) => control.refresh('wallbox'));
  }
  done.abort();
  await customer;
  expect([...statuses]).toEqual([200]);
  expect(readFileSync(keyFile(), 'utf8')).not.toBe(before);
  rememberSecrets([readFileSync(keyFile(), 'utf8').trim()]);
  expect(readFileSync(hub.log, 'utf8')).toContain('store_key_rotated');
  await hub.kill();
  await hub.launch();
  expect((await hub.requestToken(wallbox)).status).toBe(200);
  await hub.ask((control) => control.refresh('wallbox'));
  expect((await hub.setupCode()).code).toBe(code);
  expect((await hub.status()).hub).not.toHaveProperty('problems');
});

test('a hub that is killed during a rotation of the store key starts again with its grant', async () => {
  const wallbox = await hub.addAppliance('wallbox');
  await hub.pair('wallbox', emulator);
  for (const delay of [0, 5, 20]) {
    const rotation = hub.ask((control) => control.rotateStoreKey()).catch(() => null);
    await sleep(delay);
    await hub.kill();
    await rotation;
    await hub.launch();
    expect((await hub.requestToken(wallbox)).status, `killed after ${delay} ms`).toBe(200);
    await hub.ask((control) => control.refresh('wallbox'));
    expect((await hub.status()).hub).not.toHaveProperty('problems');
  }
});

test('a stolen store key does not open a store that has another key now', async () => {
  await hub.addAppliance('wallbox');
  await hub.pair('wallbox', emulator);
  await eventually(async () => readFileSync(hub.log, 'utf8').includes('snapshot_written'));
  const stolen = join(hub.directory, 'stolen.key');
  copyFileSync(keyFile(), stolen);
  await hub.ask((control) => control.rotateStoreKey());
  await hub.kill();
  copyFileSync(stolen, keyFile());
  await expect(hub.launch()).rejects.toThrow(/sealed with another store\.key/);
});
