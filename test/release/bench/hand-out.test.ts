import { Client } from 'undici';
import { expect, it } from 'vitest';
import { canTraceSystemCalls, type SystemCall, traceSystemCalls } from '../../chaos/system-calls.ts';
import { pairFleet } from '../../reliability/fleet.ts';
import { eventually, HubProcess } from '../../support/hub-process.ts';
import { startPortal } from '../../support/portal.ts';

const REQUESTS = 200;
/** A margin for the hub's own periodic work, about once a second. */
const MARGIN = REQUESTS / 10;

it('token requests on one connection take one handshake, and cause no file access and no log lines', async (ctx) => {
  if (!canTraceSystemCalls()) ctx.skip('needs strace, and the permission to use it');
  await using emulator = await startPortal();
  await using hub = await HubProcess.start({ emulator });
  const [wallbox] = await pairFleet(hub, emulator, ['wallbox']);
  // It follows the pairing.
  await eventually(async () => hub.events('snapshot_written').length > 0);
  const { certificate } = await hub.authority();
  let handshakes = 0;
  const calls = await traceSystemCalls(
    hub.pid,
    ['accept4', 'close', 'read', 'pread64', 'write', 'writev', 'pwrite64'],
    async () => {
      const client = new Client(`https://127.0.0.1:${hub.httpsPort}`, { connect: { ca: certificate } });
      client.on('connect', () => {
        handshakes += 1;
      });
      for (let count = 0; count < REQUESTS; count++) {
        const { statusCode, body } = await client.request({
          method: 'POST',
          path: '/oauth/token',
          headers: {
            authorization: `Basic ${Buffer.from(`${wallbox?.client_id}:${wallbox?.client_secret}`).toString('base64')}`,
            'content-type': 'application/x-www-form-urlencoded',
          },
          body: 'grant_type=client_credentials',
        });
        expect(statusCode).toBe(200);
        await body.dump();
      }
      await client.close();
    },
  );
  const on = (names: readonly string[], is: (what: string) => boolean) =>
    calls.filter(({ name, on: what }: SystemCall) => names.includes(name) && is(what)).length;
  expect(handshakes).toBe(1);
  const isFile = (what: string) => what.startsWith('/');
  expect(on(['close', 'read', 'pread64'], isFile)).toBeLessThan(MARGIN);
  expect(on(['write', 'writev', 'pwrite64'], isFile)).toBeLessThan(MARGIN);
  const isSocket = (what: string) => what.startsWith('socket:');
  expect(on(['accept4'], isSocket)).toBeLessThan(MARGIN);
  // The log goes to a socket, too: a line for each request would double the writes.
  const writes = on(['write', 'writev'], isSocket);
  expect(writes).toBeGreaterThanOrEqual(REQUESTS);
  expect(writes).toBeLessThan(REQUESTS + MARGIN);
});
