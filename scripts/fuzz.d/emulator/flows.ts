// The flows of a good client before, between and after the fuzz requests.
import { type Dial, plainDial } from '../exchange.ts';
import { KnownValues } from '../known-values.ts';
import type { FuzzRequest } from '../requests.ts';
import type { EmulatorFacts } from './values.ts';

/**
 * A running emulator with two clients and two users. The second of each is the victim, whose secrets are never sent.
 */
export interface EmulatorTarget {
  readonly baseUrl: string;
  readonly frontendUrl: string;
  readonly clients: readonly [Credentials, Credentials];
  readonly users: readonly [Credentials, Credentials];
}

/** Opens a connection to the origin that a request is for. */
export function dialFor(target: EmulatorTarget, { origin }: Pick<FuzzRequest, 'origin'>): Dial {
  return plainDial(origin === 'base' ? target.baseUrl : target.frontendUrl);
}

interface Credentials {
  readonly id: string;
  readonly secret: string;
}

/** The initial state of a part of a run. */
export interface EmulatorFixture {
  /** What the attacker knows. */
  readonly facts: EmulatorFacts;
  /** The victim's secrets, which no response may contain. */
  readonly secrets: readonly string[];
}

/** Resets the emulator and runs flows of the attacker and of the victim. */
export async function setUpEmulator(target: EmulatorTarget): Promise<EmulatorFixture> {
  await reset(target);
  const [own, victim] = target.clients;
  const [user, person] = target.users;
  const first = await flow(target, own, user.id);
  const refreshed = await refresh(target, own, first.refresh_token);
  const waiting = await login(target, own, user.id);
  const begun = await config(target, own);
  const device = await beginDevice(target, own);
  const registered = await register(target);
  await (await fetch(begun.authorizeUrl)).text();
  const { grants } = (await good(await fetch(`${target.baseUrl}/_emulator/grants`))) as { grants: { id: string }[] };
  const held = await flow(target, victim, person.id);
  const arrived = await login(target, victim, person.id);
  return {
    facts: {
      baseUrl: target.baseUrl,
      clientId: own.id,
      clientSecret: own.secret,
      registered,
      victimId: victim.id,
      user: user.id,
      password: user.secret,
      victimPayload: arrived.state.split('.')[1] ?? '',
      known: new KnownValues({
        states: [first.state, waiting.state, begun.state, begun.state],
        codes: [first.code, waiting.code],
        accessTokens: [first.access_token, refreshed.access_token],
        refreshTokens: [first.refresh_token, refreshed.refresh_token],
        grants: grants.map(({ id }) => id),
        faults: ['1', '2'],
        deviceCodes: [device.device_code],
        userCodes: [device.user_code],
        requestUris: [await pushRequest(target, own)],
      }),
    },
    secrets: [victim.secret, person.secret, held.access_token, held.refresh_token, arrived.code, arrived.state],
  };
}

/** Runs the flow of a good client. @throws Error if it is not served */
export async function checkGoodFlow(target: EmulatorTarget): Promise<void> {
  await reset(target);
  const [own] = target.clients;
  const again = await flow(target, own, target.users[0].id);
  const { access_token } = await refresh(target, own, again.refresh_token);
  const headers = { authorization: `Bearer ${access_token}` };
  await good(await fetch(`${target.baseUrl}/api/whoami`, { headers }));
}

async function beginDevice({ frontendUrl }: EmulatorTarget, { id, secret }: Credentials) {
  const body = new URLSearchParams({ client_id: id, client_secret: secret });
  const response = await fetch(`${frontendUrl}/oauth2/device_authorization`, { method: 'POST', body });
  return (await good(response)) as { device_code: string; user_code: string };
}

async function pushRequest({ frontendUrl }: EmulatorTarget, { id, secret }: Credentials): Promise<string> {
  const redirect_uri = 'https://tool.example/back';
  const body = new URLSearchParams({ client_id: id, client_secret: secret, response_type: 'code', redirect_uri });
  const answer = await good(await fetch(`${frontendUrl}/oauth2/par`, { method: 'POST', body }));
  return (answer as { request_uri: string }).request_uri;
}

async function register({ frontendUrl }: EmulatorTarget): Promise<EmulatorFacts['registered']> {
  const metadata = { redirect_uris: ['https://tool.example/back'] };
  const answer = (await good(await call(`${frontendUrl}/oauth2/register`, metadata))) as Record<string, string>;
  return { id: answer['client_id'] ?? '', token: answer['registration_access_token'] ?? '' };
}

/** Resets everything that was issued, and the faults, settings and clock. */
async function reset(target: EmulatorTarget): Promise<void> {
  await good(await call(`${target.baseUrl}/_emulator/reset`, {}));
}

/** The current settings, in the form that {@link changeSettings} takes. */
export async function readSettings(target: EmulatorTarget): Promise<unknown> {
  return await good(await fetch(`${target.baseUrl}/_emulator/settings`));
}

export async function changeSettings(target: EmulatorTarget, change: unknown): Promise<void> {
  await good(await call(`${target.baseUrl}/_emulator/settings`, change, 'PATCH'));
}

interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
}

async function config(target: EmulatorTarget, client: Credentials) {
  const answer = await fetch(`${target.baseUrl}/external/oauth2helper/config/${client.id}`, { method: 'POST' });
  const { code_url, authorize_url } = (await good(answer)) as { code_url: string; authorize_url: string };
  return {
    codeUrl: code_url,
    authorizeUrl: authorize_url,
    state: new URL(code_url).searchParams.get('state') ?? '',
  };
}

async function login(
  target: EmulatorTarget,
  client: Credentials,
  user: string,
): Promise<{ state: string; code: string }> {
  const { state, codeUrl } = await config(target, client);
  await good(await call(`${target.baseUrl}/_emulator/login`, { state, user }));
  const { code } = (await good(await fetch(codeUrl))) as { code: string };
  return { state, code };
}

async function flow(
  target: EmulatorTarget,
  client: Credentials,
  user: string,
): Promise<Tokens & { state: string; code: string }> {
  const { state, code } = await login(target, client, user);
  return {
    state,
    code,
    ...(await tokens(target, client, { grant_type: 'authorization_code', code, scope: 'openid' })),
  };
}

function refresh(target: EmulatorTarget, client: Credentials, refresh_token: string): Promise<Tokens> {
  return tokens(target, client, { grant_type: 'refresh_token', refresh_token });
}

async function tokens(target: EmulatorTarget, client: Credentials, form: Record<string, string>): Promise<Tokens> {
  const body = new URLSearchParams({ ...form, client_id: client.id, client_secret: client.secret });
  return (await good(await fetch(`${target.frontendUrl}/sso/token`, { method: 'POST', body }))) as Tokens;
}

function call(url: string, body: unknown, method = 'POST'): Promise<Response> {
  return fetch(url, { method, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
}

async function good(response: Response): Promise<unknown> {
  if (!response.ok) throw new Error(`${response.url.split('?')[0]} responded ${response.status}`);
  return await response.json();
}
