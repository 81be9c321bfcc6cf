import { decodeJwt } from 'jose';
import * as client from 'openid-client';
import { expect, test } from 'vitest';
import type { EmulatorOptions } from '../../../src/emulator/index.ts';
import { startCloud, TOOL } from '../oauth2/stock-client.ts';
import { ALICE, whoami } from '../portal-client.ts';

const GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const type = (name: string) => `urn:ietf:params:oauth:token-type:${name}`;
const BACKEND = { id: 'backend', secret: 'backend-secret' };
const API = 'https://api.example/orders';

/** A server whose access tokens are JWTs, the tokens of ALICE at TOOL, and openid-client as BACKEND. */
async function withTokens(options: EmulatorOptions = {}) {
  const clients = [TOOL, BACKEND, { id: 'browser' }];
  const users = [{ ...ALICE, claims: { sub: 'user-1' } }];
  const cloud = await startCloud({ clients, users, accessTokenFormat: 'jwt', pkce: 'ignored', ...options });
  const insecure = { execute: [client.allowInsecureRequests] };
  const issuer = new URL(cloud.emulator.frontendUrl);
  const config = await client.discovery(issuer, BACKEND.id, BACKEND.secret, undefined, insecure);
  const tool = await client.discovery(issuer, TOOL.id, TOOL.secret, undefined, insecure);
  const redirect_uri = TOOL.redirectUris[1] ?? '';
  const authorizeUrl = client.buildAuthorizationUrl(tool, { redirect_uri, scope: 'openid read write' }).href;
  const { location } = await cloud.emulator.login({ authorizeUrl, user: ALICE.name });
  const tokens = await client.authorizationCodeGrant(tool, new URL(location));
  const subject = { subject_token: tokens.access_token, subject_token_type: type('access_token') };
  return {
    ...cloud,
    tokens,
    subject,
    tool,
    config,
    exchange: (form: Record<string, string>) => client.genericGrantRequest(config, GRANT_TYPE, form),
    [Symbol.asyncDispose]: () => cloud.emulator.close(),
  };
}

test('RFC 8693, 2.1: an access token is exchanged for one of another client, with the same user and the same scope or less', async () => {
  await using cloud = await withTokens();
  const same = await cloud.exchange(cloud.subject);
  expect(same).toMatchObject({ scope: 'openid read write', issued_token_type: type('access_token') });
  expect(same).not.toHaveProperty('refresh_token');
  expect(same).not.toHaveProperty('id_token');
  const less = await cloud.exchange({ ...cloud.subject, scope: 'read', requested_token_type: type('access_token') });
  expect(decodeJwt(less.access_token)).toMatchObject({ sub: 'user-1', client_id: BACKEND.id, scope: 'read' });
  expect((await whoami(cloud.emulator, less.access_token)).status).toBe(200);
  expect(cloud.config.serverMetadata().grant_types_supported).toContain(GRANT_TYPE);
  cloud.emulator.change({ oneLoginPerUser: true, scopeSeparator: 'comma' });
  expect(await cloud.exchange(cloud.subject)).toMatchObject({ scope: 'openid,read,write' });
  await client.genericGrantRequest(cloud.tool, GRANT_TYPE, cloud.subject);
  expect((await whoami(cloud.emulator, cloud.tokens.access_token)).status).toBe(200);
});

test('RFC 8693, 2.1: resource or audience names the API of the new token', async () => {
  await using cloud = await withTokens();
  const audiences = [{ resource: API }, { audience: 'orders' }, { resource: API, audience: 'orders' }];
  const found = [];
  for (const one of audiences)
    found.push(decodeJwt((await cloud.exchange({ ...cloud.subject, ...one })).access_token).aud);
  expect(found).toEqual([API, 'orders', API]);
  const several = new URLSearchParams({ ...cloud.subject, resource: 'https://api.example/stock' });
  several.append('resource', API);
  const last = await client.genericGrantRequest(cloud.config, GRANT_TYPE, several);
  expect(decodeJwt(last.access_token).aud).toBe(API);
});

test('RFC 8693, 2.1: an ID token is exchanged until it has expired', async () => {
  await using cloud = await withTokens();
  const subject = { subject_token: cloud.tokens.id_token ?? '', subject_token_type: type('id_token') };
  expect(decodeJwt((await cloud.exchange({ ...subject, scope: 'read' })).access_token).sub).toBe('user-1');
  cloud.clock.pass(3600);
  await expect(cloud.exchange(subject)).rejects.toMatchObject({ error: 'invalid_request' });
});

test('RFC 8693, 4.1: the token says who acts for the user', async () => {
  await using cloud = await withTokens();
  const own = await client.clientCredentialsGrant(cloud.config, { scope: 'read' });
  const actor = { actor_token: own.access_token, actor_token_type: type('access_token') };
  const delegated = await cloud.exchange({ ...cloud.subject, ...actor });
  const act = { sub: BACKEND.id };
  expect(decodeJwt(delegated.access_token)).toMatchObject({ sub: 'user-1', act });
  expect(await client.tokenIntrospection(cloud.config, delegated.access_token)).toMatchObject({ sub: 'user-1', act });
});

test('RFC 8693, 2.2.2: an invalid token or type is an invalid_request, and more than the scope of the subject_token an invalid_scope', async () => {
  await using cloud = await withTokens();
  const { subject, tokens } = cloud;
  const wrong = [
    {},
    { subject_token: tokens.access_token },
    { ...subject, subject_token: 'unknown' },
    { ...subject, subject_token_type: type('id_token') },
    { ...subject, subject_token: tokens.id_token ?? '' },
    { ...subject, subject_token: tokens.refresh_token ?? '' },
    { ...subject, subject_token_type: type('saml2') },
    { ...subject, actor_token_type: type('access_token') },
    { ...subject, actor_token: 'unknown', actor_token_type: type('access_token') },
    { ...subject, requested_token_type: type('refresh_token') },
  ];
  for (const form of wrong)
    await expect(cloud.exchange(form), JSON.stringify(form)).rejects.toMatchObject({ error: 'invalid_request' });
  await expect(cloud.exchange({ ...subject, scope: 'read admin' })).rejects.toMatchObject({ error: 'invalid_scope' });
  await expect(cloud.exchange({ ...subject, resource: 'orders' })).rejects.toMatchObject({ error: 'invalid_target' });
  await client.tokenRevocation(cloud.tool, tokens.access_token);
  await expect(cloud.exchange(subject)).rejects.toMatchObject({ error: 'invalid_request' });
});

test('RFC 8693, 2.1: a client must authenticate to exchange a token, and only with the setting flows all', async () => {
  await using cloud = await withTokens();
  const insecure = { execute: [client.allowInsecureRequests] };
  const browser = await client.discovery(
    new URL(cloud.emulator.frontendUrl),
    'browser',
    undefined,
    client.None(),
    insecure,
  );
  const refused = client.genericGrantRequest(browser, GRANT_TYPE, cloud.subject);
  await expect(refused).rejects.toMatchObject({ error: 'unauthorized_client' });
  cloud.emulator.change({ flows: 'code' });
  await expect(cloud.exchange(cloud.subject)).rejects.toMatchObject({ error: 'unsupported_grant_type' });
});
