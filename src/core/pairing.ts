import type { Instant } from './clock.ts';
import type { Link } from './portal.ts';

/** Why a pairing came to nothing (DESIGN.md, "The command line"). */
export type FailureReason =
  | 'refused_by_user'
  | 'expired'
  | 'replaced'
  | 'cancelled'
  | 'portal_rejected'
  | 'foreign_origin'
  | 'code_refused'
  | 'answer_lost'
  | 'misconfigured';

/** How a pairing ended. */
type PairingResult =
  | { readonly kind: 'paired'; readonly scope: string | null }
  | { readonly kind: 'failed'; readonly reason: FailureReason };

/** Where a pairing stands. */
export type PairingStep =
  /** The portal is being asked for a link. */
  | { readonly kind: 'asking' }
  /** A person may log in, through any of the links. */
  | { readonly kind: 'waiting'; readonly link: Link; readonly earlier?: readonly Link[] }
  /** A code is on its way to the token endpoint: it was written down before, and is never sent again after a crash. */
  | { readonly kind: 'exchanging'; readonly link: Link; readonly earlier?: readonly Link[]; readonly since: Instant }
  | { readonly kind: 'ended'; readonly result: PairingResult };

/** One attempt to get an appliance authorized. */
export interface Pairing {
  readonly id: string;
  /** The appliance's client_id. */
  readonly appliance: string;
  readonly portal: string;
  readonly scope: string | null;
  /** 128 random bits, good for this pairing only: they tie a code that comes by redirect to it. */
  readonly nonce: string;
  readonly begun: Instant;
  /** Milliseconds from `begun` to the deadline. */
  readonly lifetime: number;
  /** Hashes of the codes that were exchanged, so that none ever is twice. */
  readonly spentCodes: readonly string[];
  /** The last thing that went wrong on the way; it names the failure if nothing better comes before the deadline. */
  readonly setback: 'answer_lost' | 'code_refused' | 'portal_rejected' | null;
  /** The device flow (RFC 8628) that it was started by; null where an installer started it. */
  readonly device: DeviceFlow | null;
  readonly step: PairingStep;
}

/** What an appliance that started its own pairing holds, and what its person types (RFC 8628, 3.2). */
export interface DeviceFlow {
  /** SHA-256 of the device_code, base64url: it has 256 random bits. */
  readonly codeHash: string;
  /** As a person reads it, such as `WDJB-MJHT`. */
  readonly userCode: string;
}

/** What happens to a pairing. */
export type PairingEvent =
  | { readonly kind: 'link'; readonly link: Link }
  | { readonly kind: 'code'; readonly hash: string; readonly at: Instant }
  /** The code never left the hub: it may come, and be taken, again. */
  | { readonly kind: 'not_sent' }
  /** The portal took no tokens out for the code; the login may be tried again through the same link. */
  | { readonly kind: 'code_refused'; readonly setback: 'code_refused' | 'portal_rejected' }
  /** The portal may have acted on the code: only a fresh link is safe. */
  | { readonly kind: 'answer_lost' }
  | { readonly kind: 'paired'; readonly scope: string | null }
  | { readonly kind: 'failed'; readonly reason: FailureReason }
  | { readonly kind: 'deadline' };

/** Codes that are exchanged for one pairing: who has its link or its nonce may bring any number. */
const MOST_CODES = 100;

/**
 * The pairing after an event, or the very same pairing where the event does not apply: a second code beside the one
 * being exchanged, a code that was spent, one too many, anything after the end.
 */
export function advance(pairing: Pairing, event: PairingEvent): Pairing {
  const { step } = pairing;
  if (step.kind === 'ended') return pairing;
  switch (event.kind) {
    case 'link':
      return step.kind === 'asking' ? { ...pairing, step: { kind: 'waiting', link: event.link } } : pairing;
    case 'code':
      if (step.kind !== 'waiting' || pairing.spentCodes.includes(event.hash)) return pairing;
      if (pairing.spentCodes.length >= MOST_CODES) return pairing;
      return {
        ...pairing,
        spentCodes: [...pairing.spentCodes, event.hash],
        step: { kind: 'exchanging', link: step.link, since: event.at },
      };
    case 'not_sent':
      if (step.kind !== 'exchanging') return pairing;
      return { ...pairing, spentCodes: pairing.spentCodes.slice(0, -1), step: { kind: 'waiting', link: step.link } };
    case 'code_refused':
      if (step.kind !== 'exchanging') return pairing;
      return { ...pairing, setback: event.setback, step: { kind: 'waiting', link: step.link } };
    case 'answer_lost':
      if (step.kind !== 'exchanging') return pairing;
      return { ...pairing, setback: 'answer_lost', step: { kind: 'asking' } };
    case 'paired':
      return step.kind === 'exchanging' ? ended(pairing, { kind: 'paired', scope: event.scope }) : pairing;
    case 'failed':
      return ended(pairing, { kind: 'failed', reason: event.reason });
    case 'deadline':
      // A code that was sent may still bring the grant.
      if (step.kind === 'exchanging') return pairing;
      return ended(pairing, { kind: 'failed', reason: pairing.setback ?? 'expired' });
  }
}

/** A pairing as it goes on after the hub was started again: an exchange that was under way has lost its answer. */
export function resumed(pairing: Pairing): Pairing {
  return advance(pairing, { kind: 'answer_lost' });
}

/**
 * Milliseconds that a pairing has left. After a boot the wall clock is all there is to measure by; it can only shorten
 * the wait.
 */
export function timeLeft(pairing: Pairing, now: Instant): number {
  const age = pairing.begun.boot === now.boot ? now.uptime - pairing.begun.uptime : now.wall - pairing.begun.wall;
  return Math.max(0, pairing.lifetime - Math.max(0, age));
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

function ended(pairing: Pairing, result: PairingResult): Pairing {
  return { ...pairing, step: { kind: 'ended', result } };
}
