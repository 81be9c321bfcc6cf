import 'reflect-metadata';
import type { Socket } from 'node:net';
import { PemConverter, SubjectAlternativeNameExtension, X509CertificateGenerator } from '@peculiar/x509';
import { beforeAll, describe, expect, test } from 'vitest';
import type { PolledLink } from '../../src/core/portals/login-link.ts';
import { Secret } from '../../src/core/secret.ts';
import { HelperPortal } from '../../src/portal/helper/helper-portal.ts';
import type { RequestLimits } from '../../src/portal/http.ts';
import type { Authority, Leaf } from '../../src/system/x509/certificates.ts';
import { createAuthority, issueLeaf } from '../../src/system/x509/issuing.ts';
import { httpResponse, type RawRequest, startRawServer } from '../support/raw-server.ts';

const CLIENT = '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1a01';
const SECRET = 's3cret:with +%&';
const TOKENS =
  '{"access_token":"aaaaaa","refresh_token":"rrrrrr","expires_in":3600,"token_type":"bearer","scope":null}';
/** Short enough for a test to wait for. */
const SHORT: RequestLimits = {
  connectTimeout: 500,
  headersTimeout: 300,
  bodyTimeout: 300,
  totalTimeout: 900,
  maxResponseBytes: 10_000,
};

type Responder = (socket: Socket, request: RawRequest) => void;

const REQUEST = { nonce: 'n', scope: null };

/** A link whose addresses are all this one. */
function polledLink(address: string): PolledLink {
  return { kind: 'poll', authorizeUrl: address, codeUrl: address, tokenUrl: address, redirect: null };
}

function portalAt(
  frontend: string,
  base = frontend,
  more: { ca?: string[]; redirectUrl?: (nonce: string) => string | null; limits?: RequestLimits } = {},
): HelperPortal {
  return new HelperPortal({
    baseUrl: base,
    frontendUrl: frontend,
    clientId: CLIENT,
    clientSecret: new Secret(SECRET),
    credentialLocation: { portal: 'home', secretFile: '/etc/latchkey/credentials/home.secret' },
    ca: [],
    limits: SHORT,
    ...more,
  });
}

function refresh(portal: HelperPortal) {
  return portal.refresh(new Secret('the-refresh-token'));
}

const never = new AbortController().signal;

/** A certificate for 127.0.0.1 with these dates, PEM. */
async function selfSigned(notBefore: Date, notAfter: Date): Promise<{ certificate: string; key: string }> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: 'CN=test',
    notBefore,
    notAfter,
    signingAlgorithm: algorithm,
    keys,
    extensions: [new SubjectAlternativeNameExtension([{ type: 'ip', value: '127.0.0.1' }])],
  });
  const key = await crypto.subtle.exportKey('pkcs8', keys.privateKey);
  return { certificate: certificate.toString('pem'), key: PemConverter.encode(key, PemConverter.PrivateKeyTag) };
}

describe('refresh that was not sent', () => {
  let authority: Authority;
  let leaf: Leaf;
  let foreign: Leaf;

  beforeAll(async () => {
    authority = await createAuthority();
    leaf = await issueLeaf(authority, { names: ['localhost'], addresses: ['127.0.0.1'], now: Date.now() });
    foreign = await issueLeaf(authority, { names: ['elsewhere.example'], addresses: [], now: Date.now() });
  });

  test.each([
    ['the connection is refused', '127.0.0.1'],
    ['every address of a name refuses', 'localhost'],
  ])('a refresh counts as not sent if %s, and the detail says so', async (_, host) => {
    const gone = await startRawServer(() => undefined);
    await gone[Symbol.asyncDispose]();
    await using portal = portalAt(`http://${host}:${gone.port}`);
    expect(await refresh(portal)).toMatchObject({ kind: 'not_sent', detail: expect.stringContaining('ECONNREFUSED') });
  });

  test('a refresh counts as not sent if the name does not resolve', async () => {
    await using portal = portalAt('https://no-such-portal.invalid');
    expect(await refresh(portal)).toMatchObject({
      kind: 'not_sent',
      detail: expect.stringMatching(/ENOTFOUND|EAI_AGAIN|Connect Timeout/),
    });
  });

  test('a refresh is sent only to a server with TLS and a certificate for its name, of a CA that is trusted', async () => {
    const refreshAt = async (certificate: Leaf | null, ca: string[]) => {
      const tls = certificate === null ? undefined : { key: certificate.key, cert: certificate.certificate };
      await using server = await startRawServer((socket) => socket.end(httpResponse(200, TOKENS)), tls);
      const origin = server.origin.replace('http:', 'https:');
      await using portal = portalAt(origin, origin, { ca });
      return [await refresh(portal), server.requests.length];
    };
    const trusted = [authority.certificate];
    const detail = expect.stringContaining('certificate');
    expect(await refreshAt(leaf, [])).toMatchObject([{ kind: 'not_sent', detail }, 0]);
    expect(await refreshAt(foreign, trusted)).toMatchObject([{ kind: 'not_sent' }, 0]);
    expect(await refreshAt(null, trusted)).toMatchObject([{ kind: 'not_sent' }, 0]);
    expect(await refreshAt(leaf, trusted)).toMatchObject([{ kind: 'granted' }, 1]);
  });

  test.each([
    ['not_yet_valid', '2090-01-01', '2091-01-01'],
    ['expired', '2001-01-01', '2002-01-01'],
  ] as const)(
    'refreshes, polls and link requests report a certificate that is %s, and are not sent',
    async (dates, from, to) => {
      const { certificate, key } = await selfSigned(new Date(from), new Date(to));
      await using server = await startRawServer((socket) => socket.end(httpResponse(200, TOKENS)), {
        key,
        cert: certificate,
      });
      await using portal = portalAt(server.origin, server.origin, { ca: [certificate] });
      expect(await refresh(portal)).toMatchObject({ kind: 'not_sent', certificateError: dates });
      expect(await portal.poll(polledLink(`${server.origin}/code`), never)).toMatchObject({
        kind: 'unreachable',
        certificateError: dates,
      });
      expect(await portal.requestLink(REQUEST, never)).toMatchObject({ kind: 'unreachable', certificateError: dates });
      expect(server.requests).toEqual([]);
    },
  );
});

describe('refresh without a complete response', () => {
  const head = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n';
  test.each<[string, RegExp, Responder]>([
    ['the server closes instead of answering', /cut the connection/, (socket) => socket.end()],
    ['the server resets the connection', /cut the connection/, (socket) => socket.resetAndDestroy()],
    ['the server sends nothing', /whole answer did not come|in its middle|did not answer within/, () => undefined],
    [
      'the headers break off',
      /cut the connection|HTTP\/1.1 protocol/,
      (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-ty'),
    ],
    [
      'the body breaks off',
      /cut the connection|HTTP\/1.1 protocol/,
      (socket) => socket.end(`${head}content-length: 900\r\n\r\n${TOKENS.slice(0, -2)}`),
    ],
    [
      'a chunked body breaks off',
      /cut the connection|HTTP\/1.1 protocol/,
      (socket) => socket.end(`${head}transfer-encoding: chunked\r\n\r\n5\r\n{"acc\r\n`),
    ],
    [
      'the body stops coming',
      /whole answer did not come|in its middle|did not answer within/,
      (socket) => socket.write(`${head}content-length: 900\r\n\r\n{`),
    ],
    [
      'the response is not HTTP',
      /does not match the HTTP\/1.1 protocol/,
      (socket) => socket.end('SSH-2.0-OpenSSH_9.2p1\r\n'),
    ],
    [
      'the headers are too large',
      /headers of the answer are larger than 64 KiB|HTTP\/1.1 protocol/,
      (socket) => socket.end(`${head}x: ${'x'.repeat(200_000)}\r\n\r\n{}`),
    ],
    [
      'the body is whole and too large',
      /larger than 10 kB/,
      (socket) => socket.end(httpResponse(200, TOKENS.padEnd(20_000))),
    ],
    [
      'the body turns out too large',
      /larger than 10 kB/,
      (socket) => socket.end(`${head}transfer-encoding: chunked\r\n\r\n4e20\r\n${TOKENS.padEnd(20_000)}\r\n0\r\n\r\n`),
    ],
    [
      'the body drips endlessly',
      /whole answer did not come|in its middle|did not answer within/,
      (socket) => {
        socket.write(`${head}content-length: 5000\r\n\r\n`);
        const drip = setInterval(() => socket.write(' '), 50);
        socket.on('close', () => clearInterval(drip));
      },
    ],
  ])('a refresh is ambiguous and sent only once if %s', async (_, detail, respond) => {
    await using server = await startRawServer(respond);
    await using portal = portalAt(server.origin);
    const outcome = await refresh(portal);
    expect(outcome).toMatchObject({ kind: 'ambiguous', detail: expect.stringMatching(detail) });
    expect(JSON.stringify(outcome)).not.toMatch(/Error|aborted/);
    expect(server.requests).toHaveLength(1);
    expect(JSON.stringify(outcome)).not.toContain('the-refresh-token');
  });
});

test.each<[string, Responder]>([
  ['is shorter than its length', (socket) => socket.end(`content-length: 900\r\n\r\n${TOKENS}`)],
  [
    'breaks off before its last chunk',
    (socket) => socket.end(`transfer-encoding: chunked\r\n\r\n${TOKENS.length.toString(16)}\r\n${TOKENS}\r\n`),
  ],
  ['has no end', (socket) => socket.write(`connection: close\r\n\r\n${TOKENS}`)],
])('tokens of a body that %s are used: they are issued only once', async (_, respond) => {
  await using server = await startRawServer((socket, ...rest) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n');
    respond(socket, ...rest);
  });
  await using portal = portalAt(server.origin);
  expect(await refresh(portal)).toMatchObject({ kind: 'granted' });
});

test('headers of 60 kB are no reason to lose tokens', async () => {
  const headers = { 'content-security-policy': 'x'.repeat(60_000) };
  await using server = await startRawServer((socket) => socket.end(httpResponse(200, TOKENS, headers)));
  await using portal = portalAt(server.origin);
  expect(await refresh(portal)).toMatchObject({ kind: 'granted' });
});

test.each<[string, Responder, string]>([
  ['does not come', () => undefined, 'the portal took the request and did not answer within 0.3 s'],
  [
    'stops',
    (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{'),
    'the answer stopped in its middle for 0.3 s',
  ],
])('if the answer %s, the detail says so in plain words', async (_, respond, detail) => {
  await using server = await startRawServer(respond);
  await using portal = portalAt(server.origin, server.origin, { limits: { ...SHORT, totalTimeout: 20_000 } });
  expect(await refresh(portal)).toEqual({ kind: 'ambiguous', detail });
});

describe('requests to the token endpoint', () => {
  test('a token request carries the credentials in its form and nowhere else', async () => {
    await using server = await startRawServer((socket) => socket.end(httpResponse(200, TOKENS)));
    await using portal = portalAt(server.origin);
    await refresh(portal);
    await portal.exchangeCode(
      polledLink(`${server.origin}/sso/token`),
      { code: new Secret('the code+/='), issuer: null },
      'Monitoring RemoteControl',
    );
    await portal.exchangeCode(
      polledLink(`${server.origin}/sso/token`),
      { code: new Secret('another'), issuer: null },
      null,
    );
    expect(server.requests.map(({ method, target }) => `${method} ${target}`)).toEqual(
      Array(3).fill('POST /sso/token'),
    );
    const credentials = { client_id: CLIENT, client_secret: SECRET };
    expect(server.requests.map(({ body }) => Object.fromEntries(new URLSearchParams(body)))).toEqual([
      { grant_type: 'refresh_token', refresh_token: 'the-refresh-token', ...credentials },
      { grant_type: 'authorization_code', code: 'the code+/=', scope: 'Monitoring RemoteControl', ...credentials },
      { grant_type: 'authorization_code', code: 'another', ...credentials },
    ]);
    for (const { headers } of server.requests) {
      expect(headers).toMatchObject({
        'content-type': 'application/x-www-form-urlencoded',
        accept: 'application/json',
      });
      expect(headers).not.toHaveProperty('authorization');
      expect(JSON.stringify(headers)).not.toMatch(/s3cret|6a8f8d0e/);
    }
  });

  test('each token request uses a new connection, which is closed afterwards', async () => {
    const open = new Set<Socket>();
    await using server = await startRawServer((socket) => {
      open.add(socket);
      socket.on('close', () => open.delete(socket));
      socket.write(httpResponse(200, TOKENS, { connection: 'keep-alive', 'keep-alive': 'timeout=60' }));
    });
    await using portal = portalAt(server.origin);
    for (let i = 0; i < 3; i += 1) expect(await refresh(portal)).toMatchObject({ kind: 'granted' });
    expect(server.connections).toBe(3);
    await expect.poll(() => open.size).toBe(0);
  });

  test.each([301, 302, 303, 307, 308])('a token request does not follow the redirect of HTTP %d', async (status) => {
    await using elsewhere = await startRawServer((socket) => socket.end(httpResponse(200, TOKENS)));
    const location = { location: `${elsewhere.origin.replace('//', '//user:pass@')}/sso/token?secret=a#b` };
    await using server = await startRawServer((socket) => socket.end(httpResponse(status, '', location)));
    await using portal = portalAt(server.origin);
    const target = `HTTP ${status}, a redirect to ${elsewhere.origin}/sso/token, which the hub does not follow`;
    expect(await refresh(portal)).toMatchObject({
      kind: 'blocked',
      detail: expect.stringMatching(`^${target}: correct portals.home.frontend_url`),
    });
    const client = (await portal.check(() => Date.now())).find(({ name }) => name === 'client');
    expect(client).toMatchObject({ result: 'fail', detail: expect.stringContaining(target) });
    expect(await portal.requestLink(REQUEST, never)).toMatchObject({
      detail: expect.stringContaining('correct portals.home.base_url'),
    });
    expect(elsewhere.connections).toBe(0);
  });

  test('codes and polls are not sent to an address of an earlier configuration', async () => {
    await using old = await startRawServer((socket) => socket.end(httpResponse(200, TOKENS)));
    await using server = await startRawServer((socket) => socket.end(httpResponse(200, TOKENS)));
    await using portal = portalAt(server.origin);
    const outcome = await portal.exchangeCode(
      polledLink(`${old.origin}/sso/token`),
      { code: new Secret('the-code'), issuer: null },
      null,
    );
    expect(outcome).toMatchObject({ kind: 'misconfigured' });
    expect(await portal.poll(polledLink(`${old.origin}/code?state=s`), never)).toMatchObject({ kind: 'unreachable' });
    expect(old.connections).toBe(0);
  });
});

test("the detail of a rejected client names the configuration key and the secret's file", async () => {
  await using server = await startRawServer((socket) => socket.end(httpResponse(401, '{"error":"invalid_client"}')));
  await using portal = portalAt(server.origin);
  expect(await refresh(portal)).toMatchObject({
    kind: 'misconfigured',
    detail:
      "the portal does not accept the hub's client_id and client secret (HTTP 401 invalid_client): check portals.home.client_id, and the client secret in /etc/latchkey/credentials/home.secret",
  });
});

describe('link requests', () => {
  const link = (base: string, frontend: string, changes: Record<string, string> = {}) =>
    JSON.stringify({
      authorize_url: `${frontend}/sso/authorize?response_type=code&client_id=${CLIENT}&state=s`,
      code_url: `${base}/external/oauth2helper/code/get/${CLIENT}?state=s`,
      accesstoken_request_url: `${frontend}/sso/token`,
      ...changes,
    });

  test('a link request names the client and the redirect_url, and has neither body nor secret', async () => {
    await using server = await startRawServer((socket) =>
      socket.end(httpResponse(200, link(server.origin, server.origin))),
    );
    const redirect = 'http://192.168.1.7:8480/callback/a_b-c?x=1&y=ü';
    let address: string | null = redirect;
    await using portal = portalAt(server.origin, server.origin, { redirectUrl: () => address });
    expect(await portal.requestLink(REQUEST, never)).toMatchObject({ kind: 'link', link: { redirect } });
    address = null;
    expect(await portal.requestLink(REQUEST, never)).toMatchObject({ kind: 'link', link: { redirect: null } });
    const targets = server.requests.map(({ target }) => new URL(target, server.origin));
    expect(targets.map(({ pathname }) => pathname)).toEqual(Array(2).fill(`/external/oauth2helper/config/${CLIENT}`));
    expect(targets.map(({ searchParams }) => [...searchParams])).toEqual([[['redirect_url', redirect]], []]);
    expect(JSON.stringify(server.requests)).not.toContain('s3cret');
    expect(server.requests.map(({ method, body }) => method + body)).toEqual(['POST', 'POST']);
  });

  test('a link request tells an unknown client_id from other rejections and names its configuration key', async () => {
    let status = 404;
    await using server = await startRawServer((socket) => socket.end(httpResponse(status, '{}')));
    await using portal = portalAt(server.origin);
    expect(await portal.requestLink(REQUEST, never)).toMatchObject({
      kind: 'rejected',
      clientUnknown: true,
      detail: expect.stringMatching(/does not know this client_id: check portals\.home\.client_id .*HTTP 404/),
    });
    status = 403;
    expect(await portal.requestLink(REQUEST, never)).not.toHaveProperty('clientUnknown');
  });

  test('a link may use both the base_url and the frontend_url origin', async () => {
    await using frontend = await startRawServer(() => undefined);
    await using base = await startRawServer((socket) =>
      socket.end(httpResponse(200, link(base.origin, frontend.origin))),
    );
    await using portal = portalAt(frontend.origin, base.origin);
    expect(await portal.requestLink(REQUEST, never)).toMatchObject({ kind: 'link' });
  });

  test.each([
    ["/sso/authorize?state=e30.a_-~%C3%A9%2f&x=[]@!$&'()*+,;=:/?#f", null],
    ['/sso/authorize?x=é…', '/sso/authorize?x=%C3%A9%E2%80%A6'],
    ['/sso/a b?x=a\r\nSet-Cookie: a=b', '/sso/a%20b?x=aSet-Cookie:%20a=b'],
    ['\\@evil.example/', '/@evil.example/'],
  ])(
    'a link with the path %j is normalized to a valid header value, and a valid URI stays unchanged',
    async (path, written) => {
      const changes = (origin: string) => ({
        authorize_url: origin + path,
        code_url: origin + path,
        accesstoken_request_url: origin + path,
      });
      await using server = await startRawServer((socket) =>
        socket.end(httpResponse(200, link(server.origin, server.origin, changes(server.origin)))),
      );
      await using portal = portalAt(server.origin);
      const address = server.origin + (written ?? path);
      expect(await portal.requestLink(REQUEST, never)).toMatchObject({
        kind: 'link',
        link: { authorizeUrl: address, codeUrl: address, tokenUrl: address },
      });
    },
  );

  const members = ['authorize_url', 'code_url', 'accesstoken_request_url'];
  describe.each(members)('foreign address in %s', (member) => {
    test.each<[string, (portalUrl: URL) => string]>([
      ['another host', () => 'http://evil.example/sso/token'],
      ['another host that begins alike', (portalUrl) => `http://127.0.0.1.evil.example:${portalUrl.port}/`],
      [
        'another port',
        (portalUrl) =>
          `http://127.0.0.1:${Number(portalUrl.port) === 65535 ? 1 : Number(portalUrl.port) + 1}/sso/token`,
      ],
      ['another scheme', (portalUrl) => `https://${portalUrl.host}/sso/token`],
      ['our host as the user of another', (portalUrl) => `http://${portalUrl.host}@evil.example/sso/token`],
      ['a user and a password', (portalUrl) => `http://user:pass@${portalUrl.host}/sso/token`],
      ['a backslash for a slash', (portalUrl) => `http:\\\\evil.example\\@${portalUrl.host}/`],
      ['a script', () => 'javascript:alert(1)//127.0.0.1'],
      ['a relative address', () => '/sso/token'],
      ['an address without a scheme', (portalUrl) => `//${portalUrl.host}/sso/token`],
      ['nothing', () => ''],
    ])('a link with %s as an address is reported as foreign_origin, and nothing is sent there', async (_, address) => {
      await using server = await startRawServer((socket) => {
        const changes = { [member]: address(new URL(server.origin)) };
        socket.end(httpResponse(200, link(server.origin, server.origin, changes)));
      });
      await using portal = portalAt(server.origin);
      expect(await portal.requestLink(REQUEST, never)).toMatchObject({ kind: 'foreign_origin' });
      expect(server.requests).toHaveLength(1);
    });
  });

  test.each([
    [302, 'rejected'],
    [404, 'rejected'],
    [408, 'unreachable'],
    [429, 'unreachable'],
    [503, 'unreachable'],
  ])('HTTP %d in response to a link request counts as %s', async (status, kind) => {
    await using elsewhere = await startRawServer(() => undefined);
    const headers = { location: elsewhere.origin, 'retry-after': '7' };
    await using server = await startRawServer((socket) => socket.end(httpResponse(status, '', headers)));
    await using portal = portalAt(server.origin);
    const outcome = await portal.requestLink(REQUEST, never);
    expect(outcome).toMatchObject({ kind, ...(kind === 'unreachable' ? { retryAfter: 7000 } : {}) });
    expect(elsewhere.connections).toBe(0);
  });

  test('a link response that is not a configuration counts as unreachable', async () => {
    await using server = await startRawServer((socket) => socket.end(httpResponse(200, '<html>')));
    await using portal = portalAt(server.origin);
    expect(await portal.requestLink(REQUEST, never)).toMatchObject({ kind: 'unreachable', retryAfter: null });
  });

  test('a link request can be aborted at any time', async () => {
    await using server = await startRawServer(() => controller.abort());
    const controller = new AbortController();
    await using portal = portalAt(server.origin);
    expect(await portal.requestLink(REQUEST, controller.signal)).toMatchObject({ kind: 'unreachable' });
  });
});

describe("portal's time", () => {
  const DATE = { date: 'Thu, 06 May 2027 07:08:09 GMT' };
  const TIME = Date.UTC(2027, 4, 6, 7, 8, 9);

  test("the portal's time is taken from any response to a link request or poll", async () => {
    await using server = await startRawServer((socket, { target }) =>
      socket.end(httpResponse(Number(target.match(/\d{3}$/)?.[0] ?? 503), '', DATE)),
    );
    const redirectUrl = (nonce: string) => `http://192.168.1.7/${nonce}`;
    await using portal = portalAt(server.origin, server.origin, { redirectUrl });
    for (const status of [200, 404, 429, 500, 302]) {
      expect(await portal.poll(polledLink(`${server.origin}/${status}`), never)).toMatchObject({ portalTime: TIME });
    }
    for (const status of [200, 400, 503]) {
      expect(await portal.requestLink({ ...REQUEST, nonce: String(status) }, never)).toMatchObject({
        portalTime: TIME,
      });
    }
  });

  test("the portal's time can be requested without a secret, and any status will do", async () => {
    const responses = [
      httpResponse(200, '', DATE),
      httpResponse(405, '', DATE),
      httpResponse(503, '', { ...DATE, age: '60' }),
      httpResponse(200, ''),
      httpResponse(200, '', { date: 'now' }),
    ];
    await using server = await startRawServer((socket) => socket.end(responses.shift() ?? ''));
    await using portal = portalAt(server.origin);
    const times: (number | null)[] = [];
    for (let i = 0; i < 6; i += 1) times.push(await portal.fetchTime());
    expect(times).toEqual([TIME, TIME, TIME + 60_000, null, null, null]);
    expect(new Set(server.requests.map(({ method, target, body }) => `${method} ${target}${body}`))).toEqual(
      new Set(['HEAD /']),
    );
    expect(JSON.stringify(server.requests)).not.toMatch(/s3cret|authorization/i);
  });
});

describe('polls', () => {
  test('a poll distinguishes a code, a code that is not there yet, and any other response', async () => {
    const responses = [
      httpResponse(404, 'whatever'),
      httpResponse(200, '{"code":"the-code"}'),
      httpResponse(200, '{"code":null}'),
      httpResponse(429, '', { 'retry-after': '30' }),
      httpResponse(500, ''),
      httpResponse(302, '', { location: 'http://127.0.0.1:9/' }),
    ];
    await using server = await startRawServer((socket) => socket.write(responses.shift() ?? ''));
    await using portal = portalAt(server.origin);
    const poll = () => portal.poll(polledLink(`${server.origin}/code/get/c?state=s`), never);
    expect(await poll()).toEqual({ kind: 'not_yet', portalTime: null });
    const code = await poll();
    expect(code.kind === 'code' ? code.code.reveal() : null).toBe('the-code');
    expect(await poll()).toMatchObject({ kind: 'unreachable', retryAfter: null });
    expect(await poll()).toMatchObject({ kind: 'unreachable', retryAfter: 30_000 });
    expect(await poll()).toMatchObject({ kind: 'unreachable', detail: 'HTTP 500' });
    expect(await poll()).toMatchObject({ kind: 'unreachable', detail: 'HTTP 302' });
    expect(server.requests.map(({ method, target }) => `${method} ${target}`)).toEqual(
      Array(6).fill('GET /code/get/c?state=s'),
    );
  });

  test('a poll reuses the connection of the previous one', async () => {
    await using server = await startRawServer((socket) => socket.write(httpResponse(404, '')));
    await using portal = portalAt(server.origin);
    for (let i = 0; i < 5; i += 1) await portal.poll(polledLink(`${server.origin}/code`), never);
    expect(server.connections).toBeLessThan(3);
  });
});
