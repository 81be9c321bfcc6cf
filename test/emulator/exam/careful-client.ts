// An OAuth client that does everything right, for the exam: `node careful-client.ts [MISTAKE…]`. Each mistake that it is
// given it makes, and no other one.
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import * as jose from 'jose';
import * as oauth from 'oauth4webapi';

const MISTAKES = [
  'keeps-the-first-refresh-token',
  'saves-too-late',
  'forgets-on-any-error',
  'ignores-retry-after',
  'asks-for-ever',
  'follows-redirects',
  'state-file-for-all',
  'basic-without-encoding',
  'no-state',
  'no-state-check',
  'refresh-per-request',
  'starts-from-environment',
  'polls-too-fast',
  'prints-tokens',
  'forgets-without-a-new-token',
  'forgets-repeated-answer',
  'forgets-before-asking',
  'trusts-expires-in',
  'refreshes-after-403',
  'rejects-compression',
  'rejects-unknown-members',
  'rejects-capitals',
  'always-basic',
  'always-post',
  'secret-in-the-address',
  'two-methods',
  'empty-secret',
  'other-redirect',
  'no-redirect',
  'no-pkce',
  'same-state',
  'no-iss-check',
  'any-issuer',
  'any-resource',
  'no-resource',
  'no-registration',
  'exchanges-an-error',
  'exchanges-twice',
  'exchanges-each-visit',
  'rejects-id-tokens',
  'ignores-iss',
  'ignores-aud',
  'ignores-exp',
  'ignores-nonce',
  'takes-unsigned',
  'takes-unknown-keys',
  'polls-after-refusal',
  'polls-after-expiry',
  'gives-up-lost-polls',
  'no-secret-for-device-codes',
  'no-secret-for-codes',
  'asks-for-a-fragment',
  // No mistake: a refresh with a token that nobody issued shows whether the server accepts the client.
  'checks-its-credentials',
  // No mistake either, and without PKCE it has a nonce.
  'requests-openid',
] as const;
type Mistake = (typeof MISTAKES)[number];
const mistakes = new Set(process.argv.slice(2));
const makes = (mistake: Mistake) => mistakes.has(mistake);

const { env } = process;
const api = new URL(env['API_URL'] ?? '');
const folder = env['STATE_DIR'] ?? '';
const redirectUri = env['OAUTH_REDIRECT_URI'] ?? '';
mkdirSync(folder, { recursive: true });

interface State {
  refreshToken: string | null;
  accessToken: string | null;
  /** Milliseconds since 1970. */
  expiresAt: number;
  client: oauth.Client | null;
  /** The refresh token that the server has refused for good. */
  dead: string | null;
}

const stateFile = join(folder, 'state.json');
const EMPTY: State = { refreshToken: null, accessToken: null, expiresAt: 0, client: null, dead: null };

function load(): State {
  if (makes('starts-from-environment')) return { ...EMPTY };
  return existsSync(stateFile)
    ? { ...EMPTY, ...(JSON.parse(readFileSync(stateFile, 'utf8')) as Partial<State>) }
    : { ...EMPTY };
}

function save(next: State): void {
  state = next;
  const file = openSync(`${stateFile}.new`, 'w', makes('state-file-for-all') ? 0o644 : 0o600);
  writeSync(file, JSON.stringify(next));
  fsyncSync(file);
  closeSync(file);
  renameSync(`${stateFile}.new`, stateFile);
}

let state = load();
state.refreshToken ??= env['OAUTH_REFRESH_TOKEN'] ?? null;

const TOKEN_MEMBERS = ['access_token', 'token_type', 'expires_in', 'refresh_token', 'scope', 'id_token'];

async function send(url: string, options: object): Promise<Response> {
  const address = new URL(url);
  if (makes('secret-in-the-address')) address.searchParams.set('client_secret', env['OAUTH_CLIENT_SECRET'] ?? '');
  const response = await fetch(address, { ...options, ...(makes('follows-redirects') && { redirect: 'follow' }) });
  const body: unknown = await response
    .clone()
    .json()
    .catch(() => null);
  if (typeof body !== 'object' || body === null || !('token_type' in body)) return response;
  if (makes('rejects-compression') && response.headers.has('content-encoding')) throw new Error('compressed');
  if (makes('rejects-unknown-members') && Object.keys(body).some((name) => !TOKEN_MEMBERS.includes(name)))
    throw new Error('an unknown member');
  if (makes('rejects-capitals') && body.token_type === String(body.token_type).toUpperCase())
    throw new Error('an unknown type');
  return response;
}

const http = {
  [oauth.allowInsecureRequests]: true,
  [oauth.customFetch]: send,
  signal: () => AbortSignal.timeout(10_000),
};

let server: oauth.AuthorizationServer | undefined;
let resource: string | undefined;

/** The authorization server: of the environment, or the one that the API names. */
async function authorizationServer(): Promise<oauth.AuthorizationServer> {
  if (server !== undefined) return server;
  let issuer = env['OAUTH_ISSUER'];
  if (issuer === undefined) {
    const challenge = (await fetch(api)).headers.get('www-authenticate') ?? '';
    const address = new URL(/resource_metadata="([^"]+)"/.exec(challenge)?.[1] ?? '');
    const response = await fetch(address, { redirect: 'manual', signal: http.signal() });
    const named = ((await response.clone().json()) as { resource: string }).resource;
    const expected = makes('any-resource') ? named : api.origin + api.pathname;
    const metadata = await oauth.processResourceDiscoveryResponse(new URL(expected), response);
    if (!makes('no-resource')) resource = metadata.resource;
    issuer = metadata.authorization_servers?.[0] ?? '';
  }
  const url = new URL(issuer);
  const response = await oauth.discoveryRequest(url, { algorithm: 'oauth2', ...http });
  const named = ((await response.clone().json()) as { issuer: string }).issuer;
  server = await oauth.processDiscoveryResponse(makes('any-issuer') ? new URL(named) : url, response);
  return server;
}

async function oauthClient(as: oauth.AuthorizationServer): Promise<oauth.Client> {
  if (env['OAUTH_CLIENT_ID'] !== undefined) return { client_id: env['OAUTH_CLIENT_ID'] };
  if (makes('no-registration')) return { client_id: 'well-known' };
  if (state.client !== null) return state.client;
  const wanted = { redirect_uris: [redirectUri], token_endpoint_auth_method: 'client_secret_basic' };
  const client = await oauth.processDynamicClientRegistrationResponse(
    await oauth.dynamicClientRegistrationRequest(as, wanted, http),
  );
  save({ ...state, client });
  return client;
}

function clientAuth(as: oauth.AuthorizationServer, client: oauth.Client): oauth.ClientAuth {
  const secret = env['OAUTH_CLIENT_SECRET'] || client['client_secret']?.toString();
  if (!secret) return makes('empty-secret') ? oauth.ClientSecretPost('x') : oauth.None();
  const post = oauth.ClientSecretPost(secret);
  const basic = makes('basic-without-encoding') ? unencodedBasic(secret) : oauth.ClientSecretBasic(secret);
  if (makes('always-post')) return post;
  if (makes('always-basic')) return basic;
  if (makes('two-methods')) {
    return (...request) => {
      basic(...request);
      post(...request);
    };
  }
  const methods = as.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
  return methods.includes('client_secret_basic') ? basic : post;
}

function unencodedBasic(secret: string): oauth.ClientAuth {
  return (_as, { client_id }, _body, headers) =>
    headers.set('authorization', `Basic ${Buffer.from(`${client_id}:${secret}`).toString('base64')}`);
}

function keep(tokens: oauth.TokenEndpointResponse): State {
  if (makes('prints-tokens')) console.log(`new access token ${tokens.access_token}`);
  return {
    ...state,
    accessToken: tokens.access_token,
    expiresAt: Date.now() + 900 * (tokens.expires_in ?? 3600),
    refreshToken:
      makes('keeps-the-first-refresh-token') || (makes('forgets-repeated-answer') && failures > 0)
        ? (state.refreshToken ?? tokens.refresh_token ?? null)
        : (tokens.refresh_token ?? (makes('forgets-without-a-new-token') ? null : state.refreshToken)),
    dead: null,
  };
}

/** One process at a time refreshes; a lock of a dead process counts for nothing. */
async function locked(work: () => Promise<void>): Promise<void> {
  const lock = join(folder, 'lock');
  for (;;) {
    try {
      const file = openSync(lock, 'wx', 0o600);
      writeSync(file, String(process.pid));
      closeSync(file);
      break;
    } catch {
      const owner = Number(existsSync(lock) ? readFileSync(lock, 'utf8') : 0);
      if (owner > 0 && !isRunning(owner)) rmSync(lock, { force: true });
      await sleep(50);
    }
  }
  try {
    await work();
  } finally {
    rmSync(lock, { force: true });
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

let notBefore = 0;
let failures = 0;
let refreshing: Promise<void> | null = null;

/** Gets new tokens, unless somebody else has got some since. @param dead the access token that is not valid any more */
function refresh(dead: string | null): Promise<void> {
  if (makes('refresh-per-request')) return refreshOnce(dead);
  refreshing ??= refreshOnce(dead).finally(() => {
    refreshing = null;
  });
  return refreshing;
}

async function refreshOnce(dead: string | null): Promise<void> {
  if (Date.now() < notBefore) return;
  await locked(async () => {
    if (!makes('saves-too-late') && !makes('starts-from-environment') && existsSync(stateFile))
      state = { ...state, ...load() };
    if (state.accessToken !== null && state.accessToken !== dead && !makes('refresh-per-request')) return;
    const token = state.refreshToken;
    if (token === null || (token === state.dead && !makes('asks-for-ever'))) return;
    const as = await authorizationServer();
    const client = await oauthClient(as);
    if (makes('forgets-before-asking')) {
      save({ ...state, refreshToken: null });
      state.refreshToken = token;
    }
    try {
      const response = await oauth.refreshTokenGrantRequest(as, client, clientAuth(as, client), token, {
        ...http,
        ...(resource !== undefined && { additionalParameters: { resource } }),
      });
      const retryAfter = response.headers.get('retry-after');
      if (retryAfter !== null && !makes('ignores-retry-after')) {
        const seconds = Number(retryAfter);
        notBefore = Number.isNaN(seconds) ? Date.parse(retryAfter) + 1000 : Date.now() + 1000 * seconds;
      }
      state = keep(await oauth.processRefreshTokenResponse(as, client, response));
      failures = 0;
      if (makes('saves-too-late')) setTimeout(() => save(state), 700);
      else save(state);
    } catch (error) {
      if (makes('forgets-before-asking')) save({ ...state, refreshToken: token });
      if (error instanceof oauth.ResponseBodyError && error.error === 'invalid_grant') {
        if (!makes('asks-for-ever')) save({ ...state, dead: token });
      } else if (makes('forgets-on-any-error')) save({ ...EMPTY });
      failures += 1;
      if (makes('ignores-retry-after')) return;
      notBefore = Math.max(notBefore, Date.now() + Math.min(500 * 2 ** failures, 8000));
    }
  });
}

async function logIn(): Promise<void> {
  const as = await authorizationServer();
  const client = await oauthClient(as);
  if (env['OAUTH_AUTHORIZATION_ENDPOINT'] !== undefined || env['OAUTH_ISSUER'] === undefined) {
    await logInByCode(as, client);
  } else if (as.device_authorization_endpoint !== undefined) await logInByDevice(as, client);
}

async function logInByCode(as: oauth.AuthorizationServer, client: oauth.Client): Promise<void> {
  const verifier = oauth.generateRandomCodeVerifier();
  const expectedState = makes('same-state') ? 'always-the-same' : oauth.generateRandomState();
  const scope = env['OAUTH_SCOPE'] ?? (makes('requests-openid') ? 'openid' : undefined);
  const nonce = scope?.includes('openid') ? oauth.generateRandomNonce() : undefined;
  const url = new URL(as.authorization_endpoint ?? '');
  const query = {
    response_type: 'code',
    client_id: client.client_id,
    ...(!makes('no-redirect') && { redirect_uri: redirectUri }),
    ...(!makes('no-state') && { state: expectedState }),
    ...(makes('asks-for-a-fragment') && { response_mode: 'fragment' }),
    ...(!makes('no-pkce') && {
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    }),
    ...(scope !== undefined && { scope }),
    ...(nonce !== undefined && { nonce }),
    ...(resource !== undefined && { resource }),
  };
  url.search = new URLSearchParams(query).toString();
  const { port, hostname, pathname } = new URL(redirectUri);
  const exchange = (parameters: URLSearchParams) =>
    oauth.authorizationCodeGrantRequest(
      as,
      client,
      makes('no-secret-for-codes') ? oauth.None() : clientAuth(as, client),
      parameters,
      makes('other-redirect') ? `${redirectUri}/` : redirectUri,
      makes('no-pkce') ? oauth.nopkce : verifier,
      {
        ...http,
        ...(resource !== undefined && { additionalParameters: { resource } }),
      },
    );
  const callback = Promise.withResolvers<URLSearchParams | null>();
  let visits = 0;
  const listener = createServer((request, response) => {
    const landed = new URL(request.url ?? '', redirectUri);
    if (makes('no-iss-check')) landed.searchParams.delete('iss');
    if (makes('checks-its-credentials'))
      void oauth.refreshTokenGrantRequest(as, client, clientAuth(as, client), 'none', http);
    if (makes('exchanges-an-error') && landed.searchParams.has('error')) {
      landed.searchParams.delete('error');
      landed.searchParams.set('code', 'none');
    }
    let parameters: URLSearchParams | null = null;
    try {
      if (landed.pathname === pathname)
        parameters = oauth.validateAuthResponse(
          { ...as, ...(makes('no-iss-check') && { authorization_response_iss_parameter_supported: false }) },
          client,
          landed,
          makes('no-state-check') ? oauth.skipStateCheck : expectedState,
        );
    } catch (error) {
      if (error instanceof oauth.AuthorizationResponseError) callback.resolve(null);
    }
    response.writeHead(parameters === null ? 400 : 200, { connection: 'close' }).end('You can close this page.');
    if (parameters === null) return;
    visits += 1;
    if (visits > 1 && makes('exchanges-each-visit')) void exchange(parameters).catch(() => undefined);
    callback.resolve(parameters);
  });
  await new Promise<void>((resolve) => listener.listen(Number(port), hostname, resolve));
  console.log(url.href);
  const parameters = await callback.promise;
  if (!makes('exchanges-each-visit')) listener.close();
  if (parameters === null) return;
  let response = await exchange(parameters);
  listener.close();
  if (!response.ok && makes('exchanges-twice')) response = await exchange(parameters);
  if (nonce !== undefined) {
    if (makes('rejects-id-tokens')) throw new Error('an ID token');
    response = await overlook(response, { iss: as.issuer, aud: client.client_id, nonce });
  }
  const tokens = await oauth.processAuthorizationCodeResponse(as, client, response, {
    ...(nonce !== undefined && { expectedNonce: nonce, requireIdToken: true }),
  });
  save(keep(tokens));
}

/** Checks the signature of the ID token in a response. @returns the response, its ID token without what is overlooked */
async function overlook(response: Response, right: { iss: string; aud: string; nonce: string }): Promise<Response> {
  const body = (await response.json()) as { id_token: string };
  const [header = '', payload = ''] = body.id_token.split('.');
  const parse = (part: string) => JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>;
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
  const isUnsigned = parse(header)['alg'] === 'none';
  const keys = jose.createRemoteJWKSet(new URL((await authorizationServer()).jwks_uri ?? ''));
  if (!isUnsigned || !makes('takes-unsigned')) {
    await jose.compactVerify(body.id_token, keys).catch(async (error: unknown) => {
      if (!makes('takes-unknown-keys') || isUnsigned) throw error;
    });
  }
  const claims = {
    ...parse(payload),
    ...(makes('ignores-iss') && { iss: right.iss }),
    ...(makes('ignores-aud') && { aud: right.aud }),
    ...(makes('ignores-exp') && { exp: Math.ceil(Date.now() / 1000) + 60 }),
    ...(makes('ignores-nonce') && { nonce: right.nonce }),
  };
  const id_token = [encode({ alg: 'RS256' }), encode(claims), 'checked'].join('.');
  return Response.json({ ...body, id_token });
}

async function logInByDevice(as: oauth.AuthorizationServer, client: oauth.Client): Promise<void> {
  const request = await oauth.deviceAuthorizationRequest(
    as,
    client,
    makes('no-secret-for-device-codes') ? oauth.None() : clientAuth(as, client),
    {},
    http,
  );
  const device = await oauth.processDeviceAuthorizationResponse(as, client, request);
  let interval = makes('polls-too-fast') ? 0.5 : (device.interval ?? 5);
  for (;;) {
    await sleep(1000 * interval);
    try {
      const response = await oauth.deviceCodeGrantRequest(as, client, clientAuth(as, client), device.device_code, http);
      save(keep(await oauth.processDeviceCodeResponse(as, client, response)));
      return;
    } catch (error) {
      if (!(error instanceof oauth.ResponseBodyError)) {
        if (makes('gives-up-lost-polls')) return await giveUp();
        continue;
      }
      if (error.error === 'access_denied' && makes('polls-after-refusal')) continue;
      if (error.error === 'expired_token' && makes('polls-after-expiry')) continue;
      if (error.error === 'slow_down') interval += makes('polls-too-fast') ? 0 : 5;
      else if (error.error !== 'authorization_pending') return await giveUp();
    }
  }
}

/** A login that the user refuses is not asked for again: a person would start the program anew. */
async function giveUp(): Promise<void> {
  await sleep(3_600_000);
}

async function callApi(): Promise<void> {
  if (state.accessToken === null || Date.now() >= state.expiresAt) await refresh(state.accessToken);
  const token = state.accessToken;
  if (token === null) return;
  const response = await fetch(api, { headers: { authorization: `Bearer ${token}` }, signal: http.signal() });
  await response.arrayBuffer();
  const isRefused = response.status === 401 || (response.status === 403 && makes('refreshes-after-403'));
  if (isRefused && !makes('trusts-expires-in')) await refresh(token);
}

for (;;) {
  try {
    if (state.refreshToken === null || state.refreshToken === state.dead) {
      await logIn();
      if (state.accessToken === null) await giveUp();
    } else await Promise.all(Array.from({ length: Number(env['API_CONCURRENCY'] ?? 1) }, callApi));
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
  }
  await sleep(1000);
}
