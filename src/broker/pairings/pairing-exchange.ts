import type { Instant } from '../../core/clock.ts';
import { messageOf } from '../../core/failure.ts';
import { backoffDelay } from '../../core/grants/backoff.ts';
import { type Grant, grantFromTokenResponse, isFromLaterLogin, isFromSameLogin } from '../../core/grants/grant.ts';
import { advance, linksOf, type Pairing, type PairingEvent } from '../../core/pairings/pairing.ts';
import { type ConfiguredPortal, portalIdentityOf } from '../../core/portals/identity.ts';
import type { DeviceLink, LoginLink } from '../../core/portals/login-link.ts';
import type { CodeResponse, Portal, RevokedTokens } from '../../core/portals/portal.ts';
import type { TokenOutcome } from '../../core/portals/token-outcome.ts';
import type { Secret } from '../../core/secret.ts';
import { sha256 } from '../../system/secret-hash.ts';
import { emitPaired, type PairingContext } from './pairing-context.ts';
import type { PairingStateMachine } from './pairing-state-machine.ts';

type Granted = Pick<Extract<TokenOutcome, { kind: 'granted' }>, 'tokens'>;

/** How often storing a grant is retried if another write changes the grant meanwhile. */
const MAX_REPLACE_ATTEMPTS = 10;
/** A code lives 30 to 60 s; sending it is retried no longer than this, in ms. */
const CODE_LIFETIME_MS = 60_000;
const BACKOFF = { base: 1000, cap: 5000 };
/** How often a code is sent while something before the portal refuses the hub: a person waits for the cause. */
const MAX_BLOCKED = 3;

/** Exchanges the first code of a pairing for a grant, once and written ahead. */
export class PairingExchange {
  readonly #context: PairingContext;
  readonly #state: PairingStateMachine;
  readonly #acquire: () => Promise<void>;
  #inFlight: Promise<void> | null = null;
  /** The write of the new grant. */
  #storingGrant: Promise<void> | null = null;

  /** @param acquire makes this hub the owner of the pairing, if that is possible */
  constructor(context: PairingContext, state: PairingStateMachine, acquire: () => Promise<void>) {
    this.#context = context;
    this.#state = state;
    this.#acquire = acquire;
  }

  /** Resolves when no exchange is under way. */
  async whenIdle(): Promise<void> {
    await this.#inFlight;
  }

  /** Resolves when no grant is being stored. */
  async whenGrantStored(): Promise<void> {
    await this.#storingGrant?.catch(() => undefined);
  }

  /**
   * Submits a code. Resolves when its exchange has ended, or another one that is under way.
   * @param link the link that it came through; null if unknown, then the newest link is used
   */
  async submitCode(response: CodeResponse, link: LoginLink | null): Promise<void> {
    const [newest] = linksOf(this.#state.pairing.step);
    if (newest !== undefined && this.#begin(response.code, link)) {
      this.#inFlight = this.#exchange(link ?? newest, response).catch((error: unknown) => this.#handleError(error));
    }
    await this.#inFlight;
  }

  /** Accepts the tokens that a device code has yielded. Resolves when the grant is stored. */
  async acceptTokens(link: DeviceLink, granted: Granted, sent: Instant): Promise<void> {
    const connected = this.#context.portalOf(this.#state.pairing.portal);
    if (connected !== undefined && this.#begin(link.deviceCode, link)) {
      this.#inFlight = this.#finish(connected.identity, granted, sent).catch((error: unknown) =>
        this.#handleError(error),
      );
      await this.#inFlight;
    } else {
      await this.#inFlight;
      await this.#discard(granted.tokens);
    }
  }

  /** @returns whether the pairing takes this code */
  #begin(code: Secret, link: LoginLink | null): boolean {
    const { pairing } = this.#state;
    if (!this.#state.isOwned) return false;
    const at = this.#context.environment.clock.now();
    // A polled link stays usable after its code, so its place among the links does not change.
    const used = link === null || link.kind === 'poll' ? {} : { link };
    const next = advance(pairing, { kind: 'code', hash: sha256(code.reveal()), at, ...used });
    if (next === pairing) return false;
    this.#state.setInMemory(next);
    return true;
  }

  async #exchange(link: LoginLink, response: CodeResponse): Promise<void> {
    const progress = this.#state;
    const { portal, scope } = progress.pairing;
    const { ownership } = progress;
    const connected = this.#context.portalOf(portal);
    if (connected === undefined) return progress.dispatch({ kind: 'failed', reason: 'misconfigured' });
    const isWanted = () => !ownership.aborted && progress.isRunning && progress.pairing.step.kind === 'exchanging';
    const request = { link, response, scope };
    const options = { writeAhead: () => this.#writeAhead(), isWanted, signal: progress.signal };
    const exchange = await exchangeCode(this.#context, connected.portal, request, options);
    // If another hub has become the owner, because this one seemed dead, it counts the exchange as lost.
    const isLate = ownership.aborted;
    // The hub stops, or the pairing has ended; then the event does not apply.
    if (exchange === null) return isLate ? undefined : progress.dispatch({ kind: 'not_sent' });
    const { outcome, sent } = exchange;
    if (outcome.kind === 'granted') {
      if (isLate && !(await this.#resumeLate(link, sent))) return this.#discard(outcome.tokens);
      return this.#finish(connected.identity, outcome, sent);
    }
    progress.log.warn('code_exchange_failed', {
      connection: progress.name,
      outcome: outcome.kind,
      detail: outcome.detail,
    });
    if (!isLate) await progress.dispatch(exchangeFailureEvent(outcome));
  }

  /**
   * Saves that the code is about to be sent.
   * @returns false if it must not be: that can't be saved, or another hub exchanges this code, or another one, or has
   * ended the pairing
   */
  #writeAhead(): Promise<boolean> {
    const progress = this.#state;
    return progress.save(progress.pairing).catch((error: unknown) => {
      progress.log.error('store_unwritable', { connection: progress.name, error: messageOf(error) });
      return false;
    });
  }

  /**
   * Becomes the owner again to use tokens that have come after another hub counted them as lost.
   * @returns false if the pairing has ended, or another code is being exchanged
   */
  async #resumeLate(link: LoginLink, since: Instant): Promise<boolean> {
    await this.#acquire();
    const { isOwned, pairing } = this.#state;
    const { kind } = pairing.step;
    if (!isOwned || (kind !== 'asking' && kind !== 'waiting')) return false;
    this.#state.setInMemory({ ...pairing, step: { kind: 'exchanging', link, since } });
    return true;
  }

  async #finish(portal: ConfiguredPortal, { tokens }: Granted, sent: Instant): Promise<void> {
    const { id, step, scope, connection } = this.#state.pairing;
    // The pairing has ended meanwhile (replaced, cancelled).
    if (step.kind !== 'exchanging') return this.#discard(tokens);
    const refreshTokenLifetime = tokens.refreshTokenLifetime ?? null;
    const portalTime = this.#context.referenceClock.timeAt(portal.name, sent);
    const login = { pairing: id, at: sent, portalTime, refreshTokenLifetime };
    this.#storingGrant = this.#storeGrant(connection, (generation) =>
      grantFromTokenResponse(
        { connection, generation, scope, requestedScope: scope, issuer: portalIdentityOf(portal), login },
        tokens.refreshToken,
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

  /** Revokes tokens that nobody uses, see {@link Grants.revoke}. */
  async #discard(tokens: RevokedTokens): Promise<void> {
    const { connection, portal } = this.#state.pairing;
    const connected = this.#context.portalOf(portal);
    if (connected === undefined) return;
    await this.#context.grants.revoke(connection, { name: this.#state.name, portal: connected.portal }, tokens);
  }

  /** @param grantAfter creates the grant that replaces the one with this generation */
  async #storeGrant(connection: string, grantAfter: (generation: number) => Grant): Promise<void> {
    const { store, grants } = this.#context;
    const progress = this.#state;
    // Earlier writes of this pairing must not overwrite its end.
    await progress.whenSaved();
    let refused: number | null = null;
    for (let attempt = 1; attempt <= MAX_REPLACE_ATTEMPTS; attempt++) {
      const generation = await this.#storedGeneration(connection);
      const grant = grantAfter(generation);
      // Nobody has written another grant: there is no such connection any more.
      if (generation === refused) {
        await progress.dispatch({ kind: 'failed', reason: 'cancelled' });
        return this.#discard(grant);
      }
      let isKept = false;
      const paired = advance(progress.pairing, { kind: 'paired', scope: grant.scope });
      const save = async () => {
        const isSaved = await progress.exclusively(() => store.completePairing(paired, grant));
        if (!isKept) return isSaved;
        // Saved late: meanwhile this hub may have read the pairing as it was.
        if (isSaved && progress.pairing !== paired) progress.setInMemory(paired);
        return isSaved || this.#saveAfterAnother(paired, grantAfter, grant);
      };
      const saved = await save().catch((error: unknown) => {
        progress.log.error('store_unwritable', { connection: progress.name, error: messageOf(error) });
        return null;
      });
      // A refresh of the previous grant was faster. This grant is from a new login, so it replaces that one too.
      if (saved === false) {
        refused = generation;
        continue;
      }
      isKept = saved === null;
      grants.replace(grant, saved === null ? save : null);
      progress.log.info('connection_paired', { connection: progress.name, scope: grant.scope, user: paired.user });
      if (grant.refreshToken === null) {
        progress.log.warn('refresh_token_missing', {
          connection: progress.name,
          expires_in: grant.lifetime / 1000,
          what_to_do: 'ask for the scope offline_access, then connect again',
        });
      }
      emitPaired(this.#context.environment, grant, paired);
      progress.setInMemory(paired);
      return;
    }
    throw new Error('the grant was changed by other writes repeatedly');
  }

  /** The generation of the stored grant; if it can't be read, that of the grant in memory. */
  #storedGeneration(connection: string): Promise<number> {
    const { store, grants } = this.#context;
    return store.generation(connection).catch((error: unknown) => {
      this.#state.log.error('store_unwritable', { connection: this.#state.name, error: messageOf(error) });
      return (grants.get(connection)?.grant ?? grants.getSuspended(connection))?.generation ?? 0;
    });
  }

  /**
   * Saves a grant that was only in memory although the store has another one, unless that is from the same login or a
   * later one; then the pairing has ended too. If the other one was deleted, so is this one; but the store may have had
   * a deleted one that this hub did not know.
   * @param unsaved as it could not be saved
   * @returns whether it is stored
   */
  async #saveAfterAnother(
    paired: Pairing,
    grantAfter: (generation: number) => Grant,
    unsaved: Grant,
  ): Promise<boolean> {
    const { store, grants } = this.#context;
    const { connection } = paired;
    let refused: number | null = null;
    // Another hub may refresh the other grant between its comparison and the write.
    for (let attempt = 1; attempt <= MAX_REPLACE_ATTEMPTS; attempt++) {
      const other = (await store.grant(connection))?.grant;
      if (other === undefined && unsaved.generation > 1) return false;
      if (other !== undefined && isFromSameLogin(other, unsaved)) return false;
      if (other !== undefined && isFromLaterLogin(other, unsaved)) {
        await this.#state.exclusively(() => store.savePairing(paired));
        return false;
      }
      const generation = other?.generation ?? (await store.generation(connection));
      // There is no such connection any more.
      if (generation === refused) return false;
      refused = generation;
      const grant = grantAfter(generation);
      if (!(await this.#state.exclusively(() => store.completePairing(paired, grant)))) continue;
      grants.replace(grant);
      return true;
    }
    throw new Error('the grant was changed by other writes repeatedly');
  }

  /** Whatever happened, the code may have been used. */
  #handleError(error: unknown): Promise<void> {
    this.#state.log.error('code_exchange_crashed', { connection: this.#state.name, error: messageOf(error) });
    return this.#state.dispatch({ kind: 'answer_lost' });
  }
}

/** The outcome of a code exchange; `sent` is when its last attempt began. */
interface ExchangeResult {
  readonly outcome: TokenOutcome;
  readonly sent: Instant;
}

/**
 * Exchanges a code once. It retries only if the code was certainly not sent, if the portal asked for a later retry, or
 * if something before it refused the hub.
 * @param writeAhead saves that the code is about to be sent, because it must not be sent again after a crash
 * @param isWanted whether a further attempt is still wanted
 * @param signal ends the wait before an attempt
 * @returns null if the code was not sent, because the exchange is no longer wanted or could not be written ahead
 */
async function exchangeCode(
  { environment }: Pick<PairingContext, 'environment'>,
  portal: Portal,
  request: { readonly link: LoginLink; readonly response: CodeResponse; readonly scope: string | null },
  options: {
    readonly writeAhead: () => Promise<boolean>;
    readonly isWanted: () => boolean;
    readonly signal: AbortSignal;
  },
): Promise<ExchangeResult | null> {
  const { clock, timers, random } = environment;
  const { isWanted, signal } = options;
  const since = clock.now().uptime;
  let isWritten = false;
  let blocked = 0;
  for (let attempt = 1; isWanted(); attempt++) {
    const problem = await portal.prepareTokenRequest(signal);
    if (problem === null && isWanted()) isWritten ||= await options.writeAhead();
    if (!isWanted() || (problem === null && !isWritten)) break;
    const sent = clock.now();
    const outcome = problem ?? (await portal.exchangeCode(request.link, request.response, request.scope));
    const isBlocked = outcome.kind === 'blocked' && outcome.redirect === undefined && ++blocked < MAX_BLOCKED;
    if (outcome.kind !== 'not_sent' && outcome.kind !== 'deferred' && !isBlocked) return { outcome, sent };
    const retryAfter = outcome.kind === 'deferred' ? (outcome.retryAfter ?? 0) : 0;
    const delay = Math.max(retryAfter, backoffDelay(BACKOFF, attempt, random.fraction()));
    if (clock.now().uptime - since + delay > CODE_LIFETIME_MS) return { outcome, sent };
    if (isWanted()) await timers.sleep(delay, signal);
  }
  return null;
}

/** The event that a failed exchange causes for its pairing. */
function exchangeFailureEvent(outcome: Exclude<TokenOutcome, { kind: 'granted' }>): PairingEvent {
  const { detail } = outcome;
  switch (outcome.kind) {
    case 'misconfigured':
      return { kind: 'failed', reason: 'misconfigured', detail };
    case 'ambiguous':
      return { kind: 'answer_lost' };
    case 'blocked':
      return { kind: 'code_refused', reason: 'portal_rejected', detail };
    case 'rejected':
      // Every further login would end in the same way.
      return outcome.error === 'invalid_scope'
        ? { kind: 'failed', reason: 'portal_rejected', detail }
        : { kind: 'code_refused', reason: 'portal_rejected', detail };
    default:
      return { kind: 'code_refused', reason: 'code_refused', detail };
  }
}
