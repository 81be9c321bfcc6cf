import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { HubProcess } from '../../support/hub-process.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { startPortal } from '../../support/portal.ts';

test('a running hub rotates its store key, issues tokens meanwhile, and keeps its grants over restarts', async () => {
  await using emulator = await startPortal();
  await using hub = await HubProcess.start({ emulator });
  const keyFile = join(hub.directory, 'state/store.key');
  const wallbox = await hub.addAppliance('wallbox');
  await hub.pair('wallbox', emulator);
  const before = readFileSync(keyFile, 'utf8');
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
    await hub.ask((control) => control.request('refresh', { name: 'wallbox' }));
  }
  done.abort();
  await customer;
  expect([...statuses]).toEqual([200]);
  expect(readFileSync(keyFile, 'utf8')).not.toBe(before);
  rememberSecrets([readFileSync(keyFile, 'utf8').trim()]);
  expect(readFileSync(hub.log, 'utf8')).toContain('store_key_rotated');
  await hub.kill();
  await hub.launch();
  expect((await hub.requestToken(wallbox)).status).toBe(200);
  await hub.ask((control) => control.request('refresh', { name: 'wallbox' }));
  expect((await hub.setupCode()).code).toBe(code);
  expect((await hub.status()).hub).not.toHaveProperty('problems');
});
