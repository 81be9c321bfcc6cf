import { join } from 'node:path';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadConfiguration } from '../../../src/configuration/configuration.ts';
import { connectControlClient } from '../../../src/control/client.ts';
import { Secret } from '../../../src/core/secret.ts';
import { type Hub, startHub } from '../../../src/hub/hub.ts';
import { jweSealing, STORE_KEY_BYTES } from '../../../src/store/keys/sealing.ts';
import { loadStoreKey } from '../../../src/store/keys/store-key.ts';
import { openStore } from '../../../src/store/sqlite/open-store.ts';
import { systemClock } from '../../../src/system/clock.ts';
import { systemRandom } from '../../../src/system/random.ts';
import { HOUR, sampleGrant } from '../../core/samples.ts';
import { HubProcess, reservePort } from '../../support/hub-process.ts';
import { logTo } from '../../support/log-to.ts';
import { measureEachTurn } from '../../support/loop-turns.ts';

/** The most that a hub has; each with an appliance and a grant. */
const CONNECTIONS = 1000;
/** The longest turn of the event loop, in ms of its thread's processor time: token requests wait meanwhile. */
const MAX_TURN = 50;
/** The median of several rounds counts: the first ones run code that is not optimized yet. */
const ROUNDS = 5;
const PASSPHRASE = 'correct horse battery staple';

const parts = new AsyncDisposableStack();
let hub: Hub;
let metrics: string;

beforeAll(async () => {
  const metricsPort = await reservePort();
  metrics = `http://127.0.0.1:${metricsPort}/metrics`;
  const emulator = {
    baseUrl: 'http://127.0.0.1:1',
    frontendUrl: 'http://127.0.0.1:1',
    clientId: '',
    clientSecret: 'x',
  };
  const portal = { ...emulator, clientId: systemRandom.uuid() };
  const prepared = parts.use(await HubProcess.prepare({ emulator: portal, metrics: `127.0.0.1:${metricsPort}` }));
  await fillStore(join(prepared.directory, 'state'), portal);
  const configuration = await loadConfiguration(join(prepared.directory, 'latchkey.toml'), {});
  const log = logTo(() => undefined);
  hub = parts.use(await startHub(configuration, log));
});

afterAll(() => parts.disposeAsync());

test.each([
  ['the status', () => hub.administration.status()],
  ['the status on the control socket', () => controlStatus()],
  ['the metrics', async () => (await request(metrics)).body.text()],
  ['a backup', () => hub.administration.backUp(PASSPHRASE)],
  ['a snapshot', () => hub.administration.takeSnapshot()],
])(`%s of ${CONNECTIONS} connections takes no long turn of the event loop`, async (_, work) => {
  const longest: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) longest.push(Math.max(...(await measureEachTurn(work))));
  expect(longest.sort((a, b) => a - b)[Math.floor(ROUNDS / 2)]).toBeLessThan(MAX_TURN);
});

async function controlStatus(): Promise<void> {
  await using control = await connectControlClient([hub.controlSocket]);
  expect((await control.request('status')).connections).toHaveLength(CONNECTIONS);
}

/** Adds connections with appliances and grants to the store of a hub that does not run. */
async function fillStore(directory: string, portal: { readonly frontendUrl: string; readonly clientId: string }) {
  const key = await loadStoreKey(directory, undefined, () => systemRandom.token(STORE_KEY_BYTES));
  using store = await openStore(directory, jweSealing(key), Date.now);
  const ids = Array.from({ length: CONNECTIONS }, () => systemRandom.uuid());
  await store.registry.save({
    addedConnections: ids.map((id) => ({
      id,
      name: `a-${id}`,
      title: `a-${id}`,
      portal: 'home',
      scope: null,
      origin: 'implicit',
    })),
    addedAppliances: ids.map((id) => ({
      id,
      clientId: id,
      name: `a-${id}`,
      title: `a-${id}`,
      connection: id,
      credentials: { kind: 'none' },
      origin: 'added',
      waiting: null,
      softwareId: null,
    })),
  });
  const obtained = systemClock().now();
  const issuer = { name: 'home', origin: portal.frontendUrl, clientId: portal.clientId };
  const tokens = () => new Secret(systemRandom.token(60));
  await Promise.all(
    ids.map((connection) =>
      store.grants.replace(
        sampleGrant({
          connection,
          issuer,
          obtained,
          portalTime: obtained.wall,
          lifetime: 12 * HOUR,
          accessToken: tokens(),
          refreshToken: tokens(),
        }),
      ),
    ),
  );
}
