import { Agent, request } from 'undici';
import type { Secret } from '../core/secret.ts';
import type { DeliveryResult, Hook } from './outbox.ts';

/** How long a connection, and all together, may take, in ms; how much is read of the answer, in bytes. */
const CONNECT_TIMEOUT = 5000;
const DEFAULT_TIMEOUT = 10_000;
const MAX_RESPONSE_BYTES = 65_536;

/**
 * Posts the message. Redirects are not followed, and nothing of the answer but its status counts.
 * @param url https, or http on loopback; what is in it may be secret, all but its origin
 * @param total how long it may take, in ms
 */
export function webhookHook(url: Secret, total = DEFAULT_TIMEOUT): Hook {
  const { origin } = new URL(url.reveal());
  return {
    kind: 'webhook',
    target: origin,
    async deliver(message, signal) {
      const agent = new Agent({
        connect: { timeout: CONNECT_TIMEOUT },
        maxResponseSize: MAX_RESPONSE_BYTES,
        allowH2: false,
      });
      const deadline = AbortSignal.timeout(total);
      try {
        const { statusCode, body } = await request(withoutCredentials(url), {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...authorizationHeader(url) },
          body: message,
          dispatcher: agent,
          signal: AbortSignal.any([signal, deadline]),
        });
        body.on('error', () => undefined).destroy();
        return resultOfStatus(statusCode);
      } catch (error) {
        const isLate = deadline.aborted;
        const detail = isLate ? `did not answer within ${total / 1000} s` : `was not reached: ${errorCode(error)}`;
        return { ok: false, detail, retryable: true };
      } finally {
        agent.destroy().catch(() => undefined);
      }
    },
  };
}

function resultOfStatus(status: number): DeliveryResult {
  if (status >= 200 && status <= 299) return { ok: true, detail: `answered ${status}`, retryable: false };
  const retryable = status >= 500 || status === 429 || status === 408;
  const isRedirect = status >= 300 && status <= 399;
  return { ok: false, detail: `answered ${status}${isRedirect ? ', and redirects are not followed' : ''}`, retryable };
}

function withoutCredentials(url: Secret): URL {
  return Object.assign(new URL(url.reveal()), { username: '', password: '' });
}

function authorizationHeader(url: Secret): { readonly authorization?: string } {
  const { username, password } = new URL(url.reveal());
  if (username === '' && password === '') return {};
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { authorization: `Basic ${Buffer.from(pair).toString('base64')}` };
}

/** Of an error no more than its code: what it says may have the address in it. */
function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'the request failed';
}
