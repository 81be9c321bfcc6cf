import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:tls';
import { expect, test } from 'vitest';
import { PortalClock } from '../../src/broker/time/portal-clock.ts';
import { Scheduler } from '../../src/broker/time/scheduler.ts';
import { watchExpiry } from '../../src/certificates/expiry.ts';
import { createLog } from '../../src/system/log.ts';
import { FakeTime } from '../support/fake-time.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { startPortal } from '../support/portal.ts';

const DAY = 86_400_000;
const YEAR = 365 * DAY;

test('a leaf is short of time in its last year, by the true time and not by the clock of the hub', async () => {
  const time = new FakeTime();
  const portalClock = new PortalClock({ clock: time, log: createLog('silent') });
  let notAfter = time.wall + 2 * YEAR;
  const heard: number[] = [];
  watchExpiry({
    scheduler: new Scheduler({ clock: time, timers: time }),
    clock: time,
    portalClock,
    minRemaining: YEAR,
    notAfter: () => notAfter,
    onShort(left) {
      heard.push(left);
      notAfter += 10 * YEAR;
    },
  });
  time.wall += 50 * YEAR;
  await time.pass(DAY);
  expect(heard).toEqual([]);

  portalClock.learn(notAfter - YEAR - DAY);
  await time.pass(DAY - 1);
  expect(heard).toEqual([]);
  await time.pass(120_000);
  expect(heard).toHaveLength(1);
  await time.pass(30 * DAY);
  expect(heard).toHaveLength(1);
});

test('a leaf that has expired is seen as soon as the clock is confirmed', () => {
  const time = new FakeTime();
  const portalClock = new PortalClock({ clock: time, log: createLog('silent') });
  const heard: number[] = [];
  watchExpiry({
    scheduler: new Scheduler({ clock: time, timers: time }),
    clock: time,
    portalClock,
    minRemaining: YEAR,
    notAfter: () => time.wall + YEAR,
    onShort: (left) => void heard.push(left),
  });
  portalClock.learn(time.wall + 3 * YEAR);
  expect(heard).toEqual([-2 * YEAR]);
});

test('a hub whose clock was years behind renews its leaf when the portal tells the time, and drops nobody', async () => {
  await using emulator = await startPortal();
  // Nobody else shall tell it the time: no timedatectl is found there.
  await using hub = await HubProcess.start({ emulator, env: { PATH: '/nonexistent' } });
  const ca = (await hub.authority()).certificate;
  await hub.addAppliance('fan');
  const standing = await open(hub, ca);
  const before = standing.leaf;
  expect(await standing.ask()).toBe(200);

  emulator.advance((12 * YEAR) / 1000);
  await hub.pair('fan', emulator);
  const renewed = await eventually(async () => {
    const { leaf, hangUp } = await open(hub, ca);
    hangUp();
    return leaf.serialNumber !== before.serialNumber && leaf;
  }, 75);
  expect(before.validToDate.getTime()).toBeLessThan(Date.now() + 12 * YEAR);
  expect(renewed.validToDate.getTime()).toBeGreaterThan(Date.now() + 20 * YEAR);
  expect(await standing.ask()).toBe(200);
  standing.hangUp();
});

/** A connection that stays, as long as it may. */
async function open(hub: HubProcess, ca: string) {
  const socket = connect({ host: '127.0.0.1', port: hub.httpsPort, ca });
  await once(socket, 'secureConnect');
  return {
    leaf: new X509Certificate(socket.getPeerCertificate().raw),
    async ask(): Promise<number> {
      socket.write('HEAD /.well-known/oauth-authorization-server HTTP/1.1\r\nhost: localhost\r\n\r\n');
      const [answer] = (await once(socket, 'data')) as [Buffer];
      return Number(/^HTTP\/1.1 (\d{3}) /.exec(answer.toString())?.[1]);
    },
    hangUp: () => void socket.destroy(),
  };
}
