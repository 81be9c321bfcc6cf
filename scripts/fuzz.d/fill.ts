import { exchange } from './exchange.ts';
import { begin, changeSettings, dialOf, reset, type Target } from './flows.ts';
import { FORM, JSON_TYPE } from './plan.ts';
import type { FuzzRequest } from './requests.ts';

/** States, codes and pairs of tokens that an emulator remembers; what else it remembers is less. */
const REMEMBERED = 200_000;
/** Requests on one connection, and connections at a time. */
const PIPELINED = 100;
const LANES = 4;

/**
 * Fills what the emulator remembers of all that it issued, so that from here on its memory has no more reason to grow.
 * States, codes and tokens in equal parts: about what the requests of the fuzz get.
 */
export async function fill(target: Target): Promise<void> {
  const { facts } = await begin(target);
  await changeSettings(target, { refresh_grace: 1e9 });
  const client = `client_id=${facts.clientId}&client_secret=${facts.clientSecret}`;
  const refresh = `grant_type=refresh_token&refresh_token=${facts.refreshTokens[1]}&${client}`;
  const login = JSON.stringify({ state: facts.states[1], user: facts.user });
  const kinds = [
    request('base', `/external/oauth2helper/config/${facts.clientId}`, JSON_TYPE, ''),
    request('base', '/_emulator/login', JSON_TYPE, login),
    request('frontend', '/sso/token', FORM, refresh),
  ];
  let left = REMEMBERED / kinds.length;
  const lane = async () => {
    while (left > 0) {
      left -= PIPELINED;
      for (const one of kinds) {
        const { got, how } = await exchange(
          dialOf(target, one),
          Array.from({ length: PIPELINED }, () => one),
        );
        const good = got.filter(({ status }) => status === 200).length;
        if (good < PIPELINED) throw new Error(`${one.path} gave ${good} good answers of ${PIPELINED}: ${how}`);
      }
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  await reset(target);
}

function request(origin: 'base' | 'frontend', path: string, type: string, body: string): FuzzRequest {
  const bytes = `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${type}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  return { origin, method: 'POST', path, bytes, sound: true, pipelined: true, pieces: 1, given: 'up' };
}
