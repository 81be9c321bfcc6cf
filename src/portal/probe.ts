import { lookup as lookUp } from 'node:dns/promises';
import type { LookupFunction, Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { buildConnector, Client } from 'undici';
import { rfc3339Day } from '../core/clock.ts';
import { messageOf } from '../core/failure.ts';
import type { PortalCheck } from '../core/portals/portal-status.ts';
import {
  clientOptions,
  commonHeaders,
  openTunnel,
  POOLED_REQUEST_LIMITS,
  type PortalRoute,
  sendRequest,
  trustOptions,
} from './http.ts';

/** An address to which the hub sends requests, with the configuration key that names it. */
export interface ProbedAddress {
  /** Such as `portals.home.base_url`. */
  readonly key: string;
  readonly url: string;
}

/** The result of connecting to one origin of a portal. */
export interface PortalProbe {
  readonly key: string;
  readonly origin: string;
  readonly outcome: ProbeOutcome;
}

type ProbeOutcome =
  | {
      readonly kind: 'answered';
      readonly status: number;
      /** How far this machine's clock is ahead of the portal's, in ms; null if the portal does not report its time. */
      readonly clockAheadMs: number | null;
      /** The origin that it redirects to, if that is on another host. */
      readonly redirectOrigin: string | null;
    }
  | { readonly kind: 'untrusted'; readonly why: string; readonly validFrom: number; readonly validTo: number }
  | { readonly kind: 'stuck'; readonly stage: ProbeStage; readonly why: string };

/** The stages of a connection, in this order. */
type ProbeStage = 'name' | 'connection' | 'handshake' | 'answer';

/** An address of a host. */
export interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

/** What a probe works with. */
interface ProbeContext {
  readonly route: PortalRoute;
  /** This machine's clock, in ms since 1970. */
  readonly wall: () => number;
  readonly signal: AbortSignal;
  /** Looks a name up. Rejects with an Error with a message for people. Default: in this process. */
  readonly lookup?: (host: string) => Promise<readonly ResolvedAddress[]>;
}

/**
 * Sends a HEAD request to every origin of these addresses, without a secret or a client_id, and only if its certificate
 * is trusted.
 */
export function probeOrigins(addresses: readonly ProbedAddress[], context: ProbeContext): Promise<PortalProbe[]> {
  const origins = new Map<string, string>();
  for (const { key, url } of addresses) {
    const { origin } = new URL(url);
    if (!origins.has(origin)) origins.set(origin, key);
  }
  return Promise.all(
    [...origins].map(async ([origin, key]) => ({ key, origin, outcome: await probe(new URL(origin), context) })),
  );
}

async function probe(url: URL, { route, wall, signal, lookup = lookUpAll }: ProbeContext): Promise<ProbeOutcome> {
  let stage: ProbeStage = 'name';
  let socket: Socket | null = null;
  const { promise: timeout, reject } = Promise.withResolvers<never>();
  const late = () => reject(new Error('no response in time'));
  signal.addEventListener('abort', late, { once: true });
  const inTime = <Result>(work: Promise<Result>) => Promise.race([work, timeout]);
  try {
    const isTls = url.protocol === 'https:';
    const proxy = isTls ? (route.proxy ?? null) : null;
    const addresses = await inTime(lookup(hostOf(proxy === null ? url : new URL(proxy))));
    stage = 'connection';
    const options = {
      timeout: POOLED_REQUEST_LIMITS.connectTimeout,
      allowH2: false,
      lookup: fixedLookup(addresses),
      ...trustOptions(route.ca),
    };
    const target = { hostname: url.hostname, host: url.host, port: String(portOf(url)) };
    const plain = await inTime(
      proxy === null
        ? connect({ ...target, protocol: 'http:' }, options)
        : openTunnel(proxy, `${url.hostname}:${portOf(url)}`, options, POOLED_REQUEST_LIMITS),
    );
    socket = plain;
    if (isTls) {
      stage = 'handshake';
      const withoutTrust = { ...options, rejectUnauthorized: false };
      socket = await inTime(connect({ ...target, protocol: 'https:', httpSocket: plain }, withoutTrust));
      if (socket instanceof TLSSocket && !socket.authorized) return untrustedOutcome(socket);
    }
    stage = 'answer';
    return await inTime(sendHead(url, socket, wall));
  } catch (error) {
    return { kind: 'stuck', stage, why: messageOf(error) };
  } finally {
    signal.removeEventListener('abort', late);
    socket?.on('error', () => undefined).destroy();
  }
}

function connect(target: buildConnector.Options, options: buildConnector.BuildOptions): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  buildConnector(options)(target, (error, socket) => (error === null ? resolve(socket) : reject(error)));
  return promise;
}

async function sendHead(url: URL, socket: Socket, wall: () => number): Promise<ProbeOutcome> {
  const client = new Client(url.origin, {
    ...clientOptions(POOLED_REQUEST_LIMITS),
    // Not at once: the client waits for a later turn.
    connect: (_options, callback) => queueMicrotask(() => callback(null, socket)),
  });
  try {
    const head = { method: 'HEAD', headers: commonHeaders() } as const;
    const { status, portalTime, redirect } = await sendRequest(client, POOLED_REQUEST_LIMITS, new URL('/', url), head);
    const target = redirect === undefined ? null : URL.parse(redirect);
    return {
      kind: 'answered',
      status,
      clockAheadMs: portalTime === null ? null : wall() - portalTime,
      redirectOrigin: target !== null && target.hostname !== url.hostname ? target.origin : null,
    };
  } finally {
    client.destroy().catch(() => undefined);
  }
}

function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '');
}

function portOf({ port, protocol }: URL): number {
  return Number(port || (protocol === 'https:' ? 443 : 80));
}

function untrustedOutcome(socket: TLSSocket): ProbeOutcome {
  const certificate = socket.getPeerX509Certificate();
  const error: unknown = socket.authorizationError;
  return {
    kind: 'untrusted',
    why: error instanceof Error ? messageOf(error) : String(error),
    validFrom: Date.parse(certificate?.validFrom ?? ''),
    validTo: Date.parse(certificate?.validTo ?? ''),
  };
}

function lookUpAll(host: string): Promise<ResolvedAddress[]> {
  return lookUp(host, { all: true });
}

/** A lookup function that returns these addresses, so that connecting does no lookup itself. */
function fixedLookup(addresses: readonly ResolvedAddress[]): LookupFunction {
  return (_host, { all }, callback) => {
    const [first] = addresses;
    if (all === true) callback(null, [...addresses]);
    else callback(null, first?.address ?? '', first?.family);
  };
}

/**
 * What a probe found, and what to do.
 * @param now this machine's clock, in ms since 1970
 */
export function describeProbe(
  { key, origin, outcome }: PortalProbe,
  now: number,
): Pick<PortalCheck, 'result' | 'detail'> {
  switch (outcome.kind) {
    case 'answered':
      return describeAnswer(outcome, key, origin);
    case 'untrusted':
      return {
        result: 'fail',
        detail: `the certificate of ${origin} is not trusted: ${untrustedCertificateText(outcome, key, now)}`,
      };
    case 'stuck':
      return {
        result: 'fail',
        detail: `${origin} is unreachable: ${unreachableText(outcome, key, hostOf(new URL(origin)))}`,
      };
  }
}

function describeAnswer(
  { status, redirectOrigin }: Extract<ProbeOutcome, { kind: 'answered' }>,
  key: string,
  origin: string,
): Pick<PortalCheck, 'result' | 'detail'> {
  if (status === 511 || redirectOrigin !== null) {
    const finding = redirectOrigin === null ? 'requires a login to the network' : `redirects to ${redirectOrigin}`;
    const detail = `${origin} ${finding} (HTTP ${status}): if this network has a login page (a captive portal), log in there, or correct ${key}`;
    return { result: status === 511 ? 'fail' : 'warn', detail };
  }
  if (status >= 500) {
    const detail = `${origin} responds with an error of its own (HTTP ${status}): wait; the hub keeps trying`;
    return { result: 'warn', detail };
  }
  const trust = origin.startsWith('https:') ? ', and its certificate is trusted' : '';
  return { result: 'ok', detail: `${origin} responds${trust}` };
}

function untrustedCertificateText(
  { why, validFrom, validTo }: { why: string; validFrom: number; validTo: number },
  key: string,
  now: number,
): string {
  const clock = `this machine's clock says ${formatDay(now)}`;
  const advice =
    'if the clock is wrong, correct it as the check "clock" says; if it is right, ask the portal\'s operator';
  if (now > validTo) return `it expired on ${formatDay(validTo)}, and ${clock}: ${advice}`;
  if (now < validFrom) return `it is valid from ${formatDay(validFrom)}, and ${clock}: ${advice}`;
  const caFile = key.replace(/\.\w+$/, '.ca_file');
  return `${why}: correct ${key}, check for a proxy or a login page of this network (captive portal), or set the portal's CA as ${caFile}`;
}

function unreachableText({ stage, why }: { stage: ProbeStage; why: string }, key: string, host: string): string {
  switch (stage) {
    case 'name':
      return `the name ${host} could not be looked up (${why}): check the internet connection, the DNS server (/etc/resolv.conf) and ${key}`;
    case 'connection':
      return `no connection (${why}): check the internet connection, any firewall and ${key}`;
    case 'handshake':
      return `it is connected, but TLS fails (${why}): check ${key}, and any proxy or firewall in between`;
    case 'answer':
      return `it is connected, but there is no HTTP response (${why}): check ${key}, and any proxy or firewall in between`;
  }
}

function formatDay(instant: number): string {
  return Number.isNaN(instant) ? 'an unknown day' : rfc3339Day(instant);
}
