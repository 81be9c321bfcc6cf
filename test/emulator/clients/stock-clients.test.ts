import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { allowInsecureRequests, Configuration, refreshTokenGrant } from 'openid-client';
import { AuthorizationCode } from 'simple-oauth2';
import { beforeAll, expect, test } from 'vitest';
import type { Emulator, FaultOptions } from '../../../src/emulator/index.ts';
import { IS_LONG_FORM } from '../../support/long.ts';
import {
  get,
  HEATER,
  obtainCode,
  obtainTokens,
  redirectLocation,
  startTestEmulator,
  whoami,
} from '../portal-client.ts';
import { buildGoClient, GO_CLIENT, goOauth2, PYTHON_CLIENT, requestsOauthlib } from './programs.ts';

const REFRESH = { endpoint: 'token', grantType: 'refresh_token' } as const;

/** Every kind of fault that a client sees in a response. */
const FAULTS = {
  status: { ...REFRESH, kind: 'status', status: 503, body: '{"error":"temporarily_unavailable"}' },
  redirect: { ...REFRESH, kind: 'redirect', location: 'http://127.0.0.1:1/', status: 307 },
  not_json: { ...REFRESH, kind: 'not_json' },
  reset_before: { ...REFRESH, kind: 'reset_before' },
  commit_then_drop: { ...REFRESH, kind: 'commit_then_drop' },
  truncate: { ...REFRESH, kind: 'truncate', bytes: 20 },
  content_type: { ...REFRESH, kind: 'content_type', contentType: 'text/plain' },
} as const satisfies Record<string, FaultOptions>;

/** Faults that a client should tolerate, if it waits a moment. */
const HARMLESS = {
  delay: { ...REFRESH, kind: 'delay', seconds: 0.1 },
  slow_body: { ...REFRESH, kind: 'slow_body', bytesPerSecond: 2000 },
  oversize: { ...REFRESH, kind: 'oversize', bytes: 100_000 },
  wrong_date: { ...REFRESH, kind: 'wrong_date', offset: -86_400 },
} as const satisfies Record<string, FaultOptions>;

const UNNOTICED = { delay: 'good', slow_body: 'good', oversize: 'good', wrong_date: 'good' };

/** What a program wrote to stderr when it failed. */
function errorOutput(error: unknown): string {
  const { stderr } = error as { readonly stderr?: string };
  return stderr ?? String(error);
}

/** Adds each fault in turn, lets the client refresh, and returns its result or a summary of its error. */
async function outcomes(
  emulator: Emulator,
  client: () => Promise<unknown>,
  summarize: (error: unknown) => string,
  faults: Readonly<Record<string, FaultOptions>> = { ...FAULTS, ...HARMLESS },
): Promise<Record<string, string>> {
  const all: Record<string, string> = {};
  for (const [kind, fault] of Object.entries(faults)) {
    const { id } = emulator.addFault(fault);
    all[kind] = await client().then(() => 'good', summarize);
    expect(emulator.faults.find((fault) => fault.id === id)?.hits, kind).toBe(1);
  }
  return all;
}

/** The names and codes of an error and its causes, and its other details. */
function chain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code, cause, output } = error as Error & { code?: unknown; output?: { statusCode?: unknown } };
  const parts = [
    error.name,
    code,
    output?.statusCode,
    error.message.slice(0, 60),
    cause === undefined ? '' : chain(cause),
  ];
  return parts.filter((part) => part !== undefined && part !== '').join(' ');
}

/** simple-oauth2, after an automatic login. */
async function simpleOauth2(emulator: Emulator, authorizationMethod: 'header' | 'body') {
  const redirect_uri = `${emulator.baseUrl}/external/oauth2helper/code/set/${HEATER.id}`;
  const client = new AuthorizationCode({
    client: { id: HEATER.id, secret: HEATER.secret },
    auth: { tokenHost: emulator.frontendUrl, tokenPath: '/sso/token', authorizePath: '/sso/authorize' },
    options: { authorizationMethod },
  });
  const landed = new URL(
    redirectLocation(await get(client.authorizeURL({ redirect_uri, scope: 'Monitoring', state: 'a b' }))),
  );
  expect(landed.searchParams.get('state')).toBe('a b');
  return client.getToken({ code: landed.searchParams.get('code') ?? '', redirect_uri, scope: 'Monitoring' });
}

test.for(['header', 'body'] as const)(
  'simple-oauth2 gets and refreshes tokens at the emulator, with its credentials in the %s',
  async (authorizationMethod) => {
    await using emulator = await startTestEmulator({ autoLogin: true });
    const first = await simpleOauth2(emulator, authorizationMethod);
    const second = await first.refresh({ scope: 'Monitoring' });
    expect(second.token).toMatchObject({ token_type: 'bearer', scope: 'Monitoring', expires_in: 3600 });
    expect(second.token['refresh_token']).not.toBe(first.token['refresh_token']);
    expect((await whoami(emulator, String(second.token['access_token']))).status).toBe(200);
  },
);

test.skipIf(!PYTHON_CLIENT)('requests-oauthlib gets and refreshes tokens at the emulator', async () => {
  await using emulator = await startTestEmulator({ autoLogin: true, clients: [{ ...HEATER, secret: 'plain-secret' }] });
  const result = await requestsOauthlib(emulator, ['Monitoring', 'RemoteControl']);
  expect(result).toEqual({ scope: ['Monitoring', 'RemoteControl'], expires_in: 3600, rotated: true, user: 'alice' });
});

test.skipIf(!GO_CLIENT).for(['accept', 'refuse'] as const)(
  "golang.org/x/oauth2 tries HTTP Basic first and gets tokens if the emulator's setting basic is %s",
  async (basic) => {
    await using emulator = await startTestEmulator({ basic });
    const result = await goOauth2(program, emulator, await obtainCode(emulator));
    expect(result).toEqual({ token_type: 'bearer', rotated: true, status: 200 });
    const tokenRequests = emulator.requests.filter((entry) => entry.endpoint === 'token');
    expect(tokenRequests[0]).toMatchObject({ authorization: 'basic', status: basic === 'accept' ? 200 : 401 });
    expect(tokenRequests.at(-1)?.status).toBe(200);
    expect(emulator.observations.codesRepeated).toBe(0);
  },
);

test('simple-oauth2 reports or survives each kind of fault', async () => {
  await using emulator = await startTestEmulator({ autoLogin: true, refreshGrace: 100 });
  const token = await simpleOauth2(emulator, 'body');
  expect(await outcomes(emulator, () => token.refresh(), chain)).toEqual({
    status: expect.stringMatching(/ 503 /),
    redirect: expect.stringMatching(/ 406 .*not JSON/),
    not_json: expect.stringMatching(/not valid JSON/),
    reset_before: expect.stringMatching(/ECONNRESET/),
    commit_then_drop: expect.stringMatching(/ECONNRESET/),
    truncate: expect.stringMatching(/closed prematurely/),
    content_type: expect.stringMatching(/ 406 .*not JSON/),
    ...UNNOTICED,
  });
});

test('openid-client reports or survives each kind of fault', async () => {
  await using emulator = await startTestEmulator({ refreshGrace: 100 });
  const { refresh_token } = await obtainTokens(emulator, { scope: 'Monitoring' });
  const metadata = { issuer: emulator.frontendUrl, token_endpoint: `${emulator.frontendUrl}/sso/token` };
  const portal = new Configuration(metadata, HEATER.id, HEATER.secret);
  allowInsecureRequests(portal);
  expect(await outcomes(emulator, () => refreshTokenGrant(portal, refresh_token), chain)).toEqual({
    status: expect.stringMatching(/unexpected HTTP response status/),
    redirect: expect.stringMatching(/unexpected HTTP response status/),
    not_json: expect.stringMatching(/OAUTH_PARSE_ERROR/),
    reset_before: expect.stringMatching(/ECONNRESET/),
    commit_then_drop: expect.stringMatching(/ECONNRESET/),
    truncate: expect.stringMatching(/UND_ERR_SOCKET/),
    content_type: 'good',
    ...UNNOTICED,
  });
});

test.skipIf(!PYTHON_CLIENT)('requests-oauthlib reports or survives each kind of fault', async () => {
  await using emulator = await startTestEmulator({ autoLogin: true, clients: [{ ...HEATER, secret: 'plain-secret' }] });
  const faults = IS_LONG_FORM ? { ...FAULTS, ...HARMLESS } : FAULTS;
  expect(await outcomes(emulator, () => requestsOauthlib(emulator, ['Monitoring']), errorOutput, faults)).toEqual({
    status: expect.stringMatching(/TemporarilyUnavailable/),
    redirect: expect.stringMatching(/Connection refused/),
    not_json: expect.stringMatching(/MissingToken/),
    reset_before: expect.stringMatching(/Connection reset by peer/),
    commit_then_drop: expect.stringMatching(/Connection reset by peer/),
    truncate: expect.stringMatching(/MissingToken/),
    content_type: 'good',
    ...(IS_LONG_FORM ? UNNOTICED : {}),
  });
});

test.skipIf(!GO_CLIENT)('golang.org/x/oauth2 reports or survives each kind of fault', async () => {
  await using emulator = await startTestEmulator();
  expect(
    await outcomes(emulator, async () => goOauth2(program, emulator, await obtainCode(emulator)), errorOutput),
  ).toEqual({
    status: expect.stringMatching(/503 Service Unavailable/),
    redirect: expect.stringMatching(/connection refused/),
    not_json: expect.stringMatching(/invalid character/),
    reset_before: expect.stringMatching(/connection reset by peer/),
    commit_then_drop: expect.stringMatching(/connection reset by peer/),
    truncate: expect.stringMatching(/unexpected EOF/),
    content_type: expect.stringMatching(/missing access_token/),
    ...UNNOTICED,
  });
});

let program = '';

beforeAll(async () => {
  if (!GO_CLIENT) return;
  const made = await mkdtempDisposable(join(tmpdir(), 'emulator-clients-'));
  program = await buildGoClient(made.path);
  return async () => {
    await made.remove();
  };
});
