import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Agent, fetch } from 'undici';
import { expect } from 'vitest';
import { startEmulator } from '../../src/emulator/index.ts';
import { HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { stateFolder } from '../support/state-folder.ts';
import { startTestEmulator, test } from './portal-client.ts';

test("the emulator's certificate covers loopback, its public name and allowed hosts, and caFile gets its CA", async () => {
  using folder = stateFolder();
  const caFile = join(folder.path, 'ca.pem');
  await using emulator = await startTestEmulator({
    tls: true,
    caFile,
    host: '0.0.0.0',
    publicHost: 'portal.test',
    allowedHosts: ['bench.example'],
  });
  expect(emulator.baseUrl).toMatch(/^https:\/\/portal\.test:/);
  expect(await readFile(caFile, 'utf8')).toBe(emulator.ca);
  const ca = new X509Certificate(emulator.ca ?? '');
  expect([ca.ca, ca.subject]).toEqual([true, expect.stringMatching(/^CN=Latchkey portal emulator CA /)]);
  const port = new URL(emulator.baseUrl).port;
  const dispatcher = new Agent({
    connect: {
      ca: emulator.ca ?? '',
      lookup: (_name, _options, found) => found(null, [{ address: '127.0.0.1', family: 4 }]),
    },
  });
  for (const host of ['127.0.0.1', 'localhost', 'portal.test', 'bench.example']) {
    expect((await fetch(`https://${host}:${port}/api/whoami`, { dispatcher })).status).toBe(401);
  }
  await expect(fetch(`https://127.0.0.1:${port}/api/whoami`)).rejects.toThrow();
});

test('an emulator without TLS has no CA, and rejects a caFile', async ({ emulator }) => {
  expect(emulator.ca).toBeNull();
  await expect(startTestEmulator({ caFile: 'ca.pem' })).rejects.toThrow(
    /^caFile: needs tls \(found ca.pem without tls\)/,
  );
  await expect(startTestEmulator({ tls: true, caFile: '/nowhere/ca.pem' })).rejects.toThrow(
    /^caFile: can't write .*ENOENT/,
  );
});

test("a hub that is given the emulator's CA pairs and refreshes over TLS", async () => {
  using folder = stateFolder();
  const caFile = join(folder.path, 'ca.pem');
  await using emulator = await startEmulator({ tls: true, caFile });
  rememberSecrets([emulator.clientSecret]);
  await using hub = await HubProcess.start({ here: true, emulator, portal: `ca_file = "${caFile}"` });
  await hub.addAppliance('wallbox');
  await hub.pair('wallbox', emulator);
  const refreshed = await hub.ask((control) => control.request('refresh', { name: 'wallbox' }));
  expect(refreshed).toMatchObject({ state: 'active', problem: null });
  expect(emulator.grants()[0]?.generation).toBe(2);
  rememberSecrets(emulator.secretsIssued('code', 'access_token', 'refresh_token'));
});
