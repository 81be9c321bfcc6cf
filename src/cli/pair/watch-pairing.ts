import type { ControlClient } from '../../control/client.ts';
import type { PairingEventMessage } from '../../control/messages.ts';
import { Failure } from '../../core/failure.ts';
import type { LinkRenewalReason } from '../../core/pairings/pairing-administration.ts';
import { systemTimers } from '../../system/clock.ts';

/** A link to log in at. */
export interface DisplayedLink {
  readonly authorizeUrl: string;
  /** The hub's own that leads there, for whoever is in the home network; null where there is none. */
  readonly shortUrl: string | null;
}

/** The event by which a pairing has failed. */
export type PairingFailedMessage = Extract<PairingEventMessage, { event: 'failed' }>;

/** What a watched pairing is shown on. */
export interface PairingDisplay {
  /** The portal is out of reach; each distinct problem comes once. `expiresIn`: seconds that the hub goes on trying. */
  portalUnreachable(problem: string, expiresIn: number): void;
  /** @param reason why the link takes the place of another; null for the first */
  linkIssued(link: DisplayedLink, expiresIn: number, reason: LinkRenewalReason | null): void;
  /** Somebody has logged in, and the portal does not tell of it; each address comes once. */
  loginUnconfirmed(address: string): void;
  paired(scope: string | null): void;
  failed(failure: PairingFailedMessage): void;
}

/** Why the watching ended. */
export type WatchOutcome =
  | { readonly kind: 'paired' }
  | { readonly kind: 'failed'; readonly message: string }
  | { readonly kind: 'link_shown' }
  | WatchStopReason;

/** Why the watching ended before the pairing, which goes on. */
export type WatchStopReason =
  | { readonly kind: 'portal_out_of_reach'; readonly problem: string | null }
  | { readonly kind: 'timed_out' }
  | { readonly kind: 'interrupted' };

/** Milliseconds that `--no-wait` gives the portal. */
const LINK_TIMEOUT = 10_000;

/** The longest delay that a timer takes, in milliseconds: no pairing lives that long. */
const MAX_TIMER_DELAY = 2 ** 31 - 1;

/**
 * Follows a pairing and shows it until it has ended, Ctrl-C comes or a limit is reached.
 * @param wait false: only until there is a link, for ten seconds at most
 * @param timeout seconds; by default it takes as long as it takes
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
  let shown: DisplayedLink | null = null;

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
        const link = { authorizeUrl: report.authorize_url, shortUrl: report.short_url ?? null };
        const fresh = freshLinkReason(link, shown);
        if (fresh !== null) {
          display.linkIssued(link, report.expires_in, shown && (report.reason ?? fresh));
          shown = link;
        }
        for (const { address } of report.unconfirmed ?? []) {
          if (!unconfirmed.has(address)) display.loginUnconfirmed(address);
          unconfirmed.add(address);
        }
        if (!wait) return { kind: 'link_shown' };
        break;
      }
      case 'paired':
        display.paired(report.scope);
        return { kind: 'paired' };
      case 'failed':
        display.failed(report);
        return { kind: 'failed', message: report.message };
    }
  }
  return stopped;
}

/** Why a link is worth showing after another; null where it is not. A short one that is gone may come back. */
function freshLinkReason(
  { authorizeUrl, shortUrl }: DisplayedLink,
  shown: DisplayedLink | null,
): LinkRenewalReason | null {
  if (authorizeUrl !== shown?.authorizeUrl) return 'link_ended';
  return shortUrl === null || shortUrl === shown.shortUrl ? null : 'address_changed';
}

/** How often a hub that has gone is looked for, in ms. */
const POLL_INTERVAL = 250;
/** How long it may stay away, in ms: one that is reloaded, or that systemd starts again, is back by then. */
const HUB_ABSENCE_TIMEOUT = 10_000;

/**
 * Follows a pairing as {@link ControlClient.followPairing} does, and goes on where the hub comes back: the pairing is in its
 * store.
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
