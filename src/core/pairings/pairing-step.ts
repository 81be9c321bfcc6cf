import type { Instant } from '../clock.ts';
import type { DeviceLink, LoginLink } from '../portals/login-link.ts';
import type { CodeResponse } from '../portals/portal.ts';
import type { TokenOutcome, TokenResponse } from '../portals/token-outcome.ts';
import {
  type DeviceCodes,
  isInstallerInitiated,
  isSameLink,
  linksOf,
  needsPortalRequests,
  type Pairing,
  type PairingFailureReason,
  type PairingResult,
  type PairingStep,
  pairingAge,
  timeLeft,
} from './pairing.ts';

/** What happens to a pairing. */
export type PairingEvent =
  | { readonly kind: 'link'; readonly link: LoginLink }
  /** A link has expired, or yielded nothing. */
  | { readonly kind: 'link_ended'; readonly link: LoginLink }
  /** The portal has asked to be polled less often; `interval` in ms, from now on (RFC 8628, 3.5). */
  | { readonly kind: 'slow_down'; readonly link: DeviceLink; readonly interval: number }
  /** A login has succeeded; `hash` of its code, and the link that it came through, if that is known. */
  | { readonly kind: 'code'; readonly hash: string; readonly response: CodeResponse; readonly link?: LoginLink }
  /** The code of this hash was not sent: the hub accepts it again. */
  | { readonly kind: 'not_sent'; readonly hash: string }
  /** The portal has answered to the code of this hash, which was sent at `sent`. */
  | {
      readonly kind: 'answered';
      readonly hash: string;
      readonly link: LoginLink;
      readonly outcome: TokenOutcome;
      readonly sent: Instant;
    }
  /** The device code of a link, of this hash, has yielded tokens. The portal issues them only once. */
  | {
      readonly kind: 'tokens';
      readonly hash: string;
      readonly link: DeviceLink;
      readonly tokens: TokenResponse;
      readonly sent: Instant;
    }
  /** Nobody knows what became of the code of this hash. */
  | { readonly kind: 'answer_lost'; readonly hash: string }
  /** The hub starts, or has become the one that runs the pairing. */
  | { readonly kind: 'resumed' }
  /** The portal, or somebody who pretends to be it, has reported that a login failed: the link can be opened again. */
  | { readonly kind: 'login_failed'; readonly reason: 'portal_rejected' | 'refused_by_user'; readonly detail?: string }
  /** The grant is stored, or will be. */
  | { readonly kind: 'paired'; readonly scope: string | null }
  /** An installer permits the appliance of the device flow to use the connection's grant as it is. */
  | { readonly kind: 'approved'; readonly scope: string | null }
  | { readonly kind: 'failed'; readonly reason: PairingFailureReason; readonly detail?: string }
  | { readonly kind: 'deadline' }
  /** Its failure is no longer reported. */
  | { readonly kind: 'failure_cleared' }
  /** The pairing becomes part of a batch. */
  | { readonly kind: 'batch'; readonly batch: string }
  /** The appliance begins a device flow, perhaps again; `lifetime` is that of a new pairing, in ms. */
  | { readonly kind: 'device'; readonly appliance: string; readonly codes: DeviceCodes; readonly lifetime: number }
  /**
   * An installer takes over a device flow: its lifetime starts again, and the hub requests a new link at once. If an
   * installer waits already and the newest link is still usable (`isLinkUsable`), that link stays the newest.
   */
  | {
      readonly kind: 'installer';
      readonly lifetime: number;
      readonly isLinkUsable: boolean;
      /** The installer's name; left out if it is unknown. */
      readonly user?: string;
    };

/** What the hub does when the change is written. */
export type PairingEffect =
  /** Writes ahead that the code is sent, and sends it, when the portal's turn has come. */
  | { readonly kind: 'exchange'; readonly hash: string; readonly response: CodeResponse; readonly link: LoginLink }
  /** Stores the grant together with the end of the pairing. */
  | { readonly kind: 'complete'; readonly tokens: TokenResponse; readonly sent: Instant }
  /** Revokes tokens that nobody uses. */
  | { readonly kind: 'discard'; readonly tokens: TokenResponse }
  /** Logs an exchange without tokens. */
  | { readonly kind: 'exchange_failed'; readonly outcome: Exclude<TokenOutcome, { kind: 'granted' }> }
  /** Logs that an exchange was interrupted, so that its answer is lost. */
  | { readonly kind: 'exchange_interrupted'; readonly since: Instant }
  /** Reports that the pairing has failed; only in the debug log if nobody asked for it. */
  | { readonly kind: 'failed'; readonly reason: PairingFailureReason; readonly isReported: boolean };

/** A pairing after an event. */
export interface PairingChange {
  /** The same object if the event does not apply. */
  readonly pairing: Pairing;
  /**
   * When the change is written: `first`, before it counts, because a restart must not lose what somebody was told, or
   * at least tried (`first_if_possible`); `after`, because a restart comes to the same; `by_effect`, as a code is when the
   * portal's turn has come; or there is nothing to write.
   */
  readonly write: 'first' | 'first_if_possible' | 'after' | 'by_effect' | 'nothing';
  readonly effects: readonly PairingEffect[];
}

/** Links of one pairing that are valid at the same time; a further link replaces the oldest. */
const MAX_LINKS = 3;
/** Codes that the hub exchanges for one pairing. Anybody who has its link or nonce could bring any number. */
const MAX_CODES = 100;
/** Replaced codes that the hub remembers, so that it can distinguish them from unknown ones. */
const MAX_SUPERSEDED = 5;
/**
 * A device flow prolongs a pairing to at most this many lifetimes, because the hub polls its links all the time.
 */
const MAX_LIFETIME_FACTOR = 2;
/** If a smaller share of its lifetime is left for a device flow, a new pairing is better. */
const MIN_LIFETIME_SHARE = 0.25;
/** Reasons, besides the deadline, that end an unopened device flow and are not reported. */
const UNREPORTED_REASONS: readonly PairingFailureReason[] = ['replaced', 'cancelled'];

/** The pairing after an event, and what follows from it. @param now when the event happens */
export function stepPairing(pairing: Pairing, event: PairingEvent, now: Instant): PairingChange {
  const { step } = pairing;
  if (step.kind === 'ended') return afterEnd(pairing, event);
  switch (event.kind) {
    case 'link':
      if (step.kind === 'exchanging') return unchanged(pairing);
      return to(pairing, stepWithLinks([event.link, ...linksOf(step)].slice(0, MAX_LINKS)), 'first_if_possible');
    case 'link_ended':
      if (step.kind === 'exchanging' || findLink(step, event.link) === undefined) return unchanged(pairing);
      return to(pairing, stepWithLinks(linksOf(step).filter((link) => !isSameLink(link, event.link))));
    case 'slow_down': {
      const { link, interval } = event;
      return to(
        pairing,
        mapLinks(step, (one) => (isSameLink(one, link) ? { ...link, interval } : one)),
      );
    }
    case 'code': {
      const exchanging = startExchange(pairing, event, now);
      if (exchanging === null) return unchanged(pairing);
      const { hash, response } = event;
      const effect = { kind: 'exchange', hash, response, link: event.link ?? exchanging.step.link } as const;
      return { pairing: exchanging, write: 'by_effect', effects: [effect] };
    }
    case 'tokens': {
      const { tokens, sent } = event;
      const exchanging = startExchange(pairing, event, now);
      const effect = { kind: exchanging === null ? 'discard' : 'complete', tokens, sent } as const;
      return { pairing: exchanging ?? pairing, write: 'by_effect', effects: [effect] };
    }
    case 'not_sent':
      if (step.kind !== 'exchanging' || !isExchanging(pairing, event.hash)) return unchanged(pairing);
      return changed({ ...pairing, spentCodes: pairing.spentCodes.slice(0, -1), step: backToWaiting(step) });
    case 'answered':
      return afterAnswer(pairing, event, now);
    case 'answer_lost':
      return isExchanging(pairing, event.hash) ? afterLostAnswer(pairing) : unchanged(pairing);
    case 'resumed': {
      if (step.kind !== 'exchanging') return unchanged(pairing);
      return { ...afterLostAnswer(pairing), effects: [{ kind: 'exchange_interrupted', since: step.since }] };
    }
    case 'login_failed':
      // Only the first one is written: anybody who saw the link can bring any number of errors.
      return step.kind === 'exchanging' || pairing.lastFailure !== null
        ? unchanged(pairing)
        : changed({ ...withDetail(pairing, event), lastFailure: event.reason });
    case 'paired':
      return step.kind === 'exchanging'
        ? changed(withResult(pairing, { kind: 'paired', scope: event.scope }), 'by_effect')
        : unchanged(pairing);
    case 'approved':
      // An installer's own login continues: it may be about another account.
      return step.kind === 'exchanging' || isInstallerInitiated(pairing)
        ? unchanged(pairing)
        : changed(withResult(pairing, { kind: 'paired', scope: event.scope }), 'first');
    case 'failed':
      return fail(pairing, event, now);
    case 'deadline':
      // The exchange of a code that was sent may still succeed.
      if (step.kind === 'exchanging') return unchanged(pairing);
      return fail(pairing, { reason: pairing.lastFailure ?? 'expired', isDeadline: true }, now);
    case 'failure_cleared':
      return unchanged(pairing);
    case 'batch':
      return pairing.batch === event.batch ? unchanged(pairing) : changed({ ...pairing, batch: event.batch }, 'first');
    case 'device':
      return changed(withDeviceCodes(pairing, event, now), 'first');
    case 'installer': {
      const keepsStep =
        step.kind === 'exchanging' || (step.kind === 'waiting' && isInstallerInitiated(pairing) && event.isLinkUsable);
      const taken = {
        ...pairing,
        begun: now,
        lifetime: event.lifetime,
        device: pairing.device && { ...pairing.device, shared: true as const },
        ...(event.user !== undefined && { user: event.user }),
      };
      return to(taken, keepsStep ? step : { kind: 'asking', ...earlierLinks(linksOf(step)) }, 'first');
    }
  }
}

/** Whether the code of this hash is the one that is being exchanged. */
function isExchanging({ step, spentCodes }: Pairing, hash: string): boolean {
  return step.kind === 'exchanging' && spentCodes.at(-1) === hash;
}

/** What has ended changes no more; but tokens may come for it. */
function afterEnd(pairing: Pairing, event: PairingEvent): PairingChange {
  if (event.kind === 'failure_cleared' && pairing.failed !== undefined) {
    const { failed: _, ...cleared } = pairing;
    return changed(cleared);
  }
  if (event.kind === 'tokens') return discard(pairing, event.tokens);
  if (event.kind !== 'answered') return unchanged(pairing);
  const { outcome } = event;
  if (outcome.kind === 'granted') return discard(pairing, outcome.tokens);
  return { ...unchanged(pairing), effects: [{ kind: 'exchange_failed', outcome }] };
}

function afterAnswer(
  pairing: Pairing,
  { hash, link, outcome, sent }: Extract<PairingEvent, { kind: 'answered' }>,
  now: Instant,
): PairingChange {
  const { step } = pairing;
  const isCurrent = isExchanging(pairing, hash);
  if (outcome.kind === 'granted') {
    if (step.kind === 'exchanging' && !isCurrent) return discard(pairing, outcome.tokens);
    // Another hub has counted the answer as lost meanwhile: it was only late.
    const exchanging = step.kind === 'exchanging' ? step : ({ kind: 'exchanging', link, since: sent } as const);
    const effects = [{ kind: 'complete', tokens: outcome.tokens, sent }] as const;
    return { pairing: { ...pairing, step: exchanging }, write: 'by_effect', effects };
  }
  const effect = { kind: 'exchange_failed', outcome } as const;
  const isFailure = isCurrent && step.kind === 'exchanging';
  const next = isFailure ? afterFailedExchange(pairing, step, outcome, now) : unchanged(pairing);
  return { ...next, effects: [effect, ...next.effects] };
}

function afterFailedExchange(
  pairing: Pairing,
  step: Extract<PairingStep, { kind: 'exchanging' }>,
  outcome: Exclude<TokenOutcome, { kind: 'granted' }>,
  now: Instant,
): PairingChange {
  const { detail } = outcome;
  switch (outcome.kind) {
    case 'misconfigured':
      return fail(pairing, { reason: 'misconfigured', detail }, now);
    // The portal may have acted on the code: only a new link is safe.
    case 'ambiguous':
      return afterLostAnswer(pairing);
    case 'rejected':
      // Every further login would end in the same way.
      if (outcome.error === 'invalid_scope') return fail(pairing, { reason: 'portal_rejected', detail }, now);
      break;
    default:
  }
  const isRejected = outcome.kind === 'rejected' || outcome.kind === 'blocked';
  const lastFailure = isRejected ? 'portal_rejected' : 'code_refused';
  return changed({ ...withDetail(pairing, outcome), lastFailure, step: afterRefusedCode(step) });
}

function afterLostAnswer(pairing: Pairing): PairingChange {
  return changed({ ...pairing, lastFailure: 'answer_lost', step: { kind: 'asking' } });
}

/** Ends a pairing without a grant. */
function fail(
  pairing: Pairing,
  {
    reason,
    detail,
    isDeadline = false,
  }: { readonly reason: PairingFailureReason; readonly detail?: string; readonly isDeadline?: boolean },
  now: Instant,
): PairingChange {
  // Not reported: an appliance whose device flow nobody opens starts another one, all day long.
  const isReported = needsPortalRequests(pairing) || (!isDeadline && !UNREPORTED_REASONS.includes(reason));
  const ended = withResult(isDeadline ? pairing : withDetail(pairing, detail === undefined ? {} : { detail }), {
    kind: 'failed',
    reason,
  });
  return {
    pairing: isReported ? { ...ended, failed: now } : ended,
    write: 'after',
    effects: [{ kind: 'failed', reason, isReported }],
  };
}

function discard(pairing: Pairing, tokens: TokenResponse): PairingChange {
  return { ...unchanged(pairing), effects: [{ kind: 'discard', tokens }] };
}

function unchanged(pairing: Pairing): PairingChange {
  return { pairing, write: 'nothing', effects: [] };
}

function changed(pairing: Pairing, write: PairingChange['write'] = 'after'): PairingChange {
  return { pairing, write, effects: [] };
}

function to(pairing: Pairing, step: PairingStep, write: PairingChange['write'] = 'after'): PairingChange {
  return changed({ ...pairing, step }, write);
}

function withDetail({ failureDetail: _, ...pairing }: Pairing, { detail }: { readonly detail?: string }): Pairing {
  return detail === undefined ? pairing : { ...pairing, failureDetail: detail };
}

/**
 * The pairing with the codes of a device flow that begins now, and with their lifetime. While nobody has opened the
 * pairing, it starts again, which costs the portal nothing. Otherwise somebody may be logging in: its links stay valid,
 * and it is prolonged up to a limit. Returns the same object if too little time would be left.
 */
function withDeviceCodes(
  pairing: Pairing,
  { appliance, codes, lifetime }: Extract<PairingEvent, { kind: 'device' }>,
  now: Instant,
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
  if (!needsPortalRequests(pairing)) return { ...updated, begun: now, lifetime };
  const total = Math.min(pairingAge(pairing, now) + lifetime, MAX_LIFETIME_FACTOR * lifetime);
  const prolonged = { ...updated, lifetime: Math.max(pairing.lifetime, total) };
  return step.kind === 'exchanging' || timeLeft(prolonged, now) >= MIN_LIFETIME_SHARE * lifetime ? prolonged : pairing;
}

/** A polled link stays usable after its code, so its place among the links does not change. */
function startExchange(
  pairing: Pairing,
  { hash, link }: { readonly hash: string; readonly link?: LoginLink },
  now: Instant,
): (Pairing & { readonly step: Extract<PairingStep, { kind: 'exchanging' }> }) | null {
  const { step, spentCodes, answeredStates = [] } = pairing;
  if (step.kind === 'exchanging' || spentCodes.includes(hash) || spentCodes.length >= MAX_CODES) return null;
  const links = linksOf(step);
  const known = link === undefined || link.kind === 'poll' ? undefined : findLink(step, link);
  const used = known ?? links[0];
  if (used === undefined) return null;
  const others = links.filter((one) => one !== used);
  return {
    ...pairing,
    spentCodes: [...spentCodes, hash],
    ...(used.kind === 'redirect' && { answeredStates: [...answeredStates, used.state] }),
    step: { kind: 'exchanging', link: used, ...earlierLinks(others), since: now },
  };
}

/** The link of a step that is the same as another one; undefined if it has none. */
function findLink(step: PairingStep, link: LoginLink): LoginLink | undefined {
  return linksOf(step).find((one) => isSameLink(one, link));
}

/** The same step with other links. */
function mapLinks<Step extends PairingStep>(step: Step, map: (link: LoginLink) => LoginLink): Step {
  if (step.kind === 'ended') return step;
  const earlier = step.earlier && { earlier: step.earlier.map(map) };
  return { ...step, ...(step.kind !== 'asking' && { link: map(step.link) }), ...earlier };
}

/** A login redirect and a device code work only once. */
function afterRefusedCode(step: Extract<PairingStep, { kind: 'exchanging' }>): PairingStep {
  return step.link.kind === 'poll' ? backToWaiting(step) : stepWithLinks(step.earlier ?? []);
}

function stepWithLinks([link, ...earlier]: readonly LoginLink[]): PairingStep {
  if (link === undefined) return { kind: 'asking' };
  return { kind: 'waiting', link, ...earlierLinks(earlier) };
}

/** The member `earlier` of a step, which is left out if there is no such link. */
function earlierLinks(earlier: readonly LoginLink[]): { readonly earlier?: readonly LoginLink[] } {
  return earlier.length === 0 ? {} : { earlier };
}

function backToWaiting({ since: _, ...step }: Extract<PairingStep, { kind: 'exchanging' }>): PairingStep {
  return { ...step, kind: 'waiting' };
}

function withResult(pairing: Pairing, result: PairingResult): Pairing {
  // A browser that opens an address of this pairing later, or again, sees how it ended.
  const states = linksOf(pairing.step).flatMap((link) => (link.kind === 'redirect' ? [link.state] : []));
  const answeredStates = [...new Set([...(pairing.answeredStates ?? []), ...states])];
  return { ...pairing, ...(answeredStates.length > 0 && { answeredStates }), step: { kind: 'ended', result } };
}
