import type { IncomingHttpHeaders } from 'node:http';
import type { JSONWebKeySet } from 'jose';
import type { FaultOptions } from './faults/kinds.ts';
import type { Endpoint, LoggedRequest } from './http/logged-request.ts';
import type { SettingOptions } from './settings/settings.ts';

/** The emulator's time source: `wall` is in milliseconds since 1970. The hub's clocks have this shape. */
export interface EmulatorClock {
  now(): { readonly wall: number };
}

/** A client registered at the portal. */
export interface ClientOptions {
  /** The client_id. For the helper endpoints a UUID; `/oauth2/` accepts any visible ASCII. */
  readonly id: string;
  /** Default: none, a public client, which only `/oauth2/` accepts. */
  readonly secret?: string | undefined;
  /** The client's public keys for `private_key_jwt` at `/oauth2/` (RFC 7523). Default: none. */
  readonly jwks?: JSONWebKeySet | undefined;
  /** The client's name on pages. Default: its ID. */
  readonly name?: string | undefined;
  /** `refuse`: config answers 400 to every `redirect_url` of this client, so that it must poll. Default: `accept`. */
  readonly redirectUrl?: 'accept' | 'refuse' | undefined;
  /**
   * Redirect URIs of `/oauth2/authorize`, and of the ordinary authorization code flow of `/sso/authorize`, in addition to
   * the client's code/set address there.
   */
  readonly redirectUris?: readonly string[] | undefined;
  /** Where a browser may go after a logout at `/oauth2/logout`. Default: nowhere. */
  readonly postLogoutRedirectUris?: readonly string[] | undefined;
  /**
   * Further claims of access tokens that are JWTs, such as `{ roles: ['admin'] }`. They can't replace those that the
   * emulator sets. Default: none.
   */
  readonly claims?: Readonly<Record<string, unknown>> | undefined;
}

/** A user account at the portal. */
export interface UserOptions {
  readonly name: string;
  readonly password: string;
  /**
   * Further claims about the user in ID tokens, at the userinfo endpoint and in access tokens that are JWTs, such as
   * `{ email: 'demo@example.com' }`. They replace `sub`, `name` and `preferred_username`, but not the claims that a token
   * needs, such as `iss` and `exp`. Default: none.
   */
  readonly claims?: Readonly<Record<string, unknown>> | undefined;
}

/** A request that the emulator is processing. */
export interface InterceptedRequest {
  readonly endpoint: Endpoint;
  /** The registered client that the request names, authenticated or not; null if it names none. */
  readonly client: string | null;
  /** Its entry of the request log, whose members change until the response was sent. */
  readonly logged: LoggedRequest;
  /** Its header fields, with their names in lower case. */
  readonly headers: IncomingHttpHeaders;
  /** Cuts the connection: the client sees a reset instead of a response. */
  drop(): void;
}

/** Hooks into the processing of each request. If a hook returns a promise, the request waits for it. */
export interface Interceptor {
  /** Called when a request has arrived completely, before it is processed. After `drop()` it is not processed. */
  received?(exchange: InterceptedRequest): void | Promise<void>;
  /** Called after processing (tokens are rotated), before the response is sent: `drop()` loses the response. */
  answering?(exchange: InterceptedRequest, status: number): void | Promise<void>;
}

/** The options of {@link startEmulator}. All are optional; {@link Settings} documents the settings. */
export interface EmulatorOptions extends SettingOptions {
  /** The address on which both origins listen; `localhost` means 127.0.0.1 and ::1. Default: `127.0.0.1`. */
  readonly host?: string | undefined;
  /** Port of the base origin; 0, the default, means any free port. */
  readonly port?: number | undefined;
  /** Port of the frontend origin; 0, the default, means any free port. */
  readonly frontendPort?: number | undefined;
  /** Host name or address in the emulator's URLs. Default: `host`, or `127.0.0.1` if that is a wildcard. */
  readonly publicHost?: string | undefined;
  /**
   * Host names that clients may use, in addition to `localhost`, `host` and `publicHost`. Requests for other names get
   * 421; IP addresses are always accepted. Default: none.
   */
  readonly allowedHosts?: readonly string[] | undefined;
  /**
   * Behaves at `/oauth2/` like a known cloud, by the name of its preset: settings, and the ID of the default client.
   * Settings and clients given beside it win. Default: none.
   */
  readonly profile?: string | undefined;
  /**
   * Names of further issuers: `staff` is the issuer `{frontendUrl}/staff`, with the endpoints `{frontendUrl}/staff/oauth2/…`.
   * Its grants are its own; it shares clients, users, keys and settings. Default: none.
   */
  readonly issuers?: readonly string[] | undefined;
  /** Default: one client with a generated ID and secret; without a secret if the profile's cloud issues none. */
  readonly clients?: readonly ClientOptions[] | undefined;
  /** Redirect URIs of the clients that name none of their own, and of the generated one. Default: none; the generated one may use every http address of this machine. */
  readonly redirectUris?: readonly string[] | undefined;
  /** Default: `demo` with the password `demo`, which the login page then shows. */
  readonly users?: readonly UserOptions[] | undefined;
  /**
   * The state file, created if it is missing. It keeps everything issued, the findings about clients and the clock's
   * offset across restarts. It does not keep changed settings, faults and the request log: each start uses those of its
   * own options. Default: none, the state is in memory only.
   */
  readonly state?: string | undefined;
  /** Serves both origins over HTTPS, with a certificate of the emulator's private CA. Default: false. */
  readonly tls?: boolean | undefined;
  /** With `tls`: the file for the CA certificate (PEM), which clients must trust. Default: none. */
  readonly caFile?: string | undefined;
  /** Shows codes, tokens and client secrets unmasked in the request log, for tests. Default: false. */
  readonly showSecrets?: boolean | undefined;
  /** Faults that are in force from the start. Default: none. */
  readonly faults?: readonly FaultOptions[] | undefined;
  /** Seed of the random numbers for fault probabilities; the same seed repeats a run. A whole number; default: 0. */
  readonly seed?: number | undefined;
  /** Default: the machine's clock. */
  readonly clock?: EmulatorClock | undefined;
  /** Hooks into the processing of requests. Default: none. */
  readonly intercept?: Interceptor | undefined;
}
