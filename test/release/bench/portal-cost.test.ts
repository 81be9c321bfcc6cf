import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { type LoggedRequest, startEmulator } from '../../../src/emulator/index.ts';
import { fetchPage } from '../../reliability/fleet.ts';
import { eventually, HubProcess } from '../../support/hub-process.ts';
import { stateFolder } from '../../support/state-folder.ts';

/** The lifetime of the portal's tokens, in s. */
const LIFETIME = 5;

test('the hub sends the portal only one link request and exchange, a poll every 5 s and the due refreshes', async () => {
  using folder = stateFolder();
  const caFile = join(folder.path, 'portal-ca.pem');
  await using emulator = await startEmulator({ tls: true, caFile, tokenLifetime: LIFETIME });
  using connections = countConnectionsTo(Number(new URL(emulator.frontendUrl).port));
  await using hub = await HubProcess.start({ emulator, portal: `ca_file = "${caFile}"` });
  const appliances = [];
  for (const way of ['redirect', 'polling'] as const) {
    const last = emulator.requests.at(-1)?.number ?? 0;
    appliances.push(await hub.addAppliance(way));
    const begun = performance.now();
    const url = await hub.beginPairing(way);
    await sleep(1000);
    const waited = performance.now() - begun;
    const { location } = await emulator.login({ state: url.searchParams.get('state') ?? '', user: 'demo' });
    if (way === 'redirect') await fetchPage(location);
    await eventually(async () => (await hub.appliance(way)).state === 'active');
    const made = emulator.requests.filter(({ number }) => number > last);
    const links = made.filter(({ endpoint }) => endpoint === 'config').length;
    const exchanges = made.filter(({ form }) => form['grant_type'] === 'authorization_code').length;
    expect({ way, links, exchanges }).toEqual({ way, links: 1, exchanges: 1 });
    // The poll that gets the code comes after the login.
    expect(made.filter(({ endpoint }) => endpoint === 'code/get').length).toBeLessThanOrEqual(waited / 5000 + 1);
  }
  let issued = 0;
  while (tokenAges(emulator.requests).length < 5) {
    for (const appliance of appliances) {
      expect((await hub.requestToken(appliance)).status).toBe(200);
      issued += 1;
    }
    await sleep(50);
  }
  const ages = tokenAges(emulator.requests);
  expect(issued).toBeGreaterThan(ages.length);
  expect(connections.count).toBe(emulator.requests.filter(({ endpoint }) => endpoint === 'token').length);
  const known = new Set(['config', 'code/get', 'code/set', 'authorize', 'token']);
  expect(emulator.requests.filter(({ endpoint }) => !known.has(endpoint))).toEqual([]);
  // On a busy machine refreshes only come later, except for the duration of the previous request.
  const sorted = ages.toSorted((a, b) => a - b);
  expect(sorted[Math.floor(sorted.length / 2)]).toBeGreaterThan(740 * LIFETIME);
});

/**
 * The age of each token when it was replaced, in ms. Equal secrets are masked equally in the emulator's request log.
 */
function tokenAges(requests: readonly LoggedRequest[]): number[] {
  const issuedAt = new Map<unknown, number>();
  const ages: number[] = [];
  for (const { endpoint, time, form, answer } of requests) {
    if (endpoint !== 'token') continue;
    const before = issuedAt.get(form['refresh_token']);
    if (before !== undefined) ages.push(Date.parse(time) - before);
    issuedAt.set(answer['refresh_token'], Date.parse(time));
  }
  return ages;
}

/** Counts the connections to a port of this process. */
function countConnectionsTo(port: number) {
  let count = 0;
  const note = (message: unknown) => {
    const { socket } = message as { socket: Socket };
    if (socket.localPort === port) count += 1;
  };
  subscribe('net.server.socket', note);
  return {
    get count() {
      return count;
    },
    [Symbol.dispose]: () => void unsubscribe('net.server.socket', note),
  };
}
