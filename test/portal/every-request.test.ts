import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { deflateRawSync, gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Portal, RevokedTokens } from '../../src/core/portals/portal.ts';
import type { InspectedPortal } from '../../src/core/portals/portal-status.ts';
import type { TokenOutcome } from '../../src/core/portals/token-outcome.ts';
import { Secret } from '../../src/core/secret.ts';
import { probePortals } from '../../src/doctor/context.ts';
import type { Emulator, EmulatorOptions } from '../../src/emulator/index.ts';
import { webhookHook } from '../../src/notify/webhook.ts';
import { HelperPortal } from '../../src/portal/helper/helper-portal.ts';
import { systemClock } from '../../src/system/clock.ts';
import { userAgent } from '../../src/system/version.ts';
import { startPortal } from '../support/portal.ts';
import { startRawServer } from '../support/raw-server.ts';
import { BROWSER, connectOAuth2Portal, logInByRedirect } from './oauth2/oauth2-portal-harness.ts';

const REDIRECT_URI = 'http://192.168.1.7:8480/callback';
const REQUEST = { nonce: 'n', scope: 'Monitoring' };
const never = new AbortController().signal;

/** The headers of each request that a server of this process got, by method and path. */
const received: { readonly request: string; readonly headers: IncomingHttpHeaders }[] = [];
const record = (message: unknown) => {
  const { method, url = '', headers } = (message as { readonly request: IncomingMessage }).request;
  received.push({ request: `${method} ${url.replace(/\?.*/, '')}`, headers });
};

let parts: AsyncDisposableStack;
beforeEach(() => {
  parts = new AsyncDisposableStack();
  received.length = 0;
  subscribe('http.server.request.start', record);
});
afterEach(async () => {
  unsubscribe('http.server.request.start', record);
  await parts.disposeAsync();
});

/** A cloud behind a firewall that refuses clients without a name, which knows the client `latchkey`. */
async function startCloud(options: EmulatorOptions): Promise<Emulator> {
  return parts.use(await startPortal({ requireUserAgent: true, autoLogin: true, ...options }));
}

function helperPortalAt({ baseUrl, frontendUrl, clientId, clientSecret }: Emulator) {
  return parts.use(
    new HelperPortal({
      baseUrl,
      frontendUrl,
      clientId,
      ca: [],
      credentialLocation: { portal: 'home' },
      clientSecret: new Secret(clientSecret),
      redirectUrl: (nonce) => `${REDIRECT_URI}/${nonce}`,
      revocationEndpoint: `${baseUrl}/oauth2/revoke`,
    }),
  );
}

function tokensOf(outcome: TokenOutcome): RevokedTokens {
  if (outcome.kind !== 'granted') throw new Error(JSON.stringify(outcome));
  return outcome.tokens;
}

/** Refreshes, with a good and with a bad token, revokes, and checks the portal. */
async function useTokens(portal: Portal & InspectedPortal, tokens: RevokedTokens): Promise<void> {
  const refreshed = tokensOf(await portal.refresh(tokens.refreshToken ?? new Secret('')));
  expect(await portal.revoke(refreshed)).toEqual({ kind: 'revoked' });
  expect(await portal.refresh(tokens.refreshToken ?? new Secret(''))).toMatchObject({
    kind: 'refused',
    detail: expect.stringContaining('HTTP 400 invalid_grant'),
  });
  expect((await portal.check(() => Date.now())).filter(({ result }) => result === 'fail')).toEqual([]);
  expect(await portal.fetchTime()).toEqual(expect.any(Number));
}

describe.each(['none', 'gzip', 'deflate', 'br'] as const)('the content encoding %s of a portal', (contentEncoding) => {
  test('every response of a helper portal is read, and every request names the hub', async () => {
    const cloud = await startCloud({ contentEncoding });
    const portal = helperPortalAt(cloud);
    const requested = await portal.requestLink(REQUEST, never);
    if (requested.kind !== 'link' || requested.link.kind !== 'poll') throw new Error(JSON.stringify(requested));
    const { link } = requested;
    expect(await portal.poll(link, never)).toMatchObject({ kind: 'not_yet' });
    await cloud.login({ state: new URL(link.codeUrl).searchParams.get('state') ?? '', user: 'demo' });
    const polled = await portal.poll(link, never);
    if (polled.kind !== 'code') throw new Error(JSON.stringify(polled));
    const response = { code: polled.code, issuer: null };
    await useTokens(portal, tokensOf(await portal.exchangeCode(link, response, REQUEST.scope)));
    expect(await portal.exchangeCode(link, response, null)).toMatchObject({ kind: 'refused' });
    const configuration = { type: 'helper', name: 'home', ...cloud, ca: [], proxy: null };
    await probePortals([configuration as never], () => Date.now(), AbortSignal.timeout(5000), {});
    expectNamedRequests(['/external', '/sso/token', '/oauth2/revoke', '/']);
  });

  test('every response of an OAuth 2.0 cloud is read, and every request names the hub', async () => {
    const client = { id: 'latchkey', secret: 'the-secret-of-the-hub', redirectUris: [REDIRECT_URI] };
    const cloud = await startCloud({ contentEncoding, clients: [client] });
    const connect = (login: 'device' | 'redirect') =>
      parts.use(connectOAuth2Portal(cloud, { redirectUri: REDIRECT_URI, login }));
    const [byDevice, byRedirect] = [connect('device'), connect('redirect')];
    const device = await byDevice.requestLink(REQUEST);
    if (device.kind !== 'link' || device.link.kind !== 'device') throw new Error(JSON.stringify(device));
    expect(await byDevice.poll(device.link)).toMatchObject({ kind: 'not_yet' });
    await cloud.approveDevice({ userCode: device.link.userCode, user: 'demo' });
    cloud.advance(30);
    const polled = await byDevice.poll(device.link);
    await useTokens(byDevice, tokensOf(polled as TokenOutcome));
    const requested = await byRedirect.requestLink(REQUEST);
    if (requested.kind !== 'link' || requested.link.kind !== 'redirect') throw new Error(JSON.stringify(requested));
    const response = await logInByRedirect(requested.link);
    await useTokens(byRedirect, tokensOf(await byRedirect.exchangeCode(requested.link, response)));
    expectNamedRequests(['/.well-known', '/oauth2/device_authorization', '/oauth2/token', '/oauth2/revoke', '/']);
  });
});

/** Every request names the hub and its version, and asks for an uncompressed response. */
function expectNamedRequests(paths: readonly string[]): void {
  const asked = received.map(({ request }) => request.split(' ')[1] ?? '');
  for (const path of paths)
    expect(asked.some((one) => (path === '/' ? one === path : one.startsWith(path)))).toBe(true);
  const other = received.filter(({ request, headers }) => {
    if (headers['user-agent'] === BROWSER) return false;
    return (
      headers['user-agent'] !== userAgent() ||
      (!request.startsWith('HEAD ') && headers['accept-encoding'] !== 'identity')
    );
  });
  expect(other).toEqual([]);
}

test('a webhook is told the name of the hub', async () => {
  await using server = await startRawServer((socket) => socket.end('HTTP/1.1 204 OK\r\n\r\n'));
  await webhookHook(new Secret(server.origin), null, systemClock()).deliver('{}', never, 'msg-1');
  expect(server.requests[0]?.headers['user-agent']).toMatch(/^latchkey\/\d/);
});

test('a user-agent in the configured headers of a portal wins', async () => {
  await using server = await startRawServer((socket) => socket.end());
  const headers = { 'User-Agent': new Secret('my-app/1') };
  const endpoints = { authorization: null, deviceAuthorization: null, revocation: null, token: server.origin };
  await using portal = connectOAuth2Portal(
    { frontendUrl: server.origin, clientSecret: 'x' },
    { issuer: null, endpoints, headers },
  );
  await portal.refresh(new Secret('a-refresh-token'));
  expect(server.requests[0]?.headers['user-agent']).toBe('my-app/1');
});

test.each([
  ['too large after decoding', 'gzip', gzipSync(Buffer.alloc(5_000_000, ' '))],
  ['too large after two decodings', 'gzip, gzip', gzipSync(gzipSync(Buffer.alloc(5_000_000, ' ')))],
  ['encoded more often than anybody would', Array(6).fill('gzip').join(), Buffer.from('{}')],
  ['cut off', 'gzip', gzipSync('{"access_token":"aaaaaa"}').subarray(0, 30)],
])('a compressed response that is %s is a lost one, and soon', async (_, encoding, body) => {
  await using server = await startRawServer((socket) => {
    socket.write(`HTTP/1.1 200 OK\r\ncontent-encoding: ${encoding}\r\ncontent-length: ${body.length}\r\n\r\n`);
    socket.end(body);
  });
  const cloud = { baseUrl: server.origin, frontendUrl: server.origin, clientId: 'c', clientSecret: 's' };
  const portal = helperPortalAt(cloud as Emulator);
  expect(await portal.refresh(new Secret('a-refresh-token'))).toMatchObject({ kind: 'ambiguous' });
  expect(await portal.requestLink(REQUEST, never)).toMatchObject({ kind: 'unreachable' });
  const oauth2 = parts.use(connectOAuth2Portal(cloud));
  expect(await oauth2.refresh(new Secret('a-refresh-token'))).toMatchObject({ kind: 'not_sent' });
});

const GRANTED = Buffer.from('{"access_token":"aaaaaa","refresh_token":"bbbbbb"}');

/** Its first bytes are a complete deflated nothing. */
const INDENTED = Buffer.from(JSON.stringify(JSON.parse(GRANTED.toString()), null, 2));

test.each([
  ['decoded by a proxy that has left the header', 'gzip', 200, GRANTED, 'granted'],
  ['decoded by a proxy that has left another header', 'deflate', 200, INDENTED, 'granted'],
  ['of a coding that does not exist', 'constructor', 200, GRANTED, 'granted'],
  ['of another coding than its header says', 'br', 200, GRANTED, 'granted'],
  ['deflated without the header of zlib', 'deflate', 200, deflateRawSync(GRANTED), 'granted'],
  ['without the checksum at its end', 'gzip', 200, gzipSync(GRANTED).subarray(0, -8), 'granted'],
  ['compressed after another coding that changes nothing', 'identity, x-gzip', 200, gzipSync(GRANTED), 'granted'],
  ['preceded by a byte order mark', '', 200, Buffer.from(`\uFEFF${GRANTED}`), 'granted'],
  ['empty, for a wait', 'br', 429, Buffer.alloc(0), 'deferred'],
  ['empty, of an overloaded server', 'gzip', 503, Buffer.alloc(0), 'deferred'],
])('a response that is %s is understood', async (_, encoding, status, body, kind) => {
  await using server = await startRawServer((socket) => {
    const headers = `content-encoding: ${encoding}\r\nretry-after: 60\r\ncontent-length: ${body.length}`;
    socket.write(`HTTP/1.1 ${status} Status\r\n${headers}\r\n\r\n`);
    socket.end(body);
  });
  const portal = helperPortalAt({ baseUrl: server.origin, frontendUrl: server.origin } as Emulator);
  expect(await portal.refresh(new Secret('a-refresh-token'))).toMatchObject({ kind });
});
