import { clockFaultMessage, MAX_TIMER_DELAY } from '../../core/clock.ts';
import { messageOf } from '../../core/failure.ts';
import { type Pairing, type PairingFailureReason, timeLeft } from '../../core/pairings/pairing.ts';
import {
  type PairingChange,
  type PairingEffect,
  type PairingEvent,
  stepPairing,
} from '../../core/pairings/pairing-step.ts';
import type { DeviceLink, LoginLink } from '../../core/portals/login-link.ts';
import type { CodeResponse, RevokedTokens, Unreachable } from '../../core/portals/portal.ts';
import type { TokenOutcome } from '../../core/portals/token-outcome.ts';
import { sha256 } from '../../system/secret-hash.ts';
import { SerialQueue } from '../../system/serial-queue.ts';
import type { Environment } from '../ports.ts';
import { LogDeduplicator } from '../reports/log-deduplicator.ts';
import { type EndedLogin, exchangeCode, type PairingContext, storeLogin, storeLoginLate } from './login-completion.ts';

/**
 * How long a person waits at most for a code exchange that is under way, in ms: that of a pairing which another one
 * replaces, or that of another hub.
 */
export const MAX_EXCHANGE_WAIT = 8000;

/** How often the store is asked while another hub exchanges the code, in ms; news of its end are faster. */
const RETRY_INTERVAL = 500;
/** How often a change is tried again because another hub has become the owner meanwhile. */
const MAX_TRIES = 3;

/** What a pairing needs in its present step, such as polls, until the step changes. */
type StepWork = (pairing: Pairing) => Promise<unknown>;

/**
 * Runs one pairing: takes its events, one after another, writes what {@link stepPairing} says when it says so, and carries
 * out the effects. Only the runner changes the pairing; everybody else reads it. On a site, only the hub that owns the pairing
 * applies events; the others follow what it stores.
 */
export class PairingRunner {
  readonly #context: PairingContext;
  readonly #work: StepWork;
  #pairing: Pairing;
  #isOwned = false;
  /** Aborted when another hub has become the owner. */
  #ownership = new AbortController();
  /** Aborts the wait or request under way when the pairing changes its step. */
  #stepAbort = new AbortController();
  /** Aborts only the wait under way. */
  #waitAbort = new AbortController();
  /** The events, and the writes of what follows from them. */
  readonly #queue = new SerialQueue();
  /** What was begun with codes and tokens. */
  #begun: Promise<unknown> = Promise.resolve();
  #working: Promise<unknown> = Promise.resolve();
  #isStopping = false;
  /** Whether the last write of a state that counts already has failed. */
  #isAhead = false;
  readonly #watchers = new Set<() => void>();
  /** The portal's last failure to respond; null while it is reachable. */
  #unreachable: Unreachable | null = null;
  readonly #outages: LogDeduplicator;

  /** @param work begun again and again while this hub owns the pairing */
  constructor(context: PairingContext, pairing: Pairing, work: StepWork) {
    this.#context = context;
    this.#pairing = pairing;
    this.#work = work;
    this.#outages = new LogDeduplicator(context.environment.clock);
  }

  get pairing(): Pairing {
    return this.#pairing;
  }

  /** Aborted when the pairing changes its step, another hub becomes its owner, or the hub stops. */
  get signal(): AbortSignal {
    return this.#stepAbort.signal;
  }

  /** Whether this hub owns the pairing; without a site it always does. */
  get isOwned(): boolean {
    return this.#isOwned;
  }

  /** Whether this hub owns the pairing and does not stop. */
  get isRunning(): boolean {
    return this.#isOwned && !this.#isStopping;
  }

  /** Whether another hub has to give an open pairing up before this one may change it. */
  get isElsewhere(): boolean {
    return !this.#isOwned && this.#pairing.step.kind !== 'ended';
  }

  /** Milliseconds until the pairing expires. */
  get timeLeft(): number {
    return timeLeft(this.#pairing, this.#context.environment.clock.now());
  }

  /** Milliseconds until a person can no longer log in through a link. After that of a device code, a fresh one follows. */
  linkTimeLeft(link: LoginLink): number {
    const left = this.timeLeft;
    return link.kind === 'device' ? Math.min(left, timeLeft(link, this.#context.environment.clock.now())) : left;
  }

  /** Why there is no link or code at the moment, as text; null while the portal responds. */
  get portalProblem(): string | null {
    return this.#unreachable === null ? null : this.#describe(this.#unreachable);
  }

  /** Milliseconds that the portal's last response asked to wait. */
  get retryAfterMs(): number {
    return this.#unreachable?.retryAfter ?? 0;
  }

  /** The current redirect address, as in {@link LoginLink}. */
  get redirect(): string | null {
    return this.#context.portalOf(this.#pairing.portal)?.portal.redirectAddress ?? null;
  }

  /** The name of the connection. */
  get name(): string {
    return this.#context.nameOf(this.#pairing.connection);
  }

  /** Calls `watcher` after every change, until the returned function is called. */
  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  notifyWatchers(): void {
    for (const watcher of this.#watchers) watcher();
  }

  /** This hub owns the pairing from now on, and continues it as it is stored. */
  own(stored: Pairing): void {
    const resumed = stepPairing(stored, { kind: 'resumed' }, this.#context.environment.clock.now());
    this.#isOwned = true;
    this.#ownership.abort();
    this.#ownership = new AbortController();
    this.#changeStep(resumed.pairing);
    if (resumed.pairing !== stored) void this.exclusively(() => this.#settle(resumed));
    this.#working = Promise.all([this.#working, this.#runSteps()]);
    this.notifyWatchers();
  }

  /**
   * Another hub owns the pairing: whatever runs here ends. Call it in {@link exclusively}.
   * @param stored what that hub has stored; null if the pairing was removed with its connection
   */
  follow(stored: Pairing | null): void {
    const cancelled = { kind: 'failed', reason: 'cancelled' } as const;
    const next = stored ?? stepPairing(this.#pairing, cancelled, this.#context.environment.clock.now()).pairing;
    this.#isOwned = false;
    this.#isAhead = false;
    this.#ownership.abort();
    this.#unreachable = null;
    this.#changeStep(next);
    this.notifyWatchers();
  }

  /** Stops and leaves the pairing open; waits for an exchange that was sent, and for pending writes. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#stepAbort.abort();
    for (let seen: unknown = null; seen !== this.#queue.idle; ) {
      seen = this.#queue.idle;
      await Promise.all([this.#working, seen]);
      await this.whenIdle();
    }
    await this.catchUp();
  }

  /**
   * Applies an event to a pairing that this hub owns.
   * @param during the {@link signal} of the step that it is about; left out if it is not about one
   * @returns false if it does not apply, that step is over, or another hub owns the pairing
   * @throws Failure as `Store`, if it counts only when it is written
   */
  dispatch(event: PairingEvent, during?: AbortSignal): Promise<boolean> {
    return this.exclusively(async () => during?.aborted !== true && (await this.#apply(event)));
  }

  /**
   * Applies an event that somebody waits for: this hub becomes the owner of the pairing for it.
   * @returns false as {@link dispatch}
   * @throws Failure as {@link dispatch}, and as {@link claim}
   */
  async request(event: PairingEvent): Promise<boolean> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      if (this.isElsewhere && !(await this.claim())) return false;
      if (await this.dispatch(event)) return true;
      if (!this.isElsewhere) return false;
    }
    return false;
  }

  /** Ends the pairing, unless it has ended already or its grant is being stored; on a site, if it is not elsewhere. */
  async fail(reason: PairingFailureReason, detail?: string): Promise<void> {
    await this.tryClaim();
    await this.dispatch({ kind: 'failed', reason, ...(detail !== undefined && { detail }) });
  }

  /** Ends the pairing, as {@link fail}; the result of an exchange under way takes precedence. */
  async failWhenIdle(reason: PairingFailureReason, detail?: string): Promise<void> {
    await this.whenIdle();
    await this.fail(reason, detail);
  }

  /** Writes a state that could not be written when it came: another hub of a site would go on with the former one. */
  async catchUp(): Promise<void> {
    if (this.#isAhead) await this.exclusively(async () => this.#isAhead && (await this.#tryWrite(this.#pairing)));
  }

  /** Stops reporting that the pairing failed. */
  async clearFailure(): Promise<void> {
    if (this.#pairing.failed === undefined) return;
    await this.claim().catch((error: unknown) => this.#logUnwritable(error));
    if (await this.dispatch({ kind: 'failure_cleared' })) return;
    // The store keeps only the last few that have ended.
    const { pairing } = stepPairing(this.#pairing, { kind: 'failure_cleared' }, this.#context.environment.clock.now());
    this.#enter(pairing);
    this.notifyWatchers();
  }

  /**
   * Exchanges a code. Resolves when the exchange has ended, or another one that is under way.
   * @param link the link that it came through; null if unknown, then the newest link is used
   * @returns whether this code was taken
   */
  async submitCode(response: CodeResponse, link: LoginLink | null): Promise<boolean> {
    const hash = sha256(response.code.reveal());
    let isTaken = false;
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      await this.tryClaim();
      if (await this.dispatch({ kind: 'code', hash, response, ...(link !== null && { link }) })) isTaken = true;
      await this.whenIdle();
      if (!this.isElsewhere) break;
    }
    return isTaken;
  }

  /** Accepts the tokens that a device code has yielded. Resolves when the grant is stored, or they are revoked. */
  async acceptTokens(link: DeviceLink, tokens: EndedLogin['tokens'], sent: EndedLogin['sent']): Promise<void> {
    await this.tryClaim();
    const hash = sha256(link.deviceCode.reveal());
    if (!(await this.dispatch({ kind: 'tokens', hash, link, tokens, sent }))) this.#discard(tokens);
    await this.whenIdle();
  }

  /** Resolves when no code is being exchanged, and no tokens are being stored or revoked. */
  async whenIdle(): Promise<void> {
    for (let seen: unknown = null; seen !== this.#begun; ) {
      seen = this.#begun;
      await seen;
    }
  }

  /**
   * Becomes the owner, because somebody waits, or to change how it has ended. If the owner exchanges a code, the end of
   * that is awaited for some seconds.
   * @returns whether this hub is the owner
   * @throws Failure as `Store`
   */
  async claim(): Promise<boolean> {
    const { clock } = this.#context.environment;
    const until = clock.now().uptime + MAX_EXCHANGE_WAIT;
    while (!this.#isOwned && !this.#isStopping) {
      if (await this.#take(true)) break;
      const left = until - clock.now().uptime;
      if (!this.isElsewhere || left <= 0) break;
      await this.#changeWithin(Math.min(RETRY_INTERVAL, left));
    }
    return this.isRunning;
  }

  /** Becomes the owner of a pairing that is open, if that is possible: see {@link claim}. */
  async tryClaim(): Promise<void> {
    if (this.isElsewhere) await this.claim().catch((error: unknown) => this.#logUnwritable(error));
  }

  /**
   * Becomes the owner if the lease of the last one has ended.
   * @returns whether this hub has become it
   * @throws Failure as `Store`
   */
  claimIfLapsed(): Promise<boolean> {
    return this.#take(false);
  }

  /**
   * Runs `work` between events and their writes. A store compares with what this hub has read last, so a pairing must be
   * read and followed without a write in between.
   */
  exclusively<T>(work: () => Promise<T>): Promise<T> {
    return this.#queue.run(work);
  }

  /** The hub's clock was set: ends the wait if the portal's certificate had failed because of the clock. */
  onClockSet(): void {
    if (this.#unreachable?.certificateError !== undefined) this.wake();
  }

  /** The hub has another address: another link may be preferred, and an unreachable portal may be reachable again. */
  onAddressChanged(): void {
    if (this.#unreachable?.retryAfter === null) this.wake();
    this.notifyWatchers();
  }

  /** Ends the wait under way. */
  wake(): void {
    this.#waitAbort.abort();
    this.#waitAbort = new AbortController();
  }

  /**
   * Waits on the boot clock, at most until the pairing expires.
   * @param signal the {@link signal} of the step that the wait belongs to
   * @returns whether the pairing is still in that step and the hub keeps running
   */
  async pause(delay: number, signal: AbortSignal): Promise<boolean> {
    const { clock, timers } = this.#context.environment;
    const until = clock.now().uptime + Math.min(delay, this.timeLeft);
    const ended = AbortSignal.any([signal, this.#waitAbort.signal]);
    for (let left = until - clock.now().uptime; left > 0 && !ended.aborted; left = until - clock.now().uptime) {
      await timers.sleep(Math.min(left, MAX_TIMER_DELAY), ended);
    }
    if (!signal.aborted && this.timeLeft <= 0) await this.dispatch({ kind: 'deadline' });
    return !signal.aborted && !this.#isStopping;
  }

  /** Records whether the portal is reachable, and logs it when the portal becomes unreachable. */
  recordReachability(problem: Unreachable | null): void {
    const before = this.#unreachable;
    this.#unreachable = problem;
    if (before === null && problem !== null) {
      const { connection } = this.#pairing;
      const summary = this.#outages.recordOccurrence('portal', connection);
      const fields = { connection: this.name, detail: this.#describe(problem) };
      this.log.at(summary === null ? 'debug' : 'warn', 'portal_unreachable', fields);
      // Resolved at once, so that each outage counts as a new problem: the portal may respond now and then.
      this.#outages.recordResolution('portal');
    }
    if (before?.detail !== problem?.detail) this.notifyWatchers();
  }

  #describe({ detail, certificateError }: Unreachable): string {
    const { environment, referenceClock } = this.#context;
    const fault =
      certificateError && clockFaultMessage(certificateError, environment.clock.now(), referenceClock.confirmed);
    return fault ?? detail;
  }

  get log(): Environment['log'] {
    return this.#context.environment.log;
  }

  /**
   * Does what each step needs, until the pairing ends, another hub becomes its owner or the hub stops. A round lasts
   * until the step changes, and {@link pause} ends the pairing at its deadline, so there is a last round.
   */
  async #runSteps(): Promise<void> {
    const { signal: lost } = this.#ownership;
    try {
      while (!lost.aborted && this.isRunning && this.#pairing.step.kind !== 'ended') {
        await (this.#pairing.step.kind === 'exchanging' ? this.whenIdle() : this.#work(this.#pairing));
      }
    } catch (error) {
      this.log.error('pairing_crashed', { connection: this.name, error: messageOf(error) });
      if (!lost.aborted) await this.dispatch({ kind: 'failed', reason: 'cancelled' });
    }
  }

  async #apply(event: PairingEvent): Promise<boolean> {
    if (!this.#isOwned) return false;
    const change = stepPairing(this.#pairing, event, this.#context.environment.clock.now());
    if (change.pairing === this.#pairing && change.effects.length === 0) return false;
    if (change.write === 'first' && !(await this.#write(change.pairing))) return false;
    if (change.write === 'first_if_possible' && !(await this.#tryWrite(change.pairing))) return false;
    this.#enter(change.pairing);
    await this.#settle(change);
    this.notifyWatchers();
    return true;
  }

  /** Writes what counts already, and carries out what follows from it. */
  async #settle({ pairing, write, effects }: PairingChange): Promise<void> {
    if (write === 'after' && !(await this.#tryWrite(pairing))) return;
    for (const effect of effects) await this.#carryOut(effect);
  }

  async #carryOut(effect: PairingEffect): Promise<void> {
    const { log, name: connection } = this;
    const { emit, clock } = this.#context.environment;
    switch (effect.kind) {
      case 'exchange':
        void this.#duringLogin(() => this.#exchange(effect));
        break;
      case 'complete':
        return this.#duringLogin(() => this.#complete(effect));
      case 'discard':
        return this.#discard(effect.tokens);
      case 'exchange_failed':
        return this.#logExchangeFailure(effect.outcome);
      case 'exchange_interrupted':
        return log.warn('code_exchange_interrupted', { connection, since: new Date(effect.since.wall).toISOString() });
      case 'failed':
        log.at(effect.isReported ? 'info' : 'debug', 'pairing_failed', { connection, reason: effect.reason });
        if (effect.isReported)
          emit({
            kind: 'pairing_failed',
            connection: this.#pairing.connection,
            at: clock.now(),
            reason: effect.reason,
          });
    }
  }

  async #exchange({ hash, response, link }: Extract<PairingEffect, { kind: 'exchange' }>): Promise<void> {
    const { scope, portal } = this.#pairing;
    const connected = this.#context.portalOf(portal);
    if (connected === undefined) {
      await this.dispatch({ kind: 'failed', reason: 'misconfigured' });
      return;
    }
    const writeAhead = () =>
      this.exclusively(() => this.#write(this.#pairing)).catch((error: unknown) => {
        this.#logUnwritable(error);
        return false;
      });
    try {
      const request = { link, response, scope };
      const { environment } = this.#context;
      const exchange = await exchangeCode(environment, connected.portal, request, { writeAhead, signal: this.signal });
      // The hub stops, or the pairing has ended; then the event does not apply.
      if (exchange === null) await this.dispatch({ kind: 'not_sent', hash });
      else {
        // If another hub has become the owner, because this one seemed dead, it counts the answer as lost.
        if (exchange.outcome.kind === 'granted') await this.tryClaim();
        const isApplied = await this.dispatch({ kind: 'answered', hash, link, ...exchange });
        if (isApplied) return;
        if (exchange.outcome.kind === 'granted') this.#discard(exchange.outcome.tokens);
        else this.#logExchangeFailure(exchange.outcome);
      }
    } catch (error) {
      await this.exclusively(() => this.#loseAnswer(hash, error));
    }
  }

  /** Whatever happened, the code may have been used. */
  async #loseAnswer(hash: string, error: unknown): Promise<void> {
    this.log.error('code_exchange_crashed', { connection: this.name, error: messageOf(error) });
    await this.#apply({ kind: 'answer_lost', hash });
  }

  /** Stores the grant of a login with the end of the pairing. */
  async #complete({ tokens, sent }: Extract<PairingEffect, { kind: 'complete' }>): Promise<void> {
    const { environment, grants, portalOf } = this.#context;
    const pairing = this.#pairing;
    const { log, name: connection } = this;
    const portal = portalOf(pairing.portal)?.identity;
    if (portal === undefined) {
      await this.#apply({ kind: 'failed', reason: 'misconfigured' });
      return this.#discard(tokens);
    }
    const login = { portal, tokens, sent };
    const hash = pairing.spentCodes.at(-1) ?? '';
    const stored = await storeLogin(this.#context, pairing, login).catch((error) => this.#loseAnswer(hash, error));
    if (stored === undefined) return;
    const { grant } = stored;
    if (stored.kind === 'connection_removed') {
      await this.#apply({ kind: 'failed', reason: 'cancelled' });
      return this.#discard(grant);
    }
    const { paired } = stored;
    const saveLate = () =>
      this.exclusively(async () => {
        const saved = await storeLoginLate(this.#context, pairing, login, grant);
        if (saved === null) return false;
        if (saved.generation !== grant.generation) grants.replace(saved);
        // Meanwhile this hub may have read the pairing as it was.
        this.#enterPaired(paired);
        this.notifyWatchers();
        return true;
      });
    grants.replace(grant, stored.kind === 'stored' ? null : saveLate);
    const { user } = pairing;
    log.info('connection_paired', { connection, scope: grant.scope, user });
    if (grant.refreshToken === null) {
      const advice = 'ask for the scope offline_access, then connect again';
      log.warn('refresh_token_missing', { connection, expires_in: grant.lifetime / 1000, what_to_do: advice });
    }
    environment.emit({
      kind: 'paired',
      connection: grant.connection,
      at: environment.clock.now(),
      scope: grant.scope,
      ...(user !== undefined && { user }),
    });
    this.#enterPaired(paired);
  }

  /** The pairing has ended with its grant. If it is only in memory, it is written with that, and not without. */
  #enterPaired(paired: Pairing): void {
    this.#enter(paired);
    this.#isAhead = false;
  }

  /** Revokes tokens that nobody uses, unless a login that is under way brings others: see `Grants.revoke`. */
  #discard(tokens: RevokedTokens): void {
    const { connection, portal } = this.#pairing;
    const { name, log } = this;
    const connected = this.#context.portalOf(portal);
    if (connected === undefined) return;
    const revoked = this.#begun
      .then(() => this.#context.grants.revoke(connection, { name, portal: connected.portal }, tokens))
      .catch((error: unknown) => log.warn('grant_revocation_failed', { connection: name, detail: messageOf(error) }));
    void this.#track(revoked);
  }

  #logExchangeFailure({ kind: outcome, detail }: Exclude<TokenOutcome, { kind: 'granted' }>): void {
    this.log.warn('code_exchange_failed', { connection: this.name, outcome, detail });
  }

  #duringLogin(work: () => Promise<void>): Promise<void> {
    return this.#track(this.#context.grants.duringLogin(this.#pairing.connection, work));
  }

  #track<Work>(work: Promise<Work>): Promise<Work> {
    this.#begun = Promise.all([this.#begun, work]).then(() => undefined);
    return work;
  }

  #take(isUrgent: boolean): Promise<boolean> {
    return this.exclusively(async () => {
      if (this.#isOwned || this.#isStopping) return false;
      const stored = await this.#context.store.pairings.take(this.#pairing.id, isUrgent);
      if (stored !== null) this.own(stored);
      else if (isUrgent) await this.#followStored();
      return stored !== null;
    });
  }

  /** Resolves after `delay` ms, or when the pairing changes. */
  async #changeWithin(delay: number): Promise<void> {
    const changed = new AbortController();
    const unwatch = this.watch(() => changed.abort());
    await this.#context.environment.timers.sleep(delay, changed.signal);
    unwatch();
  }

  async #followStored(): Promise<void> {
    const [stored] = await this.#context.store.pairings.all(new Set([this.#pairing.id]));
    this.follow(stored ?? null);
  }

  /**
   * @returns false if another hub owns the pairing; then this one follows what is stored
   * @throws Failure as `Store`
   */
  async #write(pairing: Pairing): Promise<boolean> {
    if (await this.#context.store.pairings.save(pairing)) return true;
    await this.#followStored();
    return false;
  }

  /** Like {@link #write}; a state that can't be saved is derived again after a restart, or written by {@link catchUp}. */
  async #tryWrite(pairing: Pairing): Promise<boolean> {
    try {
      const isWritten = await this.#write(pairing);
      this.#isAhead = false;
      return isWritten;
    } catch (error) {
      this.#isAhead = true;
      this.#logUnwritable(error);
      return true;
    }
  }

  #logUnwritable(error: unknown): void {
    this.log.error('store_unwritable', { connection: this.name, error: messageOf(error) });
  }

  #enter(next: Pairing): void {
    if (next.step.kind === this.#pairing.step.kind) this.#pairing = next;
    else this.#changeStep(next);
  }

  /** Work of the former step ends. */
  #changeStep(next: Pairing): void {
    this.#pairing = next;
    this.#stepAbort.abort();
    this.#stepAbort = new AbortController();
    if (this.#isStopping) this.#stepAbort.abort();
  }
}
