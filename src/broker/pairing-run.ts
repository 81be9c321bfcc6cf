import { backoffDelay } from '../core/backoff.ts';
import { clockAtFault } from '../core/certificate-dates.ts';
import { type Instant, LONGEST_TIMER } from '../core/clock.ts';
import { messageOf } from '../core/failure.ts';
import { type Grant, succeed } from '../core/grant.ts';
import type { TokenOutcome } from '../core/outcome.ts';
import {
  advance,
  type FailureReason,
  type Pairing,
  type PairingEvent,
  pollDelay,
  resumed,
  timeLeft,
} from '../core/pairing.ts';
import type { Link, LinkOutcome, PollOutcome, Unreachable } from '../core/portal.ts';
import type { Secret } from '../core/secret.ts';
import { sha256 } from '../system/compare.ts';
import { afterExchange, exchangeCode } from './code-exchange.ts';
import type { PairingContext } from './pairing-context.ts';

/** How often a grant that changes while it is replaced is looked at again. */
const MOST_REPLACED = 10;
const CONFIG_BACKOFF = { base: 2000, cap: 30_000 };
/** A code lives 30 s at least: one that comes while the portal can't be polled must not be missed. */
const POLL_BACKOFF = { base: 5000, cap: 20_000 };

/**
 * One pairing at work: asks for the link, polls for the code while the redirect may bring it too, and exchanges the
 * first code that comes, once.
 */
export class PairingRun implements AsyncDisposable {
  readonly #context: PairingContext;
  #pairing: Pairing;
  /** The portal's last failure to answer, while it can't be reached. */
  #trouble: Unreachable | null = null;
  /** Ends the wait or the request under way whenever the pairing moves on. */
  #step = new AbortController();
  /** Ends the wait under way, and nothing else. */
  #wait = new AbortController();
  #exchange: Promise<void> | null = null;
  /** The grant being put in place. */
  #concluding: Promise<void> | null = null;
  #writes: Promise<unknown> = Promise.resolve();
  #stopping = false;
  readonly #watchers = new Set<() => void>();
  #done: Promise<void> = Promise.resolve();

  private constructor(context: PairingContext, pairing: Pairing) {
    this.#context = context;
    this.#pairing = pairing;
  }

  /** Takes a pairing up where it stands; an ended one only remembers its result. */
  static resume(context: PairingContext, pairing: Pairing): PairingRun {
    const run = new PairingRun(context, resumed(pairing));
    run.#done = run.#goOn(pairing).catch(async (error: unknown) => {
      run.#log('error', 'pairing failed unexpectedly', { error: messageOf(error) });
      await run.#move({ kind: 'failed', reason: 'cancelled' });
    });
    return run;
  }

  get pairing(): Pairing {
    return this.#pairing;
  }

  /** Why there is no link or code just now, in words; null while the portal answers. */
  get trouble(): string | null {
    return this.#trouble === null ? null : this.#inWords(this.#trouble);
  }

  /** Milliseconds until the pairing expires. */
  get timeLeft(): number {
    return timeLeft(this.#pairing, this.#context.surroundings.clock.now());
  }

  /** The hub's clock was set: where the portal's certificate did not fit it, the portal is asked again at once. */
  clockSet(): void {
    if (this.#trouble?.certificate === undefined) return;
    this.#wait.abort();
    this.#wait = new AbortController();
  }

  /** Calls `watcher` after every change, until the function it returns is called. */
  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Takes a code, however it came. Resolves when its exchange has ended, or at once where another is under way. */
  async takeCode(code: Secret): Promise<void> {
    const { step } = this.#pairing;
    const hash = sha256(code.reveal());
    const now = this.#context.surroundings.clock.now();
    const next = advance(this.#pairing, { kind: 'code', hash, at: now });
    if (step.kind === 'waiting' && next !== this.#pairing) {
      this.#pairing = next;
      this.#exchange = this.#exchanged(step.link, code).catch((error: unknown) => this.#exchangeFailed(error));
      this.#changed();
    }
    await this.#exchange;
  }

  /** Ends the pairing, unless it has ended already, or ends just now with its grant being put in place. */
  async fail(reason: FailureReason): Promise<void> {
    await this.#concluding?.catch(() => undefined);
    await this.#move({ kind: 'failed', reason });
  }

  /** Stops, leaving the pairing open; waits for an exchange that was sent. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping = true;
    this.#step.abort();
    await Promise.all([this.#done, this.#exchange]);
  }

  /** @param before as the last run left it */
  async #goOn(before: Pairing): Promise<void> {
    if (before.step.kind === 'exchanging') {
      this.#log('warn', 'code exchange was cut short', { since: new Date(before.step.since.wall).toISOString() });
      // Told once, however often the hub is started before the portal gives a fresh link.
      await this.#saveIfPossible(this.#pairing);
    }
    await this.#work();
  }

  async #work(): Promise<void> {
    for (let failures = 0; !this.#stopping; ) {
      const { step } = this.#pairing;
      switch (step.kind) {
        case 'asking':
          failures = (await this.#askForLink(failures)) ? 0 : failures + 1;
          break;
        case 'waiting':
          await this.#pollForCode(step.link);
          break;
        case 'exchanging':
          await this.#exchange;
          break;
        case 'ended':
          return;
      }
    }
  }

  /** @param failures how often it has failed in a row. @returns whether the portal answered */
  async #askForLink(failures: number): Promise<boolean> {
    const { signal } = this.#step;
    let wait = failures === 0 ? 0 : backoffDelay(CONFIG_BACKOFF, failures, this.#fraction);
    wait = Math.max(wait, this.#askedDelay);
    if (!(await this.#pause(wait, signal))) return true;
    const found = this.#context.portalOf(this.#pairing.portal);
    if (found === undefined) {
      await this.#move({ kind: 'failed', reason: 'misconfigured' });
      return true;
    }
    const redirectUrl = found.redirectUrl(this.#pairing.nonce);
    let outcome = await found.portal.requestLink(redirectUrl, signal);
    if (outcome.kind === 'rejected' && redirectUrl !== null && !signal.aborted) {
      this.#log('info', 'portal refused the redirect address, polling only', { detail: outcome.detail });
      outcome = await found.portal.requestLink(null, signal);
    }
    if (signal.aborted) return true;
    this.#note(outcome);
    switch (outcome.kind) {
      case 'unreachable':
        return false;
      case 'link':
        await this.#takeLink(outcome.link);
        return true;
      default:
        this.#log('warn', 'pairing is not possible', { detail: outcome.detail });
        await this.#move({
          kind: 'failed',
          reason: outcome.kind === 'rejected' ? 'portal_rejected' : 'foreign_origin',
        });
        return true;
    }
  }

  /** Writes a link down before anybody sees it: after a power cut it is the one that a person logs in through. */
  async #takeLink(link: Link): Promise<void> {
    const before = this.#pairing;
    const next = advance(before, { kind: 'link', link });
    await this.#saveIfPossible(next);
    if (this.#pairing !== before) return;
    this.#pairing = next;
    this.#changed();
  }

  /** Polls until the pairing moves on, be it by a code of its own or by the redirect's. */
  async #pollForCode(link: Link): Promise<void> {
    const { signal } = this.#step;
    const portal = this.#context.portalOf(this.#pairing.portal)?.portal;
    if (portal === undefined) return this.fail('misconfigured');
    for (let failures = 0; !signal.aborted && !this.#stopping; ) {
      const slower = failures === 0 ? 0 : backoffDelay(POLL_BACKOFF, failures, this.#fraction);
      const wait = Math.max(slower, pollDelay(this.#context.times.pollInterval, this.#askedDelay, this.#fraction));
      if (!(await this.#pause(wait, signal))) return;
      const poll = await portal.pollCode(link.codeUrl, signal);
      if (signal.aborted) return;
      this.#note(poll);
      failures = poll.kind === 'unreachable' ? failures + 1 : 0;
      if (poll.kind === 'code') await this.takeCode(poll.code);
    }
  }

  /** Exchanges a code: written ahead, and sent once. */
  async #exchanged(link: Link, code: Secret): Promise<void> {
    const { portal, scope, appliance } = this.#pairing;
    const found = this.#context.portalOf(portal);
    if (found === undefined) return this.#move({ kind: 'failed', reason: 'misconfigured' });
    try {
      await this.#save(this.#pairing);
    } catch (error) {
      this.#log('error', 'store could not be written', { error: messageOf(error) });
      // What can't be written down is not started.
      return this.#move({ kind: 'not_sent' });
    }
    const goesOn = () => !this.#stopping && this.#pairing.step.kind === 'exchanging';
    const sending = { link, code, scope };
    const exchange = await exchangeCode(this.#context, found.portal, sending, goesOn, this.#step.signal);
    // Stopped, or ended meanwhile; then the event does not apply.
    if (exchange === null) return this.#move({ kind: 'not_sent' });
    const { outcome, sent } = exchange;
    if (outcome.kind === 'granted') return this.#conclude(appliance, outcome, sent);
    this.#log('warn', 'code was not exchanged', { outcome: outcome.kind, detail: outcome.detail });
    await this.#move(afterExchange(outcome));
  }

  async #conclude(
    appliance: string,
    { tokens, portalTime }: Extract<TokenOutcome, { kind: 'granted' }>,
    sent: Instant,
  ): Promise<void> {
    // Ended meanwhile (replaced, cancelled): nobody wants these tokens any more.
    if (this.#pairing.step.kind !== 'exchanging') return;
    const { refreshToken } = tokens;
    const { scope } = this.#pairing;
    if (refreshToken === null) {
      this.#log('warn', 'the portal gave no refresh token');
      await this.#move({ kind: 'failed', reason: 'portal_rejected' });
      return;
    }
    this.#concluding = this.#putInPlace(appliance, (generation) =>
      succeed({ appliance, generation, scope, asked: scope }, refreshToken, tokens, sent, portalTime),
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
    for (let attempt = 1; attempt <= MOST_REPLACED; attempt++) {
      const grant = after(await store.generation(appliance));
      const paired = advance(this.#pairing, { kind: 'paired', scope: grant.scope });
      const save = () => store.concludePairing(paired, grant);
      const saved = await save().catch((error: unknown) => {
        this.#log('error', 'store could not be written', { error: messageOf(error) });
        return null;
      });
      // A refresh of the grant before was quicker. A person has just logged in for this one, so it takes the place.
      if (saved === false) continue;
      grants.adopt(grant, saved === null ? save : null);
      this.#pairing = paired;
      this.#log('info', 'paired', { scope: grant.scope });
      this.#changed();
      return;
    }
    throw new Error('other writes of this grant came between, again and again');
  }

  /** Whatever became of it, the code may have been spent. */
  #exchangeFailed(error: unknown): Promise<void> {
    this.#log('error', 'exchange failed unexpectedly', { error: messageOf(error) });
    return this.#move({ kind: 'answer_lost' });
  }

  /** Takes a step and writes it down. What can't be written now is found out anew after a restart. */
  async #move(event: PairingEvent): Promise<void> {
    const next = advance(this.#pairing, event);
    if (next === this.#pairing) return;
    this.#pairing = next;
    const { step } = next;
    if (step.kind === 'ended' && step.result.kind === 'failed') {
      this.#log('info', 'pairing ended', { reason: step.result.reason });
    }
    await this.#saveIfPossible(next);
    this.#changed();
  }

  async #saveIfPossible(pairing: Pairing): Promise<void> {
    await this.#save(pairing).catch((error: unknown) => {
      this.#log('error', 'store could not be written', { error: messageOf(error) });
    });
  }

  /** Writes one after the other: sealing takes its time, and an older step must not come to lie over a newer one. */
  #save(pairing: Pairing): Promise<void> {
    const write = this.#writes.then(() => this.#context.store.savePairing(pairing));
    this.#writes = write.catch(() => undefined);
    return write;
  }

  #changed(): void {
    this.#step.abort();
    this.#step = new AbortController();
    this.#tell();
  }

  #tell(): void {
    for (const watcher of this.#watchers) watcher();
  }

  /**
   * Waits on the boot clock, no longer than the pairing lasts.
   * @returns whether the pairing is still where it was, and goes on
   */
  async #pause(delay: number, signal: AbortSignal): Promise<boolean> {
    const { clock, timers } = this.#context.surroundings;
    const until = clock.now().uptime + Math.min(delay, this.timeLeft);
    const ended = AbortSignal.any([signal, this.#wait.signal]);
    for (let left = until - clock.now().uptime; left > 0 && !ended.aborted; left = until - clock.now().uptime) {
      await timers.sleep(Math.min(left, LONGEST_TIMER), ended);
    }
    if (!signal.aborted && this.timeLeft <= 0) await this.#move({ kind: 'deadline' });
    return !signal.aborted && !this.#stopping;
  }

  /** Remembers whether the portal answers, and tells the log once when it stops doing so. */
  #note(outcome: LinkOutcome | PollOutcome): void {
    const before = this.#trouble;
    this.#trouble = outcome.kind === 'unreachable' ? outcome : null;
    if (before === null && this.#trouble !== null) {
      this.#log('warn', 'portal out of reach while pairing', { detail: this.#inWords(this.#trouble) });
    }
    if (before?.detail !== this.#trouble?.detail) this.#tell();
  }

  #inWords({ detail, certificate }: Unreachable): string {
    const { surroundings, portalClock } = this.#context;
    const fault = certificate && clockAtFault(certificate, surroundings.clock.now(), portalClock.confirmed);
    return fault ?? detail;
  }

  /** Milliseconds that the portal's last answer asked to wait. */
  get #askedDelay(): number {
    return this.#trouble?.retryAfter ?? 0;
  }

  get #fraction(): number {
    return this.#context.surroundings.random.fraction();
  }

  get #name(): string {
    return this.#context.nameOf(this.#pairing.appliance);
  }

  #log(level: 'info' | 'warn' | 'error', event: string, fields: Record<string, string | null | undefined> = {}): void {
    this.#context.surroundings.log[level](event, { appliance: this.#name, ...fields });
  }
}
