import { generateKeyPairSync } from 'node:crypto';
import { isIP } from 'node:net';
import { type Configuration, readConfiguration } from '../configuration/configuration.ts';
import { controlSocketCandidates, locateConfigurationFile } from '../configuration/file.ts';
import type { PortalConfiguration } from '../configuration/portals.ts';
import { InvalidKeyFailure } from '../configuration/validation.ts';
import { type ControlClient, connectControlClient } from '../control/client.ts';
import type { PortalsResponse, StatusResponse } from '../control/messages.ts';
import { listControlSockets } from '../control/socket-file.ts';
import { Failure, messageOf } from '../core/failure.ts';
import type { PortalCheck } from '../core/portals/portal-status.ts';
import { Secret } from '../core/secret.ts';
import { helperAddresses } from '../portal/helper/helper-portal.ts';
import { contactedAddresses } from '../portal/oauth2/portal-checks.ts';
import { type PortalProbe, type ProbedAddress, probeOrigins, type ResolvedAddress } from '../portal/probe.ts';
import { systemClock, systemTimers } from '../system/clock.ts';
import { nearestName } from '../system/did-you-mean.ts';
import { readSecret } from '../system/secret-file.ts';
import { execProgram, readUnit, type SystemdUnit, serviceEnvironment } from './systemd-unit.ts';

/** The status that the running hub reports with its portals (null if it did not say), or why there is none. */
type HubProbe =
  | ({ readonly kind: 'running'; readonly portals: PortalsResponse['portals'] | null } & StatusResponse)
  | { readonly kind: 'not_running' | 'forbidden' | 'silent'; readonly detail: string };

/** The input of all checks: the hub's configuration, the running hub and the machine. */
export interface DoctorContext {
  /** Invalid keys have their defaults; {@link isConfigurationKeyValid} tells whether a key is valid. */
  readonly configuration: Configuration;
  /** The errors of the configuration. */
  readonly configurationFailures: readonly Failure[];
  /** Files of secrets that this user may not read. */
  readonly unreadableSecrets: readonly string[];
  readonly hub: HubProbe;
  /** Null if the hub is not a systemd service. */
  readonly unit: SystemdUnit | null;
  /** The environment of the hub. */
  readonly env: NodeJS.ProcessEnv;
  readonly isRoot: boolean;
  /** This machine's clock, in ms since 1970. */
  wall(): number;
  /** The probes of all origins of all portals, shared by the checks. */
  readonly probes: Promise<readonly PortalProbe[]>;
  /** The running hub's own check of a portal, see `InspectedPortal.check`. Rejects if there is no result in time. */
  checkPortal(name: string): Promise<readonly PortalCheck[]>;
}

/** Options of the doctor. */
export interface DoctorOptions {
  /** `--config` */
  readonly file: string | undefined;
  readonly env: NodeJS.ProcessEnv;
}

/** How long the hub may take to respond, in ms. */
const HUB_TIMEOUT = 4000;
/** How long a portal may take, in ms. */
const PORTAL_TIMEOUT = 4000;

/** Gathers the input of the checks. Changes nothing. */
export async function createDoctorContext(options: DoctorOptions): Promise<DoctorContext> {
  const { file, env: ownEnvironment } = options;
  const signal = AbortSignal.timeout(HUB_TIMEOUT);
  const isDefaultFile = file === undefined && !ownEnvironment['LATCHKEY_CONFIG'];
  const [unit, hub] = await Promise.all([isDefaultFile ? readUnit(signal, ownEnvironment) : null, probeHub(options)]);
  const env = unit === null ? ownEnvironment : serviceEnvironment(unit, ownEnvironment);
  const isRoot = process.getuid?.() === 0;
  const unreadableSecrets: string[] = [];
  const readSecretIfPermitted: typeof readSecret = async (name, directory, credentials, form, onTrimmed) => {
    const placeholder = () =>
      new Secret(form === 'text' ? placeholderKey() : form === 'url' ? PLACEHOLDER_URL : PLACEHOLDER_SECRET);
    try {
      return await readSecret(name, directory, credentials, form, onTrimmed);
    } catch (error) {
      // An encrypted credential is readable only while the service runs.
      if (unit?.mainPid === 0 && unit.credentials.some(({ id }) => id === name)) return placeholder();
      const mayBeCredential = credentials !== undefined && !name.includes('/');
      if (isRoot || !(mayBeCredential || messageOf(error).includes('EACCES'))) throw error;
      unreadableSecrets.push(name);
      return placeholder();
    }
  };
  const { configuration, errors } = await readConfiguration(
    isDefaultFile ? undefined : file,
    env,
    readSecretIfPermitted,
  );
  const clock = systemClock('');
  const wall = () => clock.now().wall;
  const portals = isTestMode(hub) ? [] : configuration.portals;
  const probes = probePortals(portals, wall, AbortSignal.timeout(PORTAL_TIMEOUT), env);
  return {
    configuration,
    configurationFailures: errors,
    unreadableSecrets,
    hub,
    unit,
    env,
    isRoot,
    wall,
    probes,
    checkPortal: (name) => withHub(options, async (client) => (await client.request('checkPortal', { name })).checks),
  };
}

/** Stands for a client's private key that can't be read. */
function placeholderKey(): string {
  return generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}

/** Whether the configuration has a valid value, possibly the default, for a key or a whole table. */
export function isConfigurationKeyValid(
  { configurationFailures }: Pick<DoctorContext, 'configurationFailures'>,
  key: string,
): boolean {
  return configurationFailures.every(
    (failure) =>
      failure instanceof InvalidKeyFailure &&
      !isKeyWithin(failure.key, key) &&
      !isKeyWithin(key, failure.key) &&
      !isMisspelling(failure.key, key),
  );
}

/** Whether an unknown key such as `hub.state_dri` was probably meant to be `hub.state_dir`. */
function isMisspelling(found: string, key: string): boolean {
  const [[table, name = ''], [ofTable, meant = '']] = [found.split('.'), key.split('.')];
  return table === ofTable && nearestName(name, [meant]) !== null;
}

function isKeyWithin(key: string, table: string): boolean {
  return `${key}.`.startsWith(`${table}.`);
}

/** Whether the running hub is in test mode: it has its own emulated portal and state, and stores nothing. */
export function isTestMode(hub: HubProbe): boolean {
  return hub.kind === 'running' && hub.hub.test_mode === true;
}

/** Replace a secret that could not be read; nothing sends or uses them. */
const PLACEHOLDER_SECRET = '0'.repeat(32);
export const PLACEHOLDER_DATABASE = 'unreadable';
const PLACEHOLDER_URL = `postgresql://unreadable@localhost/${PLACEHOLDER_DATABASE}`;

async function failAfterTimeout(): Promise<never> {
  await systemTimers.sleep(HUB_TIMEOUT);
  throw new Error(`no response within ${HUB_TIMEOUT / 1000} s`);
}

/**
 * Connects to the running hub and runs `work`, which may take a few seconds.
 * @throws Failure as {@link connectControlClient}, and Error after a timeout
 */
export async function withHub<Result>(
  options: DoctorOptions,
  work: (hub: ControlClient) => Promise<Result>,
): Promise<Result> {
  const client = await connectToHub(options);
  try {
    return await Promise.race([work(client), failAfterTimeout()]);
  } finally {
    await client[Symbol.asyncDispose]();
  }
}

/**
 * Connects to the hub at the configured socket, else to a hub on this machine that runs with this configuration file.
 */
async function connectToHub({ file, env }: DoctorOptions): Promise<ControlClient> {
  // Another check reports errors of the configuration; a hub may run despite them.
  const sockets = await controlSocketCandidates(file, env).catch(() => []);
  try {
    return await connectControlClient(sockets);
  } catch (error) {
    let forbidden: unknown;
    for (const socket of await listControlSockets()) {
      try {
        const client = await connectControlClient([socket]);
        const status = await Promise.race([client.request('status'), failAfterTimeout()]).catch(() => null);
        const { config_file, test_mode } = status?.hub ?? {};
        if (config_file === locateConfigurationFile(file, env).path && test_mode !== true) return client;
        await client[Symbol.asyncDispose]();
      } catch (rejected) {
        if (rejected instanceof Failure && rejected.code === 'not_allowed') forbidden ??= rejected;
      }
    }
    // If the file can't be read at all, the hub that this user may not use is probably the right one.
    throw sockets.length === 0 ? (forbidden ?? error) : error;
  }
}

async function probeHub(options: DoctorOptions): Promise<HubProbe> {
  try {
    const [status, { portals }] = await Promise.all([
      withHub(options, (hub) => hub.request('status')),
      // It may take long if a portal can't be reached.
      withHub(options, (hub) => hub.request('portals')).catch(() => ({ portals: null })),
    ]);
    return { kind: 'running', ...status, portals };
  } catch (error) {
    const code = error instanceof Failure ? error.code : '';
    const kind = code === 'hub_not_running' ? 'not_running' : code === 'not_allowed' ? 'forbidden' : 'silent';
    return { kind, detail: messageOf(error) };
  }
}

/**
 * Probes every origin of these portals.
 * @param wall this machine's clock, in ms since 1970
 */
export async function probePortals(
  portals: readonly PortalConfiguration[],
  wall: () => number,
  signal: AbortSignal,
  env: NodeJS.ProcessEnv,
): Promise<PortalProbe[]> {
  const lookup = (host: string) => resolveAddresses(host, signal, env);
  const probes = portals.map((portal) => probeOrigins(addressesOf(portal), { route: portal, wall, signal, lookup }));
  return (await Promise.all(probes)).flat();
}

/** The configured addresses that the hub sends requests to, each with the key that names it. */
function addressesOf(portal: PortalConfiguration): ProbedAddress[] {
  if (portal.type === 'oauth2') {
    const { settings } = portal;
    return contactedAddresses(portal.name, settings, settings.endpoints, true);
  }
  return helperAddresses(portal.name, portal);
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
