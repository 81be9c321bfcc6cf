import type { FaultOptions } from '../faults/kinds.ts';
import type { Endpoint } from '../http/logged-request.ts';
import type { SettingOptions } from './settings.ts';

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

/** One request on its way through the emulator. */
export interface InterceptedRequest {
  readonly endpoint: Endpoint;
  /** The registered client it names, authenticated or not; null where it names none. */
  readonly client: string | null;
  /** Cuts the connection: the client sees a reset instead of an answer. */
  drop(): void;
}

/** Comes between requests and their answers: the place where faults attach. What it awaits, the client waits for. */
export interface Interceptor {
  /** A request is here whole, and nothing was done with it; after `drop()` nothing will be. */
  received?(exchange: InterceptedRequest): void | Promise<void>;
  /** What was asked is done (tokens are rotated) and the answer about to be sent: `drop()` loses it. */
  answering?(exchange: InterceptedRequest, status: number): void | Promise<void>;
}

/** What {@link startEmulator} takes; everything has a default; those of the settings are with {@link Settings}. */
export interface EmulatorOptions extends SettingOptions {
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
   * there is none. Settings that were changed, faults and the request log are not kept: every start has those of its own options. Default:
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
