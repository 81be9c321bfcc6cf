import type { CertificateDateError } from './clock.ts';
import type { TokenOutcome } from './grants/token-outcome.ts';
import type { Secret } from './secret.ts';

/**
 * Which portal this is, whatever the configuration calls it: what decides where a grant is any good. The refresh token is
 * sent to that origin, by that client; no other shall see it.
 */
export interface PortalIdentity {
  /** The origin of the frontend, where the token endpoint is. */
  readonly origin: string;
  /** The client_id of the hub at this portal. */
  readonly clientId: string;
  /** What the configuration called it. */
  readonly name: string;
}

/** Where a person corrects the hub's own credentials at a portal, its client_id and client secret. */
export interface CredentialLocation {
  /** The portal's name in the configuration. */
  readonly portal: string;
  /** The file of the client secret; left out where it is in none. */
  readonly secretFile?: string;
  /** What has the hub use them once they are corrected; left out where a reload does. */
  readonly appliedBy?: ApplyMethod;
}

/** A reload reads files anew, but systemd hands over a credential when it starts the service, and test mode reads nothing again. */
export type ApplyMethod = 'reload' | 'service_restart' | 'new_start';

const APPLY_INSTRUCTIONS: Record<ApplyMethod, string> = {
  reload: 'run "latchkey reload"',
  service_restart: 'restart the hub ("sudo systemctl restart latchkey")',
  new_start: 'end the hub and start it again',
};

/** What has the hub use its corrected credentials, in the imperative. */
export function applyInstruction({ appliedBy = 'reload' }: Pick<CredentialLocation, 'appliedBy'>): string {
  return APPLY_INSTRUCTIONS[appliedBy];
}

/** Both in words, for a sentence about them. */
export function describeCredentials({ portal, secretFile }: CredentialLocation, conjunction: 'and' | 'or'): string {
  return `portals.${portal}.client_id, ${conjunction} the client secret${secretFile === undefined ? '' : ` in ${secretFile}`}`;
}

/** A portal that is configured. */
export interface ConfiguredPortal extends PortalIdentity {
  /** The origins of the other portals that are configured. */
  readonly otherOrigins: readonly string[];
}

/** Whether two are the same portal, and the hub the same client there. */
export function samePortal(a: PortalIdentity, b: PortalIdentity): boolean {
  return a.origin === b.origin && a.clientId.toLowerCase() === b.clientId.toLowerCase();
}

/**
 * Whether a portal that is configured is the one that gave a grant. It is also the one where its table has another address
 * by now, and no other table has the former one: then the portal has moved, and with it the hub as its client.
 */
export function isSameIssuer(giver: PortalIdentity, present: ConfiguredPortal): boolean {
  if (samePortal(giver, present)) return true;
  const moved = { ...giver, origin: present.origin };
  return giver.name === present.name && samePortal(moved, present) && !present.otherOrigins.includes(giver.origin);
}

/** What a grant keeps of the portal that gave it. */
export function issuerOf({ origin, clientId, name }: ConfiguredPortal): PortalIdentity {
  return { origin, clientId, name };
}

/** The three URLs of one login (specification, "OAuth2 helper configuration"), all on the portal's configured origins. */
export interface LoginEndpoints {
  /** Where the person must be sent. */
  readonly authorizeUrl: string;
  /** Where the authorization code is polled for. */
  readonly codeUrl: string;
  /** The token endpoint that takes the code. */
  readonly tokenUrl: string;
}

/** A link of a pairing. */
export interface LoginLink extends LoginEndpoints {
  /** Where the portal was asked to bring the code too, without the pairing's nonce; null where only polling brings it. */
  readonly redirect: string | null;
}

/** What an answer of the portal says beside what was asked for. */
interface PortalResponse {
  /** The portal's clock by its `Date`, in ms since 1970; null where there was no answer, or none of it. */
  readonly portalTime: number | null;
}

/** What became of asking the portal for a link. */
export type LoginLinkOutcome<Found extends LoginEndpoints = LoginEndpoints> = PortalResponse &
  (
    | { readonly kind: 'link'; readonly link: Found }
    /** A URL of the answer lies elsewhere: following it would give the hub's secret away. */
    | { readonly kind: 'foreign_origin'; readonly detail: string }
    /** A 3xx, or a 4xx other than 408 and 429; `clientUnknown`: 404, by which a portal says that it has no such client. */
    | { readonly kind: 'rejected'; readonly detail: string; readonly clientUnknown?: true }
    | Unreachable
  );

/** What became of one poll for the authorization code. */
export type PollOutcome = PortalResponse &
  ({ readonly kind: 'code'; readonly code: Secret } | { readonly kind: 'not_yet' } | Unreachable);

/** No answer, or one that only says "later"; `retryAfter` in milliseconds where the portal named a time. */
export interface Unreachable {
  readonly kind: 'unreachable';
  readonly detail: string;
  readonly retryAfter: number | null;
  readonly certificateError?: CertificateDateError;
}

/** The portal, as the hub speaks to it. Nothing here throws for what the portal or the line did: outcomes are values. */
export interface Portal {
  /** Asks for a link; `redirectUrl` asks that the code be brought there too (steady request flow). */
  requestLink(redirectUrl: string | null, signal: AbortSignal): Promise<LoginLinkOutcome>;
  pollCode(codeUrl: string, signal: AbortSignal): Promise<PollOutcome>;
  /** The portal's clock by the `Date` of any answer, in ms since 1970; null where none came. No secret is sent. */
  fetchTime(): Promise<number | null>;
  /** Exchanges a code for tokens. Never aborted: the portal may have acted on what was sent. */
  exchangeCode(tokenUrl: string, code: Secret, scope: string | null): Promise<TokenOutcome>;
  /** Refreshes. Never aborted, for the same reason. */
  refresh(refreshToken: Secret): Promise<TokenOutcome>;
}
