import { wallClock } from '../../system/clock.ts';
import { systemRandom } from '../../system/random.ts';
import type { FaultOptions } from '../faults/kinds.ts';
import type { ClientOptions, EmulatorClock, EmulatorOptions, Interceptor, UserOptions } from '../options.ts';
import { type Client, ClientRegistry } from './client-registry.ts';
import { findProfile, type Profile } from './profiles.ts';
import type { Settings } from './settings.ts';
import { checkOptions } from './start-options.ts';
import { applySettingsChange, OptionError, pickSettings } from './validation.ts';

/** The options with all defaults filled in and checked. */
export interface EffectiveSettings extends Settings {
  readonly host: string;
  readonly port: number;
  readonly frontendPort: number;
  readonly publicHost: string;
  /** The host names that clients may use, in lower case. */
  readonly hostNames: readonly string[];
  /** The names of the issuers other than the default one. */
  readonly issuers: readonly string[];
  readonly clients: ClientRegistry;
  readonly firstClient: Client;
  readonly users: ReadonlyMap<string, UserOptions>;
  readonly firstUser: UserOptions;
  /** Whether no users are configured, so that the login page shows the name and the password of the demo user. */
  readonly usesDemoUser: boolean;
  readonly state: string | null;
  readonly tls: boolean;
  readonly caFile: string | null;
  readonly showSecrets: boolean;
  readonly faults: readonly FaultOptions[];
  readonly seed: number;
  readonly clock: EmulatorClock;
  readonly intercept: Interceptor;
}

/**
 * Fills in the defaults and checks every value.
 * @param generated the client if none is configured; default: a new one
 * @throws OptionError
 */
export function resolveSettings(options: EmulatorOptions, generated?: ClientOptions): EffectiveSettings {
  checkOptions(options);
  const host = options.host ?? '127.0.0.1';
  const wildcard = host === '0.0.0.0' || host === '::';
  const { port = 0, frontendPort = 0 } = options;
  if (port !== 0 && port === frontendPort) {
    throw new OptionError(`frontendPort: must differ from port (found ${frontendPort})`);
  }
  if (options.caFile !== undefined && options.tls !== true) {
    throw new OptionError(`caFile: needs tls (found ${options.caFile} without tls)`);
  }
  const profile = findProfile(options.profile ?? '') ?? null;
  const isLocal = options.clients === undefined && options.redirectUris === undefined && profile === null;
  const clients = (options.clients ?? [generated ?? defaultClient(profile)]).map((one) => ({
    ...resolveClient({ ...one, redirectUris: one.redirectUris ?? options.redirectUris }),
    isLocal,
  }));
  const users = options.users ?? [{ name: 'demo', password: 'demo' }];
  const publicHost = options.publicHost ?? (wildcard ? '127.0.0.1' : host);
  const clientsById = indexByName('clients', 'ID', clients, (one) => one.id);
  const usersByName = indexByName('users', 'name', users, (one) => one.name);
  return {
    host,
    port,
    frontendPort,
    publicHost,
    hostNames: ['localhost', host, publicHost, ...(options.allowedHosts ?? [])].map((name) => name.toLowerCase()),
    issuers: options.issuers ?? [],
    clients: new ClientRegistry(clientsById.all),
    firstClient: clientsById.first,
    users: usersByName.all,
    firstUser: usersByName.first,
    usesDemoUser: options.users === undefined,
    ...applySettingsChange(pickSettings(options), applySettingsChange(profile?.settings ?? {})),
    state: options.state ?? null,
    tls: options.tls ?? false,
    caFile: options.caFile ?? null,
    showSecrets: options.showSecrets ?? false,
    faults: options.faults ?? [],
    seed: options.seed ?? 0,
    clock: options.clock ?? wallClock,
    intercept: options.intercept ?? {},
  };
}

function defaultClient(profile: Profile | null): ClientOptions {
  const id = profile?.clientId ?? systemRandom.uuid();
  return profile?.isPublic === true ? { id } : { id, secret: systemRandom.token(24) };
}

/** RFC 6749, A.1, without the space. */
const CLIENT_ID = /^[\x21-\x7e]{0,500}$/;

function resolveClient(options: ClientOptions): Client {
  // The value is not shown: if ID and secret were swapped, it is the secret.
  if (!CLIENT_ID.test(options.id)) throw new OptionError('clients: the ID must be visible ASCII');
  return {
    id: options.id,
    secret: options.secret ?? null,
    jwks: options.jwks ?? null,
    name: options.name ?? options.id,
    redirectUrl: options.redirectUrl ?? 'accept',
    redirectUris: options.redirectUris ?? [],
    postLogoutRedirectUris: options.postLogoutRedirectUris ?? [],
    claims: options.claims ?? {},
  };
}

function indexByName<T>(option: string, noun: string, all: readonly T[], nameOf: (one: T) => string) {
  const [first] = all;
  if (first === undefined) throw new OptionError(`${option}: must have one entry or more (found none)`);
  const map = new Map(all.map((one) => [nameOf(one), one]));
  if (map.size < all.length || map.has('')) {
    throw new OptionError(`${option}: each ${noun} must be unique and not empty`);
  }
  return { all: map, first };
}
