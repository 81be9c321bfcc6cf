// The requests of good appliances to the hub.
import { request } from 'undici';
import type { FuzzedHub } from './fuzzed-hub.ts';

/** A response of the hub with parsed JSON. */
export interface ClientResponse {
  readonly status: number;
  readonly retryAfter: number | null;
  readonly location: string | null;
  readonly body: Readonly<Record<string, unknown>>;
}

/** The timeout for a response, in ms: the hub's maximum is ten seconds, and the machine is busy. */
const RESPONSE_TIMEOUT_MS = 20_000;

/** Sends a form to a path of the hub's HTTPS port. */
export function postForm(home: FuzzedHub, path: string, form: Record<string, string>): Promise<ClientResponse> {
  const type = 'application/x-www-form-urlencoded';
  return post(home, path, { 'content-type': type }, new URLSearchParams(form).toString());
}

/** Registers an appliance, with an initial access token or without one. */
export function register(home: FuzzedHub, name: string, invite: string | null): Promise<ClientResponse> {
  const authorization = invite === null ? {} : { authorization: `Bearer ${invite}` };
  const headers = { 'content-type': 'application/json', ...authorization };
  return post(home, '/oauth/register', headers, JSON.stringify({ client_name: name }));
}

async function post(
  { agent, ports }: FuzzedHub,
  path: string,
  headers: Record<string, string>,
  body: string,
): Promise<ClientResponse> {
  const url = `https://127.0.0.1:${ports.httpsPort}${path}`;
  const timeouts = { headersTimeout: RESPONSE_TIMEOUT_MS, bodyTimeout: RESPONSE_TIMEOUT_MS };
  const answer = await request(url, { method: 'POST', dispatcher: agent, headers, body, ...timeouts });
  const text = await answer.body.text();
  const { location, 'retry-after': retryAfter } = answer.headers;
  return {
    status: answer.statusCode,
    retryAfter: typeof retryAfter === 'string' ? Number(retryAfter) : null,
    location: typeof location === 'string' ? location : null,
    body: text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : {},
  };
}

/** The user of a token, according to the portal. */
export async function tokenUser({ emulator }: FuzzedHub, token: unknown): Promise<string> {
  const answer = await request(`${emulator.baseUrl}/api/whoami`, { headers: { authorization: `Bearer ${token}` } });
  const { user } = (await answer.body.json()) as { user?: string };
  return user ?? `nobody (${answer.statusCode})`;
}
