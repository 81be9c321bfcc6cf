import { clockFaultMessage, MAX_TIMER_DELAY } from '../../core/clock.ts';
import { messageOf } from '../../core/failure.ts';
import type { Log } from '../../core/log.ts';
import {
  advance,
  needsPortalRequests,
  type Pairing,
  type PairingEvent,
  type PairingFailureReason,
  timeLeft,
} from '../../core/pairings/pairing.ts';
import type { Unreachable } from '../../core/portals/portal.ts';
import { LogDeduplicator } from '../reports/log-deduplicator.ts';
import { emitPairingFailed, type PairingContext } from './pairing-context.ts';

/** This many loop iterations at the same instant are normal: see {@link PairingStateMachine.guardAgainstSpin}. */
const MAX_ITERATIONS_PER_TICK = 100;
const SPIN_PAUSE_MS = 1000;
/** Reasons, besides the deadline, that end an unopened device flow and are not reported. */
const UNREPORTED_REASONS: readonly PairingFailureReason[] = ['replaced', 'cancelled'];

/** The current state of a pairing: applies events, saves the result and notifies watchers. */
export class PairingStateMachine {
  readonly #context: PairingContext;
  #pairing: Pairing;
  /** The portal's last failure to respond; null while it is reachable. */
  #portalProblem: Unreachable | null = null;
  readonly #unreachableLog: LogDeduplicator;
  /** Aborts the wait or request under way when the pairing changes its step. */
  #stepAbort = new AbortController();
  /** Aborts only the wait under way. */
  #waitAbort = new AbortController();
  #writes: Promise<unknown> = Promise.resolve();
  #stopping = false;
  /** When the last loop iteration began, on the boot clock in ms, and how many more began at the same instant. */
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

  /** Aborted when the pairing changes its step, or the hub stops. */
  get signal(): AbortSignal {
    return this.#stepAbort.signal;
  }

  /** The hub stops; the pairing keeps its state. */
  get stopping(): boolean {
    return this.#stopping;
  }

  /** Milliseconds until the pairing expires. */
  get timeLeft(): number {
    return timeLeft(this.#pairing, this.#context.environment.clock.now());
  }

  /** Why there is no link or code at the moment, as text; null while the portal responds. */
  get portalProblem(): string | null {
    return this.#portalProblem === null ? null : this.#describeProblem(this.#portalProblem);
  }

  /** Milliseconds that the portal's last response asked to wait. */
  get retryAfterMs(): number {
    return this.#portalProblem?.retryAfter ?? 0;
  }

  /** The current redirect address, as in {@link LoginLink}. */
  get redirect(): string | null {
    return this.#context.portalOf(this.#pairing.portal)?.portal.redirectAddress ?? null;
  }

  /** The name of the connection. */
  get name(): string {
    return this.#context.nameOf(this.#pairing.connection);
  }

  stop(): void {
    this.#stopping = true;
    this.#stepAbort.abort();
  }

  /** The hub's clock was set: ends the wait if the portal's certificate had failed because of the clock. */
  onClockSet(): void {
    if (this.#portalProblem?.certificateError !== undefined) this.wake();
  }

  /** The hub has another address: another link may be preferred, and an unreachable portal may be reachable again. */
  onAddressChanged(): void {
    if (this.#portalProblem !== null && this.#portalProblem.retryAfter === null) this.wake();
    this.notifyWatchers();
  }

  /** Ends the wait under way. */
  wake(): void {
    this.#waitAbort.abort();
    this.#waitAbort = new AbortController();
  }

  /** Calls `watcher` after every change, until the returned function is called. */
  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Changes the state without saving it. */
  setInMemory(next: Pairing): void {
    this.#transition(next);
    this.notifyWatchers();
  }

  /**
   * Applies an event, saves the result and then notifies watchers. A state that can't be saved is derived again after a
   * restart.
   */
  async dispatch(event: PairingEvent): Promise<void> {
    const before = this.#pairing;
    const advanced = advance(before, event);
    if (advanced === before) return;
    // Not reported: an appliance whose device flow nobody opens starts another one, all day long.
    const isReported =
      needsPortalRequests(before) || (event.kind === 'failed' && !UNREPORTED_REASONS.includes(event.reason));
    const hasFailed = isReported && advanced.step.kind === 'ended';
    const next = hasFailed ? { ...advanced, failed: this.#context.environment.clock.now() } : advanced;
    // Before the first `await`: work of the former step must end now, not when the SD card has finished the write.
    this.#transition(next);
    const { step } = next;
    if (step.kind === 'ended' && step.result.kind === 'failed') {
      this.log.at(isReported ? 'info' : 'debug', 'pairing_failed', {
        connection: this.name,
        reason: step.result.reason,
      });
    }
    await this.saveIfPossible(next);
    if (isReported) emitPairingFailed(this.#context.environment, next);
    this.notifyWatchers();
  }

  /**
   * Saves the result of an event before applying it, so that nothing is reported that a restart would lose.
   * @returns false if the event does not apply, or no longer does
   * @throws Failure as {@link Store}
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
      this.log.error('store_unwritable', { connection: this.name, error: messageOf(error) });
    });
  }

  /** Resolves when all writes requested so far have succeeded or failed. */
  async whenSaved(): Promise<void> {
    await this.#writes;
  }

  /** Serializes writes: sealing takes time, and an older state must not overwrite a newer one. */
  save(pairing: Pairing): Promise<void> {
    const write = this.#writes.then(async () => {
      await this.#context.store.savePairing(pairing);
    });
    this.#writes = write.catch(() => undefined);
    return write;
  }

  /**
   * Waits on the boot clock, at most until the pairing expires.
   * @param signal the {@link signal} of the step that the wait belongs to
   * @returns whether the pairing is still in that step and the hub keeps running
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
   * Await it once in each iteration of a loop whose waits may end at once. Too many iterations at one instant are a bug
   * of the hub: each further one takes a second, because a loop of microtasks alone would block the whole hub.
   */
  async guardAgainstSpin(signal: AbortSignal): Promise<void> {
    const { clock, timers } = this.#context.environment;
    const { uptime } = clock.now();
    this.#iterationsAtOnce = uptime === this.#lastIterationAt ? this.#iterationsAtOnce + 1 : 0;
    this.#lastIterationAt = uptime;
    if (this.#iterationsAtOnce > MAX_ITERATIONS_PER_TICK) await timers.sleep(SPIN_PAUSE_MS, signal);
  }

  /** Records whether the portal is reachable, and logs it when the portal becomes unreachable. */
  recordReachability(problem: Unreachable | null): void {
    const before = this.#portalProblem;
    this.#portalProblem = problem;
    if (before === null && problem !== null) {
      const summary = this.#unreachableLog.recordOccurrence('portal', this.#pairing.connection);
      const level = summary === null ? 'debug' : 'warn';
      this.log.at(level, 'portal_unreachable', { connection: this.name, detail: this.#describeProblem(problem) });
      // Resolved at once, so that each outage counts as a new problem: the portal may respond now and then.
      this.#unreachableLog.recordResolution('portal');
    }
    if (before?.detail !== problem?.detail) this.notifyWatchers();
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

  notifyWatchers(): void {
    for (const watcher of this.#watchers) watcher();
  }

  #describeProblem({ detail, certificateError }: Unreachable): string {
    const { environment, referenceClock } = this.#context;
    const fault =
      certificateError && clockFaultMessage(certificateError, environment.clock.now(), referenceClock.confirmed);
    return fault ?? detail;
  }
}
