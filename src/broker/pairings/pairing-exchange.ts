import type { Instant } from '../../core/clock.ts';
import { messageOf } from '../../core/failure.ts';
import { backoffDelay } from '../../core/grants/backoff.ts';
import { type Grant, grantFromTokenResponse } from '../../core/grants/grant.ts';
import type { TokenOutcome } from '../../core/grants/token-outcome.ts';
import { advance, linksOf, type PairingEvent } from '../../core/pairings/pairing.ts';
import { type ConfiguredPortal, issuerOf, type LoginLink, type Portal } from '../../core/portal.ts';
import type { Secret } from '../../core/secret.ts';
import { sha256 } from '../../system/secret-hash.ts';
import { emitPaired, type PairingContext } from './pairing-context.ts';
import type { PairingStateMachine } from './pairing-state-machine.ts';

/** How often a grant that changes while it is replaced is looked at again. */
const MAX_REPLACE_ATTEMPTS = 10;
/** A code lives 30 to 60 s; one that could not be sent in this time is given up, in ms. */
const CODE_LIFETIME_MS = 60_000;
const BACKOFF = { base: 1000, cap: 5000 };

/** How one pairing makes a grant of a code: the first that comes is exchanged, written ahead, and once. */
export class PairingExchange {
  readonly #context: PairingContext;
  readonly #state: PairingStateMachine;
  #inFlight: Promise<void> | null = null;
  /** The grant being put in place. */
  #storingGrant: Promise<void> | null = null;

  constructor(context: PairingContext, state: PairingStateMachine) {
    this.#context = context;
    this.#state = state;
  }

  /** Resolves when no exchange is under way. */
  async whenIdle(): Promise<void> {
    await this.#inFlight;
  }

  /** Resolves when no grant is being put in place. */
  async whenGrantStored(): Promise<void> {
    await this.#storingGrant?.catch(() => undefined);
  }

  /**
   * Takes a code. Resolves when its exchange has ended, or that of another which is under way.
   * @param link the one that it came through; null where nobody can know, and then the newest counts
   */
  async submitCode(code: Secret, link: LoginLink | null): Promise<void> {
    const { pairing } = this.#state;
    const [newest] = linksOf(pairing.step);
    const at = this.#context.environment.clock.now();
    const next = advance(pairing, { kind: 'code', hash: sha256(code.reveal()), at });
    if (newest !== undefined && next !== pairing) {
      this.#state.setInMemory(next);
      this.#inFlight = this.#exchange(link ?? newest, code).catch((error: unknown) => this.#handleError(error));
    }
    await this.#inFlight;
  }

  async #exchange(link: LoginLink, code: Secret): Promise<void> {
    const progress = this.#state;
    const { portal, scope, appliance } = progress.pairing;
    const found = this.#context.portalOf(portal);
    if (found === undefined) return progress.dispatch({ kind: 'failed', reason: 'misconfigured' });
    try {
      await progress.save(progress.pairing);
    } catch (error) {
      progress.log.error('store_unwritable', { appliance: progress.name, error: messageOf(error) });
      // What can't be written down is not started.
      return progress.dispatch({ kind: 'not_sent' });
    }
    const goesOn = () => !progress.stopping && progress.pairing.step.kind === 'exchanging';
    const sending = { link, code, scope };
    const exchange = await exchangeCode(this.#context, found.portal, sending, goesOn, progress.signal);
    // Stopped, or ended meanwhile; then the event does not apply.
    if (exchange === null) return progress.dispatch({ kind: 'not_sent' });
    const { outcome, sent } = exchange;
    if (outcome.kind === 'granted') return this.#finish(appliance, found.identity, outcome, sent);
    progress.log.warn('code_exchange_failed', {
      appliance: progress.name,
      outcome: outcome.kind,
      detail: outcome.detail,
    });
    await progress.dispatch(exchangeFailureEvent(outcome));
  }

  async #finish(
    appliance: string,
    portal: ConfiguredPortal,
    { tokens, portalTime }: Extract<TokenOutcome, { kind: 'granted' }>,
    sent: Instant,
  ): Promise<void> {
    const { step, scope } = this.#state.pairing;
    // Ended meanwhile (replaced, cancelled): nobody wants these tokens any more.
    if (step.kind !== 'exchanging') return;
    const { refreshToken } = tokens;
    if (refreshToken === null) {
      this.#state.log.warn('refresh_token_missing', { appliance: this.#state.name });
      await this.#state.dispatch({ kind: 'failed', reason: 'portal_rejected' });
      return;
    }
    this.#storingGrant = this.#storeGrant(appliance, (generation) =>
      grantFromTokenResponse(
        { appliance, generation, scope, requestedScope: scope, issuer: issuerOf(portal) },
        refreshToken,
        tokens,
        sent,
        portalTime,
      ),
    );
    try {
      await this.#storingGrant;
    } finally {
      this.#storingGrant = null;
    }
  }

  /** @param after the grant that follows one with this generation */
  async #storeGrant(appliance: string, after: (generation: number) => Grant): Promise<void> {
    const { store, grants } = this.#context;
    const progress = this.#state;
    // What is still being written of this pairing must not come to lie over its end.
    await progress.whenSaved();
    for (let attempt = 1; attempt <= MAX_REPLACE_ATTEMPTS; attempt++) {
      const grant = after(await store.generation(appliance));
      const paired = advance(progress.pairing, { kind: 'paired', scope: grant.scope });
      const save = () => store.completePairing(paired, grant);
      const saved = await save().catch((error: unknown) => {
        progress.log.error('store_unwritable', { appliance: progress.name, error: messageOf(error) });
        return null;
      });
      // A refresh of the grant before was quicker. A person has just logged in for this one, so it takes the place.
      if (saved === false) continue;
      grants.replace(grant, saved === null ? save : null);
      progress.log.info('appliance_paired', { appliance: progress.name, scope: grant.scope });
      emitPaired(this.#context.environment, grant);
      progress.setInMemory(paired);
      return;
    }
    throw new Error('other writes of this grant came between, again and again');
  }

  /** Whatever became of it, the code may have been spent. */
  #handleError(error: unknown): Promise<void> {
    this.#state.log.error('code_exchange_crashed', { appliance: this.#state.name, error: messageOf(error) });
    return this.#state.dispatch({ kind: 'answer_lost' });
  }
}

/** What became of a code; `sent` is when its last try began. */
interface ExchangeResult {
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
async function exchangeCode(
  { environment, referenceClock: portalClock }: Pick<PairingContext, 'environment' | 'referenceClock'>,
  portal: Portal,
  { link, code, scope }: { readonly link: LoginLink; readonly code: Secret; readonly scope: string | null },
  goesOn: () => boolean,
  signal: AbortSignal,
): Promise<ExchangeResult | null> {
  const { clock, timers, random } = environment;
  const since = clock.now().uptime;
  for (let attempt = 1; goesOn(); attempt++) {
    const sent = clock.now();
    const outcome = await portal.exchangeCode(link.tokenUrl, code, scope);
    if ('portalTime' in outcome) portalClock.recordPortalTime(outcome.portalTime);
    if (outcome.kind !== 'not_sent' && outcome.kind !== 'deferred') return { outcome, sent };
    const asked = outcome.kind === 'deferred' ? (outcome.retryAfter ?? 0) : 0;
    const delay = Math.max(asked, backoffDelay(BACKOFF, attempt, random.fraction()));
    if (clock.now().uptime - since + delay > CODE_LIFETIME_MS) return { outcome, sent };
    if (goesOn()) await timers.sleep(delay, signal);
  }
  return null;
}

/** What an exchange that brought no tokens means for its pairing. */
function exchangeFailureEvent({ kind }: TokenOutcome): PairingEvent {
  switch (kind) {
    case 'misconfigured':
      return { kind: 'failed', reason: 'misconfigured' };
    case 'ambiguous':
      return { kind: 'answer_lost' };
    case 'rejected':
      return { kind: 'code_refused', reason: 'portal_rejected' };
    default:
      return { kind: 'code_refused', reason: 'code_refused' };
  }
}
