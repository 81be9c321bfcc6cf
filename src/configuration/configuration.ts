import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type * as v from 'valibot';
import {
  CertificateError,
  type CertificateFiles,
  readCustomCertificate,
  type ServedCertificate,
} from '../certificates/custom-certificate.ts';
import type { DeclaredAppliance } from '../core/appliances/appliance.ts';
import { Failure } from '../core/failure.ts';
import type { RetryLostAnswer } from '../core/grants/retry-delays.ts';
import type { ApplyMethod } from '../core/portal.ts';
import { Secret } from '../core/secret.ts';
import type { HooksConfiguration } from '../notify/hooks.ts';
import { readBoundedFile } from '../system/bounded-file.ts';
import { isSystemdCredential, readSecret, secretLocation } from '../system/secret-file.ts';
import { readDeclaredAppliances } from './declarations.ts';
import { applyEnvironment, isTable, overridingVariable, type RawTable } from './environment-overrides.ts';
import { defaultStateDirectory, locateConfigurationFile, MAX_FILE_BYTES, readConfigurationFile } from './file.ts';
import type { configurationSchema } from './schema.ts';
import { InvalidKeyFailure, validateConfiguration } from './validation.ts';
import type { SocketAddress } from './values.ts';

/** A portal, ready to be spoken to. */
export interface PortalConfiguration {
  readonly name: string;
  readonly baseUrl: string;
  readonly frontendUrl: string;
  readonly clientId: string;
  readonly clientSecret: Secret;
  /** The file of that, as a person finds it; left out where it comes from none. */
  readonly secretFile?: string;
  /** As `CredentialLocation` has it. */
  readonly appliedBy?: ApplyMethod;
  /** Further CAs to trust, PEM. */
  readonly ca: string[];
  readonly retryLostAnswer: RetryLostAnswer;
  /** `auto`, `off`, or an address to which `/callback/<nonce>` is appended. */
  readonly redirect: string;
}

/** The configuration, checked whole and with its defaults. Times are in ms. */
export interface Configuration {
  /** The file that it was read from, which may be missing if the user named none. */
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
    readonly certificate: { readonly files: CertificateFiles; readonly leaf: ServedCertificate } | null;
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
  readonly credentialsDirectory: string | undefined;
  /** The portal is an emulator in the same process, and the state directory goes with both; left out of all other hubs. */
  readonly testMode?: true;
}

/** What a configuration says, and what is wrong with it. */
interface ConfigurationReading {
  /** Of what can't be used it has the defaults; a portal that lacks something, and such an appliance, is left out. */
  readonly configuration: Configuration;
  /** One line each, the gravest first: an {@link InvalidKeyFailure} is about that key, any other about the file as a whole. */
  readonly errors: readonly Failure[];
}

/**
 * Reads and checks the configuration. Relative paths in it are relative to the file.
 * @param file as named by the user; else `LATCHKEY_CONFIG`, else `/etc/latchkey/latchkey.toml`, which may be missing
 * @throws Failure `config_invalid`: one line that names the key, what was found and what is allowed
 */
export async function loadConfiguration(file: string | undefined, env: NodeJS.ProcessEnv): Promise<Configuration> {
  const { configuration, errors: faults } = await readConfiguration(file, env);
  const [fault] = faults;
  if (fault !== undefined) throw fault;
  return configuration;
}

/**
 * Reads the configuration as {@link loadConfiguration}, and goes on where something is wrong with it.
 * @param secretOf reads the files of secrets
 */
export async function readConfiguration(
  file: string | undefined,
  env: NodeJS.ProcessEnv,
  secretOf: typeof readSecret = readSecret,
): Promise<ConfigurationReading> {
  const { path, named } = locateConfigurationFile(file, env);
  const faults: Failure[] = [];
  const invalid = (key: string, what: string) => new InvalidKeyFailure(overridingVariable(key, env) ?? path, key, what);
  const report = (key: string, what: string) => void faults.push(invalid(key, what));
  const table = await readConfigurationFile(path, named).catch((error: unknown): RawTable => {
    if (!(error instanceof Failure)) throw error;
    faults.push(error);
    return {};
  });
  const raw = applyEnvironment(table, env);
  const { usable, problems } = validateConfiguration(raw);
  for (const [key, what] of problems) report(key, what);
  const { hub, lan, portals, pairing, appliances, notify, metrics } = usable;
  if (lan.http_port === lan.https_port && lan.http_port !== 0)
    report('lan.http_port', `found ${lan.http_port}, which is lan.https_port too; allowed is another port`);

  const taken = (['http_port', 'https_port'] as const).find(
    (key) => lan[key] === metrics.listen?.port && lan[key] !== 0,
  );
  if (taken !== undefined) {
    report('metrics.listen', `found port ${lan[taken]}, which is lan.${taken} too; allowed is another port`);
  }

  const credentials = env['CREDENTIALS_DIRECTORY'];
  const directory = dirname(path);
  const stateDirectory = resolve(directory, hub.state_dir ?? defaultStateDirectory(env));
  const runtime = env['RUNTIME_DIRECTORY']?.split(':')[0];
  const configuration: Configuration = {
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
      certificate: await loadCustomCertificate(lan, directory, credentials).catch((error: CertificateError) => {
        report(`lan.${error.key}`, error.message);
        return null;
      }),
    },
    portals: await Promise.all(
      Object.entries(portals).map(async ([name, portal]) => ({
        name,
        baseUrl: portal.base_url,
        frontendUrl: portal.frontend_url,
        clientId: portal.client_id,
        clientSecret: await secretOf(portal.client_secret_file, directory, credentials).catch((error: Error) => {
          report(`portals.${name}.client_secret_file`, error.message);
          return new Secret('');
        }),
        secretFile: secretLocation(portal.client_secret_file, directory, credentials),
        appliedBy: isSystemdCredential(portal.client_secret_file, credentials) ? 'service_restart' : 'reload',
        ca: await readCa(portal.ca_file, directory).catch((error: Error) => {
          report(`portals.${name}.ca_file`, error.message);
          return [];
        }),
        retryLostAnswer: portal.retry_lost_answer,
        redirect: portal.redirect,
      })),
    ),
    appliances: await readDeclaredAppliances(appliances, {
      // One that can't be used is named rightly all the same.
      portals: Object.keys(isTable(raw['portals']) ? raw['portals'] : {}),
      directory,
      credentialsDirectory: credentials,
      readSecret: secretOf,
      invalidKey: invalid,
      report: (fault) => void faults.push(fault),
    }),
    pairing: { lifetime: pairing.lifetime, pollInterval: pairing.poll_interval, onStart: pairing.on_start },
    notify: {
      command: resolveCommand(notify.command, directory),
      webhook: notify.webhook ? new Secret(notify.webhook) : null,
    },
    metrics: metrics.listen,
    credentialsDirectory: credentials,
  };
  return { configuration, errors: faults };
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
  throw new InvalidKeyFailure(
    configuration.file,
    'portals',
    'there is none; add a table such as [portals.home], or try Latchkey out with "latchkey serve --test-mode"',
  );
}

async function loadCustomCertificate(
  { certificate_file: certificate, key_file: key }: v.InferOutput<typeof configurationSchema>['lan'],
  directory: string,
  credentials: string | undefined,
): Promise<Configuration['lan']['certificate']> {
  if (certificate === undefined && key === undefined) return null;
  if (key === undefined)
    throw new CertificateError('key_file', 'is missing, and is needed beside lan.certificate_file');
  if (certificate === undefined)
    throw new CertificateError('certificate_file', 'is missing, and is needed beside lan.key_file');
  const files = { certificate, key, directory, credentials };
  return { files, leaf: await readCustomCertificate(files) };
}

/** A program that is named by a path is looked for beside the configuration, any other where programs are. */
function resolveCommand(command: readonly string[] | undefined, directory: string): HooksConfiguration['command'] {
  const [program, ...args] = command ?? [];
  if (program === undefined) return null;
  return [program.includes('/') ? resolve(directory, program) : program, ...args];
}

async function readCa(file: string, directory: string): Promise<string[]> {
  if (file === '') return [];
  const path = resolve(directory, file);
  const pem = await readBoundedFile(path, MAX_FILE_BYTES).catch(() => null);
  if (pem?.includes('-----BEGIN CERTIFICATE-----')) return [pem];
  throw new Error(
    `${path} ${(await stat(path).catch(() => null)) === null ? 'is not there' : 'holds no PEM certificate'}`,
  );
}
