import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Configuration, customFetch, genericGrantRequest, refreshTokenGrant } from 'openid-client';
import { Agent, fetch, type RequestInit } from 'undici';
import { expect } from 'vitest';
import { type Emulator, startEmulator } from '../../src/emulator/index.ts';
import { HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { stateFolder } from '../support/state-folder.ts';
import { HEATER, startTestEmulator, stateOf, test } from './portal-client.ts';

/** Fetches and trusts one CA only. */
function fetching(ca: string) {
  const dispatcher = new Agent({ connect: { ca } });
  return (url: string, init: RequestInit = {}) => fetch(url, { ...init, dispatcher, redirect: 'manual' });
}

async function obtainCode(emulator: Emulator, get: ReturnType<typeof fetching>): Promise<string> {
  const response = await get(`${emulator.baseUrl}/external/oauth2helper/config/${emulator.clientId}`, {
    method: 'POST',
  });
  const { code_url } = (await response.json()) as { code_url: string };
  expect(code_url).toMatch(/^https:/);
  await emulator.login({ state: stateOf(code_url), user: 'alice' });
  return ((await (await get(code_url)).json()) as { code: string }).code;
}

test("openid-client gets and refreshes tokens over TLS if it trusts the emulator's CA, and is refused otherwise", async () => {
  await using emulator = await startTestEmulator({ tls: true });
  expect([emulator.baseUrl, emulator.frontendUrl, emulator.consoleUrl]).toEqual(
    [1, 2, 3].map(() => expect.stringMatching(/^https:\/\/127\.0\.0\.1:\d+/)),
  );
  await expect(fetch(`${emulator.baseUrl}/api/whoami`)).rejects.toThrow();
  const get = fetching(emulator.ca ?? '');
  const server = { issuer: emulator.frontendUrl, token_endpoint: `${emulator.frontendUrl}/sso/token` };
  const client = new Configuration(server, HEATER.id, HEATER.secret);
  client[customFetch] = (url, { body, headers, method }) =>
    get(url, { body: String(body), headers, method }) as unknown as Promise<Response>;
  const form = { code: await obtainCode(emulator, get), scope: 'Monitoring' };
  const first = await genericGrantRequest(client, 'authorization_code', form);
  const second = await refreshTokenGrant(client, first.refresh_token ?? '');
  expect(second).toMatchObject({ token_type: 'bearer', scope: 'Monitoring' });
  expect(second.refresh_token).not.toBe(first.refresh_token);
  const headers = { authorization: `Bearer ${second.access_token}` };
  expect((await get(`${emulator.baseUrl}/api/whoami`, { headers })).status).toBe(200);
});

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
  const get = fetching(emulator.ca ?? '');
  for (const host of ['127.0.0.1', 'localhost']) {
    expect((await get(`https://${host}:${port}/api/whoami`)).status).toBe(401);
  }
  const named = new Agent({
    connect: {
      ca: emulator.ca ?? '',
      lookup: (_name, _options, found) => found(null, [{ address: '127.0.0.1', family: 4 }]),
    },
  });
  for (const host of ['portal.test', 'bench.example']) {
    expect((await fetch(`https://${host}:${port}/api/whoami`, { dispatcher: named })).status).toBe(401);
  }
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
  const refreshed = await hub.ask((control) => control.refresh('wallbox'));
  expect(refreshed).toMatchObject({ state: 'active', problem: null });
  expect(emulator.grants()[0]?.generation).toBe(2);
  rememberSecrets(emulator.secretsIssued('code', 'access_token', 'refresh_token'));
});
