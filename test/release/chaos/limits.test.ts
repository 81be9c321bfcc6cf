import { once } from 'node:events';
import { connect as connectPlain, type Socket } from 'node:net';
import { join } from 'node:path';
import { connect as connectSecure } from 'node:tls';
import { describe, expect, it } from 'vitest';
import type { CredentialsResponse } from '../../../src/control/messages.ts';
import type { Emulator } from '../../../src/emulator/index.ts';
import { BrokerHarness } from '../../broker/broker-harness.ts';
import { basicAuthorization, FORM, HubClient } from '../../lan/hub-client.ts';
import { pairFleet } from '../../reliability/fleet.ts';
import { addAppliancesBySql } from '../../store/corrupt-store.ts';
import { HubProcess } from '../../support/hub-process.ts';
import { startPortal } from '../../support/portal.ts';
import { setUpOnce } from '../../support/set-up.ts';
import { waitFor } from '../../support/wait-for.ts';

// Limits of a running hub that no other test covers; docs/reliability.md lists all limits.

let emulator: Emulator;
let hub: HubProcess;
let client: HubClient;
let wallbox: CredentialsResponse;

setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal());
  hub = parts.use(await HubProcess.start({ emulator }));
  client = parts.use(await HubClient.of(hub));
  [wallbox = expect.fail()] = await pairFleet(hub, emulator, ['wallbox']);
});

async function expectAlive(): Promise<void> {
  expect((await client.http('/ca.pem')).status).toBe(200);
  expect((await hub.requestToken(wallbox)).status).toBe(200);
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
  it('a port has at most a thousand connections, and a new device gets one when silent ones have timed out', async () => {
    const open = (localAddress: string) =>
      connectPlain({ host: '127.0.0.1', port: hub.httpPort, localAddress }).on('error', () => undefined);
    const sockets = [2, 3, 4, 5, 6].flatMap((device) =>
      Array.from({ length: 220 }, () => open(`127.0.0.${device}`).resume()),
    );
    const closedCount = () => sockets.filter(({ closed }) => closed).length;
    // The test's own client may hold a few. No silent connection has timed out by then.
    await waitFor(() => expect(closedCount()).toBeGreaterThanOrEqual(100), 8000);
    expect(closedCount()).toBeLessThanOrEqual(110);
    await waitFor(async () => expect(await answerOf(open('127.0.0.7'), '/ca.pem')).toMatch(/^HTTP\/1.1 200 /), 30_000);
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
    const lamp = await hub.addAppliance('lamp');
    const body = 'grant_type=client_credentials';
    const request = `POST /oauth/token HTTP/1.1\r\nhost: localhost\r\nauthorization: ${basicAuthorization(lamp)}\r\ncontent-type: ${FORM}\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
    const socket = connectSecure({ host: '127.0.0.1', port: hub.httpsPort, ca: client.ca });
    await once(socket, 'secureConnect');
    let received = '';
    socket.on('data', (piece) => {
      received += piece;
    });
    socket.write(request.repeat(200));
    await cut(socket);
    // An idle connection is closed as well, but only after all responses.
    expect(received.split('HTTP/1.1 ').length - 1).toBeLessThan(200);
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

describe('limits on ended pairings', () => {
  it('the hub keeps the last thousand ended pairings, and those that are open', async () => {
    await using home = await BrokerHarness.start(QUICK);
    await home.addAppliance('heater');
    const { pairings } = home.run;
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
    expect(known([open.id])).toEqual([open.id]);
    const [first = ''] = ended;
    expect(() => pairings.get(first)).toThrow(expect.objectContaining({ code: 'pairing_unknown' }));
  });

  it('the hub keeps ended pairings even if more than a thousand are open', async () => {
    await using home = await BrokerHarness.start(QUICK);
    const { appliance } = await home.addAppliance('heater');
    const ended = await home.beginPairing('heater');
    await ended.fail('cancelled');
    const codes = (number: number) => ({ codeHash: `hash-${number}`, userCode: `code-${number}` });
    await home.stop();
    addAppliancesBySql(home.folder, 1001);
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
