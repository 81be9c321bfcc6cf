import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import { buildConnector, Client, type Dispatcher, Pool } from 'undici';
import type { CertificateDateError } from '../core/clock.ts';
import { messageOf } from '../core/failure.ts';
import { parseHttpDate, parseRetryAfter } from './retry-after.ts';

/** A whole answer of the portal. */
export interface PortalResponse {
  readonly status: number;
  readonly body: string;
  /** What `Retry-After` asks for, in ms; null where it is absent or makes no sense. */
  readonly retryAfter: number | null;
  /** The portal's clock by its `Date`, in ms since 1970; null where it is absent. */
  readonly portalTime: number | null;
}

/** What became of a request: whether anything was sent decides what a failure means. */
export type RequestOutcome =
  | { readonly kind: 'answer'; readonly response: PortalResponse }
  | ({ readonly kind: 'not_sent' } & TransportFailure)
  | ({ readonly kind: 'no_answer' } & TransportFailure);

/** Characters of what went wrong: a certificate's names in it may be many. */
const MAX_DETAIL_LENGTH = 300;

/** Why there is no whole answer. */
interface TransportFailure {
  readonly detail: string;
  readonly certificate?: CertificateDateError;
}

/** Milliseconds and bytes that a request to the portal may take. */
export interface RequestLimits {
  readonly connectTimeout: number;
  readonly headersTimeout: number;
  /** Between two pieces of the body. */
  readonly bodyTimeout: number;
  /** Of all together, once connected; a body that drips in forever ends here. */
  readonly totalTimeout: number;
  readonly maxResponseBytes: number;
}

/** A refresh is sent once and waited for long: a lost answer costs more than a minute. */
export const TOKEN_REQUEST_LIMITS: RequestLimits = {
  connectTimeout: 10_000,
  headersTimeout: 60_000,
  bodyTimeout: 30_000,
  totalTimeout: 120_000,
  maxResponseBytes: 256 * 1024,
};

/** Polls and config requests may be given up sooner: they are asked again. */
const POOLED_REQUEST_LIMITS: RequestLimits = {
  ...TOKEN_REQUEST_LIMITS,
  headersTimeout: 15_000,
  bodyTimeout: 15_000,
  totalTimeout: 30_000,
};

/** What a connection that has done its work is closed with: undici makes an error for each otherwise, with its stack. */
const CLIENT_CLOSED = new Error('the exchange has ended');

/**
 * Sends a form on a connection of its own. A reused connection that breaks would leave open whether the portal acted
 * on what was sent; on a fresh one, whatever fails before the connection stands was certainly not sent.
 * @param ca further CAs to trust, PEM; the usual ones are trusted too
 */
export async function postForm(
  url: URL,
  form: Record<string, string>,
  ca: string[],
  limits: RequestLimits,
): Promise<RequestOutcome> {
  let connected = false;
  const connect = buildConnector({ timeout: limits.connectTimeout, allowH2: false, ...trustOptions(ca) });
  const client = new Client(url.origin, {
    connect: (options, callback) =>
      connect(options, (...result) => {
        connected = result[0] === null;
        callback(...result);
      }),
    ...clientOptions(limits),
  });
  try {
    const answer = await sendRequest(client, limits, {
      method: 'POST',
      path: url.pathname + url.search,
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
      body: new URLSearchParams(form).toString(),
    });
    return { kind: 'answer', response: answer };
  } catch (error) {
    return { kind: connected ? 'no_answer' : 'not_sent', ...transportFailure(error) };
  } finally {
    client.destroy(CLIENT_CLOSED).catch(() => undefined);
  }
}

/** The connections for requests that can be repeated: config, polls, and asking for the time. */
export class PooledHttpClient implements AsyncDisposable {
  readonly #pools = new Map<string, Pool>();
  readonly #ca: string[];

  constructor(ca: string[]) {
    this.#ca = ca;
  }

  async send(
    method: 'GET' | 'HEAD' | 'POST',
    url: URL,
    signal?: AbortSignal,
  ): Promise<Exclude<RequestOutcome, { kind: 'not_sent' }>> {
    const pool = this.#pools.get(url.origin) ?? this.#openPool(url.origin);
    const headers = {
      accept: 'application/json',
      ...(method === 'POST' ? { 'content-type': 'application/json' } : {}),
    };
    try {
      const options = { method, path: url.pathname + url.search, headers, ...(signal && { signal }) };
      const answer = await sendRequest(pool, POOLED_REQUEST_LIMITS, options);
      return { kind: 'answer', response: answer };
    } catch (error) {
      return { kind: 'no_answer', ...transportFailure(error) };
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#pools.values()].map((pool) => pool.destroy()));
  }

  #openPool(origin: string): Pool {
    const connect = { timeout: POOLED_REQUEST_LIMITS.connectTimeout, ...trustOptions(this.#ca) };
    const pool = new Pool(origin, { connections: 8, connect, ...clientOptions(POOLED_REQUEST_LIMITS) });
    this.#pools.set(origin, pool);
    return pool;
  }
}

/** The errors of a certificate whose dates are at fault, by their names in OpenSSL. */
const CERTIFICATE_DATE_ERRORS: Readonly<Record<string, CertificateDateError>> = {
  CERT_NOT_YET_VALID: 'not_yet_valid',
  CERT_HAS_EXPIRED: 'expired',
};

function transportFailure(error: unknown): TransportFailure {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const certificateError = CERTIFICATE_DATE_ERRORS[code];
  return { detail: messageOf(error).slice(0, MAX_DETAIL_LENGTH), ...(certificateError && { certificateError }) };
}

async function sendRequest(
  dispatcher: Dispatcher,
  limits: RequestLimits,
  { signal, ...options }: Dispatcher.RequestOptions & { signal?: AbortSignal },
): Promise<PortalResponse> {
  const deadline = AbortSignal.timeout(limits.totalTimeout);
  const either = signal === undefined ? deadline : AbortSignal.any([deadline, signal]);
  const { statusCode, headers, body } = await dispatcher.request({ ...options, signal: either });
  const portalTime = portalTimeFrom(headers);
  return {
    status: statusCode,
    body: await body.text(),
    retryAfter: parseRetryAfter(String(headers['retry-after'] ?? ''), portalTime),
    portalTime,
  };
}

/** What comes from a cache was dated when it was put there (RFC 9110, 6.6.1; RFC 9111, 5.1). */
function portalTimeFrom({ date, age }: Dispatcher.ResponseData['headers']): number | null {
  const time = parseHttpDate(String(date ?? ''));
  return time === null ? null : time + (/^\d{1,9}$/.test(String(age)) ? Number(age) * 1000 : 0);
}

/** HTTP/1.1: of several requests at a time on a connection there are none. */
function clientOptions({
  headersTimeout: headers,
  bodyTimeout: body,
  maxResponseBytes: bytes,
}: RequestLimits): Client.Options {
  return { headersTimeout: headers, bodyTimeout: body, maxResponseSize: bytes, pipelining: 1, allowH2: false };
}

/** What was made of a portal's CAs: parsing them anew for each of many connections takes time and scatters memory. */
const secureContexts = new WeakMap<string[], SecureContext>();

/** Node's own CAs fall away as soon as any is named. */
function trustOptions(ca: string[]): { secureContext?: SecureContext } {
  if (ca.length === 0) return {};
  let secureContext = secureContexts.get(ca);
  if (secureContext === undefined) {
    secureContext = createSecureContext({ ca: [...getCACertificates('default'), ...ca] });
    secureContexts.set(ca, secureContext);
  }
  return { secureContext };
}
