import type { Instant } from '../clock.ts';
import type { LoginLink } from '../portal.ts';

/** Why a pairing failed, as `latchkey pair` and the page name it. */
export type PairingFailureReason = (typeof PAIRING_FAILURE_REASONS)[number];

/** All of them. */
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

/** Where a pairing stands. */
export type PairingStep =
  /**
   * The portal is being asked for a link; in a device flow of its appliance alone it is when a person opens it, and not
   * before. A person may log in through those of `earlier` meanwhile.
   */
  | { readonly kind: 'asking'; readonly earlier?: readonly LoginLink[] }
  /** A person may log in, through any of the links: `link` is the newest. */
  | { readonly kind: 'waiting'; readonly link: LoginLink; readonly earlier?: readonly LoginLink[] }
  /** A code is on its way to the token endpoint: it was written down before, and is never sent again after a crash. */
  | {
      readonly kind: 'exchanging';
      readonly link: LoginLink;
      readonly earlier?: readonly LoginLink[];
      readonly since: Instant;
    }
  | { readonly kind: 'ended'; readonly result: PairingResult };

/** One attempt to get an appliance authorized. */
export interface Pairing {
  readonly id: string;
  /** The appliance's id. */
  readonly appliance: string;
  readonly portal: string;
  readonly scope: string | null;
  /**
   * 128 random bits, good for this pairing only: they say which pairing a redirect is about. They are no secret: the portal's
   * link has them in its `state`, which anybody can read, and they come back over plain HTTP.
   */
  readonly nonce: string;
  readonly begun: Instant;
  /** Milliseconds from `begun` to the deadline. */
  readonly lifetime: number;
  /** Hashes of the codes that were exchanged, so that none ever is twice. */
  readonly spentCodes: readonly string[];
  /** The last thing that went wrong on the way; it names the failure if nothing better comes before the deadline. */
  readonly lastFailure: 'answer_lost' | 'code_refused' | 'portal_rejected' | null;
  /** The device flow (RFC 8628) that its appliance has begun; null where only an installer has. */
  readonly device: DeviceFlow | null;
  /** The round of pairings that it is part of, see `PairingBatch`; left out where it stands alone. */
  readonly batch?: string;
  /** When it failed; left out of all others, of a device flow that lapsed because nobody opened it, and of one that concerns nobody any more. */
  readonly failed?: Instant;
  readonly step: PairingStep;
}

/** What an appliance was given, and what its person types (RFC 8628, 3.2). */
export interface DeviceCodes {
  /** SHA-256 of the device_code, base64url: it has 256 random bits. */
  readonly codeHash: string;
  /** As a person reads it, such as `WDJB-MJHT`. */
  readonly userCode: string;
}

/** A pairing's part in a device flow. */
export interface DeviceFlow extends DeviceCodes {
  /** The codes that these took the place of, the newest first. */
  readonly superseded?: readonly DeviceCodes[];
  /** An installer waits for the pairing too. */
  readonly shared?: true;
}

/** What happens to a pairing. */
export type PairingEvent =
  | { readonly kind: 'link'; readonly link: LoginLink }
  | { readonly kind: 'code'; readonly hash: string; readonly at: Instant }
  /** The code never left the hub: it may come, and be taken, again. */
  | { readonly kind: 'not_sent' }
  /** The portal took no tokens out for the code; the login may be tried again through the same link. */
  | { readonly kind: 'code_refused'; readonly reason: 'code_refused' | 'portal_rejected' }
  /** The portal may have acted on the code: only a fresh link is safe, and those at hand are dropped. */
  | { readonly kind: 'answer_lost' }
  | { readonly kind: 'paired'; readonly scope: string | null }
  | { readonly kind: 'failed'; readonly reason: PairingFailureReason }
  | { readonly kind: 'deadline' }
  /** It becomes part of a round. */
  | { readonly kind: 'round'; readonly round: string }
  /** The appliance begins a device flow, perhaps once more; `lifetime` of a pairing that would be begun now. */
  | { readonly kind: 'device'; readonly codes: DeviceCodes; readonly at: Instant; readonly lifetime: number }
  /**
   * An installer takes a device flow over: its time begins anew, and a fresh link is asked for at once; but where one waits
   * already, and the newest link is fresh enough to serve (`linkServes`), that stays the newest.
   */
  | { readonly kind: 'installer'; readonly at: Instant; readonly lifetime: number; readonly isLinkUsable: boolean };

/** Links of one pairing that are good at the same time; of more the oldest is dropped. */
const MAX_LINKS = 3;
/** Codes that are exchanged for one pairing: who has its link or its nonce may bring any number. */
const MAX_CODES = 100;
/** How much longer than its pairing the codes of a device flow are known, in ms. */
const DEVICE_CODE_GRACE = 600_000;
/** Codes that others took the place of, and that are still told from those that never were. */
const MAX_SUPERSEDED = 5;
/** A pairing is prolonged for a device flow to so many times the lifetime of one, because its links are polled meanwhile. */
const MAX_LIFETIME_FACTOR = 2;
/** Where less of its lifetime is left for a device flow, a new pairing is the better one. */
const MIN_LIFETIME_SHARE = 0.25;

/**
 * The pairing after an event, or the very same pairing where the event does not apply: a second code beside the one
 * being exchanged, a code that was spent, one too many, anything after the end.
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
      return startExchange(pairing, event.hash, event.at);
    case 'not_sent':
      if (step.kind !== 'exchanging') return pairing;
      return { ...pairing, spentCodes: pairing.spentCodes.slice(0, -1), step: backToWaiting(step) };
    case 'code_refused':
      if (step.kind !== 'exchanging') return pairing;
      return { ...pairing, lastFailure: event.reason, step: backToWaiting(step) };
    case 'answer_lost':
      if (step.kind !== 'exchanging') return pairing;
      return { ...pairing, lastFailure: 'answer_lost', step: { kind: 'asking' } };
    case 'paired':
      return step.kind === 'exchanging' ? endPairing(pairing, { kind: 'paired', scope: event.scope }) : pairing;
    case 'failed':
      return endPairing(pairing, { kind: 'failed', reason: event.reason });
    case 'deadline':
      // A code that was sent may still bring the grant.
      if (step.kind === 'exchanging') return pairing;
      return endPairing(pairing, { kind: 'failed', reason: pairing.lastFailure ?? 'expired' });
    case 'round':
      return pairing.batch === event.round ? pairing : { ...pairing, batch: event.round };
    case 'device':
      return withDeviceCodes(pairing, event.codes, event.at, event.lifetime);
    case 'installer': {
      const keeps =
        step.kind === 'exchanging' || (step.kind === 'waiting' && isInstallerInitiated(pairing) && event.isLinkUsable);
      return {
        ...pairing,
        begun: event.at,
        lifetime: event.lifetime,
        device: pairing.device && { ...pairing.device, shared: true },
        step: keeps ? step : askingWithLinks(linksOf(step)),
      };
    }
  }
}

/** Whether an installer waits for it: then the hub asks the portal for a link by itself. */
export function isInstallerInitiated({ device }: Pick<Pairing, 'device'>): boolean {
  return device === null || device.shared === true;
}

/** Whether a pairing has ended well, and by the code of this hash. */
export function isPairedByCode({ step, spentCodes }: Pairing, hash: string): boolean {
  return step.kind === 'ended' && step.result.kind === 'paired' && spentCodes.at(-1) === hash;
}

/** Whether the portal is asked for something again and again because of it. */
export function usesPortal(pairing: Pairing): boolean {
  const { step } = pairing;
  if (step.kind === 'ended') return false;
  return step.kind !== 'asking' || linksOf(step).length > 0 || isInstallerInitiated(pairing);
}

/** A pairing as it goes on after the hub was started again: an exchange that was under way has lost its answer. */
export function resumeAfterRestart(pairing: Pairing): Pairing {
  return advance(pairing, { kind: 'answer_lost' });
}

/** The links through which a person may log in, the newest first. */
export function linksOf(step: PairingStep): readonly LoginLink[] {
  if (step.kind === 'ended') return [];
  return [...(step.kind === 'asking' ? [] : [step.link]), ...(step.earlier ?? [])];
}

/**
 * The link to give to a person: the newest that brings the code to where the hub is now, else the newest of all.
 * @param redirect where the code is to be brought now, as {@link LoginLink} has it
 */
export function preferredLink(step: PairingStep, redirect: string | null): LoginLink | undefined {
  const links = linksOf(step);
  return links.find((link) => redirect !== null && link.redirect === redirect) ?? links[0];
}

/**
 * Whether a person who logged in through a link would be sent to where the hub no longer is. Without an address there is no
 * better link; and one that was made without serves by polling.
 * @param redirect where the code is to be brought now, as {@link LoginLink} has it
 */
export function isStaleLink(link: LoginLink, redirect: string | null): boolean {
  return redirect !== null && link.redirect !== null && link.redirect !== redirect;
}

/**
 * Milliseconds that a pairing, or an invite, has left. After a boot the wall clock is all there is to measure by; it can only
 * shorten the wait.
 */
export function timeLeft(pairing: Pick<Pairing, 'begun' | 'lifetime'>, now: Instant): number {
  return Math.max(0, pairing.lifetime - pairingAge(pairing, now));
}

/**
 * Whether the codes of a device flow are still known: longer than the pairing lasts, because an answer that was lost on a
 * bad line is asked for again, and a person may look at the page once more.
 */
export function areDeviceCodesKnown(pairing: Pairing, now: Instant): boolean {
  return pairingAge(pairing, now) < pairing.lifetime + DEVICE_CODE_GRACE;
}

/**
 * Milliseconds until the next poll: from the configured interval to half as much again, inside the 5 to 10 s of the
 * specification; a portal that asks for more gets it.
 * @param fraction a random number from 0 to 1
 */
export function pollDelay(interval: number, retryAfter: number | null, fraction: number): number {
  const upper = Math.min(10_000, interval * 1.5);
  return Math.max(interval + fraction * (upper - interval), retryAfter ?? 0);
}

function pairingAge({ begun }: Pick<Pairing, 'begun'>, now: Instant): number {
  return Math.max(0, begun.boot === now.boot ? now.uptime - begun.uptime : now.wall - begun.wall);
}

/**
 * The pairing with the codes of a device flow that begins now, and with the time that such codes are good for. While nobody
 * has opened it that costs the portal nothing. Else somebody may be in the middle of a login, and their links stay good; it
 * is prolonged, but not for ever. The very same pairing where too little time would be left.
 */
function withDeviceCodes(pairing: Pairing, codes: DeviceCodes, at: Instant, lifetime: number): Pairing {
  const { device, step } = pairing;
  const before = device && { codeHash: device.codeHash, userCode: device.userCode };
  const superseded = before && [before, ...(device.superseded ?? [])].slice(0, MAX_SUPERSEDED);
  const taken = {
    ...pairing,
    device: {
      ...codes,
      ...(superseded && { superseded }),
      ...(isInstallerInitiated(pairing) && { shared: true as const }),
    },
  };
  if (!usesPortal(pairing)) return { ...taken, begun: at, lifetime };
  const whole = Math.min(pairingAge(pairing, at) + lifetime, MAX_LIFETIME_FACTOR * lifetime);
  const prolonged = { ...taken, lifetime: Math.max(pairing.lifetime, whole) };
  return step.kind === 'exchanging' || timeLeft(prolonged, at) >= MIN_LIFETIME_SHARE * lifetime ? prolonged : pairing;
}

function startExchange(pairing: Pairing, hash: string, since: Instant): Pairing {
  const [link, ...earlier] = linksOf(pairing.step);
  if (link === undefined) return pairing;
  const step = { kind: 'exchanging', link, ...(earlier.length === 0 ? {} : { earlier }), since } as const;
  return { ...pairing, spentCodes: [...pairing.spentCodes, hash], step };
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
  return { ...pairing, step: { kind: 'ended', result } };
}
