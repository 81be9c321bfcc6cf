import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { pack } from 'tar-stream';
import { request } from 'undici';
import type { PortalConfiguration } from '../../configuration/portals.ts';
import type { ApplianceResponse, ConnectionResponse } from '../../control/messages.ts';
import { messageOf } from '../../core/failure.ts';
import type { NamedCheckResult } from '../check-result.ts';
import { metricsOrigin } from '../checks/reporting.ts';
import { type DoctorContext, type DoctorOptions, isConfigurationKeyValid, withHub } from '../context.ts';
import { execProgram, UNIT_NAME } from '../systemd-unit.ts';
import { collectVersions, networkText, redactedConfiguration, redactedEnvironment } from './contents.ts';
import { redactSecrets } from './redact.ts';

/** How long collecting a file may take, in ms. */
const FILE_TIMEOUT = 4000;
const JOURNAL_LINES = '2000';
/** The most characters of a file. Longer texts lose their beginning, so that the journal keeps its newest lines. */
const MAX_FILE_CHARACTERS = 1 << 20;
/** The most files of the state directory that are listed, and the most connections whose history is included. */
const MAX_ITEMS = 500;

/** A file of the archive. */
interface BundleFile {
  readonly name: string;
  readonly text: string;
}

/**
 * Creates a diagnostics archive (`tar.gz`) with one folder: everything that support needs to analyse a hub. Everything
 * that looks like a secret is removed from every text.
 */
export async function createDiagnosticsBundle(
  context: DoctorContext,
  checks: readonly NamedCheckResult[],
  options: DoctorOptions,
): Promise<Buffer> {
  const tar = pack();
  const bytes = buffer(tar);
  for (const { name, text } of await collectFiles(context, checks, options)) {
    tar.entry({ name: `latchkey-diagnostics/${name}`, mode: 0o600, mtime: new Date(context.wall()) }, text);
  }
  tar.finalize();
  return promisify(gzip)(await bytes);
}

async function collectFiles(
  context: DoctorContext,
  checks: readonly NamedCheckResult[],
  options: DoctorOptions,
): Promise<BundleFile[]> {
  const { configuration, configurationFailures: failures, env } = context;
  const faults = failures.length === 0 ? {} : { faults: failures.map(messageOf) };
  const files = await Promise.all([
    createFile('README.txt', () => README),
    createFile('doctor.json', () => toJson({ checks })),
    createFile('status.json', () => toJson(redactedStatus(context))),
    createFile('configuration.json', () => toJson({ ...redactedConfiguration(configuration), ...faults })),
    createFile('environment.json', () => toJson(redactedEnvironment(env))),
    createFile('versions.json', async () => toJson(await collectVersions())),
    createFile('network.txt', networkText),
    createFile('files.txt', () =>
      listDirectory(isConfigurationKeyValid(context, 'hub.state_dir') ? configuration.stateDirectory : null),
    ),
    createFile('history.json', async () => toJson(await collectHistories(context, options))),
    createFile('metrics.txt', () => fetchMetrics(context)),
    createFile('journal.txt', () => readJournal(env)),
  ]);
  const known = knownSecrets(context);
  const harmless = harmlessValues(context);
  return files.map(({ name, text }) => ({
    name,
    text: redactSecrets(text.slice(-MAX_FILE_CHARACTERS), known, harmless),
  }));
}

async function createFile(name: string, write: () => string | Promise<string>): Promise<BundleFile> {
  try {
    return { name, text: await write() };
  } catch (error) {
    return { name, text: `Not available: ${messageOf(error)}\n` };
  }
}

/**
 * Left out are links and codes of pairings, because they permit a login, and accounts, which are mail addresses and
 * names.
 */
function redactedStatus({ hub }: DoctorContext): object {
  if (hub.kind !== 'running') return hub;
  const { connections, appliances, conditions, notices } = hub;
  return {
    hub: hub.hub,
    connections: connections.map(redactedLogin),
    appliances: appliances.map(redactedLogin),
    conditions,
    notices,
  };
}

function redactedLogin({ authorize_url: link, account, ...rest }: ApplianceResponse | ConnectionResponse): object {
  return {
    ...rest,
    account: account && 'left out',
    ...(link !== undefined && { authorize_url: 'left out' }),
  };
}

async function collectHistories({ hub }: DoctorContext, options: DoctorOptions): Promise<object> {
  if (hub.kind !== 'running') return { left_out: hub.detail };
  return withHub(options, async (client) => {
    const histories: Record<string, unknown> = {};
    for (const { name } of hub.connections.slice(0, MAX_ITEMS))
      histories[name] = await client.request('history', { name });
    return histories;
  });
}

async function fetchMetrics(context: DoctorContext): Promise<string> {
  const origin = metricsOrigin(context);
  if (origin === null) return 'The hub is not running, or serves no metrics.\n';
  const { body } = await request(`${origin}/metrics`, { signal: AbortSignal.timeout(FILE_TIMEOUT) });
  return body.text();
}

async function readJournal(env: NodeJS.ProcessEnv): Promise<string> {
  const args = ['-u', UNIT_NAME, '-n', JOURNAL_LINES, '--no-pager', '-o', 'short-iso'];
  const text = await execProgram('journalctl', args, AbortSignal.timeout(FILE_TIMEOUT), env);
  return text ?? 'There is no systemd journal here, or this user may not read it (run the command with sudo).\n';
}

async function listDirectory(directory: string | null): Promise<string> {
  if (directory === null) return 'The state directory is not known: hub.state_dir is invalid.\n';
  const names = (await readdir(directory, { recursive: true })).sort().slice(0, MAX_ITEMS);
  const lines = await Promise.all(
    ['.', ...names].map(async (name) => {
      const { mode, uid, gid, size, mtime } = await stat(join(directory, name));
      return `${mode.toString(8)}  ${uid}:${gid}  ${size}  ${mtime.toISOString()}  ${name}`;
    }),
  );
  return `${directory}\n${lines.join('\n')}\n`;
}

/** The secrets whose values the configuration contains. */
function knownSecrets({ configuration }: DoctorContext): string[] {
  const { portals, notify } = configuration;
  const webhook = [
    ...(notify.webhook === null ? [] : secretUrlParts(notify.webhook.reveal())),
    ...(notify.webhookSecret === null ? [] : [notify.webhookSecret.reveal()]),
  ];
  // Paths are no secrets, and are useful for support.
  const args = (notify.command ?? []).slice(1).filter((arg) => !arg.startsWith('/'));
  return [...portals.flatMap(secretsOf), ...webhook, ...args];
}

function secretsOf(portal: PortalConfiguration): string[] {
  if (portal.type === 'helper') return [portal.clientSecret.reveal()];
  const { clientSecret, headers } = portal.settings;
  return [...(clientSecret === null ? [] : [clientSecret]), ...Object.values(headers)].map((secret) => secret.reveal());
}

/** The URL, and its parts without the origin, which alone is no secret. */
function secretUrlParts(address: string): string[] {
  const { pathname, search } = new URL(address);
  return [address, `${pathname}${search}`, pathname];
}

function harmlessValues({ configuration, hub }: DoctorContext): ReadonlySet<string> {
  // The names of members may have so many capital letters that they look random.
  const always = configuration.portals.flatMap(({ clientId, policy }) => [clientId, ...Object.keys(policy)]);
  if (hub.kind !== 'running') return new Set(always);
  const appliances = hub.appliances.flatMap(({ name, client_id }) => [name, client_id]);
  const connections = hub.connections.map(({ name }) => name);
  return new Set([...always, hub.hub.id, hub.hub.ca_fingerprint, ...connections, ...appliances]);
}

function toJson(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

const README = `Diagnostics of a hub for support, made by "latchkey doctor --bundle".

doctor.json         what each check found
status.json         the hub, its connections and its appliances, as "latchkey status" shows them, without the links of open pairings
configuration.json  the configuration as it was read, without any secret; only the origin of a webhook, only the program of a command
environment.json    the names of Latchkey's environment variables; values only if they can't be secret
versions.json       Latchkey, Node.js, kernel, distribution, machine
network.txt         interfaces and routes
files.txt           the files of the state directory: mode, owner, size, time, name
history.json        what happened to each connection
metrics.txt         the metrics for Prometheus
journal.txt         the service's last 2,000 lines

Not included: tokens, codes, secrets, keys, the setup code, cookies, the store, and passwords. Everything that looks like one of
them was replaced by [removed]. Included are the names of the connections and appliances, and the addresses of the home
network and of the portal: give the archive only to people who may know these.
`;
