import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { Listener } from '../../src/lan/listener.ts';
import { ListeningSocket } from '../../src/lan/listening-socket.ts';
import { systemTimers } from '../../src/system/clock.ts';

const LIMITS = { total: 20, perAddress: 5 };

const parts: Socket[] = [];
const open: ListeningSocket[] = [];

afterEach(() => {
  for (const socket of parts.splice(0)) socket.destroy();
  for (const socket of open.splice(0)) socket.close();
});

async function serve(
  answer: RequestListener = (_request, response) => response.end('here'),
  limits = LIMITS,
): Promise<{ listener: Listener; port: number }> {
  const socket = await ListeningSocket.listen({ host: '127.0.0.1', port: 0 });
  open.push(socket);
  return {
    listener: Listener.open(socket, {
      serve: answer,
      tls: null,
      timers: systemTimers,
      limits,
    }),
    port: socket.port,
  };
}

describe('the connections of many devices', () => {
  /** Connects, sends a request, and keeps the connection. `text` is empty if the connection was refused. */
  async function connectAndRequest(port: number, device: number): Promise<{ socket: Socket; text: string }> {
    const socket = connect({ host: '127.0.0.1', port, localAddress: `127.0.0.${device}` });
    parts.push(socket);
    socket.on('error', () => undefined);
    const closed = once(socket, 'close').catch(() => undefined);
    await Promise.race([once(socket, 'connect').catch(() => undefined), closed]);
    socket.write(`GET / HTTP/1.1\r\nhost: x\r\n\r\n`);
    const response = once(socket, 'data').then(([chunk]) => String(chunk));
    return { socket, text: await Promise.race([response.catch(() => ''), closed.then(() => '')]) };
  }

  async function fill(port: number, devices: readonly number[]): Promise<Socket[]> {
    const sockets: Socket[] = [];
    for (const device of devices) {
      for (let i = 0; i < LIMITS.perAddress; i++) sockets.push((await connectAndRequest(port, device)).socket);
    }
    return sockets;
  }

  it('the hub closes a new connection at once while it has as many as it takes, and keeps the others', async () => {
    const { listener, port } = await serve();
    const [first, ...others] = await fill(port, [2, 3, 4, 5]);
    expect((await connectAndRequest(port, 9)).text).toBe('');
    expect(listener.connections).toHaveLength(LIMITS.total);
    first?.destroy();
    await expect.poll(() => listener.connections.length).toBe(LIMITS.total - 1);
    expect((await connectAndRequest(port, 9)).text).toMatch(/^HTTP\/1.1 200 /);
    expect(others.filter(({ destroyed }) => destroyed)).toEqual([]);
  });

  it('the hub limits the connections of each address, and accepts a new one when an old one has closed', async () => {
    const { listener, port } = await serve();
    const [first] = await fill(port, [2]);
    expect((await connectAndRequest(port, 2)).text).toBe('');
    first?.destroy();
    await expect.poll(() => listener.connections.length).toBe(LIMITS.perAddress - 1);
    expect((await connectAndRequest(port, 2)).text).toMatch(/^HTTP\/1.1 200 /);
  });

  it('connections that clients reset before the hub accepts them do not use up the limit', async () => {
    const { listener, port } = await serve();
    const reset = `
      const { connect } = require('node:net');
      for (let i = 0; i < 40; i++) {
        const socket = connect(${port}, '127.0.0.1', () => socket.resetAndDestroy());
        socket.on('error', () => undefined);
      }`;
    // Synchronous: this process accepts nothing meanwhile.
    expect(spawnSync(process.execPath, ['-e', reset]).status).toBe(0);
    for (let i = 0; i < LIMITS.total; i++)
      expect((await connectAndRequest(port, 10 + (i % 10))).text, String(i)).toMatch(/^HTTP\/1.1 200 /);
    expect(listener.connections).toHaveLength(LIMITS.total);
  });
});

describe('requests in flight', () => {
  const REQUEST = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n';
  const MANY = { total: 100, perAddress: 100 };

  /** A hub that never responds, and how many requests it has and has had. */
  async function serveSilently() {
    const counts = { inFlight: 0, all: 0 };
    const { port } = await serve((_request, response) => {
      counts.all += 1;
      counts.inFlight += 1;
      response.once('close', () => {
        counts.inFlight -= 1;
      });
    }, MANY);
    return { counts, port };
  }

  async function connected(port: number): Promise<Socket> {
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    parts.push(socket);
    await once(socket, 'connect');
    return socket.resume();
  }

  it('a flood of requests on one connection is cut off at the limit, and the connection is closed', async () => {
    const { counts, port } = await serveSilently();
    const flood = await connected(port);
    flood.write(REQUEST.repeat(1000));
    await once(flood, 'close');
    await expect.poll(() => counts).toEqual({ inFlight: 0, all: 32 });
  });

  it('each connection gets one request while the limit of all is reached, and more again afterwards', async () => {
    const { counts, port } = await serveSilently();
    const full = await Promise.all(Array.from({ length: 8 }, () => connected(port)));
    for (const socket of full) socket.write(REQUEST.repeat(31));
    const [two, three] = [await connected(port), await connected(port)];
    two.write(REQUEST.repeat(2));
    await expect.poll(() => counts.inFlight).toBe(250);
    three.write(REQUEST);
    await expect.poll(() => counts.inFlight).toBe(251);
    two.write(REQUEST);
    await once(two, 'close');
    expect(three.destroyed).toBe(false);
    full[0]?.destroy();
    await expect.poll(() => counts.inFlight).toBe(218);
    three.write(REQUEST);
    await expect.poll(() => counts.inFlight).toBe(219);
  });
});
