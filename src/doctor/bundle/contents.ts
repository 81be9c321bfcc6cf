import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { request } from 'undici';
import type { ApplianceAnswer } from '../../control/messages.ts';
import { messageOf } from '../../core/failure.ts';
import type { Finding } from '../finding.ts';
import { metricsOrigin } from '../metrics.ts';
import { outputOf } from '../program.ts';
import { type Examination, type Subject, withHub } from '../subject.ts';
import { UNIT } from '../unit.ts';
import type { Part } from './archive.ts';
import { network, versions } from './machine.ts';
import { README } from './readme.ts';
import { scrub } from './scrub.ts';
import { environment, settings } from './settings.ts';

/** How long each of the parts may take, in ms. */
const PATIENCE = 4000;
const JOURNAL_LINES = '2000';
/** Characters of the longest part; of the journal the newest count. */
const LONGEST = 1 << 20;
/** Files of the state directory that are listed, and appliances whose history is told. */
const MOST = 500;

/** Everything that somebody far away needs to understand a hub, each text freed of all that looks like a secret. */
export async function contents(
  subject: Subject,
  checks: readonly Finding[],
  examination: Examination,
): Promise<Part[]> {
  const { configuration, fault, env } = subject;
  const parts: Part[] = await Promise.all([
    part('README.txt', () => README),
    part('doctor.json', () => json({ checks })),
    part('status.json', () => json(statusOf(subject))),
    part('configuration.json', () => json(configuration === null ? { fault } : settings(configuration))),
    part('environment.json', () => json(environment(env))),
    part('versions.json', async () => json(await versions())),
    part('network.txt', network),
    part('files.txt', () => listing(configuration?.stateDirectory)),
    part('history.json', async () => json(await histories(subject, examination))),
    part('metrics.txt', () => metrics(subject)),
    part('journal.txt', () => journal(env)),
  ]);
  const known = secretsOf(subject);
  const kept = harmlessOf(subject);
  return parts.map(({ name, text }) => ({ name, text: scrub(text.slice(-LONGEST), known, kept) }));
}

async function part(name: string, write: () => string | Promise<string>): Promise<Part> {
  try {
    return { name, text: await write() };
  } catch (error) {
    return { name, text: `It could not be had: ${messageOf(error)}\n` };
  }
}

/** Links and codes of pairings are left out, as they lead into a login, and accounts, which are mail addresses and names. */
function statusOf({ hub }: Subject): object {
  if (hub.kind !== 'running') return hub;
  const appliances = hub.appliances.map(({ authorize_url: link, account, ...rest }: ApplianceAnswer) => ({
    ...rest,
    account: account && 'left out',
    ...(link !== undefined && { authorize_url: 'left out' }),
  }));
  return { hub: hub.hub, appliances, notices: hub.notices };
}

async function histories({ hub }: Subject, examination: Examination): Promise<object> {
  if (hub.kind !== 'running') return { left_out: hub.detail };
  return withHub(examination, async (client) => {
    const told: Record<string, unknown> = {};
    for (const { name } of hub.appliances.slice(0, MOST)) told[name] = await client.history(name);
    return told;
  });
}

async function metrics(subject: Subject): Promise<string> {
  const origin = metricsOrigin(subject);
  if (origin === null) return 'No metrics are told here, or the hub does not run.\n';
  const { body } = await request(`${origin}/metrics`, { signal: AbortSignal.timeout(PATIENCE) });
  return body.text();
}

async function journal(env: NodeJS.ProcessEnv): Promise<string> {
  const args = ['-u', UNIT, '-n', JOURNAL_LINES, '--no-pager', '-o', 'short-iso'];
  const text = await outputOf('journalctl', args, AbortSignal.timeout(PATIENCE), env);
  return text ?? 'There is no journal of systemd here, or this user may not read it (run it with sudo).\n';
}

async function listing(directory: string | undefined): Promise<string> {
  if (directory === undefined) return 'The state directory is not known: the configuration can not be read.\n';
  const names = (await readdir(directory, { recursive: true })).sort().slice(0, MOST);
  const lines = await Promise.all(
    ['.', ...names].map(async (name) => {
      const { mode, uid, gid, size, mtime } = await stat(join(directory, name));
      return `${mode.toString(8)}  ${uid}:${gid}  ${size}  ${mtime.toISOString()}  ${name}`;
    }),
  );
  return `${directory}\n${lines.join('\n')}\n`;
}

/** Those secrets of which the values are known here. */
function secretsOf({ configuration }: Subject): string[] {
  if (configuration === null) return [];
  const { portals, notify } = configuration;
  const webhook = notify.webhook === null ? [] : partsOf(notify.webhook.reveal());
  // A path is none, and would be missed where it is told.
  const args = (notify.command ?? []).slice(1).filter((arg) => !arg.startsWith('/'));
  return [...portals.map(({ clientSecret }) => clientSecret.reveal()), ...webhook, ...args];
}

/** Of an address the origin is told. */
function partsOf(address: string): string[] {
  const { pathname, search } = new URL(address);
  return [address, `${pathname}${search}`, pathname];
}

function harmlessOf({ configuration, hub }: Subject): ReadonlySet<string> {
  const portals = configuration?.portals.map(({ clientId }) => clientId) ?? [];
  if (hub.kind !== 'running') return new Set(portals);
  const appliances = hub.appliances.flatMap(({ name, client_id }) => [name, client_id]);
  return new Set([...portals, hub.hub.id, hub.hub.ca_fingerprint, ...appliances]);
}

function json(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
