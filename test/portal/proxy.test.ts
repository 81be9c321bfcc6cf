import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Secret } from '../../src/core/secret.ts';
import { probePortals } from '../../src/doctor/context.ts';
import { HelperPortal } from '../../src/portal/helper/helper-portal.ts';
import { TOKEN_REQUEST_LIMITS } from '../../src/portal/http.ts';
import { createAuthority, issueLeaf } from '../../src/system/x509/issuing.ts';
import { httpResponse, type RawServer, startRawServer } from '../support/raw-server.ts';

const TOKENS = '{"access_token":"aaaaaa","refresh_token":"rrrrrr","expires_in":3600}';
const never = new AbortController().signal;

let parts: AsyncDisposableStack;
let respond: (socket: Socket) => void;
let server: RawServer;
let ca: string[];
beforeEach(async () => {
  parts = new AsyncDisposableStack();
  const authority = await createAuthority();
  const leaf = await issueLeaf(authority, { names: ['portal.example'], addresses: [], now: Date.now() });
  ca = [authority.certificate];
  respond = (socket) => socket.end(httpResponse(200, TOKENS));
  server = parts.use(await startRawServer((socket) => respond(socket), { key: leaf.key, cert: leaf.certificate }));
});
afterEach(() => parts.disposeAsync());

/** A proxy that alone knows where portal.example is. @returns its origin, and what was asked of it */
async function startProxy(tunnel: (socket: Socket) => void = openTunnel) {
  const asked: string[] = [];
  const proxy: Server = createServer((_request, response) => response.writeHead(405).end());
  proxy.on('connect', ({ url, headers }, socket) => {
    asked.push(`CONNECT ${url} ${headers['user-agent']?.split('/')[0]}`);
    tunnel(socket as Socket);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  parts.defer(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  return { origin: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, asked };
}

function openTunnel(socket: Socket): void {
  const target = connect(server.port, '127.0.0.1', () => {
    socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
    socket.pipe(target).pipe(socket);
  });
  for (const end of [socket, target]) end.on('error', () => undefined);
  parts.defer(() => void target.destroy());
}

function portalBehind(proxy: string) {
  const origin = `https://portal.example:${server.port}`;
  return parts.use(
    new HelperPortal({
      baseUrl: origin,
      frontendUrl: origin,
      clientId: 'c',
      clientSecret: new Secret('s3cret'),
      ca,
      proxy,
      credentialLocation: { portal: 'home' },
      limits: { ...TOKEN_REQUEST_LIMITS, connectTimeout: 1500 },
    }),
  );
}

const refresh = (portal: HelperPortal) => portal.refresh(new Secret('the-refresh-token'));

test('all requests go through a tunnel of the proxy, which sees the name of the portal and nothing else', async () => {
  const { origin, asked } = await startProxy();
  const portal = portalBehind(origin);
  expect(await refresh(portal)).toMatchObject({ kind: 'granted' });
  expect(await portal.requestLink({ nonce: 'n', scope: null }, never)).toMatchObject({ kind: 'unreachable' });
  expect(server.requests.map(({ method, target }) => `${method} ${target}`)).toEqual([
    'POST /sso/token',
    'POST /external/oauth2helper/config/c',
  ]);
  expect(asked).toEqual(Array(2).fill(`CONNECT portal.example:${server.port} latchkey`));
});

test('the doctor tries the portal through its proxy', async () => {
  const { origin: proxy, asked } = await startProxy();
  const origin = `https://portal.example:${server.port}`;
  const portal = { type: 'helper', name: 'home', baseUrl: origin, frontendUrl: origin, ca, proxy };
  const probes = await probePortals([portal as never], () => Date.now(), AbortSignal.timeout(10_000), {});
  expect(probes).toMatchObject([{ key: 'portals.home.base_url', outcome: { kind: 'answered', status: 200 } }]);
  expect(asked).toHaveLength(1);
});

test.each<[string, (socket: Socket) => void, RegExp]>([
  ['wants a login', (socket) => socket.end('HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\n'), /it answers HTTP 407$/],
  ['does not reach the portal', (socket) => socket.end('HTTP/1.1 502 No\r\n\r\n'), /it answers HTTP 502$/],
  [
    'cuts the connection',
    (socket) => socket.destroy(),
    /the proxy http:\/\/127.* gives no connection to portal.example/,
  ],
  ['does not answer', () => undefined, /did not answer within 1.5 s$/],
  [
    'answers for the portal with bytes of its own',
    (socket) => socket.end('HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n'),
    /./,
  ],
])('a refresh is not sent if the proxy %s', async (_, tunnel, detail) => {
  const { origin } = await startProxy(tunnel);
  const outcome = await refresh(portalBehind(origin));
  expect(outcome).toMatchObject({ kind: 'not_sent', detail: expect.stringMatching(detail) });
  expect(server.requests).toEqual([]);
});

test('a refresh is not sent if nobody is at the address of the proxy', async () => {
  const gone = await startRawServer(() => undefined);
  await gone[Symbol.asyncDispose]();
  expect(await refresh(portalBehind(gone.origin))).toMatchObject({
    kind: 'not_sent',
    detail: expect.stringContaining('ECONNREFUSED'),
  });
});

test('a refresh is a lost answer if the connection breaks after it was sent through the proxy', async () => {
  const { origin } = await startProxy();
  respond = (socket) => socket.destroy();
  expect(await refresh(portalBehind(origin))).toMatchObject({ kind: 'ambiguous' });
  expect(server.requests).toHaveLength(1);
});

test('the certificate of the portal is checked behind the proxy, too', async () => {
  const { origin } = await startProxy();
  ca = [];
  expect(await refresh(portalBehind(origin))).toMatchObject({
    kind: 'not_sent',
    detail: expect.stringContaining('certificate'),
  });
});
