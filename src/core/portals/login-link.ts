import type { Instant } from '../clock.ts';
import type { Secret } from '../secret.ts';

/**
 * What a person opens to log in: a link of a pairing. The kinds differ in how the hub gets the tokens of the login.
 * None of them changes once it has been shown, except how often a device code is polled.
 */
export type LoginLink = PolledLink | RedirectLink | DeviceLink;

interface AnyLink {
  /** Where a person logs in. */
  readonly authorizeUrl: string;
  /**
   * The redirect address that the link was requested for, as in `Portal.redirectAddress`; null if the portal
   * redirects nowhere, so that only polling yields the result.
   */
  readonly redirect: string | null;
}

/** The hub polls a helper portal for the authorization code (docs/portal.md). */
export interface PolledLink extends AnyLink {
  readonly kind: 'poll';
  /** Where the hub polls for the code. */
  readonly codeUrl: string;
  /** The token endpoint for the code. */
  readonly tokenUrl: string;
}

/** The portal redirects the browser with the authorization code (RFC 6749, 4.1). */
export interface RedirectLink extends AnyLink {
  readonly kind: 'redirect';
  readonly redirect: string;
  /** The `state` of the authorization request, used once: 128 random bits, and where a relay finds the hub. */
  readonly state: string;
  /** The PKCE code verifier (RFC 7636, 4.1); null if PKCE is switched off. */
  readonly verifier: Secret | null;
  /** The portal's issuer identifier; null if it is not known. */
  readonly issuer: string | null;
  /** Whether each authorization response has an `iss` (RFC 9207, 3). */
  readonly requiresIssuer: boolean;
}

/** The hub polls the token endpoint with a device code (RFC 8628). */
export interface DeviceLink extends AnyLink {
  readonly kind: 'device';
  readonly redirect: null;
  /** What a person types if the link does not contain it. */
  readonly userCode: string;
  /** Whether the address contains the user code (`verification_uri_complete`). */
  readonly containsUserCode: boolean;
  readonly deviceCode: Secret;
  /** The PKCE code verifier, at portals that combine both; null otherwise. */
  readonly verifier: Secret | null;
  /** Shortest time between two polls, in ms. Each `slow_down` makes it longer (RFC 8628, 3.5). */
  readonly interval: number;
  readonly begun: Instant;
  /** Milliseconds from `begun` until the device code expires. */
  readonly lifetime: number;
}

/** A link as people see it. */
export interface ShownLink {
  readonly authorizeUrl: string;
  /** What a person types there, or compares before going there; left out if there is no code. */
  readonly userCode?: string;
  /** Whether the address contains the code, so that a person only compares it; left out if not. */
  readonly containsUserCode?: true;
}

/** What a person needs of a link. */
export function toShownLink(link: LoginLink): ShownLink {
  const { authorizeUrl, kind } = link;
  if (kind !== 'device') return { authorizeUrl };
  return { authorizeUrl, userCode: link.userCode, ...(link.containsUserCode && { containsUserCode: true }) };
}

/** What a person must type at a link; null if the link needs nothing, or contains it. */
export function typedUserCode(link: LoginLink): string | null {
  return link.kind === 'device' && !link.containsUserCode ? link.userCode : null;
}

/** Whether an authorization response comes from the portal that the link belongs to (RFC 9207, 2.4). */
export function isFromIssuer({ issuer, requiresIssuer }: RedirectLink, responseIssuer: string | null): boolean {
  if (responseIssuer === null) return !requiresIssuer;
  return issuer === null || responseIssuer === issuer;
}
