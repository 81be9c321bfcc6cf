import { test as base, expect } from 'vitest';
import { type Emulator, type EmulatorOptions, startEmulator } from '../../src/emulator/index.ts';

/** A raw HTTP client of the helper endpoints: it follows no redirects and hides no errors. */
export const FORM = 'application/x-www-form-urlencoded';

export interface HelperConfig {
  readonly authorize_url: string;
  readonly code_url: string;
  readonly accesstoken_request_url: string;
}

export interface Tokens {
  readonly access_token: string;
  readonly expires_in: number;
  readonly token_type: string;
  readonly scope: string | null;
  readonly refresh_token: string;
  readonly id_token?: string;
}

export const ALICE = { name: 'alice', password: 'correct horse' };
export const HEATER = { id: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1a01', secret: 's3cret:with +%&', name: 'Heater <7>' };
export const PUMP = { id: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1a02', secret: 'pump-secret' };

/** An emulator in this process or in its own. */
type Portal = Pick<Emulator, 'baseUrl' | 'frontendUrl' | 'clientId'>;

interface Credentials {
  readonly id: string;
  readonly secret: string;
}

/** An emulator with two clients and one user. */
export function startTestEmulator(options: EmulatorOptions = {}): Promise<Emulator> {
  return startEmulator({ clients: [HEATER, PUMP], users: [ALICE], ...options });
}

/** A clock that tests set. */
export class FakeClock {
  wall = Date.UTC(2031, 4, 5, 6, 7, 8);
  now() {
    return { wall: this.wall };
  }
  pass(seconds: number) {
    this.wall += 1000 * seconds;
  }
}

/** A test with a clock that it sets, and an emulator of {@link startTestEmulator} that uses this clock. */
export const test = base
  .extend('clock', () => new FakeClock())
  .extend('emulator', async ({ clock }, { onCleanup }) => {
    const emulator = await startTestEmulator({ clock });
    onCleanup(() => emulator.close());
    return emulator;
  });

export function get(url: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, { redirect: 'manual', headers });
}

export function post(url: string, form: Record<string, string> | string, headers: Record<string, string> = {}) {
  const body = typeof form === 'string' ? form : new URLSearchParams(form).toString();
  return fetch(url, { method: 'POST', redirect: 'manual', headers: { 'content-type': FORM, ...headers }, body });
}

/**
 * Sends a request to the emulator's own API.
 * @param path below `/_emulator/`
 * @param body sent as JSON; a string is sent as it is
 */
export function requestEmulatorApi(
  emulator: Emulator,
  method: string,
  path: string,
  body?: unknown,
  type = 'application/json',
) {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const sent = body === undefined ? {} : { body: text, headers: { 'content-type': type } };
  return fetch(emulator.consoleUrl + path, { method, ...sent });
}

/** Sends bodies to the emulator's own API, and expects that each is rejected with a message like this. */
export async function expectRejections(
  emulator: Emulator,
  method: string,
  path: string,
  cases: readonly (readonly [body: unknown, message: RegExp])[],
): Promise<void> {
  for (const [body, message] of cases) {
    const response = await requestEmulatorApi(emulator, method, path, body);
    const error = { error: 'invalid_request', message: expect.stringMatching(message) };
    expect([response.status, await response.json()], JSON.stringify(body)).toEqual([400, error]);
  }
}

export function postConfig(emulator: Portal, redirectUrl?: string, id = emulator.clientId): Promise<Response> {
  const query = redirectUrl === undefined ? '' : `?redirect_url=${encodeURIComponent(redirectUrl)}`;
  return fetch(`${emulator.baseUrl}/external/oauth2helper/config/${id}${query}`, { method: 'POST' });
}

export async function requestConfig(emulator: Portal, redirectUrl?: string, id?: string): Promise<HelperConfig> {
  const response = await postConfig(emulator, redirectUrl, id);
  if (response.status !== 200) throw new Error(`config answered ${response.status}`);
  return (await response.json()) as HelperConfig;
}

export function stateOf(url: string): string {
  return new URL(url).searchParams.get('state') ?? '';
}

export function redirectLocation(response: Response): string {
  return response.headers.get('location') ?? '';
}

/** Runs the helper flow until polling returns the code. */
export async function obtainCode(emulator: Emulator, id = emulator.clientId): Promise<string> {
  const urls = await requestConfig(emulator, undefined, id);
  await emulator.login({ state: stateOf(urls.code_url), user: ALICE.name });
  const { code } = (await (await get(urls.code_url)).json()) as { code: string };
  return code;
}

export function requestTokens(
  emulator: Portal,
  form: Record<string, string>,
  client: Credentials = HEATER,
): Promise<Response> {
  const credentials = { client_id: client.id, client_secret: client.secret };
  return post(`${emulator.frontendUrl}/sso/token`, { ...credentials, ...form });
}

export function exchangeCode(emulator: Portal, code: string, more: Record<string, string> = {}): Promise<Response> {
  return requestTokens(emulator, { grant_type: 'authorization_code', code, ...more });
}

export function refreshTokens(
  emulator: Portal,
  refresh_token: string,
  client: Credentials = HEATER,
): Promise<Response> {
  return requestTokens(emulator, { grant_type: 'refresh_token', refresh_token }, client);
}

export async function parseTokens(response: Response): Promise<Tokens> {
  if (response.status !== 200) throw new Error(`the token endpoint answered ${response.status}`);
  return (await response.json()) as Tokens;
}

/** Runs the whole helper flow. */
export async function obtainTokens(emulator: Emulator, more: Record<string, string> = {}): Promise<Tokens> {
  return parseTokens(await exchangeCode(emulator, await obtainCode(emulator), more));
}

export function whoami(emulator: Portal, token: string): Promise<Response> {
  return get(`${emulator.baseUrl}/api/whoami`, { authorization: `Bearer ${token}` });
}

export async function errorOf(response: Response): Promise<[number, unknown]> {
  return [response.status, ((await response.json()) as { error: unknown }).error];
}
