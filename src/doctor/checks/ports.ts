import { readdir, readFile, readlink } from 'node:fs/promises';
import { isIP } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { request } from 'undici';
import type { HubResponse } from '../../control/messages.ts';
import { rfc3339Day } from '../../core/clock.ts';
import { messageOf } from '../../core/failure.ts';
import { readLan } from '../../mdns/networks/lan-watch.ts';
import { spkiFingerprint } from '../../system/x509/certificates.ts';
import {
  type CheckResult,
  type CheckResults,
  configurationInvalid,
  fail,
  ok,
  permissionDenied,
  warn,
} from '../check-result.ts';
import { reachability } from '../container-network.ts';
import { type DoctorContext, isConfigurationKeyValid } from '../context.ts';

/** How long a listener may take, in ms. */
const LISTENER_TIMEOUT = 3000;

/** Checks whether the running hub itself responds on its ports, or whether the ports are free if it is not running. */
export async function checkPorts(context: DoctorContext): Promise<CheckResults> {
  const { configuration, hub, wall } = context;
  if (hub.kind === 'running') {
    const hasCustomCertificate = configuration.lan.certificate !== null;
    return checkRunningHub(hub.hub, { hasCustomCertificate, published: isPublished(context) }, wall());
  }
  // The hub itself probably uses them.
  if (hub.kind === 'forbidden') return permissionDenied("the hub's ports");
  if (!['lan.http_port', 'lan.https_port'].every((key) => isConfigurationKeyValid(context, key)))
    return configurationInvalid('the ports');
  const { httpPort, httpsPort } = configuration.lan;
  return Promise.all([checkPortFree('lan.http_port', httpPort), checkPortFree('lan.https_port', httpsPort)]);
}

async function checkPortFree(key: string, port: number): Promise<CheckResult> {
  const name = key.replace('lan.', '.');
  const listener = port === 0 ? null : await findListener(port);
  if (listener === null) return ok(`port ${port} (${key}) is free for the hub`, name);
  // With socket activation systemd listens on the ports.
  if (listener.program?.startsWith('systemd,'))
    return ok(`port ${port} (${key}) is reserved for the hub by systemd`, name);
  return fail(`port ${port} (${key}) is in use by ${takenPortAdvice(listener, key)}`, name);
}

function takenPortAdvice({ program, isHub }: PortListener, key: string): string {
  if (program === null) return 'a program that this user may not see: "sudo latchkey doctor" shows its name';
  if (!isHub) return `${program}, which is not the hub: stop that program, or set another ${key}`;
  return `another hub (${program}) that does not belong to this configuration: use the right configuration, or set another ${key}`;
}

async function checkRunningHub(
  { address, http_port, https_port, ca_fingerprint }: HubResponse,
  { hasCustomCertificate, published }: { readonly hasCustomCertificate: boolean; readonly published: boolean },
  now: number,
): Promise<CheckResults> {
  if (address === null)
    return warn('the ports could not be checked, because the hub has no address in the home network yet');
  const host = isIP(address) === 6 ? `[${address}]` : address;
  const silent = (key: string, port: number, error: unknown) => {
    const text = `${host}:${port} (lan.${key}) does not respond`;
    // Some hosts do not forward a container's own requests to its published ports.
    return published
      ? warn(
          `${text} to this container (${messageOf(error)}): try it from another device, and check that the port is published ("--publish ${port}:${port}")`,
          `.${key}`,
        )
      : fail(`${text} (${messageOf(error)}): check lan.listen and the firewall of this machine`, `.${key}`);
  };
  return Promise.all([
    checkHttp(`http://${host}:${http_port}`, ca_fingerprint).catch((error: unknown) =>
      silent('http_port', http_port, error),
    ),
    checkHttps(address, https_port, ca_fingerprint, hasCustomCertificate, now).catch((error: unknown) =>
      silent('https_port', https_port, error),
    ),
  ]);
}

/** Whether the hub's address is that of the host of this container. */
function isPublished({ configuration, env }: DoctorContext): boolean {
  const { address, listen } = configuration.lan;
  return reachability(address, readLan(address, listen).address, env) === 'published';
}

async function checkHttp(origin: string, fingerprint: string): Promise<CheckResult> {
  const signal = AbortSignal.timeout(LISTENER_TIMEOUT);
  const { statusCode, body } = await request(`${origin}/ca.pem`, { signal, headersTimeout: LISTENER_TIMEOUT });
  const text = await body.text();
  if (statusCode === 200 && tryPin(text) === fingerprint)
    return ok(`${origin} responds with this hub's CA`, '.http_port');
  return fail(
    `${origin} responds, but is not this hub (HTTP ${statusCode}): another program uses the address or the port; stop it, or set another lan.http_port`,
    '.http_port',
  );
}

async function checkHttps(
  address: string,
  port: number,
  fingerprint: string,
  hasCustomCertificate: boolean,
  now: number,
): Promise<CheckResult> {
  const name = '.https_port';
  const socket = connect({ host: address, port, rejectUnauthorized: false, timeout: LISTENER_TIMEOUT });
  try {
    const chain = await peerCertificateChain(socket);
    const [leaf] = chain;
    const where = `${address}:${port}`;
    if (leaf === undefined || !chain.some((one) => spkiFingerprint(one.toString()) === fingerprint)) {
      return fail(
        `${where} does not have this hub's certificate: another program uses the address or the port; stop it, or set another lan.https_port`,
        name,
      );
    }
    // The hub gives its appliances a name of the owner's certificate, if that has one; the check of the certificate checks it.
    const isNamed = hasCustomCertificate && /(^|, )DNS:[^*]/.test(leaf.subjectAltName ?? '');
    if (leaf.checkIP(address) === undefined && !isNamed) {
      return warn(
        `the certificate at ${where} is not valid for ${address}, so appliances that connect to this address reject it: add the address to lan.certificate_file, or let them connect by name`,
        name,
      );
    }
    const end = Date.parse(leaf.validTo);
    if (now > end)
      return fail(
        `the certificate at ${where} expired on ${rfc3339Day(end)}: correct the clock, or renew lan.certificate_file`,
        name,
      );
    return ok(`${where} responds with this hub's certificate, valid until ${rfc3339Day(end)}`, name);
  } finally {
    socket.on('error', () => undefined).destroy();
  }
}

type CertificateChain = NonNullable<ReturnType<TLSSocket['getPeerX509Certificate']>>[];

function peerCertificateChain(socket: TLSSocket): Promise<CertificateChain> {
  return new Promise((resolve, reject) => {
    socket
      .once('error', reject)
      .once('timeout', () => reject(new Error(`no response within ${LISTENER_TIMEOUT / 1000} s`)));
    socket.once('secureConnect', () => {
      const chain: CertificateChain = [];
      let next = socket.getPeerX509Certificate();
      while (next !== undefined && chain.length < 10) {
        chain.push(next);
        next = next.issuerCertificate;
      }
      resolve(chain);
    });
  });
}

function tryPin(text: string): string | null {
  try {
    return spkiFingerprint(text);
  } catch {
    return null;
  }
}

/** A program that listens on a TCP port of this machine. */
interface PortListener {
  /** Null if this user may not see the process. */
  readonly program: string | null;
  /** Whether it was started by `latchkey serve`. */
  readonly isHub: boolean;
}

/** `TCP_LISTEN` of the kernel's tcp_states.h. */
const TCP_LISTEN = '0A';
const TCP_TABLES = ['/proc/self/net/tcp', '/proc/self/net/tcp6'];

/**
 * The program that listens on a TCP port, from the kernel's tables; null if none does. It opens no connection and binds
 * nothing.
 */
async function findListener(port: number): Promise<PortListener | null> {
  const tables = await Promise.all(TCP_TABLES.map((file) => readFile(file, 'utf8').catch(() => '')));
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const rows = tables.flatMap((table) => table.split('\n').map((line) => line.trim().split(/\s+/)));
  // Columns: sl local_address rem_address st tx:rx tr:tm retrnsmt uid timeout inode
  const row = rows.find(([, local, , state]) => state === TCP_LISTEN && local?.endsWith(`:${hex}`));
  return row === undefined ? null : findSocketOwner(row[9] ?? '');
}

async function findSocketOwner(inode: string): Promise<PortListener> {
  const processes = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  for (const pid of processes) {
    const files = await readdir(`/proc/${pid}/fd`).catch(() => []);
    for (const file of files) {
      const target = await readlink(`/proc/${pid}/fd/${file}`).catch(() => '');
      if (target !== `socket:[${inode}]`) continue;
      const [name, command] = await Promise.all(
        ['comm', 'cmdline'].map((member) => readFile(`/proc/${pid}/${member}`, 'utf8').catch(() => '')),
      );
      return {
        program: `${name?.trim()}, process ${pid}`,
        isHub: /(latchkey|main\.[jt]s)\0serve\0/.test(command ?? ''),
      };
    }
  }
  return { program: null, isHub: false };
}
