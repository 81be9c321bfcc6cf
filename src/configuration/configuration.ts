import { dirname, join, resolve } from 'node:path';
import type * as v from 'valibot';
import {
  CertificateError,
  type CertificateFiles,
  readCustomCertificate,
  type ServedCertificate,
} from '../certificates/custom-certificate.ts';
import type { DeclaredAppliance } from '../core/appliances/appliance.ts';
import type { DeclaredConnection } from '../core/connections/connection.ts';
import { Failure } from '../core/failure.ts';
import { Secret } from '../core/secret.ts';
import { machineName } from '../system/container.ts';
import { readSecret, withoutSurroundingSpace } from '../system/secret-file.ts';
import { readDeclaredAppliances, readDeclaredConnections } from './declarations.ts';
import { applyEnvironment, isTable, overridingVariable, type RawTable } from './environment-overrides.ts';
import { defaultStateDirectory, locateConfigurationFile, type ParsedFile, readConfigurationFile } from './file.ts';
import { appOptionsSource, inOptionNames } from './home-assistant-options.ts';
import { type NotifyConfiguration, readNotify } from './notify.ts';
import { type PortalConfiguration, readPortals } from './portals.ts';
import { completePortals } from './presets.ts';
import type { ReadingContext } from './reading-context.ts';
import type { configurationSchema } from './schema.ts';
import { readSite, type SiteConfiguration } from './site.ts';
import { InvalidKeyFailure, validateConfiguration } from './validation.ts';
import type { SocketAddress } from './values.ts';

/** The configuration, completely validated and with its defaults. Times are in ms. */
export interface Configuration {
  /** The path of the file. If it is the default path, the file may not exist. */
  readonly file: string;
  readonly name: string;
  readonly stateDirectory: string;
  readonly controlSocket: string;
  /** The database that the hubs of a site share; null if the hub is alone, with SQLite in its state directory. */
  readonly site: SiteConfiguration | null;
  readonly lan: {
    readonly httpPort: number;
    readonly httpsPort: number;
    readonly address: string;
    readonly listen: readonly string[];
    readonly mdns: boolean;
    /**
     * The owner's certificate, as it was when the configuration was read; null if the hub's CA issues the certificate.
     */
    readonly certificate: { readonly files: CertificateFiles; readonly leaf: ServedCertificate } | null;
  };
  /** The declared portals; the first is the default. */
  readonly portals: readonly PortalConfiguration[];
  /** The declared connections and appliances. */
  readonly connections: readonly DeclaredConnection[];
  readonly appliances: readonly DeclaredAppliance[];
  readonly pairing: { readonly lifetime: number; readonly pollInterval: number; readonly onStart: boolean };
  /** The command and the webhook for notices. */
  readonly notify: NotifyConfiguration;
  /** The port on loopback that issues tokens to programs of this machine; null if turned off. */
  readonly local: number | null;
  /** The address that serves metrics and health checks; null if turned off. */
  readonly metrics: SocketAddress | null;
  /**
   * The address that serves the installer's page to a reverse proxy, the proxy's address, and which of its users and
   * host names are accepted (all if there is none); null if turned off.
   */
  readonly ingress:
    | (SocketAddress & { readonly from: string; readonly users: readonly string[]; readonly hosts: readonly string[] })
    | null;
  /** systemd's `$CREDENTIALS_DIRECTORY`. */
  readonly credentialsDirectory: string | undefined;
  /** What the owner should correct although the hub works, one line each; left out if there is nothing. */
  readonly warnings?: readonly string[];
  /**
   * Test mode: the portal is an emulator in the same process, and the state directory is temporary. Left out otherwise.
   */
  readonly testMode?: true;
}

/** A configuration, and its errors. */
interface ConfigurationReading {
  /** An invalid key has its default. A portal or an appliance without a required key is left out. */
  readonly configuration: Configuration;
  /**
   * One line each, the most important first. An {@link InvalidKeyFailure} concerns one key, any other failure the whole
   * file.
   */
  readonly errors: readonly Failure[];
}

/**
 * Reads and validates the configuration. Paths in it are relative to the file.
 * @param file as named by the user; else `LATCHKEY_CONFIG`, else `/etc/latchkey/latchkey.toml`, which may be missing
 * @throws Failure `config_invalid`: one line with the file, the key, what it must be and what was found
 */
export async function loadConfiguration(file: string | undefined, env: NodeJS.ProcessEnv): Promise<Configuration> {
  const { configuration, errors } = await readConfiguration(file, env);
  const [first] = errors;
  if (first !== undefined) throw first;
  return configuration;
}

/**
 * Reads the configuration as {@link loadConfiguration} does, but collects all errors instead of throwing the first.
 * @param readSecretFile reads a file with a secret
 */
export async function readConfiguration(
  file: string | undefined,
  env: NodeJS.ProcessEnv,
  readSecretFile: typeof readSecret = readSecret,
): Promise<ConfigurationReading> {
  const { path, named } = locateConfigurationFile(file, env);
  const errors: Failure[] = [];
  const { table, options } = await readConfigurationFile(path, named).catch((error: unknown): ParsedFile => {
    if (!(error instanceof Failure)) throw error;
    errors.push(error);
    return { table: {} };
  });
  const invalidKey = (key: string, problem: string) => {
    const variable = overridingVariable(key, env);
    if (variable !== undefined || options === undefined) return new InvalidKeyFailure(variable ?? path, key, problem);
    return new InvalidKeyFailure(appOptionsSource(path), key, inOptionNames(problem), inOptionNames(key));
  };
  const report = (key: string, problem: string) => void errors.push(invalidKey(key, problem));
  for (const [option, problem] of options?.problems ?? []) {
    errors.push(new InvalidKeyFailure(appOptionsSource(path), option, problem));
  }
  const warnings: string[] = [];
  const reportTrimmed = (key: string) => void warnings.push(invalidKey(key, TRIMMED).message);
  const overridden = trimPastedValues(applyEnvironment(table, env), reportTrimmed);
  const { raw, used } = await completePortals(overridden, report);
  const { usable, problems } = validateConfiguration(raw);
  for (const [key, problem] of problems) report(key, problem);
  const { hub, store, lan, portals, pairing, connections, appliances, notify, metrics, ingress, local } = usable;
  const ports = {
    'lan.https_port': lan.https_port,
    'lan.http_port': lan.http_port,
    'metrics.listen': metrics.listen?.port,
    'ingress.listen': ingress.listen?.port,
    'local.port': local.port,
  };
  reportTakenPorts(ports, report);

  const credentials = env['CREDENTIALS_DIRECTORY'];
  const directory = dirname(path);
  const stateDirectory = resolve(directory, hub.state_dir ?? defaultStateDirectory(env));
  const runtime = env['RUNTIME_DIRECTORY']?.split(':')[0];
  const context: ReadingContext = {
    directory,
    credentialsDirectory: credentials,
    async readSecret(key, file, form = 'line') {
      if (form === 'exact') return readSecretFile(file, directory, credentials);
      const text = options?.secrets.get(file)?.reveal();
      if (text === undefined) return readSecretFile(file, directory, credentials, form, () => reportTrimmed(key));
      const trimmed = withoutSurroundingSpace(text);
      if (trimmed !== text) reportTrimmed(key);
      return new Secret(trimmed);
    },
    report,
  };
  // Also the portals with errors: a connection that names one of them is correct.
  const portalNames = Object.keys(isTable(overridden['portals']) ? overridden['portals'] : {});
  const declarationContext = { ...context, portals: portalNames };
  const declaredConnections = readDeclaredConnections(connections, declarationContext);
  const configuredPortals = await readPortals(portals, {
    ...context,
    presets: used,
    invalidKeys: new Set(problems.keys()),
  });
  const configuration: Configuration = {
    file: path,
    name: hub.name ?? machineName(env),
    stateDirectory,
    controlSocket: resolve(directory, hub.control_socket ?? join(runtime ?? stateDirectory, 'control.sock')),
    site: await readSite(store.postgres_file, context),
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
    portals: options === undefined ? configuredPortals : configuredPortals.map(inAppOptions),
    connections: declaredConnections,
    appliances: await readDeclaredAppliances(appliances, declaredConnections, declarationContext),
    pairing: { lifetime: pairing.lifetime, pollInterval: pairing.poll_interval, onStart: pairing.on_start },
    notify: await readNotify(notify, context),
    local: local.port ?? null,
    metrics: metrics.listen,
    ingress: ingress.listen && { ...ingress.listen, from: ingress.from, users: ingress.users, hosts: ingress.hosts },
    credentialsDirectory: credentials,
    ...(warnings.length > 0 && { warnings }),
  };
  return { configuration, errors };
}

/** The problem of a value from which white space was removed. */
const TRIMMED = 'there is white space around the value, which the hub ignores: remove it';
/** The keys of a portal that people paste, and whose values never begin or end with white space. */
const PASTED_KEYS: ReadonlySet<string> = new Set([
  ...['client_id', 'base_url', 'frontend_url', 'issuer', 'redirect_uri'],
  ...['authorization_endpoint', 'token_endpoint', 'device_authorization_endpoint', 'revocation_endpoint'],
]);

/** Removes white space around client IDs, addresses and headers. @param onTrimmed called with the key of each */
function trimPastedValues(raw: RawTable, onTrimmed: (key: string) => void): RawTable {
  const { portals, notify } = raw;
  const onTrimmedIn = (table: string) => (key: string) => onTrimmed(`${table}.${key}`);
  return {
    ...raw,
    ...(isTable(notify) && { notify: trimValues(notify, (key) => key === 'webhook', onTrimmedIn('notify')) }),
    ...(isTable(portals) && {
      portals: Object.fromEntries(
        Object.entries(portals).map(([name, table]) => [
          name,
          isTable(table) ? trimPortal(table, onTrimmedIn(`portals.${name}`)) : table,
        ]),
      ),
    }),
  };
}

/** A table `[portals.NAME]` without white space around what people paste. @param onTrimmed called with each key */
export function trimPortal(table: RawTable, onTrimmed: (key: string) => void = () => undefined): RawTable {
  return trimValues(table, (key) => PASTED_KEYS.has(key), onTrimmed);
}

function trimValues(table: RawTable, isPasted: (key: string) => boolean, onTrimmed: (key: string) => void): RawTable {
  return Object.fromEntries(
    Object.entries(table).map(([key, value]) => {
      if (isTable(value) && key === 'headers')
        return [
          key,
          trimValues(
            value,
            () => true,
            (header) => onTrimmed(`${key}.${header}`),
          ),
        ];
      if (typeof value !== 'string' || !isPasted(key)) return [key, value];
      const trimmed = withoutSurroundingSpace(value);
      if (trimmed !== value) onTrimmed(key);
      return [key, trimmed];
    }),
  );
}

/** Reports each port that a key before it uses. @param ports by key; 0 is any free one */
function reportTakenPorts(
  ports: Readonly<Record<string, number | undefined>>,
  report: (key: string, problem: string) => void,
): void {
  const keys = new Map<number, string>();
  for (const [key, port] of Object.entries(ports)) {
    if (port === undefined || port === 0) continue;
    const taken = keys.get(port);
    if (taken === undefined) keys.set(port, key);
    else report(key, `port ${port} is also ${taken}; choose another port`);
  }
}

async function loadCustomCertificate(
  { certificate_file: certificate, key_file: key }: v.InferOutput<typeof configurationSchema>['lan'],
  directory: string,
  credentials: string | undefined,
): Promise<Configuration['lan']['certificate']> {
  if (certificate === undefined && key === undefined) return null;
  if (key === undefined)
    throw new CertificateError('key_file', 'is missing; it is required together with lan.certificate_file');
  if (certificate === undefined)
    throw new CertificateError('certificate_file', 'is missing; it is required together with lan.key_file');
  const files = { certificate, key, directory, credentials };
  return { files, leaf: await readCustomCertificate(files) };
}

/** The client secret is in no file, and the Supervisor writes the options only when it starts the app. */
function inAppOptions({ secretFile: _, ...portal }: PortalConfiguration): PortalConfiguration {
  return { ...portal, appliedBy: 'app_restart' };
}
