import type { Instant } from '../../core/clock.ts';
import { backoffDelay } from '../../core/grants/backoff.ts';
import type { TokenOutcome } from '../../core/grants/token-outcome.ts';
import type { PairingEvent } from '../../core/pairings/pairing.ts';
import type { LoginLink, Portal } from '../../core/portal.ts';
import type { Secret } from '../../core/secret.ts';
import type { PairingContext } from './pairing-context.ts';

/** A code lives 30 to 60 s; one that could not be sent in this time is given up, in ms. */
const CODE_LIFETIME = 60_000;
const BACKOFF = { base: 1000, cap: 5000 };

/** What became of a code; `sent` is when its last try began. */
export interface CodeExchange {
  readonly outcome: TokenOutcome;
  readonly sent: Instant;
}

/**
 * Exchanges a code once, and tries again only while it was certainly not sent, or the portal asked to come back.
 * @param code written down before: it must not be sent again after a crash
 * @param goesOn whether a further try is still wanted
 * @param signal ends the wait before a further try
 * @returns null where it is no longer wanted, the code not being sent
 */
export async function exchangeCode(
  { environment, portalClock }: Pick<PairingContext, 'environment' | 'portalClock'>,
  portal: Portal,
  { link, code, scope }: { readonly link: LoginLink; readonly code: Secret; readonly scope: string | null },
  goesOn: () => boolean,
  signal: AbortSignal,
): Promise<CodeExchange | null> {
  const { clock, timers, random } = environment;
  const since = clock.now().uptime;
  for (let attempt = 1; goesOn(); attempt++) {
    const sent = clock.now();
    const outcome = await portal.exchange(link.tokenUrl, code, scope);
    if ('portalTime' in outcome) portalClock.learn(outcome.portalTime);
    if (outcome.kind !== 'not_sent' && outcome.kind !== 'deferred') return { outcome, sent };
    const asked = outcome.kind === 'deferred' ? (outcome.retryAfter ?? 0) : 0;
    const delay = Math.max(asked, backoffDelay(BACKOFF, attempt, random.fraction()));
    if (clock.now().uptime - since + delay > CODE_LIFETIME) return { outcome, sent };
    if (goesOn()) await timers.sleep(delay, signal);
  }
  return null;
}

/** What an exchange that brought no tokens means for its pairing. */
export function afterExchange({ kind }: TokenOutcome): PairingEvent {
  switch (kind) {
    case 'misconfigured':
      return { kind: 'failed', reason: 'misconfigured' };
    case 'ambiguous':
      return { kind: 'answer_lost' };
    case 'rejected':
      return { kind: 'code_refused', setback: 'portal_rejected' };
    default:
      return { kind: 'code_refused', setback: 'code_refused' };
  }
}
