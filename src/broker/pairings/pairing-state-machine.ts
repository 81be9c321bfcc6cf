import { clockFaultMessage, MAX_TIMER_DELAY } from '../../core/clock.ts';
import { messageOf } from '../../core/failure.ts';
import type { Log } from '../../core/log.ts';
import {
  advance,
  type Pairing,
  type PairingEvent,
  type PairingFailureReason,
  timeLeft,
  usesPortal,
} from '../../core/pairings/pairing.ts';
import type { Unreachable } from '../../core/portal.ts';
import { LogDeduplicator } from '../reports/log-deduplicator.ts';
import { emitPairingFailed, type PairingContext } from './pairing-context.ts';

/** So many turns of a pairing's loops at the very same time are normal: see {@link PairingStateMachine.guardAgainstSpin}. */
const MAX_ITERATIONS_PER_TICK = 100;
const SPIN_PAUSE_MS = 1000;
/** Why a device flow may end that nobody has opened, beside its deadline. */
const UNREPORTED_REASONS: readonly PairingFailureReason[] = ['replaced', 'cancelled'];

/** Where a pairing stands while it is worked on: takes its steps, writes them down, and tells who watches. */
export class PairingStateMachine {
  readonly #context: PairingContext;
  #pairing: Pairing;
  /** The portal's last failure to answer, while it can't be reached. */
  #portalProblem: Unreachable | null = null;
  readonly #unreachableLog: LogDeduplicator;
  /** Ends the wait or the request under way whenever the pairing comes to another step. */
  #stepAbort = new AbortController();
  /** Ends the wait under way, and nothing else. */
  #waitAbort = new AbortController();
  #writes: Promise<unknown> = Promise.resolve();
  #stopping = false;
  /** When a loop's last turn began, on the boot clock in ms, and how many more have begun at that very time. */
  #lastIterationAt = Number.NEGATIVE_INFINITY;
  #iterationsAtOnce = 0;
  readonly #watchers = new Set<() => void>();

  constructor(context: PairingContext, pairing: Pairing) {
    this.#context = context;
    this.#pairing = pairing;
    this.#unreachableLog = new LogDeduplicator(context.environment.clock);
  }

  get pairing(): Pairing {
    return this.#pairing;
  }

  /** Aborted when the pairing comes to another step, or the hub stops. */
  get signal(): AbortSignal {
    return this.#stepAbort.signal;
  }

  /** The hub stops, and the pairing is to stay as it is. */
  get stopping(): boolean {
    return this.#stopping;
  }

  /** Milliseconds until the pairing expires. */
  get timeLeft(): number {
    return timeLeft(this.#pairing, this.#context.environment.clock.now());
  }

  /** Why there is no link or code just now, in words; null while the portal answers. */
  get portalProblem(): string | null {
    return this.#portalProblem === null ? null : this.#describeProblem(this.#portalProblem);
  }

  /** Milliseconds that the portal's last answer asked to wait. */
  get retryAfterMs(): number {
    return this.#portalProblem?.retryAfter ?? 0;
  }

  /** Where the portal shall bring the code now, as a {@link LoginLink} has it. */
  get redirect(): string | null {
    return this.#context.portalOf(this.#pairing.portal)?.redirectUrl('') ?? null;
  }

  /** Name of the appliance. */
  get name(): string {
    return this.#context.nameOf(this.#pairing.appliance);
  }

  stop(): void {
    this.#stopping = true;
    this.#stepAbort.abort();
  }

  /** The hub's clock was set: where the portal's certificate did not fit it, no wait goes on. */
  onClockSet(): void {
    if (this.#portalProblem?.certificateError !== undefined) this.wake();
  }

  /** The hub has another address: another link may be the one to give, and a portal that was out of reach be there again. */
  onAddressChanged(): void {
    if (this.#portalProblem !== null && this.#portalProblem.retryAfter === null) this.wake();
    this.notifyWatchers();
  }

  /** Ends the wait under way. */
  wake(): void {
    this.#waitAbort.abort();
    this.#waitAbort = new AbortController();
  }

  /** Calls `watcher` after every change, until the function it returns is called. */
  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Takes a step without writing it down. */
  setInMemory(next: Pairing): void {
    this.#transition(next);
    this.notifyWatchers();
  }

  /**
   * Takes a step and writes it down; watchers are told when it is written. What can't be written now is found out anew
   * after a restart.
   */
  async dispatch(event: PairingEvent): Promise<void> {
    const before = this.#pairing;
    const advanced = advance(before, event);
    if (advanced === before) return;
    // An appliance whose device flow nobody opens begins another, all day long.
    const isNews = usesPortal(before) || (event.kind === 'failed' && !UNREPORTED_REASONS.includes(event.reason));
    const hasFailed = isNews && advanced.step.kind === 'ended';
    const next = hasFailed ? { ...advanced, failed: this.#context.environment.clock.now() } : advanced;
    // Before anything is awaited: what belongs to the former step ends with it, and not when the card has taken the write.
    this.#transition(next);
    const { step } = next;
    if (step.kind === 'ended' && step.result.kind === 'failed') {
      this.log.at(isNews ? 'info' : 'debug', 'pairing_failed', { appliance: this.name, reason: step.result.reason });
    }
    await this.saveIfPossible(next);
    if (isNews) emitPairingFailed(this.#context.environment, next);
    this.notifyWatchers();
  }

  /**
   * Writes a step down before it takes it, so that nobody is told of one that a restart would forget.
   * @returns false where the event does not apply, or no longer
   * @throws Failure as the store
   */
  async saveThenDispatch(event: PairingEvent): Promise<boolean> {
    for (;;) {
      const before = this.#pairing;
      const next = advance(before, event);
      if (next === before) return false;
      await this.save(next);
      if (this.#pairing !== before) continue;
      this.setInMemory(next);
      return true;
    }
  }

  async saveIfPossible(pairing: Pairing): Promise<void> {
    await this.save(pairing).catch((error: unknown) => {
      this.log.error('store_unwritable', { appliance: this.name, error: messageOf(error) });
    });
  }

  /** Resolves when all that was to be written until now is, or could not be. */
  async whenSaved(): Promise<void> {
    await this.#writes;
  }

  /** Writes one after the other: sealing takes its time, and an older step must not come to lie over a newer one. */
  save(pairing: Pairing): Promise<void> {
    const write = this.#writes.then(() => this.#context.store.savePairing(pairing));
    this.#writes = write.catch(() => undefined);
    return write;
  }

  /**
   * Waits on the boot clock, no longer than the pairing lasts.
   * @param signal the {@link signal} of the step that the wait belongs to
   * @returns whether the pairing is still where it was, and goes on
   */
  async pause(delay: number, signal: AbortSignal): Promise<boolean> {
    const { clock, timers } = this.#context.environment;
    await this.guardAgainstSpin(signal);
    const until = clock.now().uptime + Math.min(delay, this.timeLeft);
    const ended = AbortSignal.any([signal, this.#waitAbort.signal]);
    for (let left = until - clock.now().uptime; left > 0 && !ended.aborted; left = until - clock.now().uptime) {
      await timers.sleep(Math.min(left, MAX_TIMER_DELAY), ended);
    }
    if (!signal.aborted && this.timeLeft <= 0) await this.dispatch({ kind: 'deadline' });
    return !signal.aborted && !this.#stopping;
  }

  /**
   * To be awaited once in each turn of a loop whose waits may be over at once. Too many turns without any time passing are a
   * fault of ours: each further one takes a second, because a loop of microtasks alone would stop the whole hub.
   */
  async guardAgainstSpin(signal: AbortSignal): Promise<void> {
    const { clock, timers } = this.#context.environment;
    const { uptime } = clock.now();
    this.#iterationsAtOnce = uptime === this.#lastIterationAt ? this.#iterationsAtOnce + 1 : 0;
    this.#lastIterationAt = uptime;
    if (this.#iterationsAtOnce > MAX_ITERATIONS_PER_TICK) await timers.sleep(SPIN_PAUSE_MS, signal);
  }

  /** Remembers whether the portal answers, and tells the log when it stops doing so. */
  recordReachability(trouble: Unreachable | null): void {
    const before = this.#portalProblem;
    this.#portalProblem = trouble;
    if (before === null && trouble !== null) {
      const told = this.#unreachableLog.recordOccurrence('portal', this.#pairing.appliance);
      const level = told === null ? 'debug' : 'warn';
      this.log.at(level, 'portal_unreachable', { appliance: this.name, detail: this.#describeProblem(trouble) });
      // It may answer now and then.
      this.#unreachableLog.recordResolution('portal');
    }
    if (before?.detail !== trouble?.detail) this.notifyWatchers();
  }

  get log(): Log {
    return this.#context.environment.log;
  }

  #transition(next: Pairing): void {
    const changed = this.#pairing.step.kind !== next.step.kind;
    this.#pairing = next;
    if (!changed) return;
    this.#stepAbort.abort();
    this.#stepAbort = new AbortController();
  }

  /** Calls whoever watches. */
  notifyWatchers(): void {
    for (const watcher of this.#watchers) watcher();
  }

  #describeProblem({ detail, certificateError: certificate }: Unreachable): string {
    const { environment, referenceClock: portalClock } = this.#context;
    const fault = certificate && clockFaultMessage(certificate, environment.clock.now(), portalClock.confirmed);
    return fault ?? detail;
  }
}
