import type { Instant } from '../../core/clock.ts';
import { backoffDelay } from '../../core/grants/backoff.ts';
import { linksOf, pollDelay, timeLeft } from '../../core/pairings/pairing.ts';
import type { DeviceLink, PolledLink } from '../../core/portals/login-link.ts';
import type { Unreachable } from '../../core/portals/portal.ts';
import type { PairingContext } from './login-completion.ts';
import type { PairingRunner } from './pairing-runner.ts';

/** A code lives at least 30 s: the backoff must not miss one that arrives while the portal can't be polled. */
const BACKOFF = { base: 5000, cap: 20_000 };

/** By how much `slow_down` makes the interval longer, in ms (RFC 8628, 3.5). */
const SLOW_DOWN_MS = 5000;

/** A link that is polled for the result of its login. */
type PollableLink = PolledLink | DeviceLink;

/**
 * Polls all links of a pairing that are polled, including those added meanwhile, until the pairing changes its step,
 * because of a polled result or a redirected code.
 */
export async function pollForResult(context: PairingContext, progress: PairingRunner): Promise<void> {
  const { signal } = progress;
  const { environment, portalOf, times } = context;
  if (portalOf(progress.pairing.portal) === undefined) {
    await progress.dispatch({ kind: 'failed', reason: 'misconfigured' });
    return;
  }
  const { random } = environment;

  let retryAfter = progress.retryAfterMs;
  for (let failures = 0; !signal.aborted && progress.isRunning; ) {
    const backoff = failures === 0 ? 0 : backoffDelay(BACKOFF, failures, random.fraction());
    const links = pollableLinks(progress);
    const interval = Math.max(0, ...links.map((link) => intervalOf(link, times.pollInterval)));
    const delay = Math.max(backoff, pollDelay(interval, retryAfter, random.fraction()));
    // A portal that redirects is not polled.
    const wait = links.length === 0 ? Number.POSITIVE_INFINITY : delay;
    if (!(await progress.pause(wait, signal))) return;
    const problems = await pollLinks(context, progress, signal);
    if (signal.aborted) return;
    // The portal may reject the poll of an expired link; one usable response shows that it is reachable.
    const unreachable = problems.every((problem) => problem !== null) ? (problems[0] ?? null) : null;
    progress.recordReachability(unreachable);
    failures = unreachable === null ? 0 : failures + 1;
    retryAfter = Math.max(0, ...problems.map((problem) => problem?.retryAfter ?? 0));
  }
}

/**
 * Polls each link of a pairing once that is polled.
 * @param signal of the step that the links belong to
 * @returns for each link why the portal was unreachable; null if it responded
 */
export function pollLinks(
  { portalOf, environment, times }: Pick<PairingContext, 'portalOf' | 'environment' | 'times'>,
  progress: PairingRunner,
  signal: AbortSignal,
): Promise<readonly (Unreachable | null)[]> {
  const portal = portalOf(progress.pairing.portal)?.portal;

  async function poll(link: PollableLink): Promise<Unreachable | null> {
    if (portal === undefined) return null;
    const sent = environment.clock.now();
    if (link.kind === 'device' && isExpired(link, sent)) {
      await progress.dispatch({ kind: 'link_ended', link });
      return null;
    }
    const outcome = await portal.poll(link, signal);
    if (outcome.kind === 'unreachable') return outcome;
    if (outcome.kind === 'granted' && link.kind === 'device') {
      // Even if the pairing has moved on: these tokens are given only once.
      await progress.acceptTokens(link, outcome.tokens, sent);
      return null;
    }
    if (signal.aborted) return null;
    progress.recordReachability(null);
    switch (outcome.kind) {
      case 'code':
        await progress.submitCode({ code: outcome.code, issuer: null }, link);
        break;
      case 'denied':
        await progress.dispatch({ kind: 'failed', reason: 'refused_by_user' }, signal);
        break;
      case 'ended':
        await progress.dispatch({ kind: 'link_ended', link });
        break;
      case 'misconfigured':
        progress.log.warn('pairing_rejected', { connection: progress.name, detail: outcome.detail });
        await progress.dispatch({ kind: 'failed', reason: 'misconfigured', detail: outcome.detail }, signal);
        break;
      case 'slow_down': {
        if (link.kind !== 'device') break;
        // Stored with the link: neither the next run of the hub nor another hub may poll as often as before.
        const interval = intervalOf(link, times.pollInterval) + SLOW_DOWN_MS;
        await progress.dispatch({ kind: 'slow_down', link, interval });
        break;
      }
      default:
    }
    return null;
  }

  return Promise.all(pollableLinks(progress).map(poll));
}

function pollableLinks({ pairing }: PairingRunner): readonly PollableLink[] {
  return linksOf(pairing.step).filter((link) => link.kind !== 'redirect');
}

/** Milliseconds between two polls of a link. */
function intervalOf(link: PollableLink, configured: number): number {
  return Math.max(configured, link.kind === 'device' ? link.interval : 0);
}

function isExpired({ begun, lifetime }: DeviceLink, now: Instant): boolean {
  return timeLeft({ begun, lifetime }, now) <= 0;
}
