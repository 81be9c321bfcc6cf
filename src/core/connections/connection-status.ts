import type { Named } from '../name.ts';
import type { PairingFailureReason } from '../pairings/pairing.ts';
import type { CredentialLocation } from '../portals/identity.ts';
import type { ProblemCode, SpecificProblemCode } from '../reports/problem.ts';
import type { StatusField } from '../status-field.ts';

/** The state of a connection, and of the appliances that use it, as in `status`. */
export type ConnectionState = (typeof CONNECTION_STATES)[number];

/** All states. */
export const CONNECTION_STATES = ['unpaired', 'pairing', 'active', 'retrying', 'needs_pairing'] as const;

/** What a connection and the appliances that use it have in common in `status`; times in seconds, instants in RFC 3339 UTC. */
export interface LoginStatus {
  readonly state: ConnectionState;
  /** The grant's scope; if there is no grant, the scope that the hub will request. */
  readonly scope: string | null;
  /** Remaining lifetime of the current access token; null if there is none or its age is unknown. */
  readonly expiresIn: number | null;
  /** Time until the next refresh; null if none is planned. */
  readonly refreshIn: number | null;
  /**
   * When the current access token was obtained, by the hub's current clock, right or wrong; null if that is unknown.
   */
  readonly lastRefresh: string | null;
  readonly problem: LoginProblem | null;
  readonly portal: string;
  /**
   * The portal account with which it is connected, as reported in its tokens, unverified; null if they do not report
   * one, or if there are no tokens.
   */
  readonly account: string | null;
  /** The pairing link; for a device flow, the hub's own `/pair` link. Left out unless a pairing waits for a person. */
  readonly authorizeUrl?: string;
  /** What a person must enter at `authorizeUrl`; left out if nothing. */
  readonly userCode?: string;
  /**
   * Why the last pairing failed. Left out if the connection is paired, a day after the failure, once another pairing
   * begins, or, if the configuration was the cause, after the next start or reload.
   */
  readonly pairingFailed?: FailedPairing;
  /** The portal gave no refresh token, so that only a new login replaces the access token; left out otherwise. */
  readonly withoutRefreshToken?: true;
  /**
   * Where a person corrects the hub's credentials for its portal; left out if neither `problem` nor `pairingFailed` can
   * mention them.
   */
  readonly credentialLocation?: CredentialLocation;
  /**
   * The configured scope, if it differs from the scope that was requested for the grant, so that a new pairing is
   * needed.
   */
  readonly wantedScope?: string | null;
  /** What was requested and the portal did not grant, as when a person unticks it; left out if nothing. */
  readonly missingScope?: readonly string[];
}

/** A connection in `status`. */
export interface ConnectionStatus extends LoginStatus, Named {
  /**
   * When the login ends by itself although the hub refreshes it, or without a refresh token the access token, RFC 3339 UTC;
   * null if it does not, if that is unknown, or if there is no login.
   */
  readonly loginEnds: string | null;
  /** Since when a person is reminded that the login ends soon, RFC 3339 UTC; left out if it does not. */
  readonly loginEndingSince?: string;
  /** The appliances that use it. In JSON these are `appliances`, their names alone. */
  readonly users: readonly Named[];
  /** The configuration declares it; left out otherwise. */
  readonly declared?: true;
  /** It is that of one appliance alone, see `isOwnConnection`; left out otherwise. */
  readonly own?: true;
}

/** How surfaces show fields of a connection, in this order. */
export const CONNECTION_FIELDS = {
  expiresIn: {
    member: 'expires_in',
    kind: 'seconds_until',
    heading: 'EXPIRES',
    reached: 'expired',
    metric: {
      name: 'latchkey_token_expires_in_seconds',
      help: 'Seconds until the current access token expires; absent if there is none or its age is unknown.',
    },
  },
  refreshIn: { member: 'refresh_in', kind: 'seconds_until', heading: 'REFRESH', isOnPage: true },
  lastRefresh: {
    member: 'last_refresh',
    kind: 'instant',
    heading: 'REFRESHED',
    isOnPage: true,
    metric: {
      name: 'latchkey_last_refresh_timestamp_seconds',
      help: "Unix time at which the current access token was issued, by the hub's clock; absent if there is none or its age is unknown.",
    },
  },
  loginEnds: {
    member: 'login_ends',
    kind: 'deadline',
    isOnPage: true,
    metric: {
      name: 'latchkey_login_ends_timestamp_seconds',
      help: "Unix time at which the login ends by itself, by the hub's clock; absent if that is unknown.",
    },
  },
} as const satisfies Partial<Record<keyof ConnectionStatus, StatusField>>;

/** What is wrong with a login; `since` in RFC 3339 UTC. */
interface LoginProblem {
  readonly code: ProblemCode;
  readonly message: string;
  readonly since: string;
  /** The code of its condition, if that says more than `code`; left out otherwise. */
  readonly condition?: SpecificProblemCode;
}

/**
 * A failed pairing: `message` says why it failed and what to do next, in English; `detail` what the portal said, if
 * that is known; `at` in RFC 3339 UTC.
 */
interface FailedPairing {
  readonly reason: PairingFailureReason;
  readonly message: string;
  readonly detail?: string;
  readonly at: string;
}
