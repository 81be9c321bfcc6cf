import { Socket } from 'node:net';
import { finished } from 'node:stream/promises';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';
import { buildConnector, Client, type Dispatcher, Pool } from 'undici';
import { type CertificateDateError, MAX_PLAUSIBLE_TIME, MIN_PLAUSIBLE_TIME } from '../core/clock.ts';
import { messageOf } from '../core/failure.ts';
import { monotonicNow } from '../system/clock.ts';
import { FORM_MEDIA_TYPE } from '../system/http/form.ts';
import { userAgent } from '../system/version.ts';
import { decodeContent, parseHttpDate, parseRetryAfter } from './content-encoding.ts';

/** A complete response of the portal. */
export interface PortalResponse {
  readonly status: number;
  readonly body: string;
  /** The delay of `Retry-After`, in ms; null if the header is absent or invalid. */
  readonly retryAfter: number | null;
  /** The portal's time from its `Date` header, in ms since 1970; null if the header is absent or implausible. */
  readonly portalTime: number | null;
  /** How long its headers took after the connection was made, in ms; left out if that is unknown. */
  readonly waited?: number;
  /** Where a redirect leads, for people: an address without credentials, query and fragment; left out if it is none. */
  readonly redirect?: string;
}

/** The outcome of a request. After `not_sent` a retry is safe; after `no_answer` the portal may have acted. */
export type RequestOutcome =
  | { readonly kind: 'answer'; readonly response: PortalResponse }
  | ({ readonly kind: 'not_sent' } & TransportFailure)
  | ({ readonly kind: 'no_answer' } & TransportFailure);

/** Of a response. Browsers accept more than Node does by default, so a portal may send more. */
const MAX_HEADER_BYTES = 64 * 1024;
/** Characters of an error message, which may list all names of a certificate. */
const MAX_DETAIL_LENGTH = 300;

/** Why there is no complete response. */
interface TransportFailure {
  readonly detail: string;
  readonly certificateError?: CertificateDateError;
}

/** Limits of a request to the portal, in milliseconds and bytes. */
export interface RequestLimits {
  readonly connectTimeout: number;
  readonly headersTimeout: number;
  /** Between two chunks of the body. */
  readonly bodyTimeout: number;
  /** Of the whole exchange after connecting, so that a slow body cannot last forever. */
  readonly totalTimeout: number;
  readonly maxResponseBytes: number;
  /** Asked immediately before the request is written: if it returns false, nothing is sent. Left out: it may be. */
  readonly maySend?: () => boolean;
}

/** Long timeouts, because a refresh is sent only once, and a lost answer costs more than a minute of waiting. */
export const TOKEN_REQUEST_LIMITS: RequestLimits = {
  connectTimeout: 10_000,
  headersTimeout: 60_000,
  bodyTimeout: 30_000,
  totalTimeout: 120_000,
  maxResponseBytes: 256 * 1024,
};

/**
 * At most 5 s altogether, because a person waits until it ends. The HTTP client may notice up to one second late that a
 * connection was not established in time.
 */
export const REVOCATION_LIMITS: RequestLimits = { ...TOKEN_REQUEST_LIMITS, connectTimeout: 4000, totalTimeout: 5000 };

/** Shorter timeouts, because polls and config requests are repeated. */
export const POOLED_REQUEST_LIMITS: RequestLimits = {
  ...TOKEN_REQUEST_LIMITS,
  headersTimeout: 15_000,
  bodyTimeout: 15_000,
  totalTimeout: 30_000,
};

/** The reason for closing a used connection. Without one, undici creates an error with a stack for each. */
const CLIENT_CLOSED = new Error('the exchange has ended');

/** How the hub reaches a portal. */
export interface PortalRoute {
  /** Additional CAs to trust, PEM. Node's default CAs are trusted too. */
  readonly ca: string[];
  /** The origin of an HTTP proxy (RFC 9110, 9.3.6) for https; null or left out if the hub connects directly. */
  readonly proxy?: string | null;
}

/** A form to send, with the headers besides its own. */
interface FormRequest {
  readonly url: URL;
  readonly form: URLSearchParams;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * Sends a form on a new connection. If a reused connection breaks, nobody can know whether the portal got the request;
 * on a new one, a failure before the connection is established proves that nothing was sent.
 */
export async function postForm(
  { url, form, headers = {} }: FormRequest,
  route: PortalRoute,
  limits: RequestLimits,
): Promise<RequestOutcome> {
  let connectedAt: number | null = null;
  const connect = createConnector(route, limits);
  const client = new Client(url.origin, {
    connect: (options, callback) =>
      connect(options, (...result) => {
        if (result[0] === null && limits.maySend?.() === false) {
          result[1].destroy();
          return callback(new Error('the time in which it may be sent was over'), null);
        }
        connectedAt = result[0] === null ? monotonicNow() : null;
        callback(...result);
      }),
    ...clientOptions(limits),
  });
  try {
    const options = {
      method: 'POST' as const,
      headers: { ...commonHeaders(), 'content-type': FORM_MEDIA_TYPE, ...headers },
      body: form.toString(),
    };
    return { kind: 'answer', response: await sendRequest(client, limits, url, options, () => connectedAt) };
  } catch (error) {
    return { kind: connectedAt === null ? 'not_sent' : 'no_answer', ...transportFailure(error, limits) };
  } finally {
    client.destroy(CLIENT_CLOSED).catch(() => undefined);
  }
}

/** Pooled connections for requests that may be repeated: config, polls and the portal's time. */
export class PooledHttpClient implements AsyncDisposable {
  readonly #pools = new Map<string, Pool>();
  readonly #route: PortalRoute;

  constructor(route: PortalRoute) {
    this.#route = route;
  }

  async send(
    method: 'GET' | 'HEAD' | 'POST',
    url: URL,
    signal?: AbortSignal,
  ): Promise<Exclude<RequestOutcome, { kind: 'not_sent' }>> {
    const pool = this.#pools.get(url.origin) ?? this.#openPool(url.origin);
    const headers = { ...commonHeaders(), ...(method === 'POST' ? { 'content-type': 'application/json' } : {}) };
    try {
      const options = { method, headers, ...(signal && { signal }) };
      const response = await sendRequest(pool, POOLED_REQUEST_LIMITS, url, options);
      return { kind: 'answer', response };
    } catch (error) {
      return { kind: 'no_answer', ...transportFailure(error, POOLED_REQUEST_LIMITS) };
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#pools.values()].map((pool) => pool.destroy()));
  }

  #openPool(origin: string): Pool {
    const connect = createConnector(this.#route, POOLED_REQUEST_LIMITS);
    const pool = new Pool(origin, { connections: 8, connect, ...clientOptions(POOLED_REQUEST_LIMITS) });
    this.#pools.set(origin, pool);
    return pool;
  }
}

/** OpenSSL's error codes for a certificate that is outside its validity period. */
const CERTIFICATE_DATE_ERRORS: Readonly<Record<string, CertificateDateError>> = {
  CERT_NOT_YET_VALID: 'not_yet_valid',
  CERT_HAS_EXPIRED: 'expired',
};

function transportFailure(error: unknown, limits: RequestLimits): TransportFailure {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const certificateError = CERTIFICATE_DATE_ERRORS[code];
  const detail = describeFailure(error, code, limits) ?? messageOf(error);
  return { detail: detail.slice(0, MAX_DETAIL_LENGTH), ...(certificateError && { certificateError }) };
}

/** In plain words what undici and Node report by a code; null for what their messages say well, such as a refusal. */
function describeFailure(error: unknown, code: string, limits: RequestLimits): string | null {
  const seconds = (milliseconds: number) => `${milliseconds / 1000} s`;
  if (error instanceof Error && error.name === 'TimeoutError')
    return `the whole answer did not come within ${seconds(limits.totalTimeout)}`;
  switch (code) {
    case 'UND_ERR_HEADERS_TIMEOUT':
      return `the portal took the request and did not answer within ${seconds(limits.headersTimeout)}`;
    case 'UND_ERR_BODY_TIMEOUT':
      return `the answer stopped in its middle for ${seconds(limits.bodyTimeout)}`;
    case 'UND_ERR_SOCKET':
    case 'ECONNRESET':
      return 'the portal, or something before it, cut the connection';
    case 'UND_ERR_HEADERS_OVERFLOW':
    case 'HPE_HEADER_OVERFLOW':
      return `the headers of the answer are larger than ${MAX_HEADER_BYTES / 1024} KiB`;
    case 'UND_ERR_RES_EXCEEDED_MAX_SIZE':
    case 'ERR_BUFFER_TOO_LARGE':
      return `the answer is larger than ${Math.round(limits.maxResponseBytes / 1000)} kB`;
    default:
      return null;
  }
}

/** The headers of every request to a portal. */
export function commonHeaders(): Record<string, string> {
  return { 'user-agent': userAgent(), accept: 'application/json', 'accept-encoding': 'identity' };
}

/** Characters of the address of a redirect that are shown. */
const MAX_TARGET_LENGTH = 200;

function redirectTarget(location: string | string[] | undefined, from: URL): string | null {
  const target = URL.parse(String(location ?? ''), from.href);
  if (location === undefined || target === null) return null;
  return `${target.origin === 'null' ? target.protocol : target.origin}${target.pathname}`.slice(0, MAX_TARGET_LENGTH);
}

/** Sends one request, and reads its response. Rejects if there is no complete one. */
export async function sendRequest(
  dispatcher: Dispatcher,
  limits: RequestLimits,
  url: URL,
  { signal, ...options }: Omit<Dispatcher.RequestOptions, 'path'> & { signal?: AbortSignal },
  connectedAt: () => number | null = () => null,
): Promise<PortalResponse> {
  const deadline = AbortSignal.timeout(limits.totalTimeout);
  const anySignal = signal === undefined ? deadline : AbortSignal.any([deadline, signal]);
  const { statusCode, headers, body } = await dispatcher.request({
    ...options,
    path: url.pathname + url.search,
    signal: anySignal,
  });
  const since = connectedAt();
  const waited = since === null ? null : monotonicNow() - since;
  const encoding = String(headers['content-encoding'] ?? '');
  const encoded = await readBody(body, statusCode >= 200 && statusCode < 300 && encoding === '');
  const decoded = decodeContent(encoded, encoding, limits.maxResponseBytes);
  const portalTime = portalTimeFrom(headers);
  const redirect = statusCode >= 300 && statusCode < 400 ? redirectTarget(headers['location'], url) : null;
  return {
    ...(redirect !== null && { redirect }),
    status: statusCode,
    body: decoded.toString(),
    retryAfter: parseRetryAfter(String(headers['retry-after'] ?? ''), portalTime),
    portalTime,
    ...(waited !== null && { waited }),
  };
}

/**
 * Reads a body. One that breaks off is used all the same if a whole JSON object came before that: a portal issues its
 * tokens only once.
 * @param mayBreakOff whether that is permitted
 */
async function readBody(body: Dispatcher.ResponseData['body'], mayBreakOff: boolean): Promise<Buffer> {
  const chunks: Buffer[] = [];
  body.on('data', (chunk: Buffer) => chunks.push(chunk));
  try {
    await finished(body);
  } catch (error) {
    const isTooLarge = error instanceof Error && 'code' in error && error.code === 'UND_ERR_RES_EXCEEDED_MAX_SIZE';
    if (!mayBreakOff || isTooLarge || !isJsonObject(Buffer.concat(chunks).toString())) throw error;
  }
  return Buffer.concat(chunks);
}

function isJsonObject(text: string): boolean {
  try {
    return /^\s*\{/.test(text) && typeof JSON.parse(text) === 'object';
  } catch {
    return false;
  }
}

/** A cached response keeps the `Date` of its origin; `Age` is the time since then (RFC 9110, 6.6.1; RFC 9111, 5.1). */
function portalTimeFrom({ date, age }: Dispatcher.ResponseData['headers']): number | null {
  const sent = parseHttpDate(String(date ?? ''));
  if (sent === null) return null;
  const time = sent + (/^\d{1,9}$/.test(String(age)) ? Number(age) * 1000 : 0);
  return time >= MIN_PLAUSIBLE_TIME && time < MAX_PLAUSIBLE_TIME ? time : null;
}

/** HTTP/1.1 with one request at a time on each connection. */
export function clientOptions({
  headersTimeout: headers,
  bodyTimeout: body,
  maxResponseBytes: bytes,
}: RequestLimits): Client.Options {
  return {
    headersTimeout: headers,
    bodyTimeout: body,
    maxResponseSize: bytes,
    maxHeaderSize: MAX_HEADER_BYTES,
    pipelining: 1,
    allowH2: false,
  };
}

/** Connects directly, or through a tunnel of the proxy. http is only allowed to this machine, and needs no proxy. */
function createConnector({ ca, proxy = null }: PortalRoute, limits: RequestLimits): buildConnector.connector {
  const options = { timeout: limits.connectTimeout, allowH2: false, ...trustOptions(ca) };
  const connect = buildConnector(options);
  if (proxy === null) return connect;
  return (target, callback) => {
    if (target.protocol !== 'https:') return connect(target, callback);
    openTunnel(proxy, `${target.hostname}:${target.port || 443}`, options, limits).then(
      (httpSocket) => connect({ ...target, httpSocket }, callback),
      // Without a code: undici would try again for ever after some.
      (error: unknown) => callback(new Error(messageOf(error)), null),
    );
  };
}

/** Asks a proxy for a connection (RFC 9110, 9.3.6). @param target host and port */
export async function openTunnel(
  proxy: string,
  target: string,
  connect: buildConnector.BuildOptions,
  limits: RequestLimits,
): Promise<Socket> {
  const client = new Client(proxy, { ...clientOptions(limits), connect });
  try {
    const headers = { host: target, 'user-agent': userAgent() };
    const signal = AbortSignal.timeout(limits.connectTimeout);
    const { statusCode, socket } = await client.connect({ path: target, headers, signal });
    if (statusCode >= 200 && statusCode < 300 && socket instanceof Socket) return socket;
    socket.on('error', () => undefined).destroy();
    throw new Error(`it answers HTTP ${statusCode}`);
  } catch (error) {
    const isLate = error instanceof Error && error.name === 'TimeoutError';
    const detail = isLate ? `it did not answer within ${limits.connectTimeout / 1000} s` : messageOf(error);
    throw new Error(`the proxy ${proxy} gives no connection to ${target}: ${detail}`);
  } finally {
    client.destroy().catch(() => undefined);
  }
}

/** Parsed CAs of each portal. Parsing them again for every connection costs time and fragments memory. */
const secureContexts = new WeakMap<string[], SecureContext>();

/** Includes the default CAs, because Node drops them as soon as `ca` is given. */
export function trustOptions(ca: string[]): { secureContext?: SecureContext } {
  if (ca.length === 0) return {};
  let secureContext = secureContexts.get(ca);
  if (secureContext === undefined) {
    secureContext = createSecureContext({ ca: [...getCACertificates('default'), ...ca] });
    secureContexts.set(ca, secureContext);
  }
  return { secureContext };
}
