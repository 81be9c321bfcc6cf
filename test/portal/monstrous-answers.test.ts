import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { CodeResponse } from '../../src/core/portals/portal.ts';
import { Secret } from '../../src/core/secret.ts';
import { HelperPortal } from '../../src/portal/helper/helper-portal.ts';
import { httpResponse, type RawServer, startRawServer } from '../support/raw-server.ts';
import { connectOAuth2Portal } from './oauth2/oauth2-portal-harness.ts';

const REQUEST = { nonce: 'n', scope: null };
const CODE: CodeResponse = { code: new Secret('the-code'), issuer: null };
const TOKENS = { refreshToken: new Secret('the-refresh-token'), accessToken: new Secret('the-access-token') };
const never = new AbortController().signal;

/** JSON texts that break what expects ordinary values, within the limit of a response. */
const MONSTERS: Readonly<Record<string, string>> = {
  'a deep list': '['.repeat(60_000) + ']'.repeat(60_000),
  'a deep object': `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`,
  'a wide object': `{${Array.from({ length: 10_000 }, (_, index) => `"k${index}":1`).join()}}`,
  'a wide list': `[${Array(40_000).fill('""').join()}]`,
  'a long text': `"${'x'.repeat(100_000)}"`,
  'a lone surrogate': '"\\ud800"',
  'a zero byte': '"a\\u0000b"',
  'a number beyond doubles': '1e400',
  'a number with 100,000 digits': '9'.repeat(100_000),
  'a negative number': '-1',
  null: 'null',
  'a prototype': '{"__proto__":{"toString":1,"constructor":null},"toString":1}',
};

let answer = (_target: string) => '';
let server: RawServer;
let helper: HelperPortal;
beforeEach(async () => {
  server = await startRawServer((socket, { target }) => {
    const status = answer(target).includes('"error') ? 400 : 200;
    socket.end(httpResponse(status, answer(target), { date: 'Thu, 06 May 2027 07:08:09 GMT' }));
  });
  helper = new HelperPortal({
    baseUrl: server.origin,
    frontendUrl: server.origin,
    clientId: 'c',
    clientSecret: new Secret('s'),
    credentialLocation: { portal: 'home' },
    ca: [],
    revocationEndpoint: `${server.origin}/revoke`,
  });
});
afterEach(async () => {
  await helper[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

/** Calls something of an OAuth 2.0 portal whose metadata is at the server. */
async function ofCloud<Result>(call: (portal: ReturnType<typeof connectOAuth2Portal>) => Promise<Result>) {
  const cloud = { frontendUrl: server.origin, clientSecret: 's' };
  await using portal = connectOAuth2Portal(cloud, { protocol: { account_member: 'user' } });
  return call(portal);
}

const metadata = (origin: string) => ({
  issuer: origin,
  authorization_endpoint: `${origin}/authorize`,
  token_endpoint: `${origin}/token`,
  device_authorization_endpoint: `${origin}/device`,
  revocation_endpoint: `${origin}/revoke`,
  token_endpoint_auth_methods_supported: ['client_secret_post'],
  authorization_response_iss_parameter_supported: true,
});
const device = {
  device_code: 'd',
  user_code: 'ABCD',
  verification_uri: 'https://c.example/',
  expires_in: 300,
  interval: 5,
  verification_uri_complete: 'https://c.example/?ABCD',
};
const tokens = {
  access_token: 'aaaaaa',
  refresh_token: 'rrrrrr',
  token_type: 'bearer',
  expires_in: 3600,
  scope: 'a b',
  id_token: 'e30.e30.x',
  refresh_token_expires_in: 9000,
  refresh_expires_in: 9000,
  user: 'somebody',
};
const failure = { error: 'server_error', error_description: 'busy', errors: [{ errorType: 'busy' }] };
const link = (origin: string) => ({
  authorize_url: `${origin}/authorize`,
  code_url: `${origin}/code`,
  accesstoken_request_url: `${origin}/token`,
});
const deviceLink = {
  kind: 'device' as const,
  authorizeUrl: '',
  redirect: null,
  userCode: 'A',
  containsUserCode: false,
  deviceCode: new Secret('d'),
  verifier: null,
  interval: 5000,
  begun: { wall: 0, uptime: 0, boot: 'b' },
  lifetime: 300_000,
};
const redirectLink = (origin: string) => ({
  kind: 'redirect' as const,
  authorizeUrl: '',
  redirect: 'http://127.0.0.1/callback',
  state: 's',
  verifier: null,
  issuer: origin,
  requiresIssuer: false,
});
const polledLink = (origin: string) => ({
  kind: 'poll' as const,
  authorizeUrl: origin,
  codeUrl: `${origin}/code`,
  tokenUrl: `${origin}/token`,
  redirect: null,
});

/** Where the hub reads something of a portal: what stands there, and what the hub asks. */
const places: Readonly<Record<string, readonly [body: (origin: string) => object, ask: () => Promise<unknown>]>> = {
  'the metadata of a cloud': [metadata, () => ofCloud((portal) => portal.requestLink(REQUEST))],
  'the device authorization of a cloud': [() => device, () => ofCloud((portal) => portal.requestLink(REQUEST))],
  'the poll of a device': [() => tokens, () => ofCloud((portal) => portal.poll(deviceLink))],
  'the code exchange of a cloud': [
    () => tokens,
    () => ofCloud((portal) => portal.exchangeCode(redirectLink(server.origin), CODE)),
  ],
  'the refresh of a cloud': [() => tokens, () => ofCloud((portal) => portal.refresh(TOKENS.refreshToken))],
  'the error of a cloud': [() => failure, () => ofCloud((portal) => portal.refresh(TOKENS.refreshToken))],
  'the revocation of a cloud': [() => failure, () => ofCloud((portal) => portal.revoke(TOKENS))],
  'the checks of a cloud': [() => failure, () => ofCloud((portal) => portal.check(() => 0))],
  'the links of a helper portal': [link, () => helper.requestLink(REQUEST, never)],
  'the code of a helper portal': [() => ({ code: 'c' }), () => helper.poll(polledLink(server.origin), never)],
  'the code exchange of a helper portal': [
    () => tokens,
    () => helper.exchangeCode(polledLink(server.origin), CODE, null),
  ],
  'the refresh of a helper portal': [() => tokens, () => helper.refresh(TOKENS.refreshToken)],
  'the error of a helper portal': [() => failure, () => helper.refresh(TOKENS.refreshToken)],
  'the revocation of a helper portal': [() => failure, () => helper.revoke(TOKENS)],
  'the checks of a helper portal': [() => failure, () => helper.check(() => 0)],
};

/** Without what differs each time. */
function textOf(outcome: unknown): string {
  const volatile = ['authorizeUrl', 'state', 'verifier', 'begun'];
  return JSON.stringify(outcome, (key, value: unknown) => (volatile.includes(key) ? null : value));
}

describe.each(Object.entries(places))('%s', (place, [bodyAt, ask]) => {
  /** Serves the body at its place, and good metadata where that is another place. */
  function serve(body: string): void {
    const known = JSON.stringify(metadata(server.origin));
    const isMetadata = place === 'the metadata of a cloud';
    answer = (target) =>
      target.startsWith('/.well-known') ? (isMetadata ? body : known) : isMetadata ? JSON.stringify(device) : body;
  }

  test.each(Object.entries(MONSTERS))('%s in a member that nobody needs changes nothing', async (_, monster) => {
    const body = JSON.stringify(bodyAt(server.origin));
    serve(body);
    const ordinary = textOf(await ask());
    serve(`${body.slice(0, -1)},"check_session_endpoint":${monster}}`);
    expect(textOf(await ask())).toBe(ordinary);
  });

  test.each(Object.entries(MONSTERS))(
    '%s in any member, or in place of all, is answered with a value',
    async (_, monster) => {
      for (const member of Object.keys(bodyAt(server.origin))) {
        serve(`${JSON.stringify(bodyAt(server.origin)).slice(0, -1)},"${member}":${monster}}`);
        expect(JSON.stringify(await ask()).length, member).toBeLessThan(20_000);
      }
      serve(monster);
      expect(JSON.stringify(await ask()).length).toBeLessThan(20_000);
    },
  );
});
