import type { Instant } from '../../core/clock.ts';
import { messageOf } from '../../core/failure.ts';
import { backoffDelay } from '../../core/grants/backoff.ts';
import { type Grant, grantFromTokenResponse } from '../../core/grants/grant.ts';
import type { TokenOutcome } from '../../core/grants/token-outcome.ts';
import { advance, linksOf, type PairingEvent } from '../../core/pairings/pairing.ts';
import { type ConfiguredPortal, giverOf, type LoginLink, type Portal } from '../../core/portal.ts';
import type { Secret } from '../../core/secret.ts';
import { sha256 } from '../../system/compare.ts';
import { emitPaired, type PairingContext } from './pairing-context.ts';
import type { PairingProgress } from './pairing-progress.ts';

/** How often a grant that changes while it is replaced is looked at again. */
const MAX_REPLACEMENTS = 10;
/** A code lives 30 to 60 s; one that could not be sent in this time is given up, in ms. */
const CODE_LIFETIME = 60_000;
const BACKOFF = { base: 1000, cap: 5000 };

/** How one pairing makes a grant of a code: the first that comes is exchanged, written ahead, and once. */
export class PairingExchange {
  readonly #context: PairingContext;
  readonly #progress: PairingProgress;
  #underWay: Promise<void> | null = null;
  /** The grant being put in place. */
  #concluding: Promise<void> | null = null;

  constructor(context: PairingContext, progress: PairingProgress) {
    this.#context = context;
    this.#progress = progress;
  }

  /** Resolves when no exchange is under way. */
  async settled(): Promise<void> {
    await this.#underWay;
  }

  /** Resolves when no grant is being put in place. */
  async concluded(): Promise<void> {
    await this.#concluding?.catch(() => undefined);
  }

  /**
   * Takes a code. Resolves when its exchange has ended, or that of another which is under way.
   * @param link the one that it came through; null where nobody can know, and then the newest counts
   */
  async take(code: Secret, link: LoginLink | null): Promise<void> {
    const { pairing } = this.#progress;
    const [newest] = linksOf(pairing.step);
    const at = this.#context.environment.clock.now();
    const next = advance(pairing, { kind: 'code', hash: sha256(code.reveal()), at });
    if (newest !== undefined && next !== pairing) {
      this.#progress.take(next);
      this.#underWay = this.#exchange(link ?? newest, code).catch((error: unknown) => this.#failed(error));
    }
    await this.#underWay;
  }

  async #exchange(link: LoginLink, code: Secret): Promise<void> {
    const progress = this.#progress;
    const { portal, scope, appliance } = progress.pairing;
    const found = this.#context.portalOf(portal);
    if (found === undefined) return progress.move({ kind: 'failed', reason: 'misconfigured' });
    try {
      await progress.save(progress.pairing);
    } catch (error) {
      progress.log.error('store_unwritable', { appliance: progress.name, error: messageOf(error) });
      // What can't be written down is not started.
      return progress.move({ kind: 'not_sent' });
    }
    const goesOn = () => !progress.stopping && progress.pairing.step.kind === 'exchanging';
    const sending = { link, code, scope };
    const exchange = await exchangeCode(this.#context, found.portal, sending, goesOn, progress.signal);
    // Stopped, or ended meanwhile; then the event does not apply.
    if (exchange === null) return progress.move({ kind: 'not_sent' });
    const { outcome, sent } = exchange;
    if (outcome.kind === 'granted') return this.#conclude(appliance, found.identity, outcome, sent);
    progress.log.warn('code_exchange_failed', {
      appliance: progress.name,
      outcome: outcome.kind,
      detail: outcome.detail,
    });
    await progress.move(afterExchange(outcome));
  }

  async #conclude(
    appliance: string,
    portal: ConfiguredPortal,
    { tokens, portalTime }: Extract<TokenOutcome, { kind: 'granted' }>,
    sent: Instant,
  ): Promise<void> {
    const { step, scope } = this.#progress.pairing;
    // Ended meanwhile (replaced, cancelled): nobody wants these tokens any more.
    if (step.kind !== 'exchanging') return;
    const { refreshToken } = tokens;
    if (refreshToken === null) {
      this.#progress.log.warn('refresh_token_missing', { appliance: this.#progress.name });
      await this.#progress.move({ kind: 'failed', reason: 'portal_rejected' });
      return;
    }
    this.#concluding = this.#putInPlace(appliance, (generation) =>
      grantFromTokenResponse(
        { appliance, generation, scope, asked: scope, givenBy: giverOf(portal) },
        refreshToken,
        tokens,
        sent,
        portalTime,
      ),
    );
    try {
      await this.#concluding;
    } finally {
      this.#concluding = null;
    }
  }

  /** @param after the grant that follows one with this generation */
  async #putInPlace(appliance: string, after: (generation: number) => Grant): Promise<void> {
    const { store, grants } = this.#context;
    const progress = this.#progress;
    // What is still being written of this pairing must not come to lie over its end.
    await progress.written();
    for (let attempt = 1; attempt <= MAX_REPLACEMENTS; attempt++) {
      const grant = after(await store.generation(appliance));
      const paired = advance(progress.pairing, { kind: 'paired', scope: grant.scope });
      const save = () => store.concludePairing(paired, grant);
      const saved = await save().catch((error: unknown) => {
        progress.log.error('store_unwritable', { appliance: progress.name, error: messageOf(error) });
        return null;
      });
      // A refresh of the grant before was quicker. A person has just logged in for this one, so it takes the place.
      if (saved === false) continue;
      grants.adopt(grant, saved === null ? save : null);
      progress.log.info('appliance_paired', { appliance: progress.name, scope: grant.scope });
      emitPaired(this.#context.environment, grant);
      progress.take(paired);
      return;
    }
    throw new Error('other writes of this grant came between, again and again');
  }

  /** Whatever became of it, the code may have been spent. */
  #failed(error: unknown): Promise<void> {
    this.#progress.log.error('code_exchange_crashed', { appliance: this.#progress.name, error: messageOf(error) });
    return this.#progress.move({ kind: 'answer_lost' });
  }
}

/** What became of a code; `sent` is when its last try began. */
interface CodeExchange {
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
function afterExchange({ kind }: TokenOutcome): PairingEvent {
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
