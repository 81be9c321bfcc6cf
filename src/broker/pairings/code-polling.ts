import { backoffDelay } from '../../core/grants/backoff.ts';
import { linksOf, pollDelay } from '../../core/pairings/pairing.ts';
import type { LoginLink, Unreachable } from '../../core/portal.ts';
import type { Secret } from '../../core/secret.ts';
import type { PairingContext } from './pairing-context.ts';
import type { PairingStateMachine } from './pairing-state-machine.ts';

/** A code lives at least 30 s: the backoff must not miss one that arrives while the portal can't be polled. */
const BACKOFF = { base: 5000, cap: 20_000 };

/**
 * Polls all links of a pairing, including those added meanwhile, until the pairing changes its step, because of a
 * polled code or a redirected one.
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

  let retryAfter = progress.retryAfterMs;
  for (let failures = 0; !signal.aborted && !progress.stopping; ) {
    const backoff = failures === 0 ? 0 : backoffDelay(BACKOFF, failures, random.fraction());
    const wait = Math.max(backoff, pollDelay(times.pollInterval, retryAfter, random.fraction()));
    if (!(await progress.pause(wait, signal))) return;
    const problems = await pollLinks(context, progress, signal, takeCode);
    if (signal.aborted) return;
    // The portal may reject the poll of an expired link; one usable response shows that it is reachable.
    const [problem] = problems;
    const unreachable = problem !== undefined && problems.every((one) => one !== null) ? problem : null;
    progress.recordReachability(unreachable);
    failures = unreachable === null ? 0 : failures + 1;
    retryAfter = Math.max(0, ...problems.map((one) => one?.retryAfter ?? 0));
  }
}

/**
 * Polls each link of a pairing once.
 * @param signal of the step that the links belong to
 * @param takeCode receives a code from the portal and the link it belongs to
 * @returns for each link why the portal was unreachable; null if it responded
 */
export function pollLinks(
  { portalOf, referenceClock }: Pick<PairingContext, 'portalOf' | 'referenceClock'>,
  progress: PairingStateMachine,
  signal: AbortSignal,
  takeCode: (code: Secret, link: LoginLink | null) => Promise<void>,
): Promise<readonly (Unreachable | null)[]> {
  const portal = portalOf(progress.pairing.portal)?.portal;

  async function poll(link: LoginLink): Promise<Unreachable | null> {
    if (portal === undefined) return null;
    const outcome = await portal.pollCode(link.codeUrl, signal);
    referenceClock.recordPortalTime(outcome.portalTime);
    if (outcome.kind === 'unreachable') return outcome;
    if (outcome.kind === 'code' && !signal.aborted) {
      progress.recordReachability(null);
      await takeCode(outcome.code, link);
    }
    return null;
  }

  return Promise.all(linksOf(progress.pairing.step).map(poll));
}
