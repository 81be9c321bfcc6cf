// A real hub and the emulator: the metrics are exact.
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { request } from 'undici';
import { describe, expect, it } from 'vitest';
import type { Emulator } from '../../src/emulator/index.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';
import { type ScrapedMetrics, scrapeMetrics } from './scrape.ts';

let emulator: Emulator;
let hub: HubProcess;

setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal());
  hub = parts.use(await HubProcess.start({ emulator, metrics: '127.0.0.1:0', here: true }));
});

const scraped = async (of: HubProcess = hub) => scrapeMetrics((await of.status()).hub.metrics_port);
const refresh = (name: string) => hub.ask((control) => control.request('refresh', { name }));

async function reloaded(of: HubProcess, from: string | RegExp, to: string): Promise<void> {
  const file = join(of.directory, 'latchkey.toml');
  await writeFile(file, (await readFile(file, 'utf8')).replace(from, to));
  await of.reload();
}

function commits(metrics: ScrapedMetrics): number {
  return metrics.value('latchkey_store_commit_duration_seconds_count') ?? 0;
}

/** The counts of an appliance and of its own connection. */
function countsOf(metrics: ScrapedMetrics, appliance: string): Record<string, number | undefined> {
  const count = (name: string, outcome: string) => metrics.value(name, { connection: appliance, outcome });
  const failed = (reason: string) => metrics.value('latchkey_token_requests_failed_total', { appliance, reason });
  return {
    paired: count('latchkey_pairings_total', 'paired'),
    refreshed: count('latchkey_refreshes_total', 'refreshed'),
    deferred: count('latchkey_refreshes_total', 'portal_deferred'),
    refused: count('latchkey_refreshes_total', 'refused'),
    tokens: metrics.value('latchkey_tokens_issued_total', { appliance }),
    otherScope: failed('other_scope'),
    notPaired: failed('not_paired'),
    refusedTokens: metrics.value('latchkey_tokens_refused_total', { connection: appliance }),
  };
}

describe('the metrics of a hub', () => {
  it('the metrics count pairings, refreshes and token requests by their outcomes', async () => {
    const wallbox = await hub.addAppliance('wallbox', 'Monitoring');
    expect((await hub.requestToken(wallbox)).status).toBe(400);
    expect(countsOf(await scraped(), 'wallbox')).toEqual({ refreshed: 0, tokens: 0, notPaired: 1, refusedTokens: 0 });
    await hub.pair('wallbox', emulator);
    for (let times = 0; times < 3; times++) expect((await hub.requestToken(wallbox)).status).toBe(200);
    expect((await hub.requestToken(wallbox, { scope: 'RemoteControl' })).status).toBe(400);
    for (let times = 0; times < 2; times++) await refresh('wallbox');
    emulator.addFault({ kind: 'status', status: 503, endpoint: 'token' });
    expect(await refresh('wallbox')).toMatchObject({ state: 'retrying' });
    const metrics = await scraped();
    const failed = { deferred: 1, otherScope: 1, notPaired: 1, refusedTokens: 0 };
    expect(countsOf(metrics, 'wallbox')).toEqual({ paired: 1, refreshed: 2, tokens: 3, ...failed });
    expect(metrics.value('latchkey_refresh_duration_seconds_count')).toBe(3);
    expect(metrics.value('latchkey_refresh_duration_seconds_bucket', { le: '+Inf' })).toBe(3);
    await refresh('wallbox');
    expect(countsOf(await scraped(), 'wallbox')).toMatchObject({ refreshed: 3, deferred: 1 });
  });

  it('the metrics show the state of each appliance and the remaining lifetime of its token', async () => {
    await hub.addAppliance('heater');
    const { version } = (await hub.status()).hub;
    const metrics = await scraped();
    expect(metrics.value('latchkey_build_info', { version })).toBe(1);
    const { appliances } = await hub.status();
    for (const state of ['unpaired', 'pairing', 'active', 'retrying', 'needs_pairing']) {
      const inState = appliances.filter((appliance) => appliance.state === state);
      expect(metrics.value('latchkey_appliances', { state })).toBe(inState.length);
      expect(metrics.value('latchkey_connections', { state })).toBe(inState.length);
      for (const { name } of appliances) {
        const is = inState.some((appliance) => appliance.name === name) ? 1 : 0;
        expect(metrics.value('latchkey_appliance_state', { appliance: name, state })).toBe(is);
        expect(metrics.value('latchkey_connection_state', { connection: name, state })).toBe(is);
      }
    }
    const left = metrics.value('latchkey_token_expires_in_seconds', { connection: 'wallbox' });
    expect(left).toBeGreaterThan(3500);
    expect(left).toBeLessThanOrEqual(3600);
    expect(metrics.value('latchkey_token_expires_in_seconds', { connection: 'heater' })).toBeUndefined();
    expect(metrics.value('latchkey_store_written_bytes_total')).toBeGreaterThan(0);
    expect(Math.abs(metrics.value('latchkey_clock_offset_seconds') ?? Number.NaN)).toBeLessThan(5);
    expect(metrics.value('latchkey_ready')).toBe(1);
    const openFiles = metrics.value('process_open_fds');
    expect(openFiles).toBeGreaterThan(3);
    expect(metrics.value('process_max_fds')).toBeGreaterThan(openFiles ?? Number.NaN);
    const running = Date.now() / 1000 - (metrics.value('process_start_time_seconds') ?? Number.NaN);
    expect(Math.abs(running - process.uptime())).toBeLessThan(3);
  });

  it('the metrics show a grant that the portal has revoked, and its return', async () => {
    await hub.addAppliance('pump');
    await hub.pair('pump', emulator);
    const [grant] = emulator.grants().slice(-1);
    emulator.revoke(grant?.id ?? '');
    expect(await refresh('pump')).toMatchObject({ state: 'needs_pairing' });
    const dead = await scraped();
    expect(countsOf(dead, 'pump')).toMatchObject({ refreshed: 0, refused: 1 });
    const notice = { notice: 'pairing_needed', severity: 'error', connection: 'pump', appliance: 'pump' };
    expect(dead.value('latchkey_notices', notice)).toBe(1);
    await hub.pair('pump', emulator);
    const repaired = await scraped();
    expect(countsOf(repaired, 'pump')).toMatchObject({ paired: 2 });
    expect(repaired.value('latchkey_notices', notice)).toBeUndefined();
  });

  it('the metrics name the connection of each appliance, and count its tokens by appliance', async () => {
    await hub.ask((control) => control.request('addConnection', { name: 'netatmo' }));
    const [thermostat, dashboard] = [
      await hub.addAppliance('thermostat', null, null, 'netatmo'),
      await hub.addAppliance('dashboard', null, null, 'netatmo'),
    ];
    const unpaired = await scraped();
    expect(unpaired.value('latchkey_connection_state', { connection: 'netatmo', state: 'unpaired' })).toBe(1);
    await hub.pair('netatmo', emulator);
    await refresh('netatmo');
    const before = Math.floor(Date.now() / 1000);
    for (let times = 0; times < 2; times++) expect((await hub.requestToken(thermostat)).status).toBe(200);
    expect((await hub.requestToken(dashboard, { scope: 'another' })).status).toBe(400);
    const metrics = await scraped();
    for (const [appliance, count] of Object.entries({ thermostat: 2, dashboard: 0 })) {
      expect(metrics.value('latchkey_appliance_info', { appliance, connection: 'netatmo' })).toBe(1);
      expect(metrics.value('latchkey_tokens_issued_total', { appliance })).toBe(count);
      expect(metrics.value('latchkey_appliance_tokens', { appliance, period: 'last_14_days' })).toBe(count);
      expect(
        metrics.value('latchkey_refreshes_total', { connection: appliance, outcome: 'refreshed' }),
      ).toBeUndefined();
    }
    const last = (appliance: string) => metrics.value('latchkey_appliance_last_token_timestamp_seconds', { appliance });
    expect(Math.abs((last('thermostat') ?? 0) - before)).toBeLessThan(60);
    expect(last('dashboard')).toBeUndefined();
    expect(metrics.value('latchkey_refreshes_total', { connection: 'netatmo', outcome: 'refreshed' })).toBe(1);
    for (const name of ['thermostat', 'dashboard'])
      await hub.ask((control) => control.request('removeAppliance', { name }));
  });

  it('the metrics contain no secrets, and no appliance that was removed', async () => {
    const { client_id, client_secret } = await hub.addAppliance('guest');
    await hub.pair('guest', emulator);
    const { text, value } = await scraped();
    expect(value('latchkey_pairings_total', { connection: 'guest', outcome: 'paired' })).toBe(1);
    const { appliances } = await hub.status();
    const secrets = [client_secret, client_id, emulator.clientId, emulator.clientSecret, ...emulator.secretsIssued()];
    for (const secret of [...secrets, ...appliances.map((appliance) => appliance.client_id)]) {
      expect(text).not.toContain(secret);
    }
    await hub.ask((control) => control.request('removeAppliance', { name: 'guest' }));
    expect((await scraped()).text).not.toContain('guest');
  });

  it('the metrics continue their counts after a reload, also on another port', async () => {
    const before = await scraped();
    const port = (await hub.status()).hub.metrics_port;
    await reloaded(hub, 'listen = "127.0.0.1:0"', `listen = "127.0.0.1:${await freePort()}"`);
    const after = await hub.status();
    expect(after.hub.metrics_port).not.toBe(port);
    expect(countsOf(await scraped(), 'wallbox')).toEqual(countsOf(before, 'wallbox'));
    expect(commits(await scraped())).toBeGreaterThan(commits(before));
    await expect(scrapeMetrics(port)).rejects.toThrow('ECONNREFUSED');
    await reloaded(hub, /listen = "127.0.0.1:\d+"/, 'listen = ""');
    expect((await hub.status()).hub).not.toHaveProperty('metrics_port');
    await expect(scrapeMetrics(after.hub.metrics_port)).rejects.toThrow('ECONNREFUSED');
    await reloaded(hub, 'listen = ""', 'listen = "127.0.0.1:0"');
    expect(countsOf(await scraped(), 'wallbox')).toEqual(countsOf(before, 'wallbox'));
  });

  it('the hub runs without metrics while another program uses their port', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    await using small = await HubProcess.start({ emulator, metrics: `127.0.0.1:${port}`, here: true });
    expect((await small.status()).hub).not.toHaveProperty('metrics_port');
    expect(small.events('metrics_unavailable')).toEqual([
      expect.objectContaining({
        port,
        error: expect.stringContaining(`metrics.listen: port ${port} on`),
        retry_in: 30,
      }),
    ]);
    other.close();
  });
});

it('the hub is not ready while a token has expired and the portal is unreachable', async () => {
  // The hub refreshes such tokens automatically every 30 s: no refresh is in progress when the portal goes down.
  await using portal = await startPortal({ tokenLifetime: 1 });
  await using small = await HubProcess.start({ emulator: portal, metrics: '127.0.0.1:0', here: true });
  const getJson = async (path: string) => {
    const { metrics_port } = (await small.status()).hub;
    const { statusCode, body } = await request(`http://127.0.0.1:${metrics_port}${path}`);
    return { status: statusCode, body: await body.json() };
  };
  const ready = () => getJson('/readyz');
  await small.addAppliance('boiler');
  await small.pair('boiler', portal);
  expect(await ready()).toEqual({ status: 200, body: { ready: true, appliances: [] } });
  portal.addFault({ kind: 'origin_down', origin: 'base' });
  portal.addFault({ kind: 'origin_down', origin: 'frontend' });
  expect(await small.ask((control) => control.request('refresh', { name: 'boiler' }))).toMatchObject({
    state: 'retrying',
  });
  const lost = await eventually(async () => {
    const now = await ready();
    return now.status === 200 ? null : now;
  });
  const boiler = { name: 'boiler', state: 'retrying', problem: 'portal_unreachable' };
  expect(lost).toMatchObject({ status: 503, body: { ready: false, appliances: [boiler] } });
  expect((await scraped(small)).value('latchkey_ready')).toBe(0);
  expect(await getJson('/healthz')).toEqual({ status: 200, body: { healthy: true } });
  await portal.clearFaults();
  // A refresh that has met the fault may still be under way, and is joined.
  await eventually(
    async () => (await small.ask((control) => control.request('refresh', { name: 'boiler' }))).state === 'active',
  );
  expect(await ready()).toEqual({ status: 200, body: { ready: true, appliances: [] } });
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (typeof address !== 'object' || address === null) throw new Error('no port');
  return address.port;
}
