import { execFile, spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterEach, describe, expect, it } from 'vitest';
import { startEmulator } from '../../src/emulator/index.ts';
import { type ActivatedSocket, activatedSockets } from '../../src/lan/activated-sockets.ts';
import { type ListenConfiguration, ListeningSocket, type PortName } from '../../src/lan/listening-socket.ts';
import { ListeningSocketPool } from '../../src/lan/listening-socket-pool.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { MAIN } from '../support/program.ts';

const run = promisify(execFile);

const ACTIVATE = '/usr/bin/systemd-socket-activate';

/** A client authentication without credentials of this hub. */
const CURL = '/usr/bin/curl';

function skipReason(): string | null {
  const missing = [ACTIVATE, CURL].find((tool) => !existsSync(tool));
  if (missing !== undefined) return `${missing} is missing`;
  const hasIPv6 = Object.values(networkInterfaces()).some((some) => some?.some(({ address }) => address === '::1'));
  return hasIPv6 ? null : 'this machine has no ::1';
}

/**
 * A prepared hub that does not run, and whose sockets systemd-socket-activate opens: `activate` becomes its arguments.
 */
async function prepare(listen = '["127.0.0.1", "::1"]'): Promise<{ hub: HubProcess; activate: string[] }> {
  await using emulator = await startEmulator();
  const activate = [ACTIVATE, '-E', 'XDG_CACHE_HOME'];
  const hub = await HubProcess.prepare({ emulator, within: activate });
  await using leftovers = new AsyncDisposableStack();
  leftovers.use(hub);
  const file = join(hub.directory, 'latchkey.toml');
  await writeFile(file, (await readFile(file, 'utf8')).replace('listen = ["127.0.0.1"]', `listen = ${listen}`));
  leftovers.move();
  return { hub, activate };
}

/** Connects, which starts the daemon, and closes the connection at once. */
async function knock(port: number, host = '127.0.0.1'): Promise<true> {
  const socket = connect({ host, port });
  await once(socket, 'connect');
  socket.on('error', () => undefined).destroy();
  return true;
}

async function curl(...args: string[]): Promise<string> {
  return (await run(CURL, ['--silent', '--show-error', '--globoff', '--max-time', '20', ...args])).stdout;
}

const reason = skipReason();

describe.skipIf(reason !== null)(
  `sockets that systemd passes to the hub${reason === null ? '' : ` (${reason})`}`,
  () => {
    it("the hub serves systemd's sockets on both ports over IPv4 and IPv6, also clients from before its start", async () => {
      const { hub, activate } = await prepare();
      await using _ = hub;
      const { httpPort, httpsPort } = hub;
      for (const port of [httpPort, httpsPort]) activate.push('-l', `127.0.0.1:${port}`, '-l', `[::1]:${port}`);
      let up = false;
      const launched = hub.launch().then(() => {
        up = true;
      });
      await eventually(() => knock(httpsPort).catch(() => null));
      const early = curl(`http://127.0.0.1:${httpPort}/ca.pem`, `http://[::1]:${httpPort}/ca.pem`);
      await knock(httpPort, '::1');
      expect(up).toBe(false);
      const [ca] = await Promise.all([early, launched]);
      expect(ca.match(/BEGIN CERTIFICATE/g)).toHaveLength(2);
      await writeFile(join(hub.directory, 'ca.pem'), ca);
      const secure = ['127.0.0.1', '[::1]'].map((host) => `https://${host}:${httpsPort}/ca.pem`);
      expect(await curl('--cacert', join(hub.directory, 'ca.pem'), ...secure)).toBe(ca);
      expect((await hub.status()).hub).toMatchObject({ http_port: httpPort, https_port: httpsPort });
    });

    it('the hub serves one systemd socket for both IPv4 and IPv6', async () => {
      const { hub, activate } = await prepare('["0.0.0.0", "::"]');
      await using _ = hub;
      activate.push('-l', String(hub.httpPort), '-l', String(hub.httpsPort));
      const launched = hub.launch();
      await eventually(() => knock(hub.httpPort).catch(() => null));
      await launched;
      for (const host of ['127.0.0.1', '[::1]']) {
        expect(await curl(`http://${host}:${hub.httpPort}/ca.pem`)).toContain('BEGIN CERTIFICATE');
        expect(await curl('--insecure', `https://${host}:${hub.httpsPort}/ca.pem`)).toContain('BEGIN CERTIFICATE');
      }
    });

    it("the names of systemd's sockets decide which serves HTTP and which HTTPS, whatever their ports", async () => {
      const { hub, activate } = await prepare();
      await using _ = hub;
      const { httpPort, httpsPort } = hub;
      activate.push('-l', `127.0.0.1:${httpsPort}`, '-l', `127.0.0.1:${httpPort}`, '--fdname=http:https');
      const launched = hub.launch();
      await eventually(() => knock(httpsPort).catch(() => null));
      await launched;
      expect(await curl(`http://127.0.0.1:${httpsPort}/ca.pem`)).toContain('BEGIN CERTIFICATE');
      expect(await curl('--insecure', `https://127.0.0.1:${httpPort}/ca.pem`)).toContain('BEGIN CERTIFICATE');
      expect((await hub.status()).hub).toMatchObject({ http_port: httpsPort, https_port: httpPort });
    });

    it("systemd's sockets stay open over a reload, and a configuration that does not match them is rejected", async () => {
      const { hub, activate } = await prepare();
      await using _ = hub;
      const { httpPort, httpsPort } = hub;
      for (const port of [httpPort, httpsPort]) activate.push('-l', `127.0.0.1:${port}`);
      const launched = hub.launch();
      await eventually(() => knock(httpsPort).catch(() => null));
      await launched;
      const file = join(hub.directory, 'latchkey.toml');
      const toml = await readFile(file, 'utf8');
      await writeFile(file, toml.replace('Test hub', 'Renamed hub'));
      expect(await hub.cli('reload')).toMatchObject({ status: 0 });
      expect((await hub.status()).hub).toMatchObject({
        name: 'Renamed hub',
        http_port: httpPort,
        https_port: httpsPort,
      });
      const ca = await curl(`http://127.0.0.1:${httpPort}/ca.pem`);
      expect(await curl('--insecure', `https://127.0.0.1:${httpsPort}/ca.pem`)).toBe(ca);
      await writeFile(file, toml.replace(String(httpPort), '9'));
      const refused = await hub.cli('reload');
      expect(refused).toMatchObject({
        status: 1,
        stderr: expect.stringContaining('which is neither lan.http_port (9) nor'),
      });
      expect((await hub.status()).hub).toMatchObject({
        name: 'Renamed hub',
        http_port: httpPort,
        https_port: httpsPort,
      });
      expect(await curl(`http://127.0.0.1:${httpPort}/ca.pem`)).toBe(ca);
    });

    it.for([
      ['only one of two', ['-l', 'HTTP'], 'lan.https_port: systemd listens for the hub, but not on port'],
      ['one for datagrams', ['--datagram', '-l', 'HTTP'], 'socket number 1 is not a listening TCP socket'],
      ['one of a file', ['-l', 'HTTP', '-l', 'FILE'], 'socket number 2 is not a listening TCP socket'],
    ] as const)(
      '%s: a daemon started by systemd with such sockets reports the error and exits',
      async ([, sockets, message]) => {
        const { hub, activate } = await prepare();
        await using _ = hub;
        const addresses: Readonly<Record<string, string>> = {
          HTTP: `127.0.0.1:${hub.httpPort}`,
          FILE: join(hub.directory, 'a.sock'),
        };
        activate.push(...sockets.map((name) => addresses[name] ?? name));
        const daemon = [process.execPath, MAIN, 'serve', '--config', join(hub.directory, 'latchkey.toml')];
        const child = spawn(ACTIVATE, [...activate.slice(1), ...daemon], { stdio: ['ignore', 'ignore', 'pipe'] });
        const stderr = text(child.stderr);
        const ended = once(child, 'exit');
        const packets = createSocket('udp4');
        await eventually(async () => {
          if (child.exitCode !== null) return true;
          packets.send('knock', hub.httpPort, '127.0.0.1');
          await knock(hub.httpPort).catch(() => null);
          return null;
        });
        packets.close();
        expect((await ended)[0]).toBe(1);
        const lines = (await stderr).split('\n').filter((line) => line.startsWith('latchkey: '));
        expect(lines).toEqual([expect.stringContaining(message)]);
      },
    );
  },
);

describe('sockets that the hub is passed', () => {
  const opened: ListeningSocket[] = [];
  afterEach(() => {
    for (const socket of opened.splice(0)) socket.close();
  });

  /** Opens a socket as an activated one. */
  async function openActivated(host: string, name: PortName | null = null): Promise<ActivatedSocket> {
    const socket = await ListeningSocket.listen({ host, port: 0 });
    opened.push(socket);
    return { socket, name };
  }

  function listenConfiguration(
    https: ActivatedSocket,
    http: ActivatedSocket,
    addresses: readonly string[],
  ): ListenConfiguration {
    return { addresses, ports: { https: https.socket.port, http: http.socket.port } };
  }

  it('the hub listens only on the sockets that it was passed, and the next hub in the process reuses them', async () => {
    const activated = [await openActivated('127.0.0.1'), await openActivated('127.0.0.1')] as const;
    using sockets = new ListeningSocketPool(activated);
    const [https, http] = activated.map(({ socket }) => socket.port);
    for (let hubs = 0; hubs < 3; hubs++) {
      const claimed = await sockets.claim(listenConfiguration(...activated, ['0.0.0.0']));
      expect(claimed).toMatchObject({ https: { port: https }, http: { port: http } });
      expect(claimed.http.sockets).toEqual([activated[1].socket]);
      sockets.release([...claimed.http.sockets, ...claimed.https.sockets]);
      sockets.closeUnclaimed();
      for (const port of [https, http]) await knock(port ?? 0);
    }
  });

  it('the hub rejects a passed socket whose port is neither lan.http_port nor lan.https_port', async () => {
    const activated = [
      await openActivated('127.0.0.1'),
      await openActivated('127.0.0.1'),
      await openActivated('127.0.0.1'),
    ] as const;
    const [https, http, other] = activated;
    using sockets = new ListeningSocketPool(activated);
    await expect(sockets.claim(listenConfiguration(https, http, ['0.0.0.0']))).rejects.toMatchObject({
      code: 'config_invalid',
      message: `systemd listens on port ${other.socket.port} of 127.0.0.1, which is neither lan.http_port (${http.socket.port}) nor lan.https_port (${https.socket.port}): use the same ports in these keys and in the socket unit`,
    });
  });

  it('the hub rejects passed sockets of two ports under one name', async () => {
    const activated = [
      await openActivated('127.0.0.1'),
      await openActivated('127.0.0.1', 'http'),
      await openActivated('127.0.0.1', 'http'),
    ] as const;
    const [https, http, other] = activated;
    using sockets = new ListeningSocketPool(activated);
    await expect(sockets.claim(listenConfiguration(https, http, ['0.0.0.0']))).rejects.toThrow(
      `lan.http_port: systemd listens on ports ${http.socket.port} and ${other.socket.port} under the name http`,
    );
  });

  it.for([
    ['127.0.0.1', ['0.0.0.0', '::']],
    ['127.0.0.1', ['::', '127.0.0.1']],
    ['::1', ['0.0.0.0', '::']],
    ['::1', ['0:0::1']],
  ] as const)('the hub accepts a passed socket at %s if lan.listen is %j', async ([host, listen]) => {
    const activated = [await openActivated(host), await openActivated(host)] as const;
    using sockets = new ListeningSocketPool(activated);
    await sockets.claim(listenConfiguration(...activated, listen));
  });

  it.for([
    ['127.0.0.1', ['::']],
    ['127.0.0.1', ['127.0.0.2']],
    ['0.0.0.0', ['127.0.0.1']],
    ['::', ['0.0.0.0']],
    ['::', ['::1', '127.0.0.1']],
  ] as const)('the hub rejects a passed socket at %s if lan.listen is %j', async ([host, listen]) => {
    const activated = [await openActivated(host), await openActivated(host)] as const;
    using sockets = new ListeningSocketPool(activated);
    await expect(sockets.claim(listenConfiguration(...activated, listen))).rejects.toMatchObject({
      code: 'config_invalid',
      message: `lan.listen: systemd listens on port ${activated[0].socket.port} of ${host}, which is not in the list: remove this key, so that only the socket unit sets where the hub listens`,
    });
  });
});

describe('the LISTEN_* environment variables', () => {
  it('the hub ignores sockets if LISTEN_PID names another process, and removes the variables', async () => {
    const env = { LISTEN_PID: '1', LISTEN_FDS: '2', LISTEN_FDNAMES: 'http:https', LISTEN_PIDFDID: '7', OTHER: 'x' };
    expect(await activatedSockets(env, process.pid)).toEqual([]);
    expect(env).toEqual({ OTHER: 'x' });
  });

  it('the hub finds no passed sockets if LISTEN_FDS is 0, or if LISTEN_FDS or LISTEN_PID is missing', async () => {
    const LISTEN_PID = String(process.pid);
    expect(await activatedSockets({ LISTEN_PID, LISTEN_FDS: '0' }, process.pid)).toEqual([]);
    expect(await activatedSockets({ LISTEN_PID }, process.pid)).toEqual([]);
    expect(await activatedSockets({ LISTEN_FDS: '3' }, process.pid)).toEqual([]);
  });

  it.for(['two', '-1', '1e3', ''])('the hub rejects LISTEN_FDS="%s"', async (count) => {
    const env = { LISTEN_PID: String(process.pid), LISTEN_FDS: count };
    await expect(activatedSockets(env, process.pid)).rejects.toMatchObject({
      code: 'config_invalid',
      message: expect.stringContaining(`LISTEN_FDS: found "${count}"`),
    });
  });
});
