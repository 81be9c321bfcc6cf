import { readFile } from 'node:fs/promises';
import { networkInterfaces, release } from 'node:os';
import type { Configuration } from '../../configuration/configuration.ts';
import type { PortalConfiguration } from '../../configuration/portals.ts';
import { version } from '../../system/version.ts';

/** How much of a kernel file is included; these files are ASCII. */
const MAX_KERNEL_FILE_BYTES = 65_536;
/** The kernel's form of an IPv6 address in its routing table. */
const HEX_IPV6 = /\b[0-9a-f]{32}\b/g;

/** The versions of the software, and the machine. */
export async function collectVersions(): Promise<Record<string, string>> {
  const [osRelease, model, product] = await Promise.all([
    readKernelFile('/etc/os-release'),
    readKernelFile('/proc/device-tree/model'),
    readKernelFile('/sys/class/dmi/id/product_name'),
  ]);
  return {
    latchkey: version(),
    node: process.version,
    openssl: process.versions.openssl,
    kernel: release(),
    architecture: process.arch,
    distribution: /^PRETTY_NAME="?([^"\n]*)/m.exec(osRelease ?? '')?.[1] ?? 'not known',
    machine: (model ?? product ?? 'not known').replaceAll('\0', '').trim(),
  };
}

/** Interfaces and routes, for people. */
export async function networkText(): Promise<string> {
  const interfaces = Object.entries(networkInterfaces()).flatMap(([name, entries = []]) =>
    entries.map(({ cidr, address, mac }) => `${name}  ${cidr ?? address}  ${mac}`),
  );
  const routes = await readKernelFile('/proc/self/net/route');
  const routes6 = (await readKernelFile('/proc/self/net/ipv6_route'))?.replace(HEX_IPV6, (digits) =>
    digits.replace(/(.{4})(?!$)/g, '$1:'),
  );
  const none = 'not available on this kernel';
  return `Interfaces:\n${interfaces.join('\n')}\n\nIPv4 routes (/proc/net/route):\n${routes ?? none}\n\nIPv6 routes (/proc/net/ipv6_route):\n${routes6 ?? none}\n`;
}

async function readKernelFile(path: string): Promise<string | null> {
  return readFile(path, 'utf8').then(
    (text) => text.slice(0, MAX_KERNEL_FILE_BYTES),
    () => null,
  );
}

/** The configuration as it was read, with the locations of secrets but without the secrets. */
export function redactedConfiguration({
  portals,
  appliances,
  notify,
  lan,
  credentialsDirectory: credentials,
  ...plain
}: Configuration): object {
  return {
    ...plain,
    lan: { ...lan, certificate: lan.certificate === null ? null : lan.certificate.files },
    portals: portals.map(redactedPortal),
    appliances: appliances.map(({ credentials: { kind }, ...plain }) => {
      return { ...plain, credentials: kind };
    }),
    notify: {
      command: notify.command?.[0] ?? null,
      webhook: notify.webhook === null ? null : new URL(notify.webhook.reveal()).origin,
      language: notify.language,
    },
    credentials: credentials ?? null,
  };
}

function redactedPortal(portal: PortalConfiguration): object {
  const { name, type, clientId, ca, policy } = portal;
  const common = { name, type, clientId, cas: ca.length, ...policy };
  if (portal.type === 'helper') {
    const { baseUrl, frontendUrl, redirect, revocationEndpoint } = portal;
    return {
      ...common,
      baseUrl,
      frontendUrl,
      redirect: URL.canParse(redirect) ? new URL(redirect).origin : redirect,
      revocationEndpoint: revocationEndpoint && new URL(revocationEndpoint).origin,
    };
  }
  const { issuer, endpoints, clientAuth, login, redirectUri, pkce, minRequestInterval } = portal.settings;
  return {
    ...common,
    preset: portal.preset,
    issuer,
    clientAuth,
    login,
    redirectUri,
    pkce,
    minRequestInterval,
    endpoints: Object.fromEntries(
      Object.entries(endpoints).map(([key, url]) => [key, url === null ? null : new URL(url).origin]),
    ),
  };
}

/** Variables whose values can't be secret. */
const HARMLESS_VARIABLES = /^LATCHKEY_(CONFIG|BOOT_ID|(LAN|HUB|PAIRING|METRICS)_\w+)$/;

/** The `LATCHKEY_…` variables of the environment; with their values only if they can't be secret. */
export function redactedEnvironment(env: NodeJS.ProcessEnv): Record<string, string> {
  const names = Object.keys(env).filter((name) => name.startsWith('LATCHKEY_'));
  return Object.fromEntries(
    names.sort().map((name) => [name, HARMLESS_VARIABLES.test(name) ? (env[name] ?? '') : 'set, not shown']),
  );
}
