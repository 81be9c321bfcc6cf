import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { startRefresh } from '../reliability/fleet.ts';
import { eventually } from '../support/hub-process.ts';
import { startPortal } from '../support/portal.ts';
import { postgresSkipReason } from '../support/postgres/cluster.ts';
import { startPostgres } from '../support/postgres/server.ts';
import { skipIfUnavailable } from '../support/set-up.ts';
import { prepareSiteHub } from './site-hubs.ts';

skipIfUnavailable(postgresSkipReason);

test('a hub that is stopped while the server of its database hangs ends', async () => {
  await using emulator = await startPortal();
  await using server = await startPostgres();
  await using hub = await prepareSiteHub(await server.createDatabase(), 'attic', { emulator });
  await hub.launch();
  await server.pause();
  // The server's system still answers, so no connection breaks by itself.
  await hub.kill('SIGTERM');
  expect(hub.events('hub_stopped')).toHaveLength(1);
  await server.resume();
});

test('a hub that is stopped while it can not write new tokens waits for the database, and writes them', async () => {
  await using emulator = await startPortal({ onReuse: 'revoke-family' });
  await using server = await startPostgres();
  await using hub = await prepareSiteHub(await server.createDatabase(), 'attic', { emulator });
  await hub.launch();
  await hub.addAppliance('wallbox');
  await hub.pair('wallbox', emulator);
  // The portal has issued the tokens, and its response comes when the database is away.
  emulator.addFault({ kind: 'delay', endpoint: 'token', seconds: 1, commit: true });
  startRefresh(hub, 'wallbox');
  await eventually(async () => emulator.grants()[0]?.generation === 2);
  await server.stop('immediate');
  await eventually(async () => (await hub.connection('wallbox')).problem?.code === 'database_unavailable');
  await eventually(async () => (emulator.requests.at(-1)?.status ?? null) !== null);
  const stopped = hub.kill('SIGTERM');
  await eventually(async () => hub.events('hub_stopping').length === 1);
  // Longer than the hub's own next attempt to write.
  await sleep(2000);
  await server.start();
  await stopped;

  await hub.launch();
  await hub.ask((control) => control.refresh('wallbox'));
  expect(await hub.connection('wallbox')).toMatchObject({ state: 'active', problem: null });
  expect(emulator.grants()).toMatchObject([{ generation: 3, revoked: false }]);
});
