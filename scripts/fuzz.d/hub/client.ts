// What good appliances ask of the hub between the requests of the fuzz.
import { request } from 'undici';
import type { FuzzedHome } from './home.ts';

/** An answer of the hub, its JSON already read. */
export interface Told {
  readonly status: number;
  readonly retryAfter: number | null;
  readonly location: string | null;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Milliseconds that any answer may take: the hub promises ten seconds, and the machine is busy. */
const PATIENCE = 20_000;

/** Sends a form to a path of the hub's HTTPS port. */
export function postForm({ agent, ports }: FuzzedHome, path: string, form: Record<string, string>): Promise<Told> {
  return ask(`https://127.0.0.1:${ports.httpsPort}${path}`, agent, {
    type: 'application/x-www-form-urlencoded',
    body: new URLSearchParams(form).toString(),
  });
}

/** Sends JSON, with a bearer token or without one. */
export function postJson(
  { agent, ports }: FuzzedHome,
  path: string,
  json: unknown,
  bearer: string | null,
): Promise<Told> {
  const headers: Record<string, string> = bearer === null ? {} : { authorization: `Bearer ${bearer}` };
  const body = JSON.stringify(json);
  return ask(`https://127.0.0.1:${ports.httpsPort}${path}`, agent, { type: 'application/json', body, headers });
}

async function ask(
  url: string,
  dispatcher: FuzzedHome['agent'],
  { type, body, headers = {} }: { type: string; body: string; headers?: Record<string, string> },
): Promise<Told> {
  const answer = await request(url, {
    method: 'POST',
    dispatcher,
    headers: { 'content-type': type, ...headers },
    body,
    headersTimeout: PATIENCE,
    bodyTimeout: PATIENCE,
  });
  const text = await answer.body.text();
  const retryAfter = answer.headers['retry-after'];
  const location = answer.headers['location'];
  return {
    status: answer.statusCode,
    retryAfter: typeof retryAfter === 'string' ? Number(retryAfter) : null,
    location: typeof location === 'string' ? location : null,
    body: text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : {},
  };
}

/** Whose token this is, as the cloud says. */
export async function userOf({ emulator }: FuzzedHome, token: unknown): Promise<string> {
  const answer = await request(`${emulator.baseUrl}/api/whoami`, { headers: { authorization: `Bearer ${token}` } });
  const { user } = (await answer.body.json()) as { user?: string };
  return user ?? `nobody (${answer.statusCode})`;
}
