import { wallClock } from '../system/clock.ts';
import { systemRandom } from '../system/random.ts';
import type { Client } from './client.ts';
import type { FaultOptions } from './faults/options.ts';
import type { Interceptor } from './http/interceptor.ts';
import { OptionError } from './option-error.ts';
import { SWITCHES, type Switches, type SwitchOptions, switched } from './switches.ts';

/** Tells the emulator the time: `wall` is milliseconds since 1970. Any clock of the hub's fits. */
export interface EmulatorClock {
  now(): { readonly wall: number };
}

/** A client registered at the portal (specification, "Client credentials"). */
export interface ClientOptions {
  /** The client_id, a UUID. */
  readonly id: string;
  readonly secret: string;
  /** What the pages call the client; default: its id. */
  readonly name?: string | undefined;
  /** `refuse`: config answers 400 to every `redirect_url` of this client, so that it has to poll. Default: `accept`. */
  readonly redirectUrl?: 'accept' | 'refuse' | undefined;
  /** Redirection endpoints for the ordinary authorization code flow, beside the helper's own code/set address. */
  readonly redirectUris?: readonly string[] | undefined;
}

/** Somebody with an account at the portal. */
export interface UserOptions {
  readonly name: string;
  readonly password: string;
}

/** What {@link startEmulator} takes; everything has a default, that of the switches is with {@link Switches}. */
export interface EmulatorOptions extends SwitchOptions {
  /** The address that both origins listen on; `localhost` is 127.0.0.1 and ::1. Default: `127.0.0.1`. */
  readonly host?: string | undefined;
  /** Port of the base origin; 0, the default, is any free one. */
  readonly port?: number | undefined;
  /** Port of the frontend origin; 0, the default, is any free one. */
  readonly frontendPort?: number | undefined;
  /** Host name or address in the URLs handed out. Default: `host`, or `127.0.0.1` where that is a wildcard. */
  readonly publicHost?: string | undefined;
  /**
   * Names under which clients reach the emulator, beside `localhost`, `host` and `publicHost`. Requests for another name are
   * answered 421; IP addresses are always accepted. Default: none.
   */
  readonly allowedHosts?: readonly string[] | undefined;
  /** Default: one client with a fresh id and secret. */
  readonly clients?: readonly ClientOptions[] | undefined;
  /** Default: `demo` with the password `demo`, which the login page then says. */
  readonly users?: readonly UserOptions[] | undefined;
  /**
   * The file in which everything issued, what was noted of clients and the clock's offset outlive the process, made where
   * there is none. Switches, faults and the request log are not kept: every start has those of its own options. Default:
   * nothing is kept.
   */
  readonly state?: string | undefined;
  /** Both origins speak HTTPS, with a certificate of a private CA of the emulator's own. Default: false. */
  readonly tls?: boolean | undefined;
  /** With `tls`: where the CA's certificate is written (PEM), for clients to trust. Default: nowhere. */
  readonly caFile?: string | undefined;
  /** Whether the request log shows codes, tokens and client secrets as they are: for tests. Default: false. */
  readonly showSecrets?: boolean | undefined;
  /** Faults that are in force from the start. Default: none. */
  readonly faults?: readonly FaultOptions[] | undefined;
  /** What the chance of faults is drawn from: the same one gives the same run again. A whole number; default: 0. */
  readonly seed?: number | undefined;
  /** Default: the machine's. */
  readonly clock?: EmulatorClock | undefined;
  /** Comes between a request and its answer: see {@link Interceptor}. */
  readonly intercept?: Interceptor | undefined;
}

/** The options with all defaults filled in and checked. */
export interface Settings extends Switches {
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

/**
 * Fills in the defaults and checks every value.
 * @throws OptionError
 */
export function settingsFrom(options: EmulatorOptions): Settings {
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
    ...switched(switchesGiven(options)),
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

function switchesGiven(options: EmulatorOptions): SwitchOptions {
  return Object.fromEntries(Object.entries(options).filter(([name]) => SWITCHES.includes(name)));
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
