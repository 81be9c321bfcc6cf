import { Agent, request } from 'undici';
import type { Clock } from '../core/clock.ts';
import type { Secret } from '../core/secret.ts';
import { userAgent } from '../system/version.ts';
import type { DeliveryResult, Hook } from './outbox.ts';
import { parseSigningKey, signatureHeaders } from './webhook-signature.ts';

/** Timeouts of the connection and of the whole request, in ms; the largest response, in bytes. */
const CONNECT_TIMEOUT = 5000;
const DEFAULT_TIMEOUT = 10_000;
const MAX_RESPONSE_BYTES = 65_536;

/**
 * Posts the message. Redirects are not followed, and only the status of the response counts.
 * @param url https, or http on loopback; all of it except the origin may be secret
 * @param secret signs each message, so that the receiver knows the sender; null for no signature
 * @param clock gives the time that is signed
 * @param timeout of the whole request, in ms
 */
export function webhookHook(url: Secret, secret: Secret | null, clock: Clock, timeout = DEFAULT_TIMEOUT): Hook {
  const { origin } = new URL(url.reveal());
  const key = secret === null ? null : parseSigningKey(secret.reveal());
  return {
    kind: 'webhook',
    target: origin,
    async deliver(message, signal, id) {
      const agent = new Agent({
        connect: { timeout: CONNECT_TIMEOUT },
        maxResponseSize: MAX_RESPONSE_BYTES,
        allowH2: false,
      });
      const deadline = AbortSignal.timeout(timeout);
      try {
        const { statusCode, body } = await request(withoutCredentials(url), {
          method: 'POST',
          headers: {
            'user-agent': userAgent(),
            'content-type': 'application/json',
            ...authorizationHeader(url),
            ...(key === null ? {} : signatureHeaders(key, id, clock.now().wall, message)),
          },
          body: message,
          dispatcher: agent,
          signal: AbortSignal.any([signal, deadline]),
        });
        body.on('error', () => undefined).destroy();
        return resultOfStatus(statusCode);
      } catch (error) {
        const isLate = deadline.aborted;
        const detail = isLate ? `did not respond within ${timeout / 1000} s` : `is unreachable: ${errorCode(error)}`;
        return { ok: false, detail, retryable: true };
      } finally {
        agent.destroy().catch(() => undefined);
      }
    },
  };
}

function resultOfStatus(status: number): DeliveryResult {
  if (status >= 200 && status <= 299) return { ok: true, detail: `responded with HTTP ${status}`, retryable: false };
  const retryable = status >= 500 || status === 429 || status === 408;
  const isRedirect = status >= 300 && status <= 399;
  const detail = `responded with HTTP ${status}${isRedirect ? ', and redirects are not followed' : ''}`;
  return { ok: false, detail, retryable };
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

/** Only the code of an error, because its message may contain the URL. */
function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'the request failed';
}
