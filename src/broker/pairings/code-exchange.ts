import type { Instant } from '../../core/clock.ts';
import { backoffDelay } from '../../core/grants/backoff.ts';
import type { LoginLink } from '../../core/portals/login-link.ts';
import type { CodeResponse, Portal } from '../../core/portals/portal.ts';
import type { TokenOutcome } from '../../core/portals/token-outcome.ts';
import type { PairingContext } from './pairing-context.ts';

/** A code lives 30 to 60 s; sending it is retried no longer than this, in ms. */
const CODE_LIFETIME_MS = 60_000;
const BACKOFF = { base: 1000, cap: 5000 };
/** How often a code is sent while something before the portal refuses the hub: a person waits for the cause. */
const MAX_BLOCKED = 3;

/** The outcome of a code exchange; `sent` is when its last attempt began. */
interface ExchangeResult {
  readonly outcome: TokenOutcome;
  readonly sent: Instant;
}

/**
 * Exchanges a code once. It retries only if the code was certainly not sent, if the portal asked for a later retry, or
 * if something before it refused the hub.
 * @param writeAhead saves that the code is about to be sent, because it must not be sent again after a crash
 * @param signal aborted when no further attempt is wanted
 * @returns null if the code was not sent, because the exchange is no longer wanted or could not be written ahead
 */
export async function exchangeCode(
  { environment }: Pick<PairingContext, 'environment'>,
  portal: Portal,
  request: { readonly link: LoginLink; readonly response: CodeResponse; readonly scope: string | null },
  { writeAhead, signal }: { readonly writeAhead: () => Promise<boolean>; readonly signal: AbortSignal },
): Promise<ExchangeResult | null> {
  const { clock, timers, random } = environment;
  const since = clock.now().uptime;
  let isWritten = false;
  let blocked = 0;
  for (let attempt = 1; !signal.aborted; attempt++) {
    const problem = await portal.prepareTokenRequest(signal);
    if (problem === null && !signal.aborted) isWritten ||= await writeAhead();
    if (signal.aborted || (problem === null && !isWritten)) break;
    const sent = clock.now();
    const outcome = problem ?? (await portal.exchangeCode(request.link, request.response, request.scope));
    const isBlocked = outcome.kind === 'blocked' && outcome.redirect === undefined && ++blocked < MAX_BLOCKED;
    if (outcome.kind !== 'not_sent' && outcome.kind !== 'deferred' && !isBlocked) return { outcome, sent };
    const retryAfter = outcome.kind === 'deferred' ? (outcome.retryAfter ?? 0) : 0;
    const delay = Math.max(retryAfter, backoffDelay(BACKOFF, attempt, random.fraction()));
    if (clock.now().uptime - since + delay > CODE_LIFETIME_MS) return { outcome, sent };
    if (!signal.aborted) await timers.sleep(delay, signal);
  }
  return null;
}
