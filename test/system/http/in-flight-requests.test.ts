import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { limitInFlightRequests } from '../../../src/system/http/in-flight-requests.ts';

const REQUEST = 'GET / HTTP/1.1\r\nhost: localhost\r\n\r\n';

describe('limit on requests in flight', () => {
  it('a flood of requests on one connection is cut off at the limit, and the connection is closed', async () => {
    await using server = await silentServer({ perConnection: 3, total: 100 });
    const flood = await server.connect();
    flood.write(REQUEST.repeat(1000));
    await once(flood, 'close');
    await server.reached(0);
    expect(server.requests).toBe(3);
  });

  it('each connection gets one request in flight while the total limit is reached, and more again afterwards', async () => {
    await using server = await silentServer({ perConnection: 3, total: 4 });
    const [one, two, three] = [await server.connect(), await server.connect(), await server.connect()];
    one.write(REQUEST.repeat(3));
    await server.reached(3);
    two.write(REQUEST);
    await server.reached(4);
    three.write(REQUEST);
    await server.reached(5);
    two.write(REQUEST);
    await once(two, 'close');
    expect([one.destroyed, three.destroyed]).toEqual([false, false]);
    one.destroy();
    await server.reached(1);
    three.write(REQUEST);
    await server.reached(2);
    expect(three.destroyed).toBe(false);
  });
});

/** A server that never responds. */
async function silentServer(limits: { perConnection: number; total: number }) {
  const server = createServer();
  let inFlight = 0;
  let requests = 0;
  const changed = new EventTarget();
  const change = (delta: number) => {
    inFlight += delta;
    changed.dispatchEvent(new Event('change'));
  };
  server.on('request', ({ socket }, response) => {
    if (socket.destroyed) return;
    requests += 1;
    change(1);
    response.once('close', () => change(-1));
  });
  limitInFlightRequests(server, limits);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    get requests() {
      return requests;
    },
    async connect(): Promise<Socket> {
      const socket = connect(port, '127.0.0.1').on('error', () => undefined);
      await once(socket, 'connect');
      return socket.resume();
    },
    async reached(count: number): Promise<void> {
      while (inFlight !== count)
        await new Promise((resolve) => changed.addEventListener('change', resolve, { once: true }));
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
