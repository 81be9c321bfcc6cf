import { backoffDelay } from '../../core/grants/backoff.ts';
import { linksOf, pollDelay } from '../../core/pairings/pairing.ts';
import type { LoginLink, Unreachable } from '../../core/portal.ts';
import type { Secret } from '../../core/secret.ts';
import type { PairingContext } from './pairing-context.ts';
import type { PairingStateMachine } from './pairing-state-machine.ts';

/** A code lives 30 s at least: one that comes while the portal can't be polled must not be missed. */
const BACKOFF = { base: 5000, cap: 20_000 };

/**
 * Polls all links of a pairing, also those that come while it does, until the pairing comes to another step: be it by a
 * code of its own or by the redirect's.
 */
export async function pollForCode(
  context: PairingContext,
  progress: PairingStateMachine,
  takeCode: (code: Secret, link: LoginLink | null) => Promise<void>,
): Promise<void> {
  const { signal } = progress;
  const { environment, portalOf, times } = context;
  if (portalOf(progress.pairing.portal) === undefined) {
    return progress.dispatch({ kind: 'failed', reason: 'misconfigured' });
  }
  const { random } = environment;

  let asked = progress.retryAfterMs;
  for (let failures = 0; !signal.aborted && !progress.stopping; ) {
    const slower = failures === 0 ? 0 : backoffDelay(BACKOFF, failures, random.fraction());
    const wait = Math.max(slower, pollDelay(times.pollInterval, asked, random.fraction()));
    if (!(await progress.pause(wait, signal))) return;
    const troubles = await pollLinks(context, progress, signal, takeCode);
    if (signal.aborted) return;
    // The portal may have something against a state that has run out; one answer shows that it is there.
    const [trouble] = troubles;
    const unreachable = trouble !== undefined && troubles.every((one) => one !== null) ? trouble : null;
    progress.recordReachability(unreachable);
    failures = unreachable === null ? 0 : failures + 1;
    asked = Math.max(0, ...troubles.map((one) => one?.retryAfter ?? 0));
  }
}

/**
 * Polls each link of a pairing once.
 * @param signal of the step that the links are of
 * @param takeCode gets a code that the portal serves, and the link that it serves it for
 * @returns for each link why the portal could not be asked; null where it answered
 */
export function pollLinks(
  { portalOf, referenceClock: portalClock }: Pick<PairingContext, 'portalOf' | 'referenceClock'>,
  progress: PairingStateMachine,
  signal: AbortSignal,
  takeCode: (code: Secret, link: LoginLink | null) => Promise<void>,
): Promise<readonly (Unreachable | null)[]> {
  const portal = portalOf(progress.pairing.portal)?.portal;

  async function poll(link: LoginLink): Promise<Unreachable | null> {
    if (portal === undefined) return null;
    const outcome = await portal.pollCode(link.codeUrl, signal);
    portalClock.recordPortalTime(outcome.portalTime);
    if (outcome.kind === 'unreachable') return outcome;
    if (outcome.kind === 'code' && !signal.aborted) {
      progress.recordReachability(null);
      await takeCode(outcome.code, link);
    }
    return null;
  }

  return Promise.all(linksOf(progress.pairing.step).map(poll));
}
