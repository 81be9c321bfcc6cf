import type { CertificateDateError } from './clock.ts';
import type { TokenOutcome } from './grants/token-outcome.ts';
import type { Secret } from './secret.ts';

/**
 * What identifies a portal and the hub as its client, whatever name the configuration uses. It decides which portal a
 * grant is valid at: the hub must not send a refresh token to another origin or with another client_id.
 */
export interface PortalIdentity {
  /** The origin of the frontend, where the token endpoint is. */
  readonly origin: string;
  /** The client_id of the hub at this portal. */
  readonly clientId: string;
  /** The portal's name in the configuration. */
  readonly name: string;
}

/** Where a person corrects the client_id and the client secret that the hub uses at a portal. */
export interface CredentialLocation {
  /** The portal's name in the configuration. */
  readonly portal: string;
  /** The file of the client secret; left out if it is not in a file. */
  readonly secretFile?: string;
  /** How corrected credentials take effect; left out if by a reload. */
  readonly appliedBy?: ApplyMethod;
}

/**
 * A reload reads files again, but systemd passes a credential only when it starts the service, and test mode reads
 * nothing again.
 */
export type ApplyMethod = 'reload' | 'service_restart' | 'new_start';

const APPLY_INSTRUCTIONS: Record<ApplyMethod, string> = {
  reload: 'run "latchkey reload"',
  service_restart: 'restart the hub ("sudo systemctl restart latchkey")',
  new_start: 'stop the hub and start it again',
};

/** How a person makes corrected credentials take effect, in the imperative. */
export function howToApplyCorrection({ appliedBy = 'reload' }: Pick<CredentialLocation, 'appliedBy'>): string {
  return APPLY_INSTRUCTIONS[appliedBy];
}

/** The client_id and the client secret with their locations, as part of a sentence. */
export function describeCredentials({ portal, secretFile }: CredentialLocation, conjunction: 'and' | 'or'): string {
  return `portals.${portal}.client_id, ${conjunction} the client secret${secretFile === undefined ? '' : ` in ${secretFile}`}`;
}

/** A configured portal. */
export interface ConfiguredPortal extends PortalIdentity {
  /** The origins of the other configured portals. */
  readonly otherOrigins: readonly string[];
}

/** Whether two identities are the same portal and the same client. */
export function samePortal(a: PortalIdentity, b: PortalIdentity): boolean {
  return a.origin === b.origin && a.clientId.toLowerCase() === b.clientId.toLowerCase();
}

/**
 * Whether a configured portal is the issuer of a grant. It also is if it has the issuer's name and client_id at another
 * origin, and no other configured portal has the old origin: then the portal has moved.
 */
export function isSameIssuer(issuer: PortalIdentity, portal: ConfiguredPortal): boolean {
  if (samePortal(issuer, portal)) return true;
  const moved = { ...issuer, origin: portal.origin };
  return issuer.name === portal.name && samePortal(moved, portal) && !portal.otherOrigins.includes(issuer.origin);
}

/** The issuer to store with a grant of this portal. */
export function portalIdentityOf({ origin, clientId, name }: ConfiguredPortal): PortalIdentity {
  return { origin, clientId, name };
}

/** The three URLs of one login (docs/portal.md), all on the portal's configured origins. */
export interface LoginEndpoints {
  /** The pairing link, where a person logs in. */
  readonly authorizeUrl: string;
  /** Where the hub polls for the authorization code. */
  readonly codeUrl: string;
  /** The token endpoint for the code. */
  readonly tokenUrl: string;
}

/** A login link of a pairing. */
export interface LoginLink extends LoginEndpoints {
  /**
   * The redirect address that was requested for the code, without the pairing's nonce; null if only polling yields the
   * code.
   */
  readonly redirect: string | null;
}

/** What every response of the portal contains. */
interface PortalResponse {
  /** The portal's clock (`Date`), in ms since 1970; null if there was no response, or no `Date` in it. */
  readonly portalTime: number | null;
}

/** The outcome of a request for a link. */
export type LoginLinkOutcome<Found extends LoginEndpoints = LoginEndpoints> = PortalResponse &
  (
    | { readonly kind: 'link'; readonly link: Found }
    /** A URL of the response has another origin: following it would reveal the hub's client secret. */
    | { readonly kind: 'foreign_origin'; readonly detail: string }
    /** A 3xx, or a 4xx other than 408 and 429; `clientUnknown`: 404, which means that the portal has no such client. */
    | { readonly kind: 'rejected'; readonly detail: string; readonly clientUnknown?: true }
    | Unreachable
  );

/** The outcome of one poll for the authorization code. */
export type PollOutcome = PortalResponse &
  ({ readonly kind: 'code'; readonly code: Secret } | { readonly kind: 'not_yet' } | Unreachable);

/** No response, or one that only defers; `retryAfter` in ms, null if the portal named no time. */
export interface Unreachable {
  readonly kind: 'unreachable';
  readonly detail: string;
  readonly retryAfter: number | null;
  readonly certificateError?: CertificateDateError;
}

/** The outcome of a request to revoke a refresh token (RFC 7009, 2.2). */
export type RevocationOutcome =
  /** Any 2xx: the refresh token is invalid now, or was before. */
  | { readonly kind: 'revoked' }
  /** No revocation endpoint is configured for this portal: nothing was sent. */
  | { readonly kind: 'unsupported' }
  /** Another response, or none: the refresh token may still be valid. */
  | { readonly kind: 'failed'; readonly detail: string };

/** The client of a portal. No method throws because of the portal or the network: outcomes are values. */
export interface Portal {
  /** Requests a link; with a `redirectUrl` the portal also redirects the browser there with the code. */
  requestLink(redirectUrl: string | null, signal: AbortSignal): Promise<LoginLinkOutcome>;
  pollCode(codeUrl: string, signal: AbortSignal): Promise<PollOutcome>;
  /** The portal's clock from the `Date` of any response, in ms since 1970; null if none came. Sends no secret. */
  fetchTime(): Promise<number | null>;
  /** Exchanges a code for tokens. Never aborted, because the portal may act on the request at once. */
  exchangeCode(tokenUrl: string, code: Secret, scope: string | null): Promise<TokenOutcome>;
  /** Refreshes a grant. Never aborted, for the same reason. */
  refresh(refreshToken: Secret): Promise<TokenOutcome>;
  /** Revokes a refresh token, once and without retries. Takes at most 5 s. */
  revoke(refreshToken: Secret): Promise<RevocationOutcome>;
}
