import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { Secret } from '../../src/core/secret.ts';
import { HelperPortal } from '../../src/portal/helper/helper-portal.ts';
import { REVOCATION_LIMITS, type RequestLimits } from '../../src/portal/http.ts';
import { httpResponse, type RawServer, startRawServer } from '../support/raw-server.ts';

const CLIENT = '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1a01';
const SECRET = 's3cret:with +%&';
const TOKEN = 'the-refresh+t0ken/=';
/** Short enough for a test to wait for. */
const SHORT: RequestLimits = { ...REVOCATION_LIMITS, connectTimeout: 500, totalTimeout: 900, maxResponseBytes: 10_000 };
/** In ms, above the 5 s of a revocation and below the timeouts of a token request. */
const TOO_LONG = 30_000;

const TOKENS = { refreshToken: new Secret(TOKEN), accessToken: new Secret('an-access-token') };

/** A portal with its revocation endpoint at `<origin>/oauth2/revoke?v=1`. */
function portalAt(
  origin: string,
  limits?: RequestLimits,
  revocationEndpoint: string | null = `${origin}/oauth2/revoke?v=1`,
) {
  return new HelperPortal({
    baseUrl: origin,
    frontendUrl: origin,
    revocationEndpoint,
    clientId: CLIENT,
    clientSecret: new Secret(SECRET),
    credentialLocation: { portal: 'home' },
    ca: [],
    ...(limits && { limits }),
  });
}

async function revokeAt({ origin }: Pick<RawServer, 'origin'>, limits = SHORT) {
  await using portal = portalAt(origin, limits);
  return portal.revoke(TOKENS);
}

test('a revocation sends the refresh token and the client credentials in its form and nowhere else', async () => {
  await using server = await startRawServer((socket) => socket.end(httpResponse(200, '')));
  expect(await revokeAt(server)).toEqual({ kind: 'revoked' });
  expect(server.requests.map(({ method, target }) => `${method} ${target}`)).toEqual(['POST /oauth2/revoke?v=1']);
  const credentials = { client_id: CLIENT, client_secret: SECRET };
  expect(server.requests.map(({ body }) => Object.fromEntries(new URLSearchParams(body)))).toEqual([
    { token: TOKEN, token_type_hint: 'refresh_token', ...credentials },
  ]);
  const headers = server.requests[0]?.headers;
  expect(headers).toMatchObject({ 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' });
  expect(JSON.stringify(headers)).not.toMatch(/s3cret|t0ken|authorization/);
});

test('a revocation is unsupported and nothing is sent if the portal has no revocation endpoint', async () => {
  await using server = await startRawServer((socket) => socket.end(httpResponse(200, '')));
  await using portal = portalAt(server.origin, SHORT, null);
  expect(await portal.revoke(TOKENS)).toEqual({ kind: 'unsupported' });
  expect(server.connections).toBe(0);
});

test.each<[number, string, object]>([
  [200, '', { kind: 'revoked' }],
  [200, '{"error":"invalid_request"}', { kind: 'revoked' }],
  [299, '<html>', { kind: 'revoked' }],
  [400, '{"error":"unsupported_token_type"}', { kind: 'failed', detail: 'HTTP 400 unsupported_token_type' }],
  [400, JSON.stringify({ error: TOKEN }), { kind: 'failed', detail: 'HTTP 400' }],
  [404, '<html>', { kind: 'failed', detail: 'HTTP 404' }],
  [503, '', { kind: 'failed', detail: 'HTTP 503' }],
])('HTTP %d with the body %j in response to a revocation counts as the table says', async (status, body, outcome) => {
  const headers = { 'retry-after': '1' };
  await using server = await startRawServer((socket) => socket.end(httpResponse(status, body, headers)));
  expect(await revokeAt(server)).toEqual(outcome);
  expect(server.requests).toHaveLength(1);
});

test.each([301, 302, 303, 307, 308])('a revocation does not follow the redirect of HTTP %d', async (status) => {
  await using elsewhere = await startRawServer((socket) => socket.end(httpResponse(200, '')));
  const location = { location: `${elsewhere.origin}/oauth2/revoke` };
  await using server = await startRawServer((socket) => socket.end(httpResponse(status, '', location)));
  expect(await revokeAt(server)).toEqual({ kind: 'failed', detail: `HTTP ${status}` });
  expect(elsewhere.connections).toBe(0);
  expect(server.requests).toHaveLength(1);
});

/** Sends a byte now and then, so that the body never ends and never pauses for long. */
function drip(socket: Socket): void {
  socket.write('HTTP/1.1 503 Whatever\r\ncontent-length: 5000\r\n\r\n');
  const timer = setInterval(() => socket.write(' '), 50);
  socket.on('close', () => clearInterval(timer));
}

// More of such responses: helper-portal.test.ts.
describe('revocation without a complete response', () => {
  test.each<[string, (socket: Socket) => void]>([
    ['the server resets the connection', (socket) => socket.resetAndDestroy()],
    ['the server sends nothing', () => undefined],
    ['the body is too large', (socket) => socket.end(httpResponse(503, ' '.repeat(20_000)))],
    ['the body never ends', drip],
  ])('a revocation fails and is sent only once if %s', async (_, respond) => {
    await using server = await startRawServer(respond);
    const outcome = await revokeAt(server);
    expect(outcome).toMatchObject({ kind: 'failed', detail: expect.stringMatching(/./) });
    expect(JSON.stringify(outcome)).not.toMatch(/t0ken|s3cret/);
    expect(server.requests).toHaveLength(1);
  });

  test('a revocation fails if the connection is refused', async () => {
    const gone = await startRawServer(() => undefined);
    await gone[Symbol.asyncDispose]();
    expect(await revokeAt(gone)).toMatchObject({ kind: 'failed', detail: expect.stringContaining('ECONNREFUSED') });
  });

  // At the https address the TLS handshake hangs, because the server waits for a request in plain text.
  test('a revocation without other limits ends after 5 s if the server hangs', async () => {
    await using silent = await startRawServer(() => undefined);
    await using slow = await startRawServer(drip);
    const origins = [silent.origin.replace('http:', 'https:'), silent.origin, slow.origin];
    const outcomes = await Promise.all(
      origins.map(async (origin) => {
        await using portal = portalAt(origin);
        const ended = new AbortController();
        const longer = sleep(TOO_LONG, null, { signal: ended.signal }).catch(() => null);
        const outcome = await Promise.race([portal.revoke(TOKENS), longer]);
        ended.abort();
        return outcome?.kind;
      }),
    );
    expect(outcomes).toEqual(['failed', 'failed', 'failed']);
    expect(REVOCATION_LIMITS).toMatchObject({ connectTimeout: 4000, totalTimeout: 5000 });
  });
});
