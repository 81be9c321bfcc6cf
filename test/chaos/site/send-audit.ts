import { REFRESH_LEASE, SEND_TIME } from '../../../src/store/postgres/link/site-state.ts';
import type { Fault, FaultKind } from './fault-log.ts';

/** A refresh token that the portal received, and its outcome. Times are ms since 1970. */
export interface TokenSend {
  readonly token: string;
  /** The id of the grant, and the number of the token in it. */
  readonly grant: string;
  readonly generation: number;
  readonly hub: string;
  readonly at: number;
  /** The status of the portal's response, or null if it sent no complete response. */
  readonly status: number | null;
  /** The refresh token that the portal issued for it, whether its response arrived or not. */
  readonly successor: string | null;
}

/** The first time that an appliance got an access token from a hub. */
export interface FirstHandOut {
  readonly grant: string;
  readonly generation: number;
  readonly hub: string;
  readonly at: number;
}

/** Why the hubs could not know the outcome of a send. */
type LossReason = 'hub_killed' | 'hub_paused' | 'answer_cut';

/** A refresh token that was sent again. */
export interface Resend {
  readonly first: TokenSend;
  readonly second: TokenSend;
  /**
   * Why the outcome of the first send was lost; `paused_before_send` if the hub was paused between its check of the
   * lease and the second send; null if nothing explains it.
   */
  readonly reason: LossReason | 'paused_before_send' | null;
}

/** The least time between two hubs' sends of a token if the outcome of the first is unknown: the rest of its lease. */
const REST_OF_LEASE = REFRESH_LEASE - SEND_TIME;
/** How much later than the hub's own clock the harness may have noted a fault, or the portal a request, in ms. */
const INACCURACY = 1500;
/** How long a hub may take on a busy machine to write the outcome of a refresh, in ms. */
const SETTLE_TIME = 30_000;
/** The longest time that a hub waits for the portal, in ms (`TOKEN_REQUEST_LIMITS`). */
const PORTAL_TIMEOUT = 130_000;

/** Finds the refresh tokens that were sent more than once, and explains each by the faults of the run. */
export function auditSends(
  sends: readonly TokenSend[],
  faults: readonly Fault[],
  handOuts: readonly FirstHandOut[],
): Resend[] {
  const byToken = Map.groupBy(
    sends.toSorted((one, other) => one.at - other.at),
    ({ token }) => token,
  );
  const sentAt = new Map([...byToken].map(([token, [first]]) => [token, first?.at ?? 0]));
  const handedOut = Map.groupBy(handOuts, ({ grant, generation }) => `${grant} ${generation}`);
  return [...byToken.values()].flatMap((group) =>
    group.slice(1).map((second, index): Resend => {
      const first = group[index] ?? second;
      const successorSent = first.successor === null ? undefined : sentAt.get(first.successor);
      const known = handedOut.get(`${first.grant} ${first.generation + 1}`) ?? [];
      const wasKnown =
        (successorSent !== undefined && successorSent < second.at) ||
        known.some(({ hub, at }) => hub !== first.hub && at < second.at);
      const isRetryOfPaused = wasPausedBefore(second, faults) && first.hub !== second.hub;
      if (wasKnown) return { first, second, reason: isRetryOfPaused ? 'paused_before_send' : null };
      const reason = whyLost(first, second, faults) ?? (isRetryOfPaused ? 'paused_before_send' : null);
      return { first, second, reason };
    }),
  );
}

function whyLost(first: TokenSend, second: TokenSend, faults: readonly Fault[]): LossReason | null {
  const { at } = first;
  const own = faults.filter(({ hub }) => hub === null || hub === first.hub);
  const overlaps = (kind: FaultKind, from: number, to: number) =>
    own.some((fault) => fault.kind === kind && fault.from <= to + INACCURACY && fault.to >= from - INACCURACY);
  const isOtherHub = first.hub !== second.hub;
  const isLeaseOver = second.at >= at + REST_OF_LEASE - INACCURACY;
  const known = settledAt(at, own);
  if (own.some(({ kind, from }) => kind === 'killed' && isWithin(from, at, Math.min(second.at, known)))) {
    // The hub itself may send again as soon as it has restarted, another one when the lease has ended.
    return isOtherHub && !isLeaseOver && !wasSeenByItself(first, second, faults) ? null : 'hub_killed';
  }
  if (overlaps('cut_from_portal', at - PORTAL_TIMEOUT, Math.min(second.at, at + PORTAL_TIMEOUT))) return 'answer_cut';
  const wasPaused = second.at <= known + INACCURACY && overlaps('paused', at, Math.min(second.at, known));
  return wasPaused && (isLeaseOver || !isOtherHub) ? 'hub_paused' : null;
}

/**
 * When a hub that runs must have written the outcome of a refresh: after so much time without a fault that concerns it.
 * @param own the faults of the hub and of the database
 */
function settledAt(sentAt: number, own: readonly Fault[]): number {
  let free = sentAt;
  for (const { from, to } of own.toSorted((one, other) => one.from - other.from)) {
    if (from > free + SETTLE_TIME) break;
    free = Math.max(free, to);
  }
  return free + SETTLE_TIME;
}

/** Whether the killed hub ran again before the second send, and so has told the others that the answer was lost. */
function wasSeenByItself(first: TokenSend, second: TokenSend, faults: readonly Fault[]): boolean {
  return faults.some(
    ({ kind, hub, from, to }) =>
      kind === 'down' && hub === first.hub && isWithin(from, first.at, second.at) && to <= second.at + INACCURACY,
  );
}

function wasPausedBefore({ hub, at }: TokenSend, faults: readonly Fault[]): boolean {
  return faults.some((fault) => fault.kind === 'paused' && fault.hub === hub && isWithin(at, fault.to, fault.to));
}

function isWithin(at: number, from: number, to: number): boolean {
  return at >= from - INACCURACY && at <= to + INACCURACY;
}
