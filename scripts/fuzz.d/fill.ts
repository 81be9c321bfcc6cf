import { exchange } from './exchange.ts';
import { begin, changeSettings, reset, type Target } from './flows.ts';
import type { FuzzRequest } from './requests.ts';

/** Secrets that an emulator remembers; what else it remembers is less. */
const REMEMBERED = 200_000;
/** Requests on one connection, and connections at a time. */
const PIPELINED = 100;
const LANES = 4;

/**
 * Fills what the emulator remembers of all that it issued, so that from here on its memory has no more reason to grow.
 * Each round gives one state and four tokens, about as the requests of the fuzz do.
 */
export async function fill(target: Target): Promise<void> {
  const { facts } = await begin(target);
  await changeSettings(target, { refresh_grace: 1e9 });
  const body = `grant_type=refresh_token&refresh_token=${facts.refreshTokens[1]}&client_id=${facts.clientId}&client_secret=${facts.clientSecret}`;
  const token = request('frontend', '/sso/token', body);
  const config = request('base', `/external/oauth2helper/config/${facts.clientId}`, '');
  let rounds = REMEMBERED / 5;
  const lane = async () => {
    while (rounds > 0) {
      rounds -= PIPELINED;
      await exchange(
        target.frontendUrl,
        Array.from({ length: 2 * PIPELINED }, () => token),
      );
      await exchange(
        target.baseUrl,
        Array.from({ length: PIPELINED }, () => config),
      );
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  await reset(target);
}

function request(origin: 'base' | 'frontend', path: string, body: string): FuzzRequest {
  const type = body === '' ? '' : 'Content-Type: application/x-www-form-urlencoded\r\n';
  const bytes = `POST ${path} HTTP/1.1\r\nHost: a\r\n${type}Content-Length: ${body.length}\r\n\r\n${body}`;
  return { origin, method: 'POST', path, bytes, sound: true, pipelined: true, pieces: 1, given: 'up' };
}
