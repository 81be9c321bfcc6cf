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
  'no-state-check',
  'refresh-per-request',
  'starts-from-environment',
  'polls-too-fast',
  'prints-tokens',
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

const http = {
  [oauth.allowInsecureRequests]: true,
  [oauth.customFetch]: (url: string, options: object) =>
    fetch(url, { ...options, ...(makes('follows-redirects') && { redirect: 'follow' }) }),
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
    const metadata = await oauth.processResourceDiscoveryResponse(new URL(api.origin + api.pathname), response);
    resource = metadata.resource;
    issuer = metadata.authorization_servers?.[0] ?? '';
  }
  const url = new URL(issuer);
  const response = await oauth.discoveryRequest(url, { algorithm: 'oauth2', ...http });
  server = await oauth.processDiscoveryResponse(url, response);
  return server;
}

async function oauthClient(as: oauth.AuthorizationServer): Promise<oauth.Client> {
  if (env['OAUTH_CLIENT_ID'] !== undefined) return { client_id: env['OAUTH_CLIENT_ID'] };
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
  if (!secret) return oauth.None();
  const methods = as.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
  if (!methods.includes('client_secret_basic')) return oauth.ClientSecretPost(secret);
  if (!makes('basic-without-encoding')) return oauth.ClientSecretBasic(secret);
  return (_as, { client_id }, _body, headers) =>
    headers.set('authorization', `Basic ${Buffer.from(`${client_id}:${secret}`).toString('base64')}`);
}

function keep(tokens: oauth.TokenEndpointResponse): State {
  if (makes('prints-tokens')) console.log(`new access token ${tokens.access_token}`);
  return {
    ...state,
    accessToken: tokens.access_token,
    expiresAt: Date.now() + 900 * (tokens.expires_in ?? 3600),
    refreshToken: makes('keeps-the-first-refresh-token')
      ? (state.refreshToken ?? tokens.refresh_token ?? null)
      : (tokens.refresh_token ?? state.refreshToken),
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
      if (makes('saves-too-late')) setTimeout(() => save(state), 1500);
      else save(state);
    } catch (error) {
      if (error instanceof oauth.ResponseBodyError && error.error === 'invalid_grant') {
        if (!makes('asks-for-ever')) save({ ...state, dead: token });
      } else if (makes('forgets-on-any-error')) save({ ...EMPTY });
      if (makes('ignores-retry-after')) return;
      failures += 1;
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
  const expectedState = oauth.generateRandomState();
  const scope = env['OAUTH_SCOPE'];
  const nonce = scope?.includes('openid') ? oauth.generateRandomNonce() : undefined;
  const url = new URL(as.authorization_endpoint ?? '');
  const query = {
    response_type: 'code',
    client_id: client.client_id,
    redirect_uri: redirectUri,
    state: expectedState,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    ...(scope !== undefined && { scope }),
    ...(nonce !== undefined && { nonce }),
    ...(resource !== undefined && { resource }),
  };
  url.search = new URLSearchParams(query).toString();
  const { port, hostname, pathname } = new URL(redirectUri);
  const callback = Promise.withResolvers<URLSearchParams | null>();
  const listener = createServer((request, response) => {
    const landed = new URL(request.url ?? '', redirectUri);
    let parameters: URLSearchParams | null = null;
    try {
      if (landed.pathname === pathname)
        parameters = oauth.validateAuthResponse(
          as,
          client,
          landed,
          makes('no-state-check') ? oauth.skipStateCheck : expectedState,
        );
    } catch (error) {
      if (error instanceof oauth.AuthorizationResponseError) callback.resolve(null);
    }
    response.writeHead(parameters === null ? 400 : 200, { connection: 'close' }).end('You can close this page.');
    if (parameters !== null) callback.resolve(parameters);
  });
  await new Promise<void>((resolve) => listener.listen(Number(port), hostname, resolve));
  console.log(url.href);
  const parameters = await callback.promise;
  listener.close();
  if (parameters === null) return;
  const response = await oauth.authorizationCodeGrantRequest(
    as,
    client,
    clientAuth(as, client),
    parameters,
    redirectUri,
    verifier,
    {
      ...http,
      ...(resource !== undefined && { additionalParameters: { resource } }),
    },
  );
  const tokens = await oauth.processAuthorizationCodeResponse(as, client, response, {
    ...(nonce !== undefined && { expectedNonce: nonce, requireIdToken: true }),
  });
  if (nonce !== undefined) await oauth.validateApplicationLevelSignature(as, response, http);
  save(keep(tokens));
}

async function logInByDevice(as: oauth.AuthorizationServer, client: oauth.Client): Promise<void> {
  const request = await oauth.deviceAuthorizationRequest(as, client, clientAuth(as, client), {}, http);
  const device = await oauth.processDeviceAuthorizationResponse(as, client, request);
  let interval = makes('polls-too-fast') ? 0.5 : (device.interval ?? 5);
  for (;;) {
    await sleep(1000 * interval);
    try {
      const response = await oauth.deviceCodeGrantRequest(as, client, clientAuth(as, client), device.device_code, http);
      save(keep(await oauth.processDeviceCodeResponse(as, client, response)));
      return;
    } catch (error) {
      if (!(error instanceof oauth.ResponseBodyError)) continue;
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
  if (response.status !== 401) return;
  await refresh(token);
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
