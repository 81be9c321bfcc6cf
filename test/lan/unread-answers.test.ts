import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { LanSide } from '../support/lan-side.ts';

/** More than what waits in the kernel for a device that does not read. */
const LARGE = 32 << 20;

test('a device that asks and does not read the answer is cut off', async () => {
  await using side = await LanSide.start();
  side.home.padding = 'x'.repeat(LARGE);
  const socket = connect({ host: '127.0.0.1', port: side.server.httpPort });
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  socket.pause().write('GET /ca.pem HTTP/1.1\r\nhost: localhost\r\n\r\n');
  // Twice as long as nothing may move: Node looks again when something did move in the first half.
  await sleep(33_000);
  let received = 0;
  socket.on('data', (piece) => {
    received += piece.length;
    if (received > LARGE) socket.destroy();
  });
  socket.resume();
  await once(socket, 'close');
  expect(received).toBeLessThan(LARGE);
});
