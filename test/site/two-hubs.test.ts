// Two hubs of one site on a real PostgreSQL server. One of them is a process, so that it can be killed.
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent } from 'undici';
import { expect, test } from 'vitest';
import type { CredentialsResponse, PortalsResponse } from '../../src/control/messages.ts';
import type { Emulator } from '../../src/emulator/index.ts';
import { startRefresh } from '../reliability/fleet.ts';
import { eventually, type HubProcess } from '../support/hub-process.ts';
import { startPortal } from '../support/portal.ts';
import { postgresSkipReason } from '../support/postgres/cluster.ts';
import { type PostgresServer, startPostgres } from '../support/postgres/server.ts';
import { setUpOnce } from '../support/set-up.ts';
import { copyStoreKey, fullStatus, prepareSiteHub } from './site-hubs.ts';

let server: PostgresServer;
let emulator: Emulator;
let attic: HubProcess;
let cellar: HubProcess;
let heater: CredentialsResponse;
const parts = setUpOnce(
  async (starting) => {
    server = starting.use(await startPostgres());
    // Nothing forgives a refresh token that is sent twice.
    emulator = starting.use(await startPortal({ onReuse: 'revoke-family' }));
    const database = await server.createDatabase();
    attic = starting.use(await prepareSiteHub(database, 'attic', { emulator }));
    await attic.launch();
    cellar = starting.use(await prepareSiteHub(database, 'cellar', { emulator, here: true }));
    await copyStoreKey(attic, cellar);
    await cellar.launch();
    heater = await attic.addAppliance('heater');
    await attic.pair('heater', emulator);
    await eventually(async () => (await cellar.connection('heater')).state === 'active');
  },
  { skipReason: postgresSkipReason },
);

/** The portal answers the next token request after this time, in seconds. */
const delayNextResponse = (seconds: number) =>
  emulator.addFault({ kind: 'delay', endpoint: 'token', seconds, commit: true });

const generation = () => emulator.grants()[0]?.generation;

async function conditionsOf(hub: HubProcess): Promise<string[]> {
  return (await fullStatus(hub)).conditions.filter(({ connection }) => connection === null).map(({ code }) => code);
}

test('what one hub changes, the other has: appliances, the setup code, and the CA and portals, for each of which it starts again once', async () => {
  const wallbox = await cellar.addAppliance('wallbox', null, null, 'heater');
  expect((await attic.requestToken(wallbox)).status).toBe(200);
  await attic.ask((control) => control.request('removeAppliance', { name: 'wallbox' }));
  await eventually(async () => (await cellar.requestToken(wallbox)).status === 401);
  const { fingerprint } = await attic.ask((control) => control.request('rotateAuthority', { keep: 86_400 }));
  await eventually(async () => (await cellar.authority().catch(() => null))?.fingerprint === fingerprint);
  // News of a setting that is not the CA's.
  const { code } = await attic.setupCode({ rotate: true });
  await eventually(async () => (await cellar.setupCode()).code === code);
  const { baseUrl: base_url, frontendUrl: frontend_url, clientId: client_id, clientSecret: client_secret } = emulator;
  const portal = { name: 'second', keys: { base_url, frontend_url, client_id }, client_secret };
  await attic.ask((control) => control.request('addPortal', portal));
  for (const hub of [attic, cellar])
    await eventually(async () => (await hub.json<PortalsResponse>('portals').catch(() => null))?.portals.length === 2);
  expect([attic, cellar].map((hub) => hub.events('hub_restarting').length)).toEqual([0, 2]);
});

test('hubs whose database is away issue the tokens that they have, say so, and go on when it is back', async () => {
  await server.stop('immediate');
  for (const hub of [attic, cellar]) {
    await eventually(async () => (await conditionsOf(hub)).includes('database_unavailable'));
    expect((await hub.requestToken(heater)).status).toBe(200);
    expect((await hub.connection('heater')).problem?.code).toBe('database_unavailable');
  }
  const { stdout } = await cellar.cli('status');
  expect(stdout).toMatch(/issues the tokens that it has, and starts no refresh and no pairing: the site's database/);
  expect(stdout).not.toMatch(/SD card|disk/);
  expect((await cellar.cli('reload')).stderr).toContain("the hub can't use the database of its site");
  await server.start();
  for (const hub of [attic, cellar]) await eventually(async () => (await conditionsOf(hub)).length === 0);
  expect((await attic.connection('heater')).problem).toBeNull();
});

test('a hub that is stopped while it can not write new tokens waits for the database, and writes them', async () => {
  const before = generation() ?? 0;
  // The portal has issued the tokens, and its response comes when the database is away.
  delayNextResponse(1);
  startRefresh(attic, 'heater');
  await eventually(async () => generation() === before + 1);
  await server.stop('immediate');
  await eventually(async () => (await attic.connection('heater')).problem?.code === 'database_unavailable');
  await eventually(async () => (emulator.requests.at(-1)?.status ?? null) !== null);
  const stopped = attic.kill('SIGTERM');
  await eventually(async () => attic.events('hub_stopping').length === 1);
  // Longer than the hub's own next attempt to write.
  await sleep(2000);
  await server.start();
  await stopped;
  await attic.launch();
  await attic.ask((control) => control.request('refresh', { name: 'heater' }));
  expect(await attic.connection('heater')).toMatchObject({ state: 'active', problem: null });
  expect(emulator.grants()).toMatchObject([{ generation: before + 2, revoked: false }]);
});

test('an appliance gets its token from the other hub with one request, with the same credentials and CA, when one is killed', async () => {
  const agent = new Agent({ connect: { ca: (await attic.authority()).certificate } });
  parts.defer(() => agent.destroy());
  const before = await attic.requestToken(heater, {}, agent);
  // New tokens are known to the other hub soon.
  const tokenOf = async (hub: HubProcess) => (await hub.requestToken(heater)).body['access_token'];
  await eventually(async () => (await tokenOf(cellar)) === before.body['access_token']);
  await attic.kill('SIGKILL');
  await expect(attic.requestToken(heater, {}, agent)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  const after = await cellar.requestToken(heater, {}, agent);
  expect([before.status, after.status]).toEqual([200, 200]);
  expect(after.body['access_token']).toBe(before.body['access_token']);
});
