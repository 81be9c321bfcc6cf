import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect as connectPlain, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectSecure } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { loadConfiguration } from '../../src/configuration/configuration.ts';
import type { CredentialsResponse } from '../../src/control/messages.ts';
import type { Emulator } from '../../src/emulator/index.ts';
import { BrokerHarness } from '../broker/broker-harness.ts';
import { basicAuthorization, FORM, HubClient } from '../lan/hub-client.ts';
import { temporaryFolder } from '../project/checkout.ts';
import { pairFleet } from '../reliability/fleet.ts';
import { runSql } from '../store/corrupt-store.ts';
import { HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';
import { waitFor } from '../support/wait-for.ts';

/** Tests of the limits that no other test covers; docs/reliability.md lists all limits. */
let emulator: Emulator;
let hub: HubProcess;
let client: HubClient;
let wallbox: CredentialsResponse;

setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal({ tokenLifetime: 20 }));
  hub = parts.use(await HubProcess.start({ emulator }));
  client = parts.use(await HubClient.of(hub));
  [wallbox = expect.fail()] = await pairFleet(hub, emulator, ['wallbox']);
});

async function expectAlive(): Promise<void> {
  expect((await client.http('/ca.pem')).status).toBe(200);
  expect(
    (await client.token('grant_type=client_credentials', { authorization: basicAuthorization(wallbox) })).status,
  ).not.toBe(500);
  expect((await hub.ask((control) => control.status())).appliances.length).toBeGreaterThan(0);
}

/** Resolves when the other side has closed the connection, with an error or without. */
function cut(socket: Socket): Promise<unknown> {
  socket.on('error', () => undefined);
  return socket.destroyed ? Promise.resolve() : new Promise((resolve) => socket.once('close', resolve));
}

/** Sends one request. @returns everything that is received up to the end of the connection */
async function answerOf(socket: Socket, path: string): Promise<string> {
  let received = '';
  socket.on('data', (piece) => {
    received += piece;
  });
  socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`);
  await cut(socket);
  return received;
}

describe('limit on connections', () => {
  it('a new device gets a connection although four other devices hold all of them', async () => {
    const open = (localAddress: string) =>
      connectPlain({ host: '127.0.0.1', port: hub.httpPort, localAddress }).on('error', () => undefined);
    const sockets = [2, 3, 4, 5].flatMap((device) => Array.from({ length: 250 }, () => open(`127.0.0.${device}`)));
    await Promise.all(sockets.map((socket) => once(socket, 'connect')));
    expect(await answerOf(open('127.0.0.6'), '/ca.pem')).toMatch(/^HTTP\/1.1 200 /);
    for (const socket of sockets) socket.destroy();
    await waitFor(expectAlive, 10_000);
  });

  it('HTTP responses announce a keep-alive timeout of 65 s', async () => {
    expect((await client.http('/ca.pem')).headers['keep-alive']).toBe('timeout=65');
  });

  it('the control socket accepts at most a hundred connections at once', async () => {
    const path = join(hub.directory, 'state/control.sock');
    const sockets = Array.from({ length: 100 }, () => connectPlain(path).resume());
    await Promise.all(sockets.map((socket) => once(socket, 'connect')));
    expect(await answerOf(connectPlain(path), '/v1/status')).toBe('');
    expect(sockets.filter(({ closed }) => closed)).toEqual([]);
    for (const socket of sockets) socket.destroy();
    await waitFor(expectAlive, 10_000);
  });
});

describe.concurrent('limits on one connection', () => {
  it('a connection with more than 32 requests in flight is closed, and the hub continues', async () => {
    const lamp = await hub.ask((control) => control.addAppliance('lamp', null, null));
    const body = 'grant_type=client_credentials';
    const request = `POST /oauth/token HTTP/1.1\r\nhost: localhost\r\nauthorization: ${basicAuthorization(lamp)}\r\ncontent-type: ${FORM}\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
    const socket = connectSecure({ host: '127.0.0.1', port: hub.httpsPort, ca: client.ca });
    await once(socket, 'secureConnect');
    socket.resume().write(request.repeat(200));
    await cut(socket);
    await expectAlive();
  });

  it('a connection that sends requests and never reads a response is closed', async () => {
    const socket = connectPlain({ host: '127.0.0.1', port: hub.httpPort }).pause();
    let gone = false;
    void cut(socket).then(() => {
      gone = true;
    });
    await once(socket, 'connect');
    // In small batches, so that the limit on requests in flight is not exceeded; until the socket accepts no more data.
    while (socket.write('GET /ca.pem HTTP/1.1\r\nhost: localhost\r\n\r\n'.repeat(8)) && !gone) await sleep(2);
    await waitFor(
      () => {
        socket.write('G');
        expect(gone).toBe(true);
      },
      60_000,
      500,
    );
    await expectAlive();
  });

  it('a connection to the control socket that never ends its request head is closed', async () => {
    const socket = connectPlain(join(hub.directory, 'state/control.sock')).resume();
    socket.write('GET /v1/status HTTP/1.1\r\nhost: hub\r\nx: ');
    await cut(socket);
    await expectAlive();
  });
});

/** Store writes that take no virtual time, because there are thousands. */
const QUICK = { writeTimes: [0, 0] } as const;

describe('limit on open pairings', () => {
  it('a hundred appliances can have an open pairing at once, and another one when one has ended', async () => {
    await using home = await BrokerHarness.start(QUICK);
    for (let i = 0; i <= 100; i++) await home.addAppliance(`appliance-${i}`);
    const runs = [];
    for (let i = 0; i < 100; i++) runs.push(await home.beginPairing(`appliance-${i}`));
    await expect(home.beginPairing('appliance-100')).rejects.toMatchObject({ code: 'not_allowed' });
    await home.beginPairing('appliance-7');
    await home.run.pairings.end(home.run.appliances.get('appliance-7').id, 'cancelled');
    runs.push(await home.beginPairing('appliance-100'));
    expect(runs.filter(({ isOpen: open }) => open)).toHaveLength(100);
  });
});

/** SQL that adds `count` appliances. */
function manyAppliances(count: number): string {
  const ids = `WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ${count}),
    ids AS (SELECT i, printf('%08d-0000-4000-8000-000000000000', i) AS id FROM n)`;
  return `${ids} INSERT INTO connections (id, name, portal, sealed) SELECT id, 'appliance-' || i, 'home', '' FROM ids;
    ${ids} INSERT INTO appliances (id, client_id, name, connection, sealed)
    SELECT id, id, 'appliance-' || i, id, '' FROM ids`;
}

describe('limits on stored records', () => {
  it('the hub has at most ten thousand appliances and refuses one more', async () => {
    await using home = await BrokerHarness.start(QUICK);
    await home.run.store.saveSetting('hub_id', 'the hub');
    await home.stop();
    runSql(home.folder, manyAppliances(9999));
    await home.start();
    await home.addAppliance('last');
    await expect(home.addAppliance('one-too-many')).rejects.toMatchObject({ code: 'not_allowed' });
  });

  it('the hub keeps the last thousand ended pairings and those that a device flow may still poll', async () => {
    await using home = await BrokerHarness.start(QUICK);
    const { appliance: wallbox } = await home.addAppliance('wallbox');
    await home.addAppliance('heater');
    const { pairings, deviceFlows } = home.run;
    const outcome = await deviceFlows.begin(wallbox, null);
    if (outcome.kind !== 'begun') throw new Error(`not begun: ${outcome.kind}`);
    const deviceCode = outcome.authorization.deviceCode.reveal();
    rememberSecrets([deviceCode]);
    await home.login(await home.beginPairing('wallbox'));
    await home.time.pass(10_000);
    const flow = pairings.newestFor(wallbox.id)?.pairing.id ?? expect.fail();
    await home.addAppliance('lamp');
    const { pairing: open } = await home.beginPairing('lamp');

    const ended: string[] = [];
    const end = async () => {
      const run = await pairings.begin(home.connection('heater'));
      await run.fail('cancelled');
      ended.push(run.pairing.id);
    };
    const known = (ids: readonly string[]) => {
      const all = new Set(pairings.filter(() => true).map(({ pairing }) => pairing.id));
      return ids.filter((id) => all.has(id));
    };
    while (ended.length < 1003) await end();
    // The oldest one is removed when another one begins.
    expect(known(ended)).toEqual(ended.slice(-1001));
    expect(known([flow, open.id])).toEqual([flow, open.id]);
    expect(deviceFlows.poll(wallbox.id, deviceCode)).toEqual({ kind: 'paired' });
    await home.time.pass(60 * 60_000);
    await end();
    expect(known([flow])).toEqual([]);
    expect(() => pairings.get(flow)).toThrow(expect.objectContaining({ code: 'pairing_unknown' }));
  });

  it('the hub keeps ended pairings even if more than a thousand are open', async () => {
    await using home = await BrokerHarness.start(QUICK);
    const { appliance } = await home.addAppliance('heater');
    const ended = await home.beginPairing('heater');
    await ended.fail('cancelled');
    const codes = (number: number) => ({ codeHash: `hash-${number}`, userCode: `code-${number}` });
    await home.stop();
    runSql(home.folder, manyAppliances(1001));
    await home.start();
    const { appliances, pairings } = home.run;
    const others = appliances.list().filter(({ id }) => id !== appliance.id);
    for (const [number, other] of others.entries())
      await pairings.beginDeviceFlow(home.connection(other.name), other.id, codes(number));
    expect(others).toHaveLength(1001);
    expect(pairings.get(ended.pairing.id).pairing).toEqual(ended.pairing);
    expect(others.filter(({ id }) => pairings.newestFor(id)?.isOpen)).toHaveLength(1001);
  });
});

describe('limits on file sizes', () => {
  it.each(['/dev/zero', 'large'])(
    'a configuration file that is endless or too large is not read (%s)',
    async (name) => {
      using folder = temporaryFolder();
      const file = join(folder.path, 'large');
      await writeFile(file, '#'.repeat(1_048_577));
      const loading = loadConfiguration(name === 'large' ? file : name, {});
      await expect(loading).rejects.toMatchObject({
        code: 'config_invalid',
        message: expect.stringContaining('larger than 1048576 bytes'),
      });
    },
  );

  it('a secret file or CA file that is too large is not read', async () => {
    using folder = temporaryFolder();
    const file = join(folder.path, 'latchkey.toml');
    const portal =
      '[portals.home]\nbase_url = "https://a.example"\nfrontend_url = "https://b.example"\nclient_id = "0f4b3c52-6a1e-4d9b-9d57-2c8f1e6a7b90"\n';
    await writeFile(join(folder.path, 'secret'), 'planted-secret-'.repeat(10_000), { mode: 0o600 });
    await writeFile(file, `${portal}client_secret_file = "secret"\n`);
    const loading = loadConfiguration(file, {});
    await expect(loading).rejects.toMatchObject({
      message: expect.stringMatching(/client_secret_file: .+larger than 65536 bytes/),
    });
    await expect(loading).rejects.not.toMatchObject({ message: expect.stringContaining('planted-secret') });
    await writeFile(join(folder.path, 'secret'), 'planted-secret', { mode: 0o600 });
    await writeFile(file, `${portal}client_secret_file = "secret"\nca_file = "/dev/zero"\n`);
    await expect(loadConfiguration(file, {})).rejects.toMatchObject({ message: expect.stringContaining('ca_file') });
  });
});
