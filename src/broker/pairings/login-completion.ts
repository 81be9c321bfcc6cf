import type { Instant } from '../../core/clock.ts';
import { messageOf } from '../../core/failure.ts';
import { backoffDelay } from '../../core/grants/backoff.ts';
import type { Log } from '../../core/log.ts';
import type { Pairing } from '../../core/pairings/pairing.ts';
import type { PairingEffect, PairingEvent } from '../../core/pairings/pairing-step.ts';
import type { LoginLink } from '../../core/portals/login-link.ts';
import type { CodeResponse, Portal, RevokedTokens } from '../../core/portals/portal.ts';
import type { TokenOutcome } from '../../core/portals/token-outcome.ts';
import { type StoredLogin, storeLogin, storeLoginLate } from './login-storage.ts';
import { emitPaired, type PairingContext } from './pairing-context.ts';

/** The runner of the pairing that a login completes. */
interface CompletedPairing {
  readonly pairing: Pairing;
  /** Aborted when the pairing changes its step. */
  readonly signal: AbortSignal;
  /** The name of the connection. */
  readonly name: string;
  readonly log: Log;
  dispatch(event: PairingEvent): Promise<boolean>;
  tryClaim(): Promise<void>;
  exclusively<T>(work: () => Promise<T>): Promise<T>;
  notifyWatchers(): void;
  logUnwritable(error: unknown): void;
}

/** What changes the pairing; only between its other events. */
interface PairingChanges {
  /** Applies an event. */
  apply(event: PairingEvent): Promise<boolean>;
  /** Writes the pairing as it is. @returns false if another hub owns it */
  write(): Promise<boolean>;
  /** The pairing has ended with its grant, and is written with that. */
  enter(paired: Pairing): void;
}

/** A code lives 30 to 60 s; sending it is retried no longer than this, in ms. */
const CODE_LIFETIME_MS = 60_000;
const BACKOFF = { base: 1000, cap: 5000 };
/** How often a code is sent while something before the portal refuses the hub: a person waits for the cause. */
const MAX_BLOCKED = 3;

/** Exchanges the code of a pairing, and stores or revokes the tokens that a login brings. */
export class LoginCompletion {
  readonly #context: PairingContext;
  readonly #runner: CompletedPairing;
  readonly #changes: PairingChanges;
  /** What was begun with codes and tokens. */
  #begun: Promise<unknown> = Promise.resolve();

  constructor(context: PairingContext, runner: CompletedPairing, changes: PairingChanges) {
    this.#context = context;
    this.#runner = runner;
    this.#changes = changes;
  }

  /** Resolves when no code is being exchanged, and no tokens are being stored or revoked. */
  async whenIdle(): Promise<void> {
    for (let seen: unknown = null; seen !== this.#begun; ) {
      seen = this.#begun;
      await seen;
    }
  }

  /** Sends a code, and applies what the portal answers. */
  beginExchange(effect: Extract<PairingEffect, { kind: 'exchange' }>): void {
    const { connection } = this.#runner.pairing;
    void this.#track(this.#context.grants.duringLogin(connection, () => this.#exchange(effect)));
  }

  /** Stores the grant of a login with the end of the pairing. */
  complete(effect: Extract<PairingEffect, { kind: 'complete' }>): Promise<void> {
    const { connection } = this.#runner.pairing;
    return this.#track(this.#context.grants.duringLogin(connection, () => this.#complete(effect)));
  }

  /** Revokes tokens that nobody uses, unless a login that is under way brings others: see `Grants.revoke`. */
  discard(tokens: RevokedTokens): void {
    const { pairing, name, log } = this.#runner;
    const connected = this.#context.portalOf(pairing.portal);
    if (connected === undefined) return;
    const revoked = this.#begun
      .then(() => this.#context.grants.revoke(pairing.connection, { name, portal: connected.portal }, tokens))
      .catch((error: unknown) => log.warn('grant_revocation_failed', { connection: name, detail: messageOf(error) }));
    void this.#track(revoked);
  }

  /** Logs that a code has brought no tokens. */
  logFailure({ kind: outcome, detail }: ExchangeFailure['outcome']): void {
    this.#runner.log.warn('code_exchange_failed', { connection: this.#runner.name, outcome, detail });
  }

  async #exchange({ hash, response, link }: Extract<PairingEffect, { kind: 'exchange' }>): Promise<void> {
    const runner = this.#runner;
    const { pairing, signal } = runner;
    const connected = this.#context.portalOf(pairing.portal);
    if (connected === undefined) {
      await runner.dispatch({ kind: 'failed', reason: 'misconfigured' });
      return;
    }
    const writeAhead = () =>
      runner
        .exclusively(() => this.#changes.write())
        .catch((error: unknown) => {
          runner.logUnwritable(error);
          return false;
        });
    try {
      const request = { link, response, scope: pairing.scope };
      const exchange = await exchangeCode(this.#context, connected.portal, request, { writeAhead, signal });
      // The hub stops, or the pairing has ended; then the event does not apply.
      if (exchange === null) await runner.dispatch({ kind: 'not_sent', hash });
      else {
        // If another hub has become the owner, because this one seemed dead, it counts the answer as lost.
        if (exchange.outcome.kind === 'granted') await runner.tryClaim();
        const isApplied = await runner.dispatch({ kind: 'answered', hash, link, ...exchange });
        if (isApplied) return;
        if (exchange.outcome.kind === 'granted') this.discard(exchange.outcome.tokens);
        else this.logFailure(exchange.outcome);
      }
    } catch (error) {
      await runner.exclusively(() => this.#loseAnswer(hash, error));
    }
  }

  /** Whatever happened, the code may have been used. */
  async #loseAnswer(hash: string, error: unknown): Promise<void> {
    const { log, name } = this.#runner;
    log.error('code_exchange_crashed', { connection: name, error: messageOf(error) });
    await this.#changes.apply({ kind: 'answer_lost', hash });
  }

  async #complete({ tokens, sent }: Extract<PairingEffect, { kind: 'complete' }>): Promise<void> {
    const { environment, grants } = this.#context;
    const { pairing, log, name: connection } = this.#runner;
    const portal = this.#context.portalOf(pairing.portal)?.identity;
    if (portal === undefined) {
      await this.#changes.apply({ kind: 'failed', reason: 'misconfigured' });
      return this.discard(tokens);
    }
    const login = { portal, tokens, sent };
    let stored: StoredLogin;
    try {
      stored = await storeLogin(this.#context, pairing, login);
    } catch (error) {
      return this.#loseAnswer(pairing.spentCodes.at(-1) ?? '', error);
    }
    const { grant } = stored;
    if (stored.kind === 'connection_removed') {
      await this.#changes.apply({ kind: 'failed', reason: 'cancelled' });
      return this.discard(grant);
    }
    const { paired } = stored;
    const saveLate = () =>
      this.#runner.exclusively(async () => {
        const saved = await storeLoginLate(this.#context, pairing, login, grant);
        if (saved === null) return false;
        if (saved.generation !== grant.generation) grants.replace(saved);
        // Meanwhile this hub may have read the pairing as it was.
        this.#changes.enter(paired);
        this.#runner.notifyWatchers();
        return true;
      });
    grants.replace(grant, stored.kind === 'stored' ? null : saveLate);
    log.info('connection_paired', { connection, scope: grant.scope, user: pairing.user });
    if (grant.refreshToken === null) {
      const advice = 'ask for the scope offline_access, then connect again';
      log.warn('refresh_token_missing', { connection, expires_in: grant.lifetime / 1000, what_to_do: advice });
    }
    emitPaired(environment, grant, pairing);
    // If it is only in memory, it is written with its grant, and not without.
    this.#changes.enter(paired);
  }

  #track<Work>(work: Promise<Work>): Promise<Work> {
    this.#begun = Promise.all([this.#begun, work]).then(() => undefined);
    return work;
  }
}

type ExchangeFailure = Extract<PairingEffect, { kind: 'exchange_failed' }>;

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
async function exchangeCode(
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
