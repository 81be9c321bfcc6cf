import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Administration } from '../../src/core/administration.ts';
import type { LanService } from '../../src/core/lan-service.ts';
import type { SetupAccess } from '../../src/core/setup-access.ts';
import { type IngressServerOptions, openIngressServer } from '../../src/lan/ingress-server.ts';
import { ListeningSocketPool } from '../../src/lan/listening-socket-pool.ts';
import { openPages } from '../../src/page/pages.ts';
import { systemClock, systemTimers } from '../../src/system/clock.ts';
import { systemRandom } from '../../src/system/random.ts';
import { findRoutes } from '../support/fastify-routes.ts';
import { startForeignSite } from '../support/foreign-site.ts';
import { HubProcess, reservePort } from '../support/hub-process.ts';
import { LanServerHarness } from '../support/lan-server-harness.ts';
import { logTo } from '../support/log-to.ts';
import { startPortal } from '../support/portal.ts';
import { ProxyClient } from '../support/proxy-client.ts';
import { waitFor } from '../support/wait-for.ts';

interface LogLine {
  readonly event: string;
  readonly fields: object | undefined;
}

/** A listener without a hub behind it. */
async function openServer(options: Partial<IngressServerOptions> = {}, ingressUsers: readonly string[] = []) {
  const lines: LogLine[] = [];
  const log = logTo((event, fields) => void lines.push({ event, fields }));
  const shared = { log, clock: systemClock(), timers: systemTimers };
  const pages = openPages({
    ...shared,
    service: {} as LanService,
    administration: {} as Administration,
    access: { proxiedCsrfToken: () => 'a-token' } as Partial<SetupAccess> as SetupAccess,
    hubName: 'Test hub',
    ready: Promise.resolve(),
    random: systemRandom,
    ingressUsers,
  });
  const sockets = new ListeningSocketPool();
  const server = await openIngressServer({
    sockets,
    host: '127.0.0.1',
    port: 0,
    from: '127.0.0.1',
    hosts: [],
    pages,
    ...shared,
    ...options,
  });
  return {
    server,
    lines,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      sockets[Symbol.dispose]();
    },
  };
}

/** The routes of the first server that `start` creates. */
async function routesOf(start: () => Promise<AsyncDisposable>): Promise<string[]> {
  const { started, routes } = await findRoutes(start);
  await started[Symbol.asyncDispose]();
  return (routes[0] ?? []).map(({ method, path }) => `${method} ${path}`);
}

describe('the listener for a reverse proxy', () => {
  it.each<[string, Record<string, string>, number]>([
    ['with the login name of a permitted user', { 'x-remote-user-id': 'f3a1', 'x-remote-user-name': 'anna' }, 200],
    ['with the id of a permitted user', { 'x-remote-user-id': 'b077', 'x-remote-user-name': 'ben' }, 200],
    ['of another user', { 'x-remote-user-id': 'c1', 'x-remote-user-name': 'carl' }, 403],
    // Users can choose their display name.
    [
      'with the display name of a permitted user',
      { 'x-remote-user-id': 'c1', 'x-remote-user-display-name': 'anna' },
      403,
    ],
    ['of nobody', {}, 403],
  ])('a request %s is answered as the list of users says', async (_, headers, status) => {
    await using opened = await openServer({}, ['anna', 'b077']);
    await using proxy = new ProxyClient(opened.server.port ?? 0, '/hub', headers);
    const response = await proxy.get('/page.js');
    expect(response.status === 403).toBe(status === 403);
    if (status === 403) expect(response.text).toMatch(/ingress\.users.*signed in as (carl, id c1|c1|nobody)\.$/m);
  });

  it.each<[string, Record<string, string>, boolean]>([
    ['a listed name', { host: 'ha.example:8123' }, true],
    ['a listed name in both headers', { host: 'ha.example', 'x-forwarded-host': 'HA.example:8123' }, true],
    ['an IP address', { host: '192.168.1.5:8123' }, true],
    ['a name that a web page has pointed to the proxy', { host: 'evil.example' }, false],
    [
      'such a name behind a proxy that replaces Host',
      { host: '172.30.32.1:8099', 'x-forwarded-host': 'evil.example' },
      false,
    ],
    [
      'such a name behind a proxy that appends to what the page has sent',
      { host: '172.30.32.1:8099', 'x-forwarded-host': 'ha.example, evil.example' },
      false,
    ],
  ])('a request for %s is answered as the list of hosts says', async (_, headers, isAnswered) => {
    await using opened = await openServer({ hosts: ['ha.example'] });
    await using proxy = new ProxyClient(opened.server.port ?? 0, '/hub', headers);
    const { status, text } = await proxy.get('/page.js');
    expect(status === 421).toBe(!isAnswered);
    if (!isAnswered) expect(text).toContain('ingress.hosts');
  });

  it('only the pages of the installer are served, without those of the sign-in', async () => {
    const ingress = await routesOf(openServer);
    const https = await routesOf(() => LanServerHarness.start());
    const left = https.filter((route) => !ingress.includes(route));
    expect(ingress.filter((route) => !https.includes(route))).toEqual([]);
    expect(left.filter((route) => !route.startsWith('HEAD ')).sort()).toEqual([
      'GET /.well-known/oauth-authorization-server',
      'GET /.well-known/oauth-authorization-server/connections/:connection',
      'GET /.well-known/openid-configuration',
      'GET /.well-known/openid-configuration/connections/:connection',
      'GET /browsers',
      'GET /ca-old.pem',
      'GET /ca.pem',
      'GET /callback',
      'GET /connections/:connection/.well-known/openid-configuration',
      'GET /oauth/authorize',
      'GET /openapi.json',
      'GET /pair',
      'GET /sign-in',
      'GET /sign-in/:token',
      'POST /browsers/sign-out',
      'POST /browsers/sign-out-others',
      'POST /callback/:nonce/next',
      'POST /connections/:connection/oauth/device_authorization',
      'POST /connections/:connection/oauth/revoke',
      'POST /connections/:connection/oauth/token',
      'POST /oauth/connections',
      'POST /oauth/device_authorization',
      'POST /oauth/register',
      'POST /oauth/revoke',
      'POST /oauth/token',
      'POST /pair',
      'POST /setup-code',
      'POST /sign-in',
      'POST /sign-out',
    ]);
    expect(ingress.length).toBeGreaterThan(30);
  });

  it('a connection from another address gets 403, whatever it sends, and is logged once', async () => {
    await using opened = await openServer();
    const port = opened.server.port ?? 0;
    for (const from of ['127.0.0.5', '127.0.0.6', '127.0.0.5']) {
      await using other = new ProxyClient(port, '/', {}, from);
      expect(await other.get('/page/page.js')).toMatchObject({
        status: 403,
        text: expect.stringContaining('reverse proxy'),
      });
      expect(await other.post('/registration/open', { csrf: 'a-token' })).toMatchObject({ status: 403 });
    }
    const silent = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.5' });
    silent.resume();
    await once(silent, 'close');
    await using proxy = new ProxyClient(port, '/');
    expect((await proxy.get('/page/nothing.js')).status).toBe(404);
    const refused = opened.lines.filter(({ event }) => event === 'ingress_connection_refused');
    expect(refused.map(({ fields }) => fields)).toEqual([{ address: '127.0.0.5', count: 1 }]);
  });

  it('refused connections take no places of the reverse proxy', async () => {
    await using opened = await openServer();
    using sockets = new DisposableStack();
    const open = (localAddress: string) => {
      const options = { port: opened.server.port ?? 0, host: '127.0.0.1', localAddress, allowHalfOpen: true };
      return sockets
        .adopt(connect(options), (socket) => socket.destroy())
        .on('error', () => undefined)
        .resume();
    };
    const kept = [1, 2].map(() => open('127.0.0.1'));
    await Promise.all(kept.map((socket) => once(socket, 'connect')));
    // They do not close their side, so the listener has more than its limit of them until it gives up.
    const others = Array.from({ length: 260 }, (_, index) => open(`127.0.1.${(index % 250) + 1}`));
    await Promise.all(others.map((socket) => Promise.race([once(socket, 'end'), once(socket, 'close')])));
    await using proxy = new ProxyClient(opened.server.port ?? 0, '/');
    expect((await proxy.get('/page/nothing.js')).status).toBe(404);
    expect(kept.map((socket) => socket.readableEnded || socket.destroyed)).toEqual([false, false]);
  });

  it('refused connections are counted, and logged again after ten minutes', async () => {
    let uptime = 0;
    await using opened = await openServer({
      clock: { now: () => ({ boot: 'one', uptime, wall: 0 }) },
      from: '127.0.0.9',
    });
    await using client = new ProxyClient(opened.server.port ?? 0, '/');
    for (const at of [0, 1000, 599_000, 600_000, 601_000]) {
      uptime = at;
      expect((await client.get('/')).status).toBe(403);
    }
    const refused = opened.lines.filter(({ event }) => event === 'ingress_connection_refused');
    expect(refused.map(({ fields }) => fields)).toEqual([
      { address: '127.0.0.1', count: 1 },
      { address: '127.0.0.1', count: 3 },
    ]);
  });

  it('a request with two Host headers or an absolute URL is rejected', async () => {
    await using opened = await openServer();
    for (const request of [
      'GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n',
      'GET http://a/ HTTP/1.1\r\nhost: a\r\n\r\n',
    ]) {
      const socket = connect(opened.server.port ?? 0, '127.0.0.1');
      socket.end(request);
      const [data] = await once(socket, 'data');
      expect(String(data)).toMatch(/^HTTP\/1\.1 400 /);
      socket.destroy();
    }
  });

  it('a port that is in use is logged once, and tried again', async () => {
    await using other = await startForeignSite(() => 'other');
    const port = Number(new URL(other.url).port);
    const retries: (() => void)[] = [];
    const timers = {
      ...systemTimers,
      after(_ms: number, run: () => void) {
        retries.push(run);
        return () => undefined;
      },
    };
    await using opened = await openServer({ port, timers });
    expect(opened.server.port).toBeNull();
    retries.shift()?.();
    await waitFor(() => expect(retries).toHaveLength(1));
    await other[Symbol.asyncDispose]();
    retries.shift()?.();
    await waitFor(() => expect(opened.server.port).toBe(port));
    expect(opened.lines.map(({ event }) => event)).toEqual(['ingress_unavailable', 'ingress_listening']);
  });
});

it('a reload moves the listener, changes the proxy, the users and the host names, and turns the listener off', async () => {
  const [first, second] = [await reservePort(), await reservePort()];
  await using emulator = await startPortal();
  await using hub = await HubProcess.start({
    emulator,
    here: true,
    toml: `[ingress]\nlisten = "127.0.0.1:${first}"\nfrom = "127.0.0.1"`,
  });
  const statusFrom = async (port: number, from: string, headers: Record<string, string> = {}) => {
    await using client = new ProxyClient(port, '/', headers, from);
    return (await client.get('/')).status;
  };
  const change = async (listen: string, from: string, limits = '') => {
    const file = join(hub.directory, 'latchkey.toml');
    const text = await readFile(file, 'utf8');
    await writeFile(
      file,
      text.replace(/\[ingress\].*/s, `[ingress]\nlisten = "${listen}"\nfrom = "${from}"\n${limits}\n`),
    );
    await hub.reload();
  };
  expect([await statusFrom(first, '127.0.0.1'), await statusFrom(first, '127.0.0.5')]).toEqual([200, 403]);
  await change(`127.0.0.1:${first}`, '127.0.0.5');
  expect([await statusFrom(first, '127.0.0.1'), await statusFrom(first, '127.0.0.5')]).toEqual([403, 200]);
  await change(`127.0.0.1:${second}`, '127.0.0.5');
  await expect(statusFrom(first, '127.0.0.5')).rejects.toThrow('ECONNREFUSED');
  expect(await statusFrom(second, '127.0.0.5')).toBe(200);
  await change(`127.0.0.1:${second}`, '127.0.0.5', 'users = ["anna"]\nhosts = ["parent.example"]');
  expect(await statusFrom(second, '127.0.0.5', { 'x-remote-user-name': 'anna' })).toBe(200);
  expect(await statusFrom(second, '127.0.0.5', { 'x-remote-user-name': 'ben' })).toBe(403);
  expect(await statusFrom(second, '127.0.0.5', { host: 'evil.example' })).toBe(421);
  await change('', '127.0.0.5');
  await expect(statusFrom(second, '127.0.0.5')).rejects.toThrow('ECONNREFUSED');
});
