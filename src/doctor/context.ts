import { type Configuration, readConfiguration } from '../configuration/configuration.ts';
import { controlSocketCandidates, locateConfigurationFile } from '../configuration/file.ts';
import { InvalidKeyFailure } from '../configuration/validation.ts';
import { type ControlClient, connectControlClient } from '../control/client.ts';
import type { StatusResponse } from '../control/messages.ts';
import { listControlSockets } from '../control/socket-file.ts';
import { Failure, messageOf } from '../core/failure.ts';
import { Secret } from '../core/secret.ts';
import { systemClock, systemTimers } from '../system/clock.ts';
import { didYouMean } from '../system/did-you-mean.ts';
import { readSecret } from '../system/secret-file.ts';
import { type PortalProbe, probePortals } from './portal-probe.ts';
import { readUnit, type SystemdUnit, serviceEnvironment } from './systemd-unit.ts';

/** The running hub, by its own word. */
type HubProbe =
  | ({ readonly kind: 'running' } & StatusResponse)
  | { readonly kind: 'not_running' | 'forbidden' | 'silent'; readonly detail: string };

/** What the checks look at: the hub's configuration, and the hub where it runs. */
export interface DoctorContext {
  /** With the defaults of what can't be used; {@link hasValidKey} tells what is. */
  readonly configuration: Configuration;
  /** What is wrong with it. */
  readonly configurationFailures: readonly Failure[];
  /** Files of secrets that this user may not read. */
  readonly unreadableSecrets: readonly string[];
  readonly hub: HubProbe;
  /** Null where the hub is no service of systemd's. */
  readonly unit: SystemdUnit | null;
  /** As the hub has it. */
  readonly env: NodeJS.ProcessEnv;
  readonly isRoot: boolean;
  /** This machine's clock, in ms since 1970. */
  wall(): number;
  /** Every origin of every portal, asked once for all checks. */
  readonly probes: Promise<readonly PortalProbe[]>;
}

/** What is asked for when a hub is looked at. */
export interface DoctorOptions {
  /** `--config` */
  readonly file: string | undefined;
  readonly env: NodeJS.ProcessEnv;
}

/** How long the hub may take to answer, in ms. */
const HUB_TIMEOUT = 4000;
/** How long a portal may take, in ms. */
const PORTAL_TIMEOUT = 4000;

/** Gathers what the checks look at. Changes nothing. */
export async function createDoctorContext(examination: DoctorOptions): Promise<DoctorContext> {
  const { file, env: own } = examination;
  const signal = AbortSignal.timeout(HUB_TIMEOUT);
  const isDefault = file === undefined && !own['LATCHKEY_CONFIG'];
  const [found, hub] = await Promise.all([isDefault ? readUnit(signal, own) : null, probeHub(examination)]);
  const env = found === null ? own : serviceEnvironment(found, own);
  const isRoot = process.getuid?.() === 0;
  const unread: string[] = [];
  const readingSecrets: typeof readSecret = async (name, directory, from) => {
    try {
      return await readSecret(name, directory, from);
    } catch (error) {
      // Encrypted, it is readable while the service runs.
      if (found?.mainPid === 0 && found.credentials.some(({ id }) => id === name))
        return new Secret(PLACEHOLDER_SECRET);
      const mayBeCredential = from !== undefined && !name.includes('/');
      if (isRoot || !(mayBeCredential || messageOf(error).includes('EACCES'))) throw error;
      unread.push(name);
      return new Secret(PLACEHOLDER_SECRET);
    }
  };
  const { configuration, errors: faults } = await readConfiguration(isDefault ? undefined : file, env, readingSecrets);
  const clock = systemClock('');
  const wall = () => clock.now().wall;
  const portals = isTestMode(hub) ? [] : configuration.portals;
  const probes = probePortals(portals, wall, AbortSignal.timeout(PORTAL_TIMEOUT), env);
  return {
    configuration,
    configurationFailures: faults,
    unreadableSecrets: unread,
    hub,
    unit: found,
    env,
    isRoot,
    wall,
    probes,
  };
}

/** Whether the configuration says this: a key, or a whole table. Where nothing is wrong with it, it does, if only by its default. */
export function hasValidKey(
  { configurationFailures: faults }: Pick<DoctorContext, 'configurationFailures'>,
  key: string,
): boolean {
  return faults.every(
    (fault) =>
      fault instanceof InvalidKeyFailure &&
      !isKeyWithin(fault.key, key) &&
      !isKeyWithin(key, fault.key) &&
      !isMisspelling(fault.key, key),
  );
}

/** `hub.state_dri` is likely to say what `hub.state_dir` was to. */
function isMisspelling(found: string, key: string): boolean {
  const [[table, name = ''], [ofTable, meant = '']] = [found.split('.'), key.split('.')];
  return table === ofTable && didYouMean(name, [meant]) !== '';
}

function isKeyWithin(key: string, table: string): boolean {
  return `${key}.`.startsWith(`${table}.`);
}

/** Whether the hub that runs is one in test mode: it has a portal and a state of its own, and keeps nothing. */
export function isTestMode(hub: HubProbe): boolean {
  return hub.kind === 'running' && hub.hub.test_mode === true;
}

/** In place of a secret that could not be read; nothing sends it. */
const PLACEHOLDER_SECRET = '0'.repeat(32);

async function failAfterTimeout(): Promise<never> {
  await systemTimers.sleep(HUB_TIMEOUT);
  throw new Error(`no answer within ${HUB_TIMEOUT / 1000} s`);
}

/**
 * Asks the running hub, which may take a few seconds.
 * @throws Failure as {@link connectControlClient}, and Error where it takes longer
 */
export async function withHub<Result>(
  examination: DoctorOptions,
  work: (hub: ControlClient) => Promise<Result>,
): Promise<Result> {
  const client = await connectToHub(examination);
  try {
    return await Promise.race([work(client), failAfterTimeout()]);
  } finally {
    await client[Symbol.asyncDispose]();
  }
}

/** Connects to the hub that is where the configuration says, else to one on this machine that runs with this file. */
async function connectToHub({ file, env }: DoctorOptions): Promise<ControlClient> {
  // What is wrong with the configuration is another check's; a hub may run all the same.
  const sockets = await controlSocketCandidates(file, env).catch(() => []);
  try {
    return await connectControlClient(sockets);
  } catch (error) {
    let forbidden: unknown;
    for (const socket of await listControlSockets()) {
      try {
        const client = await connectControlClient([socket]);
        const status = await Promise.race([client.status(), failAfterTimeout()]).catch(() => null);
        const { config_file, test_mode } = status?.hub ?? {};
        if (config_file === locateConfigurationFile(file, env).path && test_mode !== true) return client;
        await client[Symbol.asyncDispose]();
      } catch (refused) {
        if (refused instanceof Failure && refused.code === 'not_allowed') forbidden ??= refused;
      }
    }
    // If the file can't be read at all, it may be that one.
    throw sockets.length === 0 ? (forbidden ?? error) : error;
  }
}

async function probeHub(examination: DoctorOptions): Promise<HubProbe> {
  try {
    return { kind: 'running', ...(await withHub(examination, (hub) => hub.status())) };
  } catch (error) {
    const code = error instanceof Failure ? error.code : '';
    const kind = code === 'hub_not_running' ? 'not_running' : code === 'not_allowed' ? 'forbidden' : 'silent';
    return { kind, detail: messageOf(error) };
  }
}
