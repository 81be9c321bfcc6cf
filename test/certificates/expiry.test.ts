import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:tls';
import { expect, test } from 'vitest';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { startPortal } from '../support/portal.ts';

const YEAR = 365 * 86_400_000;

test("a hub whose clock was years behind renews its server certificate at the portal's time and keeps connections", async () => {
  await using emulator = await startPortal();
  // Without timedatectl in PATH, only the portal can confirm the time.
  await using hub = await HubProcess.start({ emulator, env: { PATH: '/nonexistent' } });
  const ca = (await hub.authority()).certificate;
  await hub.addAppliance('fan');
  const connection = await open(hub, ca);
  const before = connection.leaf;
  expect(await connection.ask()).toBe(200);

  emulator.advance((12 * YEAR) / 1000);
  await hub.pair('fan', emulator);
  const renewed = await eventually(async () => {
    const { leaf, hangUp } = await open(hub, ca);
    hangUp();
    return leaf.serialNumber !== before.serialNumber && leaf;
  }, 75);
  expect(before.validToDate.getTime()).toBeLessThan(Date.now() + 12 * YEAR);
  expect(renewed.validToDate.getTime()).toBeGreaterThan(Date.now() + 20 * YEAR);
  expect(await connection.ask()).toBe(200);
  connection.hangUp();
});

/** A connection that stays open until the hub closes it. */
async function open(hub: HubProcess, ca: string) {
  const socket = connect({ host: '127.0.0.1', port: hub.httpsPort, ca });
  await once(socket, 'secureConnect');
  return {
    leaf: new X509Certificate(socket.getPeerCertificate().raw),
    async ask(): Promise<number> {
      socket.write('HEAD /.well-known/oauth-authorization-server HTTP/1.1\r\nhost: localhost\r\n\r\n');
      const [response] = (await once(socket, 'data')) as [Buffer];
      return Number(/^HTTP\/1.1 (\d{3}) /.exec(response.toString())?.[1]);
    },
    hangUp: () => void socket.destroy(),
  };
}
