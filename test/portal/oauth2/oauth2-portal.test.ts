import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { RedirectLink } from '../../../src/core/portals/login-link.ts';
import { Secret } from '../../../src/core/secret.ts';
import type { Emulator, EmulatorOptions } from '../../../src/emulator/index.ts';
import { startPortal } from '../../support/portal.ts';
import { CLIENT_JWK, connectOAuth2Portal, logInByRedirect } from './oauth2-portal-harness.ts';

const REDIRECT_URI = 'http://192.168.1.7:8480/callback';
const REQUEST = { nonce: 'n', scope: 'Monitoring' };
let parts: AsyncDisposableStack;
beforeEach(() => {
  parts = new AsyncDisposableStack();
});
afterEach(() => parts.disposeAsync());

async function startCloud(options: EmulatorOptions = {}): Promise<Emulator> {
  const client = {
    id: 'latchkey',
    secret: 'the-secret-of-the-hub',
    redirectUris: [REDIRECT_URI],
    jwks: { keys: [CLIENT_JWK] },
  };
  return parts.use(await startPortal({ clients: [client], autoLogin: true, ...options }));
}

/** A portal of this cloud, connected with its discovered endpoints. */
function portalOf(cloud: Emulator, changes: Parameters<typeof connectOAuth2Portal>[1] = {}) {
  return parts.use(connectOAuth2Portal(cloud, { redirectUri: REDIRECT_URI, ...changes }));
}

async function requestRedirectLink(portal: ReturnType<typeof portalOf>): Promise<RedirectLink> {
  const outcome = await portal.requestLink(REQUEST);
  if (outcome.kind !== 'link' || outcome.link.kind !== 'redirect') throw new Error(`no redirect link: ${outcome.kind}`);
  return outcome.link;
}

describe('a login by redirect', () => {
  test('a login by redirect yields tokens that can be refreshed and revoked', async () => {
    const cloud = await startCloud();
    const portal = portalOf(cloud, { login: 'redirect' });
    const link = await requestRedirectLink(portal);
    expect(new URL(link.authorizeUrl).searchParams.get('code_challenge_method')).toBe('S256');
    const exchanged = await portal.exchangeCode(link, await logInByRedirect(link));
    if (exchanged.kind !== 'granted') throw new Error(JSON.stringify(exchanged));
    expect(exchanged.tokens).toMatchObject({ scope: 'Monitoring', lifetime: 3_600_000 });
    const refreshed = await portal.refresh(exchanged.tokens.refreshToken ?? new Secret(''));
    if (refreshed.kind !== 'granted') throw new Error(JSON.stringify(refreshed));
    const { refreshToken, accessToken } = refreshed.tokens;
    expect(await portal.revoke({ refreshToken, accessToken })).toEqual({ kind: 'revoked' });
    expect(cloud.grants()[0]).toMatchObject({ revoked: true });
    expect(await portal.refresh(refreshToken ?? new Secret(''))).toMatchObject({ kind: 'refused' });
  });

  test('a login by redirect is refused with the verifier of another link', async () => {
    const portal = portalOf(await startCloud(), { login: 'redirect' });
    const [link, other] = [await requestRedirectLink(portal), await requestRedirectLink(portal)];
    expect(link.state).not.toBe(other.state);
    const outcome = await portal.exchangeCode({ ...link, verifier: other.verifier }, await logInByRedirect(link));
    expect(outcome).toMatchObject({ kind: 'refused' });
  });

  // The other methods: requests.test.ts.
  test('a login by redirect authenticates the client with a signed assertion', async () => {
    const cloud = await startCloud({ clientAuthentication: 'private_key_jwt' });
    const portal = portalOf(cloud, { login: 'redirect', authentication: 'private_key_jwt' });
    const link = await requestRedirectLink(portal);
    expect(await portal.exchangeCode(link, await logInByRedirect(link))).toMatchObject({ kind: 'granted' });
  });
});

describe('a login by device code', () => {
  test('a login by device code yields tokens when a person has approved its user code', async () => {
    const cloud = await startCloud();
    const portal = portalOf(cloud);
    const requested = await portal.requestLink(REQUEST);
    if (requested.kind !== 'link' || requested.link.kind !== 'device') throw new Error(JSON.stringify(requested));
    const { link } = requested;
    expect(portal.redirectAddress).toBeNull();
    expect(await portal.poll(link)).toMatchObject({ kind: 'not_yet' });
    expect(await portal.poll(link)).toMatchObject({ kind: 'slow_down' });
    await cloud.approveDevice({ userCode: link.userCode, user: 'demo' });
    cloud.advance(30);
    expect(await portal.poll(link)).toMatchObject({ kind: 'granted', tokens: { scope: 'Monitoring' } });
    cloud.advance(30);
    expect(await portal.poll(link)).toMatchObject({ kind: 'ended' });
  });

  test('a login by device code is denied, or expires', async () => {
    const cloud = await startCloud();
    const portal = portalOf(cloud);
    const links = [await portal.requestLink(REQUEST), await portal.requestLink(REQUEST)];
    const [denied, expired] = links.map((outcome) => {
      if (outcome.kind !== 'link' || outcome.link.kind !== 'device') throw new Error(JSON.stringify(outcome));
      return outcome.link;
    });
    if (denied === undefined || expired === undefined) throw new Error('there are no links');
    await cloud.approveDevice({ userCode: denied.userCode, user: 'demo', deny: true });
    expect(await portal.poll(denied)).toMatchObject({ kind: 'denied' });
    cloud.advance(7200);
    expect(await portal.poll(expired)).toMatchObject({ kind: 'ended' });
  });
});

test('a redirect of an endpoint is not followed, and the configuration key that names the endpoint is', async () => {
  const cloud = await startCloud({ autoLogin: false });
  const portal = portalOf(cloud, { login: 'device' });
  const redirect = (endpoint: 'token' | 'device_authorization' | 'discovery') =>
    cloud.addFault({ kind: 'redirect', endpoint, location: '/other/', status: 301, times: null });
  const naming = (key: string) =>
    expect.stringMatching(`HTTP 301, a redirect to ${cloud.frontendUrl}/other/, .*: correct portals.cloud.${key}`);
  await portal.loadMetadata();
  redirect('token');
  redirect('device_authorization');
  expect(await portal.refresh(new Secret('a'))).toMatchObject({ kind: 'blocked', detail: naming('token_endpoint') });
  expect(await portal.requestLink(REQUEST)).toMatchObject({
    kind: 'rejected',
    detail: naming('device_authorization_endpoint'),
  });
  const client = (await portal.check(() => Date.now())).find(({ name }) => name === 'client');
  expect(client).toMatchObject({ result: 'fail', detail: naming('token_endpoint') });
  redirect('discovery');
  const discovery = (await portal.check(() => Date.now())).find(({ name }) => name === 'discovery');
  expect(discovery).toMatchObject({ result: 'fail', detail: expect.stringMatching(/, a redirect to .*\.issuer$/) });
  expect(cloud.requests.filter(({ url }) => url.startsWith('/other'))).toEqual([]);
});

test('a refresh is not sent if the issuer can not be discovered', async () => {
  const cloud = await startCloud();
  await cloud.close();
  expect(await portalOf(cloud).refresh(new Secret('the-refresh-token'))).toMatchObject({ kind: 'not_sent' });
});
