// The flows of good appliances before, between and after the fuzz requests. Each one must get the right response.
import { rememberSecrets } from '../../../test/support/logs.ts';
import { KnownValues } from '../known-values.ts';
import { JWT_BEARER } from './assertions.ts';
import type { HonestAppliance } from './background-clients.ts';
import { type ClientResponse, postForm, register, tokenUser } from './client.ts';
import type { FuzzCredentials, HubFacts } from './facts.ts';
import { type FuzzedHub, logIn, USERS } from './fuzzed-hub.ts';

const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code';

/** The initial state of a part of a run. */
export interface HubFixture {
  readonly facts: HubFacts;
  /** Secrets of the victim and the portal, which no response may contain. */
  readonly secrets: readonly string[];
  /** Regular appliances whose tokens are never revoked. */
  readonly served: readonly HonestAppliance[];
}

/** Prepares the attacker's appliances and their values, and the secrets that must not leak. */
export async function setUpHub(home: FuzzedHub, waiting: FuzzCredentials): Promise<HubFixture> {
  const { hub, own, doubter, victim, declared, emulator } = home;
  const token = await tokenOf(home, own);
  const session = await paired(home, await registered(home, 'Heat pump', await invite(home)));
  const begun = await expected(postForm(home, '/oauth/device_authorization', form(session.client)), 200);
  const invites: string[] = [];
  for (let i = 0; i < 8; i += 1) invites.push(await invite(home));
  const held = await tokenOf(home, victim);
  return {
    facts: {
      own,
      doubter,
      keyed: home.keyed,
      waiting,
      victimId: victim.id,
      session,
      known: new KnownValues({
        invites,
        accessTokens: [token, text(await postForm(home, '/oauth/token', grant(doubter)), 'access_token') || 'none'],
        refreshTokens: [session.refreshToken],
        deviceCodes: [text(begun, 'device_code'), session.deviceCode],
        userCodes: [text(begun, 'user_code')],
        nonces: [session.nonce],
        registered: [`${session.client.id} ${session.client.secret}`],
        assertions: [await usedAssertion(home)],
      }),
      now: () => Math.floor(Date.now() / 1000),
      sign: home.sign,
    },
    secrets: [
      victim.secret,
      declared.secret,
      held,
      emulator.clientSecret,
      ...emulator.secretsIssued('refresh_token').slice(-50),
      'PRIVATE KEY',
      hub.directory,
    ],
    served: [
      { client: victim, token: held, owner: USERS.victim },
      { client: own, token, owner: USERS.attacker },
    ],
  };
}

/** Checks the flows of all appliances. @throws Error if a response is wrong */
export async function checkGoodHubFlow(home: FuzzedHub, waiting: FuzzCredentials): Promise<void> {
  const { victim, own, doubter, declared } = home;
  await owned(home, victim, USERS.victim);
  await owned(home, own, USERS.attacker);
  await expected(postForm(home, '/oauth/token', grant(declared)), 400, 'invalid_grant');
  await expected(postForm(home, '/oauth/token', grant(waiting)), 400, 'unauthorized_client');
  await doubted(home, doubter);
  const client = await registered(home, 'Heat pump', await invite(home));
  const { refreshToken } = await paired(home, client);
  const again = { ...form(client), grant_type: 'refresh_token', refresh_token: refreshToken };
  const user = await tokenUser(home, text(await expected(postForm(home, '/oauth/token', again), 200), 'access_token'));
  if (user !== USERS.attacker) throw new Error(`the refresh token of the device flow led to a token of ${user}`);
  await expected(postForm(home, '/oauth/revoke', { ...form(client), token: refreshToken }), 200);
  await expected(postForm(home, '/oauth/token', again), 400, 'invalid_grant');
}

/** Removes the registered appliances, so that their number does not grow. */
export async function removeRegistered(home: FuzzedHub): Promise<void> {
  const { control } = home;
  for (const { name } of (await control.request('status')).appliances) {
    if (!FIXED.includes(name)) await control.request('removeAppliance', { name });
  }
}

const FIXED = ['victim', 'own', 'doubter', 'declared', 'keyed', 'waiting'];

/** Registers an appliance that nobody approves. */
export async function registerUnapproved(home: FuzzedHub): Promise<FuzzCredentials> {
  await home.control.request('openRegistration', { open_for: 60 });
  const waiting = await registered(home, 'waiting', null);
  await home.control.request('openRegistration', { open_for: 0 });
  return waiting;
}

async function invite({ control }: FuzzedHub): Promise<string> {
  const { token } = await control.request('invite', {
    name: null,
    scope: 'Monitoring',
    portal: null,
    connection: null,
    ttl: 3600,
  });
  rememberSecrets([token]);
  return token;
}

async function registered(home: FuzzedHub, name: string, invite: string | null): Promise<FuzzCredentials> {
  const response = await expected(register(home, name, invite), 201);
  return { id: text(response, 'client_id'), secret: text(response, 'client_secret') };
}

/** Completes a device flow. */
async function paired(home: FuzzedHub, client: FuzzCredentials) {
  const begun = await expected(postForm(home, '/oauth/device_authorization', form(client)), 200);
  const deviceCode = text(begun, 'device_code');
  const opened = await postForm(home, '/pair', { user_code: text(begun, 'user_code') });
  if (opened.location === null) throw new Error(`/pair responded ${opened.status} without a location`);
  const callback = await logIn(home.emulator, new URL(opened.location), USERS.attacker);
  const exchange = { ...form(client), grant_type: DEVICE_CODE, device_code: deviceCode };
  const response = await expected(postForm(home, '/oauth/token', exchange), 200);
  const refreshToken = text(response, 'refresh_token');
  rememberSecrets([deviceCode, refreshToken]);
  const nonce = new URL(callback).pathname.split('/').at(-1) ?? '';
  return { client, deviceCode, nonce, refreshToken };
}

/** Reports a token as rejected by the cloud: the appliance gets another one, or a 503 with `Retry-After`. */
async function doubted(home: FuzzedHub, client: FuzzCredentials): Promise<void> {
  const first = await postForm(home, '/oauth/token', grant(client));
  if (first.status === 503) return checkRetryAfter(first);
  await expected(postForm(home, '/oauth/revoke', { ...form(client), token: text(first, 'access_token') }), 200);
  const next = await postForm(home, '/oauth/token', grant(client));
  if (next.status === 503) return checkRetryAfter(next);
  if (next.status !== 200) throw new Error(`after a revocation: ${JSON.stringify(next)}`);
  if (next.body['access_token'] === first.body['access_token']) throw new Error('a revoked token was issued');
}

function checkRetryAfter({ retryAfter }: ClientResponse): void {
  if (!(retryAfter !== null && retryAfter > 0 && retryAfter <= 120))
    throw new Error(`503 with Retry-After ${retryAfter}`);
}

async function usedAssertion(home: FuzzedHub): Promise<string> {
  const now = Math.floor(Date.now() / 1000);
  const { id } = home.keyed;
  const claims = { iss: id, sub: id, aud: `https://127.0.0.1:${home.ports.httpsPort}`, jti: crypto.randomUUID() };
  const assertion = home.sign({ alg: 'EdDSA' }, { ...claims, iat: now, exp: now + 45 });
  const members = {
    grant_type: 'client_credentials',
    client_assertion_type: JWT_BEARER,
    client_assertion: assertion,
  };
  const response = await postForm(home, '/oauth/token', members);
  if (response.status === 503) checkRetryAfter(response);
  else if (response.status !== 200) throw new Error(`an assertion got the response ${JSON.stringify(response)}`);
  return assertion;
}

async function owned(home: FuzzedHub, client: FuzzCredentials, owner: string): Promise<void> {
  const user = await tokenUser(home, await tokenOf(home, client));
  if (user !== owner) throw new Error(`${client.id} got a token of ${user}, not of ${owner}`);
}

async function tokenOf(home: FuzzedHub, client: FuzzCredentials): Promise<string> {
  return text(await expected(postForm(home, '/oauth/token', grant(client)), 200), 'access_token');
}

function form({ id, secret }: FuzzCredentials): Record<string, string> {
  return { client_id: id, client_secret: secret };
}

function grant(client: FuzzCredentials): Record<string, string> {
  return { ...form(client), grant_type: 'client_credentials' };
}

/** Expects a status and, if given, an error code. */
async function expected(response: Promise<ClientResponse>, status: number, error?: string): Promise<ClientResponse> {
  const found = await response;
  if (found.status === status && (error === undefined || found.body['error'] === error)) return found;
  throw new Error(
    `expected ${status} ${error ?? ''}, found ${found.status} ${found.body['error'] ?? ''}: ${found.body['error_description'] ?? ''}`,
  );
}

function text({ body }: ClientResponse, name: string): string {
  const value = body[name];
  return typeof value === 'string' ? value : '';
}
