import { once } from 'node:events';
import { connect as connectPlain, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { connect as connectSecure } from 'node:tls';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { FakeTime } from '../support/fake-time.ts';
import { LanServerHarness } from '../support/lan-server-harness.ts';
import { waitFor } from '../support/wait-for.ts';
import { AcceptedSockets } from './accepted-sockets.ts';

/** More bytes than the kernel buffers for a device that does not read. */
const LARGE = 32 << 20;

let accepted: AcceptedSockets;
let time: FakeTime;
let side: LanServerHarness;

beforeEach(async () => {
  accepted = new AcceptedSockets();
  time = new FakeTime();
  side = await LanServerHarness.start(['127.0.0.1'], { timers: time });
});

afterEach(async () => {
  accepted[Symbol.dispose]();
  await side[Symbol.asyncDispose]();
});

/** Connects a device that never closes its connection. */
async function connect(port: number): Promise<Socket> {
  const device = connectPlain({ host: '127.0.0.1', port, allowHalfOpen: true });
  device.on('error', () => undefined);
  await once(device, 'connect');
  return device;
}

it.for(['http', 'https'] as const)(
  'the hub answers 400 to a device that sends no HTTP over %s, and closes the connection a second later',
  async (scheme) => {
    const raw = await connect(scheme === 'http' ? side.server.httpPort : side.server.httpsPort);
    const device = scheme === 'http' ? raw : connectSecure({ socket: raw, ca: side.ca });
    device.write('garbage\r\n\r\n');
    expect(await text(device)).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    const hubsEnd = accepted.serverSideOf(raw);
    time.skip(999);
    expect(hubsEnd.destroyed).toBe(false);
    time.skip(1);
    expect(hubsEnd.destroyed).toBe(true);
  },
);

it('the hub closes the connection of a device that does not read its response after 15 seconds without progress', async () => {
  side.home.padding = 'x'.repeat(LARGE);
  const device = await connect(side.server.httpPort);
  device.pause().write('GET /ca.pem HTTP/1.1\r\nhost: localhost\r\n\r\n');
  const hubsEnd = await waitFor(() => accepted.serverSideOf(device));
  await waitFor(() => expect(hubsEnd.writableLength).toBeGreaterThan(0));
  expect(hubsEnd.timeout).toBe(15_000);
  hubsEnd.setTimeout(50);
  await once(hubsEnd, 'close');
  let received = 0;
  for await (const chunk of device) received += chunk.length;
  expect(received).toBeLessThan(LARGE);
});
