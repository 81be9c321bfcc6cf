import { afterEach, describe, expect, it } from 'vitest';
import { type ActivatedSocket, activatedSockets } from '../../src/lan/activated-sockets.ts';
import { type ListenConfiguration, ListeningSocket, type PortName } from '../../src/lan/listening-socket.ts';
import { ListeningSocketPool } from '../../src/lan/listening-socket-pool.ts';
import { eventually } from '../support/hub-process.ts';
import { skipIfUnavailable } from '../support/set-up.ts';
import { activationSkipReason, fetchCa, knock, prepareActivated } from './activated-hub.ts';

describe('sockets that systemd passes to the hub', () => {
  skipIfUnavailable(activationSkipReason);

  it("the hub serves systemd's sockets on both ports over IPv4 and IPv6, also clients from before its start", async () => {
    await using activated = await prepareActivated();
    const { hub, activate } = activated;
    const { httpPort, httpsPort } = hub;
    for (const port of [httpPort, httpsPort]) activate.push('-l', `127.0.0.1:${port}`, '-l', `[::1]:${port}`);
    let isUp = false;
    const launched = hub.launch().then(() => {
      isUp = true;
    });
    await eventually(() => knock(httpsPort).catch(() => null));
    const early = Promise.all(['127.0.0.1', '[::1]'].map((host) => fetchCa(`http://${host}:${httpPort}`)));
    await knock(httpPort, '::1');
    expect(isUp).toBe(false);
    const [[ca = '', other]] = await Promise.all([early, launched]);
    expect(ca).toContain('BEGIN CERTIFICATE');
    expect(other).toBe(ca);
    for (const host of ['127.0.0.1', '[::1]']) expect(await fetchCa(`https://${host}:${httpsPort}`, ca)).toBe(ca);
    expect((await hub.status()).hub).toMatchObject({ http_port: httpPort, https_port: httpsPort });
  });
});

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

  it.for([
    ['127.0.0.1', ['0.0.0.0', '::']],
    ['::1', ['0:0::1']],
  ] as const)('the hub accepts a passed socket at %s if lan.listen is %j', async ([host, listen]) => {
    const activated = [await openActivated(host), await openActivated(host)] as const;
    using sockets = new ListeningSocketPool(activated);
    await sockets.claim(listenConfiguration(...activated, listen));
  });

  it.for([
    ['127.0.0.1', ['::']],
    ['0.0.0.0', ['127.0.0.1']],
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
