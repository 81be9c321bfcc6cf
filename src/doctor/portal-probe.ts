import { type IncomingMessage, request } from 'node:http';
import { connect, isIP, type LookupFunction, type Socket } from 'node:net';
import { connect as connectTls, getCACertificates, type TLSSocket } from 'node:tls';
import type { PortalConfiguration } from '../configuration/portals.ts';
import { messageOf } from '../core/failure.ts';
import { userAgent } from '../system/version.ts';
import { execProgram } from './systemd-unit.ts';

/** The result of connecting to one origin of a portal. */
export interface PortalProbe {
  /** The key of the origin in the configuration, such as `portals.home.base_url`. */
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

/**
 * Sends a HEAD request to every origin of these portals, without a secret or a client_id, and only if its certificate
 * is trusted.
 * @param wall this machine's clock, in ms since 1970
 */
export async function probePortals(
  portals: readonly PortalConfiguration[],
  wall: () => number,
  signal: AbortSignal,
  env: NodeJS.ProcessEnv,
): Promise<PortalProbe[]> {
  const origins = portals.flatMap((portal) =>
    originsOf(portal).map(([key, origin]) => ({ key: `portals.${portal.name}.${key}`, origin, route: portal })),
  );
  return Promise.all(
    origins.map(async ({ key, origin, route }) => ({
      key,
      origin,
      outcome: await probe(new URL(origin), route, wall, signal, env),
    })),
  );
}

/** The origins that the hub sends requests to, each with the key that names it. */
function originsOf(portal: PortalConfiguration): readonly (readonly [key: string, origin: string])[] {
  if (portal.type === 'helper') {
    return [
      ['base_url', portal.baseUrl],
      ['frontend_url', portal.frontendUrl],
    ];
  }
  const { issuer, endpoints } = portal.settings;
  const named = [
    ['issuer', issuer],
    ['token_endpoint', endpoints.token],
    ['device_authorization_endpoint', endpoints.deviceAuthorization],
  ] as const;
  const found = named.flatMap(([key, url]) => (url === null ? [] : [[key, new URL(url).origin] as const]));
  return found.filter(([, origin], index) => found.findIndex((other) => other[1] === origin) === index);
}

async function probe(
  url: URL,
  { ca, proxy }: Pick<PortalConfiguration, 'ca' | 'proxy'>,
  wall: () => number,
  signal: AbortSignal,
  env: NodeJS.ProcessEnv,
): Promise<ProbeOutcome> {
  let stage: ProbeStage = 'name';
  let socket: Socket | TLSSocket | null = null;
  const { promise: timeout, reject } = Promise.withResolvers<never>();
  signal.addEventListener('abort', () => reject(new Error('no response in time')), { once: true });
  try {
    const isTls = url.protocol === 'https:';
    const tunnel = isTls && proxy !== null ? new URL(proxy) : null;
    const host = hostOf(url);
    const first = tunnel ?? url;
    const lookup = fixedLookup(await Promise.race([resolveAddresses(hostOf(first), signal, env), timeout]));
    stage = 'connection';
    let plain: Socket = connect({ host: hostOf(first), port: portOf(first), lookup });
    socket = plain;
    await Promise.race([waitForEvent(plain, 'connect'), timeout]);
    if (tunnel?.protocol === 'https:') {
      plain = connectTls({ socket: plain, host: hostOf(tunnel), ca: [...getCACertificates('default'), ...ca] });
      socket = plain;
      await Promise.race([waitForEvent(plain, 'secureConnect'), timeout]);
    }
    if (tunnel !== null) await Promise.race([requestTunnel(plain, `${url.hostname}:${portOf(url)}`), timeout]);
    if (isTls) {
      stage = 'handshake';
      const name = isIP(host) === 0 ? { servername: host } : {};
      const trusted = [...getCACertificates('default'), ...ca];
      const secure = connectTls({ socket: plain, host, rejectUnauthorized: false, ca: trusted, ...name });
      socket = secure;
      await Promise.race([waitForEvent(secure, 'secureConnect'), timeout]);
      const untrusted = untrustedOutcome(secure);
      if (untrusted !== null) return untrusted;
    }
    stage = 'answer';
    return await Promise.race([sendHeadRequest(url, socket, wall), timeout]);
  } catch (error) {
    return { kind: 'stuck', stage, why: messageOf(error) };
  } finally {
    socket?.on('error', () => undefined).destroy();
  }
}

function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '');
}

function portOf({ port, protocol }: URL): number {
  return Number(port || (protocol === 'https:' ? 443 : 80));
}

/** Asks a proxy for a connection (RFC 9110, 9.3.6). @param target host and port */
async function requestTunnel(socket: Socket, target: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let answer = '';
  const read = (bytes: Buffer) => {
    answer += bytes.toString('latin1');
    if (answer.includes('\r\n\r\n') || answer.length > 65_536) resolve();
  };
  socket.on('data', read).once('close', () => reject(new Error('the proxy closed the connection')));
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\nUser-Agent: ${userAgent()}\r\n\r\n`);
  await promise;
  socket.off('data', read);
  const [status = ''] = answer.split('\r\n');
  if (!/^HTTP\/1\.[01] 2\d\d/.test(status))
    throw new Error(`the proxy answers ${JSON.stringify(status.slice(0, 100))}`);
}

function waitForEvent(socket: Socket, event: 'connect' | 'secureConnect'): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once(event, resolve).once('error', reject);
    socket.once('close', () => reject(new Error('the connection was closed')));
  });
}

function untrustedOutcome(socket: TLSSocket): ProbeOutcome | null {
  if (socket.authorized) return null;
  const certificate = socket.getPeerX509Certificate();
  const error = socket.authorizationError;
  return {
    kind: 'untrusted',
    why: error instanceof Error ? messageOf(error) : String(error),
    validFrom: Date.parse(certificate?.validFrom ?? ''),
    validTo: Date.parse(certificate?.validTo ?? ''),
  };
}

function sendHeadRequest(url: URL, socket: Socket, wall: () => number): Promise<ProbeOutcome> {
  return new Promise((resolve, reject) => {
    const headers = { host: url.host, 'user-agent': userAgent() };
    const options = { method: 'HEAD', path: '/', headers, createConnection: () => socket };
    const head = request(options, (response) => resolve(answeredOutcome(url, response, wall())));
    head.once('error', reject).end();
  });
}

function answeredOutcome(url: URL, { statusCode = 0, headers }: IncomingMessage, now: number): ProbeOutcome {
  const date = Date.parse(headers.date ?? '');
  const target = statusCode >= 300 && statusCode < 400 ? URL.parse(headers.location ?? '', url.href) : null;
  return {
    kind: 'answered',
    status: statusCode,
    // A response from a cache has the time at which it was stored there.
    clockAheadMs: Number.isNaN(date) || headers.age !== undefined ? null : now - date,
    redirectOrigin: target !== null && target.hostname !== url.hostname ? target.origin : null,
  };
}

/** An address of a host. */
interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

/**
 * Looks a name up as the system does. It runs in another process, because a lookup in this process can't be cancelled:
 * if no DNS server responds, it would delay the end of the process for half a minute.
 * @throws Error with a message for people
 */
async function resolveAddresses(host: string, signal: AbortSignal, env: NodeJS.ProcessEnv): Promise<ResolvedAddress[]> {
  if (isIP(host) !== 0) return [{ address: host, family: isIP(host) }];
  const text = await execProgram('getent', ['ahosts', host], signal, env);
  const candidates = (text ?? '').split('\n').map((line) => line.split(/\s+/)[0] ?? '');
  const addresses = [...new Set(candidates)].filter((address) => isIP(address) !== 0);
  if (addresses.length === 0)
    throw new Error(signal.aborted ? 'no response in time' : 'the name does not exist, or no DNS server responds');
  return addresses.map((address) => ({ address, family: isIP(address) }));
}

/** A lookup function for `connect` that returns these addresses, so that `connect` does no lookup itself. */
function fixedLookup(addresses: readonly ResolvedAddress[]): LookupFunction {
  return (_host, { all }, callback) => {
    const [first] = addresses;
    if (all === true) callback(null, [...addresses]);
    else callback(null, first?.address ?? '', first?.family);
  };
}
