import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { homedir, hostname } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parse, TomlError } from 'smol-toml';
import * as v from 'valibot';
import { CertificateFault, type CertificateFiles, readOwnCertificate } from '../certificates/own-certificate.ts';
import type { ShownLeaf } from '../certificates/shown-leaf.ts';
import type { DeclaredAppliance } from '../core/appliances/appliance.ts';
import { Failure } from '../core/failure.ts';
import type { Replay } from '../core/grants/retry-delays.ts';
import { Secret } from '../core/secret.ts';
import type { HooksConfiguration } from '../notify/hooks.ts';
import { readBounded } from '../system/bounded-file.ts';
import { readSecret } from '../system/secret-file.ts';
import { readDeclarations } from './declarations.ts';
import { overriding, type RawTable, withEnvironment } from './environment.ts';
import { configurationSchema, keysIn } from './schema.ts';
import type { SocketAddress } from './socket-address.ts';

/** A portal, ready to be spoken to. */
export interface PortalConfiguration {
  readonly name: string;
  readonly baseUrl: string;
  readonly frontendUrl: string;
  readonly clientId: string;
  readonly clientSecret: Secret;
  /** Further CAs to trust, PEM. */
  readonly ca: string[];
  readonly replay: Replay;
  /** `auto`, `off`, or an address to which `/callback/<nonce>` is appended. */
  readonly redirect: string;
}

/** The configuration, checked whole and with its defaults. Times are in ms. */
export interface Configuration {
  /** The file that it was read from, which may be missing where nobody named it. */
  readonly file: string;
  readonly name: string;
  readonly stateDirectory: string;
  readonly controlSocket: string;
  readonly lan: {
    readonly httpPort: number;
    readonly httpsPort: number;
    readonly address: string;
    readonly listen: readonly string[];
    readonly mdns: boolean;
    /** The user's own certificate, as it was when the configuration was read; null for the hub's own. */
    readonly certificate: { readonly files: CertificateFiles; readonly leaf: ShownLeaf } | null;
  };
  /** The first is the default. */
  readonly portals: readonly PortalConfiguration[];
  /** The appliances that are declared. */
  readonly appliances: readonly DeclaredAppliance[];
  readonly pairing: { readonly lifetime: number; readonly pollInterval: number; readonly onStart: boolean };
  /** The ways on which notices leave the house. */
  readonly notify: HooksConfiguration;
  /** Where Prometheus and health checks are answered; null for nowhere. */
  readonly metrics: SocketAddress | null;
  /** systemd's `$CREDENTIALS_DIRECTORY`. */
  readonly credentials: string | undefined;
}

/** Where the configuration is when nobody names a file. */
const DEFAULT_FILE = '/etc/latchkey/latchkey.toml';
/** Characters of a key that are told: one that nobody knows may be of any length. */
const LONGEST_KEY = 200;
/** Bytes of the configuration, and of a file with CAs. */
const LARGEST_FILE = 1 << 20;

/**
 * Reads and checks the configuration. Relative paths in it are relative to the file.
 * @param file as named by the user; else `LATCHKEY_CONFIG`, else {@link DEFAULT_FILE}, which may be missing
 * @param secretOf reads the files of secrets
 * @throws Failure `config_invalid`: one line that names the key, what was found and what is allowed
 */
export async function loadConfiguration(
  file: string | undefined,
  env: NodeJS.ProcessEnv,
  secretOf: typeof readSecret = readSecret,
): Promise<Configuration> {
  const { path, named } = locate(file, env);
  const raw = withEnvironment(await readTable(path, named), env);
  const invalid = (key: string, what: string) => invalidAt(overriding(key, env) ?? path, key, what);
  const list = listForTable(raw);
  if (list !== undefined) throw invalid(list, 'found a list; allowed is a table');
  const parsed = v.safeParse(configurationSchema, raw);
  if (!parsed.success) throw invalid(...describe(parsed.issues.find(isUnknownKey) ?? parsed.issues[0]));
  const { hub, lan, portals, pairing, appliances, notify, metrics } = parsed.output;
  if (lan.http_port === lan.https_port && lan.http_port !== 0)
    throw invalid('lan.http_port', `found ${lan.http_port}, which is lan.https_port too; allowed is another port`);

  const taken = (['http_port', 'https_port'] as const).find(
    (key) => lan[key] === metrics.listen?.port && lan[key] !== 0,
  );
  if (taken !== undefined) {
    throw invalid('metrics.listen', `found port ${lan[taken]}, which is lan.${taken} too; allowed is another port`);
  }

  const credentials = env['CREDENTIALS_DIRECTORY'];
  const directory = dirname(path);
  const stateDirectory = resolve(directory, hub.state_dir ?? defaultStateDirectory(env));
  const runtime = env['RUNTIME_DIRECTORY']?.split(':')[0];
  return {
    file: path,
    name: hub.name ?? hostname(),
    stateDirectory,
    controlSocket: resolve(directory, hub.control_socket ?? join(runtime ?? stateDirectory, 'control.sock')),
    lan: {
      httpPort: lan.http_port,
      httpsPort: lan.https_port,
      address: lan.address,
      listen: lan.listen,
      mdns: lan.mdns,
      certificate: await ownCertificate(lan, directory, credentials).catch((error: CertificateFault) => {
        throw invalid(`lan.${error.key}`, error.message);
      }),
    },
    portals: await Promise.all(
      Object.entries(portals).map(async ([name, portal]) => ({
        name,
        baseUrl: portal.base_url,
        frontendUrl: portal.frontend_url,
        clientId: portal.client_id,
        clientSecret: await secretOf(portal.client_secret_file, directory, credentials).catch((error: Error) => {
          throw invalid(`portals.${name}.client_secret_file`, error.message);
        }),
        ca: await readCa(portal.ca_file, directory).catch((error: Error) => {
          throw invalid(`portals.${name}.ca_file`, error.message);
        }),
        replay: portal.replay,
        redirect: portal.redirect,
      })),
    ),
    appliances: await readDeclarations(appliances, {
      portals: Object.keys(portals),
      directory,
      credentials,
      secretOf,
      invalid,
    }),
    pairing: { lifetime: pairing.lifetime, pollInterval: pairing.poll_interval, onStart: pairing.on_start },
    notify: {
      command: commandOf(notify.command, directory),
      webhook: notify.webhook ? new Secret(notify.webhook) : null,
    },
    metrics: metrics.listen,
    credentials,
  };
}

/**
 * Where the daemon's control socket may be, likeliest first: the system service's before the user's own. A configuration
 * that says where leaves no choice, lest a command meant for one hub reach another.
 */
export async function controlSockets(file: string | undefined, env: NodeJS.ProcessEnv): Promise<string[]> {
  const { path, named } = locate(file, env);
  const raw = withEnvironment(
    await readTable(path, named).catch((error: unknown) => {
      if (named) throw error;
      return {};
    }),
    env,
  );
  const hub = v.safeParse(
    v.looseObject({ control_socket: v.optional(v.string()), state_dir: v.optional(v.string()) }),
    raw['hub'],
  );
  const { control_socket, state_dir } = hub.success ? hub.output : {};
  const own = state_dir === undefined ? [] : [join(state_dir, 'control.sock')];
  const absolute = (socket: string) => resolve(dirname(path), socket);
  if (control_socket !== undefined) return [absolute(control_socket)];
  if (own.length > 0 && path !== DEFAULT_FILE) return own.map(absolute);
  // Under systemd the socket is in $RUNTIME_DIRECTORY, wherever the state is.
  const usual = ['/run/latchkey/control.sock', ...own, join(defaultStateDirectory(env), 'control.sock')];
  return usual.map(absolute);
}

/**
 * A hub without a portal has nothing to do.
 * @throws Failure `config_invalid`
 */
export function requirePortal(configuration: Configuration): Configuration {
  if (configuration.portals.length > 0) return configuration;
  if (!existsSync(configuration.file)) {
    throw new Failure(
      'config_invalid',
      `there is no configuration at ${configuration.file}: write one, name another with --config, or try Latchkey out with "latchkey serve --test-mode"`,
    );
  }
  throw invalidAt(
    configuration.file,
    'portals',
    'there is none; add a table such as [portals.home], or try Latchkey out with "latchkey serve --test-mode"',
  );
}

function locate(file: string | undefined, env: NodeJS.ProcessEnv): { path: string; named: boolean } {
  const named = file ?? (env['LATCHKEY_CONFIG'] || undefined);
  return { path: resolve(named ?? DEFAULT_FILE), named: named !== undefined };
}

async function readTable(path: string, named: boolean): Promise<RawTable> {
  try {
    return parse(await readBounded(path, LARGEST_FILE));
  } catch (cause) {
    if (!named && cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return {};
    if (cause instanceof TomlError) {
      const [reason] = cause.message.split('\n');
      throw new Failure('config_invalid', `${path}, line ${cause.line}: ${reason}; correct that line`);
    }
    if (cause instanceof RangeError) throw new Failure('config_invalid', `the configuration ${path}: ${cause.message}`);
    throw new Failure(
      'config_invalid',
      `the configuration ${path} can't be read: name one that is there and that this user may read`,
      { cause },
    );
  }
}

function defaultStateDirectory(env: NodeJS.ProcessEnv): string {
  const given = env['STATE_DIRECTORY']?.split(':')[0];
  return given ?? join(env['XDG_STATE_HOME'] || join(homedir(), '.local/state'), 'latchkey');
}

async function ownCertificate(
  { certificate_file: certificate, key_file: key }: v.InferOutput<typeof configurationSchema>['lan'],
  directory: string,
  credentials: string | undefined,
): Promise<Configuration['lan']['certificate']> {
  if (certificate === undefined && key === undefined) return null;
  if (key === undefined)
    throw new CertificateFault('key_file', 'is missing, and is needed beside lan.certificate_file');
  if (certificate === undefined)
    throw new CertificateFault('certificate_file', 'is missing, and is needed beside lan.key_file');
  const files = { certificate, key, directory, credentials };
  return { files, leaf: await readOwnCertificate(files) };
}

/** A program that is named by a path is looked for beside the configuration, any other where programs are. */
function commandOf(command: readonly string[] | undefined, directory: string): HooksConfiguration['command'] {
  const [program, ...args] = command ?? [];
  if (program === undefined) return null;
  return [program.includes('/') ? resolve(directory, program) : program, ...args];
}

async function readCa(file: string, directory: string): Promise<string[]> {
  if (file === '') return [];
  const path = resolve(directory, file);
  const pem = await readBounded(path, LARGEST_FILE).catch(() => null);
  if (pem?.includes('-----BEGIN CERTIFICATE-----')) return [pem];
  throw new Error(
    `${path} ${(await stat(path).catch(() => null)) === null ? 'is not there' : 'holds no PEM certificate'}`,
  );
}

/** The key, and what is wrong there. The value of an unknown key is not shown: it may be a secret in the wrong place. */
function describe(issue: v.BaseIssue<unknown>): [key: string, what: string] {
  const key = (issue.path ?? []).map((item) => String(item.key)).join('.') || 'the file';
  if (isUnknownKey(issue)) return [key, `is no key that Latchkey knows; allowed are ${keysOf(issue)}`];
  if (issue.received === 'undefined') return [key, 'is missing, and is needed'];
  // Arguments and addresses may hold secrets.
  if (key.startsWith('notify.')) return [key, `found something else; allowed is ${issue.message}`];
  return [
    key,
    `found ${/\.(client_id|secret_file|client_secret_file)$/.test(key) ? abbreviated(issue.input) : shown(issue)}; allowed is ${issue.message}`,
  ];
}

/** A key that nobody knows is told before one that is missing: it may be that one, misspelt. */
function isUnknownKey({ type, expected }: v.BaseIssue<unknown>): boolean {
  return type === 'strict_object' && expected === 'never';
}

/** The key of a list where a table belongs: valibot takes one for an object. */
function listForTable(raw: RawTable): string | undefined {
  const named = ['portals', 'appliances'].flatMap((section) =>
    Object.entries(raw[section] ?? {}).map(([name, value]) => [`${section}.${name}`, value] as const),
  );
  const sections = Object.entries(raw).filter(([key]) => key in configurationSchema.entries);
  return [...sections, ...named].find(([, value]) => Array.isArray(value))?.[0];
}

/** What stood where a table belongs is not shown, and neither is a password in an address. */
function shown({ kind, expected, input }: v.BaseIssue<unknown>): string {
  if (kind === 'schema' && expected === 'Object') return `a ${typeof input}`;
  return `${JSON.stringify(input)}`.replace(/\/\/.*@/, '//…@').slice(0, 100);
}

/** Where the secret may stand by mistake no more is shown than is needed to find it. */
function abbreviated(input: unknown): string {
  if (typeof input === 'object') return Array.isArray(input) ? 'a list' : 'a table';
  const text = JSON.stringify(input);
  return text.length <= 12 ? text : `${text.slice(0, 5)}…" (${String(input).length} characters)`;
}

function keysOf({ path }: v.BaseIssue<unknown>): string {
  const [section] = path ?? [];
  return Object.keys(path?.length === 1 ? configurationSchema.entries : keysIn(String(section?.key))).join(', ');
}

/** @param source the file, or the environment variable that overrides it */
function invalidAt(source: string, key: string, what: string): Failure {
  return new Failure('config_invalid', `${source}: ${key.slice(0, LONGEST_KEY)}: ${what}`);
}
