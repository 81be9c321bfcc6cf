import type { Instant } from '../clock.ts';
import type { DeviceLink, LoginLink } from '../portals/login-link.ts';

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
type PairingResult =
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

/** What happens to a pairing. */
export type PairingEvent =
  | { readonly kind: 'link'; readonly link: LoginLink }
  /** A login has succeeded, and the hub exchanges its code; `link`: the one that it came through, if that is known. */
  | { readonly kind: 'code'; readonly hash: string; readonly at: Instant; readonly link?: LoginLink }
  /** A link has expired, or yielded nothing. */
  | { readonly kind: 'link_ended'; readonly link: LoginLink }
  /** The code was not sent: the hub accepts it again. */
  | { readonly kind: 'not_sent' }
  /**
   * The portal issued no tokens for the code. A person may log in again, through the same link unless that works only
   * once.
   */
  | { readonly kind: 'code_refused'; readonly reason: 'code_refused' | 'portal_rejected'; readonly detail?: string }
  /** The portal, or somebody who pretends to be it, has reported that a login failed: the link can be opened again. */
  | { readonly kind: 'login_failed'; readonly reason: 'portal_rejected' | 'refused_by_user'; readonly detail?: string }
  /** The portal has asked to be polled less often; `interval` in ms, from now on (RFC 8628, 3.5). */
  | { readonly kind: 'slow_down'; readonly link: DeviceLink; readonly interval: number }
  /** The portal may have acted on the code: only a new link is safe, so the current ones are dropped. */
  | { readonly kind: 'answer_lost' }
  | { readonly kind: 'paired'; readonly scope: string | null }
  /** An installer permits the appliance of the device flow to use the connection's grant as it is. */
  | { readonly kind: 'approved'; readonly scope: string | null }
  | { readonly kind: 'failed'; readonly reason: PairingFailureReason; readonly detail?: string }
  | { readonly kind: 'deadline' }
  /** The pairing becomes part of a batch. */
  | { readonly kind: 'batch'; readonly batch: string }
  /** The appliance begins a device flow, perhaps again; `lifetime` is that of a new pairing, in ms. */
  | {
      readonly kind: 'device';
      readonly appliance: string;
      readonly codes: DeviceCodes;
      readonly at: Instant;
      readonly lifetime: number;
    }
  /**
   * An installer takes over a device flow: its lifetime starts again, and the hub requests a new link at once. If an
   * installer waits already and the newest link is still usable (`isLinkUsable`), that link stays the newest.
   */
  | {
      readonly kind: 'installer';
      readonly at: Instant;
      readonly lifetime: number;
      readonly isLinkUsable: boolean;
      /** The installer's name; left out if it is unknown. */
      readonly user?: string;
    };

/** Links of one pairing that are valid at the same time; a further link replaces the oldest. */
const MAX_LINKS = 3;
/** Codes that the hub exchanges for one pairing. Anybody who has its link or nonce could bring any number. */
const MAX_CODES = 100;
/** For how long after its pairing's deadline the hub still knows the codes of a device flow, in ms. */
const DEVICE_CODE_GRACE = 600_000;
/** Replaced codes that the hub remembers, so that it can distinguish them from unknown ones. */
const MAX_SUPERSEDED = 5;
/**
 * A device flow prolongs a pairing to at most this many lifetimes, because the hub polls its links all the time.
 */
const MAX_LIFETIME_FACTOR = 2;
/** If a smaller share of its lifetime is left for a device flow, a new pairing is better. */
const MIN_LIFETIME_SHARE = 0.25;

/**
 * The pairing after an event. Returns the same object if the event does not apply: a second code during an exchange, a
 * code that was sent before, a code beyond the limit, or anything after the end.
 */
export function advance(pairing: Pairing, event: PairingEvent): Pairing {
  const { step } = pairing;
  if (step.kind === 'ended') return pairing;
  switch (event.kind) {
    case 'link':
      if (step.kind === 'exchanging') return pairing;
      return { ...pairing, step: waitingWithLink(event.link, linksOf(step)) };
    case 'code':
      if (step.kind === 'exchanging' || pairing.spentCodes.includes(event.hash)) return pairing;
      if (pairing.spentCodes.length >= MAX_CODES) return pairing;
      return startExchange(pairing, event);
    case 'link_ended':
      if (step.kind === 'exchanging' || !linksOf(step).includes(event.link)) return pairing;
      return { ...pairing, step: stepWithLinks(linksOf(step).filter((link) => link !== event.link)) };
    case 'not_sent':
      if (step.kind !== 'exchanging') return pairing;
      return { ...pairing, spentCodes: pairing.spentCodes.slice(0, -1), step: backToWaiting(step) };
    case 'code_refused':
      if (step.kind !== 'exchanging') return pairing;
      return { ...withDetail(pairing, event), lastFailure: event.reason, step: afterRefusedCode(step) };
    case 'login_failed':
      // Only the first one is written: anybody who saw the link can bring any number of errors.
      return step.kind === 'exchanging' || pairing.lastFailure !== null
        ? pairing
        : { ...withDetail(pairing, event), lastFailure: event.reason };
    case 'slow_down': {
      const { link, interval } = event;
      return { ...pairing, step: mapLinks(step, (one) => (one === link ? { ...link, interval } : one)) };
    }
    case 'answer_lost':
      if (step.kind !== 'exchanging') return pairing;
      return { ...pairing, lastFailure: 'answer_lost', step: { kind: 'asking' } };
    case 'paired':
      return step.kind === 'exchanging' ? endPairing(pairing, { kind: 'paired', scope: event.scope }) : pairing;
    case 'approved':
      // An installer's own login continues: it may be about another account.
      return step.kind === 'exchanging' || isInstallerInitiated(pairing)
        ? pairing
        : endPairing(pairing, { kind: 'paired', scope: event.scope });
    case 'failed':
      return endPairing(withDetail(pairing, event), { kind: 'failed', reason: event.reason });
    case 'deadline':
      // The exchange of a code that was sent may still succeed.
      if (step.kind === 'exchanging') return pairing;
      return endPairing(pairing, { kind: 'failed', reason: pairing.lastFailure ?? 'expired' });
    case 'batch':
      return pairing.batch === event.batch ? pairing : { ...pairing, batch: event.batch };
    case 'device':
      return withDeviceCodes(pairing, event);
    case 'installer': {
      const keepsStep =
        step.kind === 'exchanging' || (step.kind === 'waiting' && isInstallerInitiated(pairing) && event.isLinkUsable);
      return {
        ...pairing,
        begun: event.at,
        lifetime: event.lifetime,
        device: pairing.device && { ...pairing.device, shared: true },
        ...(event.user !== undefined && { user: event.user }),
        step: keepsStep ? step : askingWithLinks(linksOf(step)),
      };
    }
  }
}

function withDetail({ failureDetail: _, ...pairing }: Pairing, { detail }: { readonly detail?: string }): Pairing {
  return detail === undefined ? pairing : { ...pairing, failureDetail: detail };
}

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

/** The pairing after a restart of the hub: the answer to an interrupted exchange is lost. */
export function resumeAfterRestart(pairing: Pairing): Pairing {
  return advance(pairing, { kind: 'answer_lost' });
}

/** The links through which a person may log in, the newest first. */
export function linksOf(step: PairingStep): readonly LoginLink[] {
  if (step.kind === 'ended') return [];
  return [...(step.kind === 'asking' ? [] : [step.link]), ...(step.earlier ?? [])];
}

/** The same step with other links. */
export function mapLinks<Step extends PairingStep>(step: Step, map: (link: LoginLink) => LoginLink): Step {
  if (step.kind === 'ended') return step;
  const earlier = step.earlier && { earlier: step.earlier.map(map) };
  return { ...step, ...(step.kind !== 'asking' && { link: map(step.link) }), ...earlier };
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

function pairingAge({ begun }: Pick<Pairing, 'begun'>, now: Instant): number {
  return Math.max(0, begun.boot === now.boot ? now.uptime - begun.uptime : now.wall - begun.wall);
}

/**
 * The pairing with the codes of a device flow that begins now, and with their lifetime. While nobody has opened the
 * pairing, it starts again, which costs the portal nothing. Otherwise somebody may be logging in: its links stay valid,
 * and it is prolonged up to a limit. Returns the same object if too little time would be left.
 */
function withDeviceCodes(
  pairing: Pairing,
  { appliance, codes, at, lifetime }: Extract<PairingEvent, { kind: 'device' }>,
): Pairing {
  const { device, step } = pairing;
  const before = device && { codeHash: device.codeHash, userCode: device.userCode };
  const superseded = before && [before, ...(device.superseded ?? [])].slice(0, MAX_SUPERSEDED);
  const updated = {
    ...pairing,
    device: {
      appliance,
      ...codes,
      ...(superseded && { superseded }),
      ...(isInstallerInitiated(pairing) && { shared: true as const }),
    },
  };
  if (!needsPortalRequests(pairing)) return { ...updated, begun: at, lifetime };
  const total = Math.min(pairingAge(pairing, at) + lifetime, MAX_LIFETIME_FACTOR * lifetime);
  const prolonged = { ...updated, lifetime: Math.max(pairing.lifetime, total) };
  return step.kind === 'exchanging' || timeLeft(prolonged, at) >= MIN_LIFETIME_SHARE * lifetime ? prolonged : pairing;
}

function startExchange(pairing: Pairing, { hash, at, link }: Extract<PairingEvent, { kind: 'code' }>): Pairing {
  const links = linksOf(pairing.step);
  const used = link !== undefined && links.includes(link) ? link : links[0];
  if (used === undefined) return pairing;
  const others = links.filter((one) => one !== used);
  const step = { kind: 'exchanging', link: used, ...(others.length > 0 && { earlier: others }), since: at } as const;
  const { answeredStates = [] } = pairing;
  return {
    ...pairing,
    spentCodes: [...pairing.spentCodes, hash],
    ...(used.kind === 'redirect' && { answeredStates: [...answeredStates, used.state] }),
    step,
  };
}

/** A login redirect and a device code work only once. */
function afterRefusedCode(step: Extract<PairingStep, { kind: 'exchanging' }>): PairingStep {
  return step.link.kind === 'poll' ? backToWaiting(step) : stepWithLinks(step.earlier ?? []);
}

function stepWithLinks([link, ...earlier]: readonly LoginLink[]): PairingStep {
  if (link === undefined) return { kind: 'asking' };
  return { kind: 'waiting', link, ...(earlier.length > 0 && { earlier }) };
}

function askingWithLinks(earlier: readonly LoginLink[]): PairingStep {
  return { kind: 'asking', ...(earlier.length === 0 ? {} : { earlier }) };
}

function waitingWithLink(link: LoginLink, before: readonly LoginLink[]): PairingStep {
  const earlier = before.slice(0, MAX_LINKS - 1);
  return { kind: 'waiting', link, ...(earlier.length === 0 ? {} : { earlier }) };
}

function backToWaiting({ since: _, ...step }: Extract<PairingStep, { kind: 'exchanging' }>): PairingStep {
  return { ...step, kind: 'waiting' };
}

function endPairing(pairing: Pairing, result: PairingResult): Pairing {
  // A browser that opens an address of this pairing later, or again, sees how it ended.
  const states = linksOf(pairing.step).flatMap((link) => (link.kind === 'redirect' ? [link.state] : []));
  const answeredStates = [...new Set([...(pairing.answeredStates ?? []), ...states])];
  return { ...pairing, ...(answeredStates.length > 0 && { answeredStates }), step: { kind: 'ended', result } };
}
