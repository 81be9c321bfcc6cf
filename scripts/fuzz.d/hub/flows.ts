// What good appliances do: before, between and after the requests of the fuzz each must be served, and rightly.
import { rememberSecrets } from '../../../test/support/logs.ts';
import { KnownValues } from '../known-values.ts';
import { JWT_BEARER } from './assertions.ts';
import type { HonestAppliance } from './background-clients.ts';
import { type ClientResponse, postForm, register, tokenUser } from './client.ts';
import type { FuzzCredentials, HubFacts } from './facts.ts';
import { type FuzzedHub, logIn, USERS } from './fuzzed-hub.ts';

const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code';

/** What a part of a run begins with. */
export interface HubFixture {
  readonly facts: HubFacts;
  /** The victim's and the portal's, which must not be in any answer. */
  readonly secrets: readonly string[];
  /** Appliances that nobody takes a token from. */
  readonly served: readonly HonestAppliance[];
}

/** The attacker's own appliances, each with what it was given, and secrets that must stay where they are. */
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

/** @throws Error where an honest appliance is not served as it must be */
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
  if (user !== USERS.attacker) throw new Error(`the refresh token of the device flow gave a token of ${user}`);
  await expected(postForm(home, '/oauth/revoke', { ...form(client), token: refreshToken }), 200);
  await expected(postForm(home, '/oauth/token', again), 400, 'invalid_grant');
}

/** Takes away what registered itself, so that the home stays as large as it is. */
export async function removeRegistered(home: FuzzedHub): Promise<void> {
  const { control } = home;
  for (const { name } of (await control.status()).appliances) {
    if (!FIXED.includes(name)) await control.removeAppliance(name);
  }
}

const FIXED = ['victim', 'own', 'doubter', 'declared', 'keyed', 'waiting'];

/** Introduces an appliance that nobody approves. */
export async function registerUnapproved(home: FuzzedHub): Promise<FuzzCredentials> {
  await home.control.openRegistration(60);
  const waiting = await registered(home, 'waiting', null);
  await home.control.openRegistration(0);
  return waiting;
}

async function invite({ control }: FuzzedHub): Promise<string> {
  const { token } = await control.invite({ name: null, scope: 'Monitoring', portal: null, ttl: 3600 });
  rememberSecrets([token]);
  return token;
}

async function registered(home: FuzzedHub, name: string, invite: string | null): Promise<FuzzCredentials> {
  const told = await expected(register(home, name, invite), 201);
  return { id: text(told, 'client_id'), secret: text(told, 'client_secret') };
}

/** A device flow to its end. */
async function paired(home: FuzzedHub, client: FuzzCredentials) {
  const begun = await expected(postForm(home, '/oauth/device_authorization', form(client)), 200);
  const deviceCode = text(begun, 'device_code');
  const opened = await postForm(home, '/pair', { user_code: text(begun, 'user_code') });
  if (opened.location === null) throw new Error(`/pair answered ${opened.status} without a location`);
  const callback = await logIn(home.emulator, new URL(opened.location), USERS.attacker);
  const exchange = { ...form(client), grant_type: DEVICE_CODE, device_code: deviceCode };
  const told = await expected(postForm(home, '/oauth/token', exchange), 200);
  const refreshToken = text(told, 'refresh_token');
  rememberSecrets([deviceCode, refreshToken]);
  const nonce = new URL(callback).pathname.split('/').at(-1) ?? '';
  return { client, deviceCode, nonce, refreshToken };
}

/** The cloud refused its token: it gets another one, or is told when. */
async function doubted(home: FuzzedHub, client: FuzzCredentials): Promise<void> {
  const first = await postForm(home, '/oauth/token', grant(client));
  if (first.status === 503) return honest(first);
  await expected(postForm(home, '/oauth/revoke', { ...form(client), token: text(first, 'access_token') }), 200);
  const next = await postForm(home, '/oauth/token', grant(client));
  if (next.status === 503) return honest(next);
  if (next.status !== 200) throw new Error(`after a revocation: ${JSON.stringify(next)}`);
  if (next.body['access_token'] === first.body['access_token']) throw new Error('a revoked token was handed out');
}

function honest({ retryAfter }: ClientResponse): void {
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
  const told = await postForm(home, '/oauth/token', members);
  if (told.status === 503) honest(told);
  else if (told.status !== 200) throw new Error(`an assertion was answered ${JSON.stringify(told)}`);
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

/** @param error of the answer */
async function expected(told: Promise<ClientResponse>, status: number, error?: string): Promise<ClientResponse> {
  const found = await told;
  if (found.status === status && (error === undefined || found.body['error'] === error)) return found;
  throw new Error(
    `expected ${status} ${error ?? ''}, found ${found.status} ${found.body['error'] ?? ''}: ${found.body['error_description'] ?? ''}`,
  );
}

function text({ body }: ClientResponse, name: string): string {
  const value = body[name];
  return typeof value === 'string' ? value : '';
}
