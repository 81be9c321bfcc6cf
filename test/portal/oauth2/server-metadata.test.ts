import type { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { PooledHttpClient } from '../../../src/portal/http.ts';
import { MetadataSource } from '../../../src/portal/oauth2/server-metadata.ts';
import type { Endpoints } from '../../../src/portal/oauth2/settings.ts';
import { httpResponse, type RawRequest, startRawServer } from '../../support/raw-server.ts';

const NO_ENDPOINTS = { authorization: null, token: null, deviceAuthorization: null, revocation: null };
let parts: AsyncDisposableStack;
beforeEach(() => {
  parts = new AsyncDisposableStack();
});
afterEach(() => parts.disposeAsync());

/** A server with these responses, and the metadata of the issuer at its origin plus `path`. */
async function startIssuer(respond: (socket: Socket, request: RawRequest) => void, path = '') {
  const server = parts.use(await startRawServer(respond));
  const http = parts.use(new PooledHttpClient({ ca: [] }));
  let saved: string | null = null;
  const cache = {
    load: async () => saved,
    save: async (document: string) => {
      saved = document;
    },
  };
  const issuer = `${server.origin}${path}`;
  const source = (endpoints: Endpoints = NO_ENDPOINTS) =>
    new MetadataSource({ issuer, endpoints }, http, cache, () => 0);
  return { server, issuer, source, saved: () => saved };
}

function documentOf(issuer: string, changes: Record<string, unknown> = {}): string {
  return JSON.stringify({
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    response_types_supported: ['code'],
    ...changes,
  });
}

/** Nested deeper than `JSON.stringify` can follow. */
const DEEP = '['.repeat(50_000) + ']'.repeat(50_000);

test('the endpoints of OpenID Connect Discovery are used, and the configured ones win', async () => {
  const { issuer, source } = await startIssuer((socket) => socket.end(httpResponse(200, documentOf(issuer))));
  expect(await source().get()).toMatchObject({ kind: 'server', server: { token_endpoint: `${issuer}/token` } });
  const own = 'https://token.example/own';
  expect(await source({ ...NO_ENDPOINTS, token: own }).get()).toMatchObject({
    server: { token_endpoint: own, authorization_endpoint: `${issuer}/authorize` },
  });
});

test.each([
  ['there is no OpenID Connect Discovery', 404, ''],
  ['the server answers that address with its page', 200, '<html>'],
])('the address of RFC 8414 is asked if %s', async (_, status, body) => {
  const { server, issuer, source } = await startIssuer((socket, { target }) => {
    const isOAuth = target === '/.well-known/oauth-authorization-server/tenant';
    socket.end(isOAuth ? httpResponse(200, documentOf(issuer)) : httpResponse(status, body));
  }, '/tenant');
  expect(await source().get()).toMatchObject({ kind: 'server' });
  expect(server.requests.map(({ target }) => target)).toEqual([
    '/tenant/.well-known/openid-configuration',
    '/.well-known/oauth-authorization-server/tenant',
  ]);
});

describe('a document that is not used', () => {
  test.each<[string, (issuer: string) => string, RegExp]>([
    [
      'names another issuer',
      () => documentOf('https://evil.example'),
      /names another issuer, "https:\/\/evil.example"/,
    ],
    ['is HTML', () => '<html>', /no authorization server metadata/],
    [
      'has a token endpoint on http',
      (issuer) => documentOf(issuer, { token_endpoint: 'http://elsewhere.example/token' }),
      /token_endpoint must be an https URL \(found "http:\/\/elsewhere.example\/token"\)/,
    ],
    [
      'has a revocation endpoint with a user',
      (issuer) => documentOf(issuer, { revocation_endpoint: 'https://a:b@elsewhere.example/revoke' }),
      /revocation_endpoint must be an https URL/,
    ],
    ['is larger than the limit', (issuer) => documentOf(issuer, { a: 'x'.repeat(10_000_000) }), /discovery: /],
  ])('a document that %s is not used', async (_, document, problem) => {
    const { issuer, source } = await startIssuer((socket) => socket.end(httpResponse(200, document(issuer))));
    expect(await source().get()).toMatchObject({
      kind: 'unavailable',
      problem: { kind: 'unreachable', detail: expect.stringMatching(problem) },
    });
  });

  test.each([302, 404, 500])('a document that comes with HTTP %d is not used', async (status) => {
    const { source } = await startIssuer((socket) =>
      socket.end(httpResponse(status, '', { location: 'https://evil.example/', 'retry-after': '7' })),
    );
    expect(await source().get()).toMatchObject({
      kind: 'unavailable',
      problem: { detail: expect.stringContaining(`HTTP ${status}`) },
    });
  });
});

test('an https endpoint on another origin is used, because the issuer vouches for it', async () => {
  const elsewhere = 'https://token.example/token';
  const { issuer, source } = await startIssuer((socket) =>
    socket.end(httpResponse(200, documentOf(issuer, { token_endpoint: elsewhere }))),
  );
  expect(await source().get()).toMatchObject({ server: { token_endpoint: elsewhere } });
});

test('a saved document serves the next start while the server is down', async () => {
  let isDown = false;
  const { issuer, source } = await startIssuer((socket) =>
    isDown ? socket.destroy() : socket.end(httpResponse(200, documentOf(issuer))),
  );
  await source().get();
  isDown = true;
  expect(await source().get()).toMatchObject({ kind: 'server', server: { token_endpoint: `${issuer}/token` } });
});

test('a monstrous document that is fetched in the background changes nothing, and only what is used is saved', async () => {
  let own = {};
  const { server, issuer, source, saved } = await startIssuer((socket) =>
    socket.end(httpResponse(200, documentOf(issuer, { ...own, revocation_endpoint: null }).replaceAll('"DEEP"', DEEP))),
  );
  await source().get();
  const first = saved();
  own = { deep: 'DEEP', token_endpoint_auth_methods_supported: 'DEEP', end_session_endpoint: 'http://a.example/' };
  expect(await source().get()).toMatchObject({ server: { token_endpoint: `${issuer}/token` } });
  await expect.poll(() => saved()).not.toBe(first);
  expect(server.requests).toHaveLength(2);
  expect(JSON.parse(saved() ?? '')).toEqual({
    ...JSON.parse(first ?? ''),
    token_endpoint_auth_methods_supported: [],
  });
  expect(first).not.toContain('response_types_supported');
});

test('no document is fetched while the saved one can not be read, because it could move an endpoint', async () => {
  const { server, issuer } = await startIssuer((socket) => socket.end(httpResponse(200, documentOf(issuer))));
  const http = parts.use(new PooledHttpClient({ ca: [] }));
  let isAway = true;
  const load = async () => {
    if (isAway) throw new Error('the database is away');
    return documentOf(issuer);
  };
  const cache = { load, save: async () => undefined };
  const source = new MetadataSource({ issuer, endpoints: NO_ENDPOINTS }, http, cache, () => 0);
  expect(await source.get()).toMatchObject({
    kind: 'unavailable',
    problem: { detail: expect.stringContaining('saved') },
  });
  expect((await source.check())?.detail).toContain('saved');
  expect(server.requests).toEqual([]);
  isAway = false;
  expect(await source.get()).toMatchObject({ kind: 'server' });
});

test('requests at the same time share one fetch', async () => {
  const { server, issuer, source } = await startIssuer((socket) => socket.end(httpResponse(200, documentOf(issuer))));
  const metadata = source();
  await Promise.all([metadata.get(), metadata.get(), metadata.get()]);
  await metadata.get();
  expect(server.requests).toHaveLength(1);
});

describe('a later document that moves an endpoint to another origin', () => {
  const elsewhere = 'https://elsewhere.example';

  /** An issuer whose document changes after the first fetch. */
  async function startMoving(changes: Record<string, string | null>) {
    let current: Record<string, unknown> = {};
    const { issuer, source } = await startIssuer((socket) =>
      socket.end(httpResponse(200, documentOf(issuer, current))),
    );
    expect(await source().get()).toMatchObject({ server: { token_endpoint: `${issuer}/token` } });
    const publish = (members: Record<string, unknown>) => {
      current = members;
    };
    publish(changes);
    return { issuer, source, publish };
  }

  test.each(['token_endpoint', 'authorization_endpoint', 'device_authorization_endpoint', 'revocation_endpoint'])(
    'a later document that moves the %s is not used, also after a restart, until the endpoint is configured',
    async (key) => {
      const moved = { [key]: `${elsewhere}/new` };
      const { issuer, source, publish } = await startMoving(moved);
      for (const metadata of [source(), source()]) {
        await metadata.get();
        expect(await metadata.check()).toBeNull();
        expect(metadata.moved).toEqual({ key, from: issuer, to: `${elsewhere}/new` });
        expect(JSON.stringify(await metadata.get())).not.toContain(elsewhere);
        expect(JSON.stringify(metadata.endpoints)).not.toContain(elsewhere);
      }
      const name = {
        token_endpoint: 'token',
        authorization_endpoint: 'authorization',
        device_authorization_endpoint: 'deviceAuthorization',
        revocation_endpoint: 'revocation',
      }[key];
      const returned = source();
      await returned.check();
      publish({});
      await returned.check();
      expect(returned.moved).toBeNull();
      publish(moved);
      const confirmed = source({ ...NO_ENDPOINTS, [String(name)]: `${elsewhere}/new` });
      await confirmed.check();
      expect(confirmed.moved).toBeNull();
      expect(await confirmed.get()).toMatchObject({ server: moved });
    },
  );

  test('a later document that leaves an endpoint out does not let the next one name it elsewhere', async () => {
    const changes: Record<string, string | null> = { token_endpoint: null };
    const { issuer, source } = await startMoving(changes);
    await source().check();
    changes['token_endpoint'] = `${elsewhere}/a"\nproxy = "b`;
    const metadata = source();
    await metadata.check();
    expect(metadata.moved).toEqual({
      key: 'token_endpoint',
      from: issuer,
      to: `${elsewhere}/a%22proxy%20=%20%22b`,
    });
    expect(await metadata.get()).toMatchObject({ server: { token_endpoint: `${issuer}/token` } });
  });

  test('a later document may add an endpoint, and move one, at the origins of the one before', async () => {
    const changes: Record<string, string> = {};
    const { issuer, source } = await startMoving(changes);
    Object.assign(changes, { revocation_endpoint: `${issuer}/revoke`, token_endpoint: `${issuer}/v2/token` });
    const metadata = source();
    await metadata.check();
    expect(metadata.moved).toBeNull();
    expect(await metadata.get()).toMatchObject({ server: changes });
  });
});
