import { type IncomingMessage, request } from 'node:http';
import { connect, isIP, type LookupFunction, type Socket } from 'node:net';
import { connect as connectTls, getCACertificates, type TLSSocket } from 'node:tls';
import type { PortalConfiguration } from '../configuration/configuration.ts';
import { messageOf } from '../core/failure.ts';
import { execProgram } from './systemd-unit.ts';

/** How far the way to one of a portal's origins leads. */
export interface PortalProbe {
  /** `portals.home.base_url`: its key in the configuration. */
  readonly key: string;
  readonly origin: string;
  readonly outcome: ProbeOutcome;
}

type ProbeOutcome =
  | {
      readonly kind: 'answered';
      readonly status: number;
      /** How far this machine's clock is ahead of the portal's, in ms; null where the portal does not say. */
      readonly clockAheadMs: number | null;
      /** The origin that it sends browsers to, where that is another host's. */
      readonly redirectOrigin: string | null;
    }
  | { readonly kind: 'untrusted'; readonly why: string; readonly validFrom: number; readonly validTo: number }
  | { readonly kind: 'stuck'; readonly stage: ProbeStage; readonly why: string };

/** What the way consists of, in this order. */
type ProbeStage = 'name' | 'connection' | 'handshake' | 'answer';

/**
 * Asks every origin of these portals for nothing but its time: no secret and no client_id is sent, and nothing at all before its
 * certificate was found good.
 * @param wall this machine's clock, in ms since 1970
 */
export async function probePortals(
  portals: readonly PortalConfiguration[],
  wall: () => number,
  signal: AbortSignal,
  env: NodeJS.ProcessEnv,
): Promise<PortalProbe[]> {
  const origins = portals.flatMap(({ name, baseUrl, frontendUrl, ca }) => [
    { key: `portals.${name}.base_url`, origin: baseUrl, ca },
    { key: `portals.${name}.frontend_url`, origin: frontendUrl, ca },
  ]);
  return Promise.all(
    origins.map(async ({ key, origin, ca }) => ({
      key,
      origin,
      outcome: await probe(new URL(origin), ca, wall, signal, env),
    })),
  );
}

async function probe(
  url: URL,
  ca: readonly string[],
  wall: () => number,
  signal: AbortSignal,
  env: NodeJS.ProcessEnv,
): Promise<ProbeOutcome> {
  let stage: ProbeStage = 'name';
  let socket: Socket | TLSSocket | null = null;
  const { promise: late, reject } = Promise.withResolvers<never>();
  signal.addEventListener('abort', () => reject(new Error('no answer in time')), { once: true });
  try {
    const host = url.hostname.replace(/^\[|\]$/g, '');
    const lookup = fixedLookup(await Promise.race([resolveAddresses(host, signal, env), late]));
    stage = 'connection';
    const isTls = url.protocol === 'https:';
    const plain = connect({ host, port: Number(url.port || (isTls ? 443 : 80)), lookup });
    socket = plain;
    await Promise.race([waitForEvent(plain, 'connect'), late]);
    if (isTls) {
      stage = 'handshake';
      const name = isIP(host) === 0 ? { servername: host } : {};
      const trusted = [...getCACertificates('default'), ...ca];
      const secure = connectTls({ socket: plain, host, rejectUnauthorized: false, ca: trusted, ...name });
      socket = secure;
      await Promise.race([waitForEvent(secure, 'secureConnect'), late]);
      const untrusted = untrustedOutcome(secure);
      if (untrusted !== null) return untrusted;
    }
    stage = 'answer';
    return await Promise.race([sendHeadRequest(url, socket, wall), late]);
  } catch (error) {
    return { kind: 'stuck', stage, why: messageOf(error) };
  } finally {
    socket?.on('error', () => undefined).destroy();
  }
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
  const why = socket.authorizationError;
  return {
    kind: 'untrusted',
    why: why instanceof Error ? messageOf(why) : String(why),
    validFrom: Date.parse(certificate?.validFrom ?? ''),
    validTo: Date.parse(certificate?.validTo ?? ''),
  };
}

function sendHeadRequest(url: URL, socket: Socket, wall: () => number): Promise<ProbeOutcome> {
  return new Promise((resolve, reject) => {
    const options = { method: 'HEAD', path: '/', headers: { host: url.host }, createConnection: () => socket };
    const asked = request(options, (answer) => resolve(answeredOutcome(url, answer, wall())));
    asked.once('error', reject).end();
  });
}

function answeredOutcome(url: URL, { statusCode = 0, headers }: IncomingMessage, now: number): ProbeOutcome {
  const date = Date.parse(headers.date ?? '');
  const target = statusCode >= 300 && statusCode < 400 ? URL.parse(headers.location ?? '', url.href) : null;
  return {
    kind: 'answered',
    status: statusCode,
    // From a cache it has the time when it was put there.
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
 * Looks a name up as the system does. Another process does it, because a look-up in this one can't be given up: where
 * no DNS server answers, it would hold the end of the process for half a minute.
 * @throws Error in words
 */
async function resolveAddresses(host: string, signal: AbortSignal, env: NodeJS.ProcessEnv): Promise<ResolvedAddress[]> {
  if (isIP(host) !== 0) return [{ address: host, family: isIP(host) }];
  const text = await execProgram('getent', ['ahosts', host], signal, env);
  const found = (text ?? '').split('\n').map((line) => line.split(/\s+/)[0] ?? '');
  const addresses = [...new Set(found)].filter((address) => isIP(address) !== 0);
  if (addresses.length === 0) throw new Error(signal.aborted ? 'no answer in time' : 'no such name, or no DNS server');
  return addresses.map((address) => ({ address, family: isIP(address) }));
}

/** What `connect` is given, so that it looks up nothing itself. */
function fixedLookup(addresses: readonly ResolvedAddress[]): LookupFunction {
  return (_host, { all }, found) => {
    const [first] = addresses;
    if (all === true) found(null, [...addresses]);
    else found(null, first?.address ?? '', first?.family);
  };
}
