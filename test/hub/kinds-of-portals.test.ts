import { expect, test } from 'vitest';
import type { PortalsResponse } from '../../src/control/messages.ts';
import type { Emulator } from '../../src/emulator/index.ts';
import { scrapeMetrics } from '../metrics/scrape.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { PageVisitor } from '../support/page-visitor.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';

let emulator: Emulator;
let hub: HubProcess;
setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal({ redirectRule: 'any', autoLogin: true }));
  const cloud = (name: string, login: string) => [
    ...[`[portals.${name}]`, 'type = "oauth2"', `issuer = "${emulator.frontendUrl}"`, `login = "${login}"`],
    ...[`client_id = "${emulator.clientId}"`, 'client_secret_file = "portal.secret"'],
  ];
  const toml = [...cloud('tado', 'device'), ...cloud('netatmo', 'redirect'), 'title = "Nordlicht & Co"'].join('\n');
  hub = parts.use(await HubProcess.start({ emulator, toml, metrics: '127.0.0.1:0', here: true }));
});

test('a hub with a helper portal and two clouds names each in the status, on the page by its title if it has one, and in the metrics', async () => {
  const names = ['home', 'tado', 'netatmo'];
  for (const portal of names) await hub.addAppliance(`${portal}-device`, 'Monitoring', portal);
  await hub.pair('home-device', emulator);
  const device = await hub.beginPairing('tado-device');
  await emulator.approveDevice({ userCode: device.searchParams.get('user_code') ?? '', user: 'demo' });
  // It follows the redirect to the hub.
  await (await fetch(await hub.beginPairing('netatmo-device'))).text();
  await eventually(async () => (await hub.status()).connections.every(({ state }) => state === 'active'));

  expect((await hub.status()).connections.map(({ portal }) => portal).sort()).toEqual([...names].sort());
  const table = (await hub.cli('status')).stdout;
  for (const name of names) expect(table).toMatch(new RegExp(`^${name}-device .* ${name}\\b`, 'm'));
  await using visitor = await PageVisitor.signedIn(hub);
  const { text } = await visitor.get('/');
  for (const title of ['home', 'tado', 'Nordlicht &#38; Co']) expect(text).toContain(title);
  const metrics = await scrapeMetrics((await hub.status()).hub.metrics_port);
  for (const portal of names) {
    expect(metrics.value('latchkey_connection_info', { connection: `${portal}-device`, portal })).toBe(1);
    expect(metrics.value('latchkey_portal_reached_timestamp_seconds', { portal })).toBeGreaterThan(0);
  }
  const { portals } = await hub.json<PortalsResponse>('portals');
  const redirect_uri = `http://127.0.0.1:${hub.httpPort}/callback`;
  expect(portals).toMatchObject([
    { name: 'home', type: 'helper' },
    { name: 'tado', type: 'oauth2', login: 'device', redirect_uri: null },
    { name: 'netatmo', type: 'oauth2', login: 'redirect', redirect_uri },
  ]);
});

test('a hub starts while a cloud is down, says so, and connects when the cloud is back', async () => {
  const state = await startPortal({ redirectRule: 'any' });
  const port = Number(new URL(state.frontendUrl).port);
  const { clientId, clientSecret } = state;
  await state.close();
  const toml = [
    ...['[portals.cloud]', 'type = "oauth2"', `issuer = "http://127.0.0.1:${port}"`],
    ...[`client_id = "${clientId}"`, 'client_secret_file = "portal.secret"'],
  ].join('\n');
  await using late = await HubProcess.start({ emulator: { ...emulator, clientSecret }, toml, here: true });
  await eventually(async () => late.events('portal_metadata_missing').length === 1);
  expect(late.events('portal_metadata_missing')).toMatchObject([
    { portal: 'cloud', detail: expect.stringMatching(/discovery/) },
  ]);
  await late.addAppliance('thermostat', 'Monitoring', 'cloud');
  const pairing = late.beginPairing('thermostat');
  await using back = await startPortal({
    frontendPort: port,
    redirectRule: 'any',
    clients: [{ id: clientId, secret: clientSecret }],
  });
  const link = await pairing;
  await back.approveDevice({ userCode: link.searchParams.get('user_code') ?? '', user: 'demo' });
  await eventually(async () => (await late.status()).connections[0]?.state === 'active');
});
