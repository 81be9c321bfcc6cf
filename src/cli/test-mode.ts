import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Configuration } from '../configuration/configuration.ts';
import type { HelperPortalConfiguration, OAuth2PortalConfiguration } from '../configuration/portals.ts';
import { DEFAULT_POLICY } from '../core/grants/login-end.ts';
import type { Log } from '../core/log.ts';
import { Secret } from '../core/secret.ts';
import { type Emulator, startEmulator, type UserOptions } from '../emulator/index.ts';
import { lanAddress } from '../hub/hub-endpoints.ts';
import { isLoopbackHost, urlHost } from '../system/addresses.ts';
import { systemRandom } from '../system/random.ts';

/** The port of the default of `metrics.listen`. */
const DEFAULT_METRICS_PORT = 9480;

/** What the hub is at the emulator, and the name of the portal in its configuration. */
interface EmulatorClient {
  readonly name: string;
  readonly clientId: string;
  readonly clientSecret: string;
}

/** The configuration of a portal that is the emulator as an OAuth 2.0 server, with logins by device code. */
export function emulatorCloudConfiguration(
  { frontendUrl }: Pick<Emulator, 'frontendUrl'>,
  { name, clientId, clientSecret }: EmulatorClient,
): OAuth2PortalConfiguration {
  return {
    type: 'oauth2',
    name,
    preset: null,
    clientId,
    ca: [],
    proxy: null,
    appliedBy: 'new_start',
    policy: DEFAULT_POLICY,
    settings: {
      issuer: frontendUrl,
      endpoints: { authorization: null, token: null, deviceAuthorization: null, revocation: null },
      clientId,
      clientAuth: null,
      clientSecret: new Secret(clientSecret),
      clientKey: null,
      login: 'device',
      redirectUri: null,
      pkce: true,
      scopeSeparator: ' ',
      defaultScope: null,
      authorizationParams: {},
      tokenParams: {},
      headers: {},
      errorCodes: {},
      protocol: {},
      tokenLifetime: null,
      minRequestInterval: null,
      readsErrorsOfSuccess: true,
      readAnswer: null,
    },
  };
}

/** The configuration of a helper portal that is the emulator. */
export function emulatorPortalConfiguration(
  { baseUrl, frontendUrl }: Pick<Emulator, 'baseUrl' | 'frontendUrl'>,
  { name, clientId, clientSecret, redirect = 'auto' }: EmulatorClient & { readonly redirect?: string },
): HelperPortalConfiguration {
  const secret = new Secret(clientSecret);
  const appliedBy = 'new_start';
  return {
    type: 'helper',
    name,
    baseUrl,
    frontendUrl,
    clientId,
    clientSecret: secret,
    ca: [],
    proxy: null,
    redirect,
    appliedBy,
    revocationEndpoint: `${baseUrl}/oauth2/revoke`,
    tokenLifetime: null,
    policy: DEFAULT_POLICY,
  };
}

/** A state directory that is deleted when the stack is disposed of. */
export async function temporaryStateDirectory(parts: AsyncDisposableStack): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'latchkey-'));
  parts.defer(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** Whether only this machine reaches a hub, and its emulator in test mode. */
export function isLocal({ lan }: Pick<Configuration, 'lan'>): boolean {
  return lan.listen.every((address) => isLoopbackHost(urlHost(address)));
}

/**
 * Starts a portal emulator for a hub in test mode. Browsers reach it at the hub's address on the home network, or only on
 * this machine if the hub listens on no other address than loopback. Neither the emulator nor the hub stores anything: a new emulator knows no grants, so the hub must not keep any.
 * @param parts receives what is started, to dispose of it at the end
 * @returns `changed`: the configuration for this hub
 */
export async function startTestPortal(
  parts: AsyncDisposableStack,
  configuration: Configuration,
  log: Log,
): Promise<{ changed: Configuration; emulator: Emulator; user: UserOptions }> {
  const stateDirectory = await temporaryStateDirectory(parts);
  const user = { name: 'demo', password: 'demo' };
  const [local] = isLocal(configuration) ? configuration.lan.listen : [];
  const { lan } = configuration;
  const host = local ?? lanAddress(lan.address, lan.listen) ?? '127.0.0.1';
  const client = { id: systemRandom.uuid(), secret: systemRandom.token(24), name: `Latchkey on ${configuration.name}` };
  const anyAddress = host.includes(':') ? '::' : '0.0.0.0';
  const emulator = parts.use(await startEmulator({ host: local ?? anyAddress, publicHost: host, clients: [client] }));
  const { clientId, clientSecret, baseUrl, frontendUrl } = emulator;
  log.info('emulator_started', { base_url: baseUrl, frontend_url: frontendUrl });
  const portals = [emulatorPortalConfiguration(emulator, { name: 'emulator', clientId, clientSecret })];
  const connections = configuration.connections.map((declared) => ({ ...declared, portal: null }));
  const appliances = configuration.appliances.map((declared) => ({ ...declared, portal: null }));
  // A hub in test mode leaves the default port to the machine's regular hub.
  const metrics = configuration.metrics && {
    ...configuration.metrics,
    port: configuration.metrics.port === DEFAULT_METRICS_PORT ? 0 : configuration.metrics.port,
  };
  const changed: Configuration = {
    ...configuration,
    stateDirectory,
    site: null,
    portals,
    connections,
    appliances,
    metrics,
    testMode: true,
  };
  return { changed, emulator, user };
}
