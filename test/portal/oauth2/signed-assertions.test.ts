// Client authentication by private_key_jwt (RFC 7523), as the portal gets it.
import { createHash, X509Certificate } from 'node:crypto';
import { decodeJwt, decodeProtectedHeader } from 'jose';
import { expect, test } from 'vitest';
import { Secret } from '../../../src/core/secret.ts';
import { parseClientKey } from '../../../src/portal/oauth2/client-key.ts';
import type { OAuth2Settings } from '../../../src/portal/oauth2/settings.ts';
import { createAuthority } from '../../../src/system/x509/issuing.ts';
import { DAY, MINUTE } from '../../core/samples.ts';
import { httpResponse, type RawServer, startRawServer } from '../../support/raw-server.ts';
import { connectOAuth2Portal } from './oauth2-portal-harness.ts';

const TOKENS = { access_token: 'aaaaaa', refresh_token: 'rrrrrr', expires_in: 3600 };
const REFRESH_TOKEN = new Secret('the-refresh-token');

/** The clocks of a hub and of its portal, in ms; the hub's boot clock is right. */
class Clocks {
  hub = Date.UTC(2027, 4, 1);
  portal = Date.UTC(2027, 4, 5, 6);
  uptime = MINUTE;

  pass(ms: number): void {
    this.hub += ms;
    this.portal += ms;
    this.uptime += ms;
  }

  readonly now = () => ({ boot: 'boot', uptime: this.uptime, wall: this.hub });
}

/** A portal that says the time, unless its clock stands at 0. */
function startPortal(clocks: Clocks): Promise<RawServer> {
  return startRawServer((socket, { target, headers }) => {
    const origin = `http://${headers['host']}`;
    const body = target.startsWith('/.well-known') ? { issuer: origin, token_endpoint: `${origin}/token` } : TOKENS;
    const date = { date: new Date(clocks.portal).toUTCString() };
    socket.end(httpResponse(200, JSON.stringify(body), clocks.portal === 0 ? {} : date));
  });
}

function connect({ origin }: RawServer, clock: Clocks, changes: Partial<OAuth2Settings> = {}) {
  const settings = { authentication: 'private_key_jwt', clock, ...changes } as const;
  return connectOAuth2Portal({ frontendUrl: origin, clientSecret: '' }, settings);
}

/** Settings that name no issuer. */
function endpointsAt({ origin }: RawServer): Partial<OAuth2Settings> {
  const endpoints = { authorization: null, token: `${origin}/token?v=2`, deviceAuthorization: null };
  return { issuer: null, endpoints: { ...endpoints, revocation: `${origin}/revoke` } };
}

/** The assertions that a portal got. */
function assertionsAt({ requests }: RawServer) {
  const sent = requests.flatMap(({ body }) => new URLSearchParams(body).get('client_assertion') ?? []);
  return sent.map((jwt) => ({ header: decodeProtectedHeader(jwt), claims: decodeJwt(jwt) }));
}

test("an assertion has the time of the portal from the first one on, whatever the hub's clock says or is set to", async () => {
  const clocks = new Clocks();
  await using server = await startPortal(clocks);
  await using portal = connect(server, clocks, endpointsAt(server));
  for (const step of [0, 0, 4 * DAY]) {
    clocks.pass(5 * MINUTE);
    clocks.hub += step;
    // The time is asked for before an attempt is written ahead.
    expect(await portal.prepareTokenRequest(new AbortController().signal)).toBeNull();
    const before = server.requests.length;
    expect(await portal.refresh(REFRESH_TOKEN)).toMatchObject({ kind: 'granted' });
    expect(server.requests).toHaveLength(before + 1);
    const iat = clocks.portal / 1000;
    expect(assertionsAt(server).at(-1)?.claims).toMatchObject({ iat, nbf: iat, exp: iat + 60 });
  }
  expect(server.requests.map(({ method }) => method)).toEqual(['HEAD', 'POST', 'POST', 'POST']);
});

test("an assertion for a portal that does not say the time has that of the hub's clock", async () => {
  const clocks = new Clocks();
  clocks.portal = 0;
  await using server = await startPortal(clocks);
  await using portal = connect(server, clocks, endpointsAt(server));
  await portal.prepareTokenRequest(new AbortController().signal);
  await portal.refresh(REFRESH_TOKEN);
  expect(assertionsAt(server)[0]?.claims.iat).toBe(clocks.hub / 1000);
});

test('the audience of an assertion is the issuer, or the token endpoint for every request if no issuer is configured', async () => {
  const clocks = new Clocks();
  await using server = await startPortal(clocks);
  await using discovered = connect(server, clocks);
  await discovered.refresh(REFRESH_TOKEN);
  await using configured = connect(server, clocks, endpointsAt(server));
  await configured.refresh(REFRESH_TOKEN);
  await configured.revoke({ refreshToken: REFRESH_TOKEN, accessToken: new Secret('an-access-token') });
  const endpoint = `${server.origin}/token?v=2`;
  expect(assertionsAt(server).map(({ claims }) => claims.aud)).toEqual([server.origin, endpoint, endpoint]);
});

test('an assertion names the certificate of its key, by that of a PEM file or the members of a JWK', async () => {
  const { certificate, key } = await createAuthority();
  const { raw } = new X509Certificate(certificate);
  const [sha1, sha256] = ['sha1', 'sha256'].map((name) => createHash(name).update(raw).digest('base64url'));
  const thumbprints = { x5t: sha1, 'x5t#S256': sha256 };
  const clocks = new Clocks();
  await using server = await startPortal(clocks);
  for (const text of [`${key}${certificate}`, `${certificate}${key}`]) {
    await using portal = connect(server, clocks, { ...endpointsAt(server), clientKey: await parseClientKey(text) });
    await portal.refresh(REFRESH_TOKEN);
    expect(assertionsAt(server).at(-1)?.header).toEqual({ alg: 'ES256', ...thumbprints });
  }
  const jwk = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify']);
  const text = JSON.stringify({ ...(await crypto.subtle.exportKey('jwk', jwk.privateKey)), ...thumbprints, x5u: 'x' });
  await using portal = connect(server, clocks, { ...endpointsAt(server), clientKey: await parseClientKey(text) });
  await portal.refresh(REFRESH_TOKEN);
  expect(assertionsAt(server).at(-1)?.header).toEqual({ alg: 'ES256', ...thumbprints });
});
