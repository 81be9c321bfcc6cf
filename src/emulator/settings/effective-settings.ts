import { wallClock } from '../../system/clock.ts';
import { systemRandom } from '../../system/random.ts';
import type { FaultOptions } from '../faults/kinds.ts';
import { changedSettings, OptionError, refuseUnknown, settingsIn } from './check.ts';
import type { ClientOptions, EmulatorClock, EmulatorOptions, Interceptor, UserOptions } from './options.ts';
import { SETTINGS, type SettingOptions, type Settings } from './settings.ts';

/** A registered client, all defaults filled in. */
export interface Client {
  readonly id: string;
  readonly secret: string;
  readonly name: string;
  readonly redirectUrl: 'accept' | 'refuse';
  readonly redirectUris: readonly string[];
}

/** The options with all defaults filled in and checked. */
export interface EffectiveSettings extends Settings {
  readonly host: string;
  readonly port: number;
  readonly frontendPort: number;
  readonly publicHost: string;
  /** The names that requests may be for, in lower case. */
  readonly names: readonly string[];
  readonly clients: ReadonlyMap<string, Client>;
  readonly firstClient: Client;
  readonly users: ReadonlyMap<string, UserOptions>;
  readonly firstUser: UserOptions;
  /** Nobody named users, so a person can only know from the page how to log in. */
  readonly demoUser: boolean;
  readonly state: string | null;
  readonly tls: boolean;
  readonly caFile: string | null;
  readonly showSecrets: boolean;
  readonly faults: readonly FaultOptions[];
  readonly seed: number;
  readonly clock: EmulatorClock;
  readonly intercept: Interceptor;
}

/** Holds the settings that are in force, and changes them while the emulator runs. */
export class SettingsInForce {
  readonly #start: EffectiveSettings;
  readonly #changed: () => void;
  #settings: EffectiveSettings;

  /** @param changed is called after every change */
  constructor(start: EffectiveSettings, changed: () => void) {
    this.#start = start;
    this.#changed = changed;
    this.#settings = start;
  }

  /** The settings in force. The object never changes: whoever holds on to it keeps what it began with. */
  get settings(): EffectiveSettings {
    return this.#settings;
  }

  /**
   * Changes some settings, all of them or, where one is no good, none.
   * @throws OptionError
   */
  change(change: SettingOptions): void {
    this.#settings = { ...this.#settings, ...changedSettings(change, settingsIn(this.#settings)) };
    this.#changed();
  }

  /** Back to what the emulator was started with. */
  reset(): void {
    this.#settings = this.#start;
    this.#changed();
  }
}

/** The names of a type, all of them. */
type Names<Type> = { readonly [Name in keyof Type]-?: true };

/** The options, beside the settings, that are fixed at the start. */
const FIXED: Names<Omit<EmulatorOptions, keyof Settings>> = {
  host: true,
  port: true,
  frontendPort: true,
  publicHost: true,
  allowedHosts: true,
  clients: true,
  users: true,
  state: true,
  tls: true,
  caFile: true,
  showSecrets: true,
  faults: true,
  seed: true,
  clock: true,
  intercept: true,
};
const OPTIONS = { ...FIXED, ...SETTINGS };
const OF_CLIENT: Names<ClientOptions> = { id: true, secret: true, name: true, redirectUrl: true, redirectUris: true };
const OF_USER: Names<UserOptions> = { name: true, password: true };

/**
 * Fills in the defaults and checks every value.
 * @throws OptionError
 */
export function settingsFrom(options: EmulatorOptions): EffectiveSettings {
  refuseUnknown(options, OPTIONS);
  for (const one of options.clients ?? []) refuseUnknown(one, OF_CLIENT, 'clients: ');
  for (const one of options.users ?? []) refuseUnknown(one, OF_USER, 'users: ');
  const host = options.host ?? '127.0.0.1';
  const wildcard = host === '0.0.0.0' || host === '::';
  const port = whole('port', options.port ?? 0, 0, 65_535);
  const frontendPort = whole('frontendPort', options.frontendPort ?? 0, 0, 65_535);
  if (port !== 0 && port === frontendPort) {
    throw new OptionError(`frontendPort: found ${frontendPort}, the base origin's own port; allowed is any other`);
  }
  if (options.caFile !== undefined && options.tls !== true) {
    throw new OptionError(`caFile: found ${options.caFile} without tls; allowed is a file, together with tls`);
  }
  const clients = (options.clients ?? [{ id: systemRandom.uuid(), secret: systemRandom.token(24) }]).map(client);
  const users = options.users ?? [{ name: 'demo', password: 'demo' }];
  const publicHost = options.publicHost ?? (wildcard ? '127.0.0.1' : host);
  const clientsById = byName('clients', clients, (one) => one.id);
  const usersByName = byName('users', users, (one) => one.name);
  return {
    host,
    port,
    frontendPort,
    publicHost,
    names: [...['localhost', host, publicHost].map(lowerCase), ...(options.allowedHosts ?? []).map(hostName)],
    clients: clientsById.all,
    firstClient: clientsById.first,
    users: usersByName.all,
    firstUser: usersByName.first,
    demoUser: options.users === undefined,
    ...changedSettings(settingsIn(options)),
    state: options.state ?? null,
    tls: options.tls ?? false,
    caFile: options.caFile ?? null,
    showSecrets: options.showSecrets ?? false,
    faults: options.faults ?? [],
    seed: whole('seed', options.seed ?? 0, 0, Number.MAX_SAFE_INTEGER),
    clock: options.clock ?? wallClock,
    intercept: options.intercept ?? {},
  };
}

/** RFC 1123, 2.1; with `_`, as the names of containers have it. */
const HOST_NAME = /^(?=.{1,253}$)[a-z0-9_-]+(\.[a-z0-9_-]+)*$/i;

function hostName(name: string): string {
  if (HOST_NAME.test(name)) return lowerCase(name);
  throw new OptionError(
    `allowedHosts: found ${JSON.stringify(name.slice(0, 100))}; allowed is a host name, without scheme and port`,
  );
}

function lowerCase(name: string): string {
  return name.toLowerCase();
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

function client(options: ClientOptions): Client {
  if (!UUID.test(options.id)) {
    // Not shown: whoever mixed up the two has put the secret here.
    throw new OptionError('clients: found an id that is no UUID; allowed is xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx');
  }
  return {
    id: options.id,
    secret: options.secret,
    name: options.name ?? options.id,
    redirectUrl: options.redirectUrl ?? 'accept',
    redirectUris: options.redirectUris ?? [],
  };
}

function byName<T>(option: string, all: readonly T[], nameOf: (one: T) => string) {
  const [first] = all;
  if (first === undefined) throw new OptionError(`${option}: found none; allowed is one or more`);
  const map = new Map(all.map((one) => [nameOf(one), one]));
  if (map.size < all.length || map.has('')) {
    throw new OptionError(`${option}: found an empty name or one that comes twice; allowed are names that differ`);
  }
  return { all: map, first };
}

function whole(option: string, value: number, lowest: number, highest: number): number {
  if (Number.isInteger(value) && value >= lowest && value <= highest) return value;
  throw new OptionError(`${option}: found ${value}; allowed is a whole number from ${lowest} to ${highest}`);
}
