import type { Instant } from '../clock.ts';
import type { LoginLink } from '../portals/login-link.ts';

/** Why a pairing failed, as in `latchkey pair --json`. */
export type PairingFailureReason = (typeof PAIRING_FAILURE_REASONS)[number];

/** All reasons. */
export const PAIRING_FAILURE_REASONS = [
  'refused_by_user',
  'expired',
  'replaced',
  'cancelled',
  'portal_rejected',
  'foreign_origin',
  'code_refused',
  'answer_lost',
  'misconfigured',
  'client_unknown',
] as const;

/** How a pairing ended. */
export type PairingResult =
  | { readonly kind: 'paired'; readonly scope: string | null }
  | { readonly kind: 'failed'; readonly reason: PairingFailureReason };

/** The step of a pairing. */
export type PairingStep =
  /**
   * The hub requests a link from the portal. In a device flow that no installer takes part in, it does so only when a
   * person opens the flow. In the meantime a person may log in through the links of `earlier`.
   */
  | { readonly kind: 'asking'; readonly earlier?: readonly LoginLink[] }
  /** A person may log in through any of the links; `link` is the newest. */
  | { readonly kind: 'waiting'; readonly link: LoginLink; readonly earlier?: readonly LoginLink[] }
  /** The hub exchanges a code. It was written ahead, and is never sent again after a crash. */
  | {
      readonly kind: 'exchanging';
      readonly link: LoginLink;
      readonly earlier?: readonly LoginLink[];
      readonly since: Instant;
    }
  | { readonly kind: 'ended'; readonly result: PairingResult };

/** One attempt to get a connection authorized. */
export interface Pairing {
  readonly id: string;
  /** The connection's id. */
  readonly connection: string;
  readonly portal: string;
  readonly scope: string | null;
  /**
   * 128 random bits that tell which pairing a redirect belongs to. They are not secret: the portal's link has them in
   * its `state`, which anybody can read, and the redirect carries them over plain HTTP.
   */
  readonly nonce: string;
  readonly begun: Instant;
  /** Milliseconds from `begun` to the deadline. */
  readonly lifetime: number;
  /** Hashes of the codes that were sent to the token endpoint, so that none is sent twice. */
  readonly spentCodes: readonly string[];
  /**
   * The `state` of each link that takes no further authorization response, because one came through it or the pairing
   * has ended; left out if there is none.
   */
  readonly answeredStates?: readonly string[];
  /**
   * Why the last login failed. It becomes the reason of the pairing's failure if no login succeeds before the deadline.
   */
  readonly lastFailure: 'answer_lost' | 'code_refused' | 'portal_rejected' | 'refused_by_user' | null;
  /** What the portal said at the last failure, and what to correct, for installers; left out if that is not known. */
  readonly failureDetail?: string;
  /** The device flow (RFC 8628) that an appliance has begun; null if only an installer started the pairing. */
  readonly device: DeviceFlow | null;
  /** The id of the {@link PairingBatch} that it is part of; left out if it is part of none. */
  readonly batch?: string;
  /** The name of the user who started it through a reverse proxy; left out if it is unknown. */
  readonly user?: string;
  /**
   * When it failed. Left out if it did not fail, if it is a device flow that nobody opened and that expired, was
   * replaced or was cancelled, or if its failure is no longer reported.
   */
  readonly failed?: Instant;
  readonly step: PairingStep;
}

/** The device code of an appliance, and the user code that a person types (RFC 8628, 3.2). */
export interface DeviceCodes {
  /** SHA-256 of the device_code, base64url: it has 256 random bits. */
  readonly codeHash: string;
  /** As a person reads it, such as `WDJB-MJHT`. */
  readonly userCode: string;
}

/** A pairing's part in a device flow. */
export interface DeviceFlow extends DeviceCodes {
  /** The id of the appliance that has begun it. */
  readonly appliance: string;
  /** The codes that these replaced, the newest first. */
  readonly superseded?: readonly DeviceCodes[];
  /** An installer also waits for the pairing. */
  readonly shared?: true;
}

/** For how long after its pairing's deadline the hub still knows the codes of a device flow, in ms. */
const DEVICE_CODE_GRACE = 600_000;

/**
 * Whether an installer waits for the pairing. If so, the hub requests a link from the portal without waiting for a
 * person.
 */
export function isInstallerInitiated({ device }: Pick<Pairing, 'device'>): boolean {
  return device === null || device.shared === true;
}

/**
 * Whether a connection keeps only the later one of two open pairings: an installer waits for both, or both are the
 * device flow of one appliance.
 */
export function areRivals(one: Pairing, other: Pairing): boolean {
  if (one.connection !== other.connection) return false;
  if (isInstallerInitiated(one) && isInstallerInitiated(other)) return true;
  return one.device !== null && one.device.appliance === other.device?.appliance;
}

/** Whether a pairing succeeded with the code of this hash. */
export function isPairedByCode({ step, spentCodes }: Pairing, hash: string): boolean {
  return step.kind === 'ended' && step.result.kind === 'paired' && spentCodes.at(-1) === hash;
}

/** Whether the hub polls the portal, or requests links from it, because of this pairing. */
export function needsPortalRequests(pairing: Pairing): boolean {
  const { step } = pairing;
  if (step.kind === 'ended') return false;
  return step.kind !== 'asking' || linksOf(step).length > 0 || isInstallerInitiated(pairing);
}

/** The links through which a person may log in, the newest first. */
export function linksOf(step: PairingStep): readonly LoginLink[] {
  if (step.kind === 'ended') return [];
  return [...(step.kind === 'asking' ? [] : [step.link]), ...(step.earlier ?? [])];
}

/**
 * The link to show to a person: the newest one that redirects to the hub's current address, else the newest of all.
 * @param redirect the current redirect address, as in {@link LoginLink}
 */
export function preferredLink(step: PairingStep, redirect: string | null): LoginLink | undefined {
  const links = linksOf(step);
  return links.find((link) => redirect !== null && link.redirect === redirect) ?? links[0];
}

/**
 * Whether a link redirects to an address that the hub no longer has. While the hub has no address, no link is better;
 * and a link without a redirect address works by polling.
 * @param redirect the current redirect address, as in {@link LoginLink}
 */
export function isStaleLink(link: LoginLink, redirect: string | null): boolean {
  return redirect !== null && link.redirect !== null && link.redirect !== redirect;
}

/**
 * Milliseconds until a pairing or an invite expires. After a reboot only the wall clock can measure that, and it can
 * only shorten the time.
 */
export function timeLeft(pairing: Pick<Pairing, 'begun' | 'lifetime'>, now: Instant): number {
  return Math.max(0, pairing.lifetime - pairingAge(pairing, now));
}

/**
 * Whether the hub still knows the codes of a device flow. It knows them longer than the pairing lasts, because an
 * appliance repeats a request whose response was lost, and a person may open the page once more.
 */
export function areDeviceCodesRetained(pairing: Pairing, now: Instant): boolean {
  return pairingAge(pairing, now) < pairing.lifetime + DEVICE_CODE_GRACE;
}

/**
 * Milliseconds until the next poll: from the interval to 1.5 times that, but at most 10 s (docs/portal.md) unless the
 * interval itself is longer, or longer if the portal asks for more.
 * @param fraction a random number from 0 to 1
 */
export function pollDelay(interval: number, retryAfter: number | null, fraction: number): number {
  const upper = Math.max(interval, Math.min(10_000, interval * 1.5));
  return Math.max(interval + fraction * (upper - interval), retryAfter ?? 0);
}

/** Milliseconds since a pairing began. */
export function pairingAge({ begun }: Pick<Pairing, 'begun'>, now: Instant): number {
  return Math.max(0, begun.boot === now.boot ? now.uptime - begun.uptime : now.wall - begun.wall);
}

/** Whether two links of a pairing are the same one; a device link may be polled less often by now. */
export function isSameLink(one: LoginLink, other: LoginLink): boolean {
  return linkKey(one) === linkKey(other);
}

/** What tells the links of a pairing apart: at some portals, all device codes have the same address. */
export function linkKey(link: { readonly authorizeUrl: string; readonly userCode?: string }): string {
  return `${link.authorizeUrl} ${link.userCode ?? ''}`;
}
