import type { ControlClient } from '../../control/client.ts';
import type { PairingEventMessage } from '../../control/messages.ts';
import { Failure } from '../../core/failure.ts';
import type { PairingFailureReason } from '../../core/pairings/pairing.ts';
import type { LinkRenewalReason } from '../../core/pairings/pairing-administration.ts';
import { systemTimers } from '../../system/clock.ts';

/** The event of a login link, with what a person needs beside it. */
export type LinkMessage = Extract<PairingEventMessage, { event: 'waiting' }>;

/** The event by which a pairing has failed. */
export type PairingFailedMessage = Extract<PairingEventMessage, { event: 'failed' }>;

/** Shows a watched pairing. */
export interface PairingDisplay {
  /**
   * The portal is unreachable; called once per distinct problem. `expiresIn`: for how many seconds the hub keeps
   * trying.
   */
  portalUnreachable(problem: string, expiresIn: number): void;
  /** @param reason why the link replaces another one; null for the first link */
  linkIssued(link: LinkMessage, reason: LinkRenewalReason | null): void;
  /** Somebody has logged in, but the portal has not confirmed it; called once per address. */
  loginUnconfirmed(address: string): void;
  /** A login has failed, and the link can be opened again; called once per reason. */
  loginFailed(reason: PairingFailureReason): void;
  /** @param missing what was requested and the portal did not grant */
  paired(scope: string | null, missing: readonly string[]): void;
  failed(failure: PairingFailedMessage): void;
}

/** Why the watching ended. */
export type WatchOutcome =
  | { readonly kind: 'paired' }
  | { readonly kind: 'failed'; readonly message: string }
  | { readonly kind: 'link_shown' }
  | WatchStopReason;

/** Why the watching ended before the pairing, which continues. */
export type WatchStopReason =
  | { readonly kind: 'portal_out_of_reach'; readonly problem: string | null }
  | { readonly kind: 'timed_out' }
  | { readonly kind: 'interrupted' };

/** How long `--no-wait` waits for the portal, in ms. */
const LINK_TIMEOUT = 10_000;

/** The longest delay of a timer, in milliseconds; no pairing lasts that long. */
const MAX_TIMER_DELAY = 2 ** 31 - 1;

/**
 * Follows a pairing and shows it until it has ended, the user presses Ctrl-C or a limit is reached.
 * @param wait false: only until there is a link, at most ten seconds
 * @param timeout seconds; by default there is no limit
 */
export async function watchPairing(
  hub: ControlClient,
  pairing: string,
  display: PairingDisplay,
  { wait, timeout }: { readonly wait: boolean; readonly timeout?: number },
): Promise<WatchOutcome> {
  const stop = new AbortController();
  let stopped: WatchOutcome = { kind: 'interrupted' };
  let problem: string | null = null;
  const problems = new Set<string>();
  const unconfirmed = new Set<string>();
  const failures = new Set<PairingFailureReason>();
  let shown: LinkMessage | null = null;

  function end(outcome: WatchOutcome): void {
    if (stop.signal.aborted) return;
    stopped = outcome;
    stop.abort();
  }
  const interrupt = () => end({ kind: 'interrupted' });
  using parts = new DisposableStack();
  process.once('SIGINT', interrupt);
  parts.defer(() => process.off('SIGINT', interrupt));
  if (timeout !== undefined) {
    parts.defer(systemTimers.after(Math.min(1000 * timeout, MAX_TIMER_DELAY), () => end({ kind: 'timed_out' })));
  }
  if (!wait) parts.defer(systemTimers.after(LINK_TIMEOUT, () => end({ kind: 'portal_out_of_reach', problem })));

  for await (const report of followAcrossRestarts(hub, pairing, stop.signal)) {
    switch (report.event) {
      case 'connecting':
        problem = report.problem;
        if (problem === null || problems.has(problem)) break;
        problems.add(problem);
        display.portalUnreachable(problem, report.expires_in);
        break;
      case 'waiting': {
        const renewal = linkRenewalReason(report, shown);
        if (renewal !== null) {
          display.linkIssued(report, shown && (report.reason ?? renewal));
          shown = report;
        }
        for (const { address } of report.unconfirmed ?? []) {
          if (!unconfirmed.has(address)) display.loginUnconfirmed(address);
          unconfirmed.add(address);
        }
        const { last_failure: failure } = report;
        if (failure !== undefined && !failures.has(failure)) display.loginFailed(failure);
        if (failure !== undefined) failures.add(failure);
        if (!wait) return { kind: 'link_shown' };
        break;
      }
      case 'paired':
        display.paired(report.scope, report.missing_scope ?? []);
        return { kind: 'paired' };
      case 'failed':
        display.failed(report);
        return { kind: 'failed', message: report.message };
    }
  }
  return stopped;
}

/**
 * Why a link must be shown after the previous one; null if it need not be. A missing short link alone is no reason: it
 * may return.
 */
function linkRenewalReason(
  { authorize_url, short_url, user_code }: LinkMessage,
  shown: LinkMessage | null,
): LinkRenewalReason | null {
  // At some portals, all device codes have the same address.
  if (authorize_url !== shown?.authorize_url || user_code !== shown.user_code) return 'link_ended';
  return short_url === undefined || short_url === shown.short_url ? null : 'address_changed';
}

/** How often a hub that stopped is polled, in ms. */
const POLL_INTERVAL = 250;
/** How long the hub may be unreachable, in ms: enough for a reload, or a restart by systemd. */
const HUB_ABSENCE_TIMEOUT = 10_000;

/**
 * Follows a pairing as {@link ControlClient.followPairing} does, and continues after a restart of the hub: the pairing
 * is in the hub's store.
 */
async function* followAcrossRestarts(
  hub: ControlClient,
  pairing: string,
  signal: AbortSignal,
): AsyncGenerator<PairingEventMessage> {
  for (let gone = 0; !signal.aborted; gone += POLL_INTERVAL) {
    try {
      for await (const report of hub.followPairing(pairing, signal)) {
        gone = 0;
        yield report;
      }
      return;
    } catch (error) {
      if (!(error instanceof Failure && error.code === 'hub_stopping') || gone >= HUB_ABSENCE_TIMEOUT) throw error;
    }
    await systemTimers.sleep(POLL_INTERVAL, signal);
  }
}
