import { MAX_TIMER_DELAY } from '../../core/clock.ts';
import { messageOf } from '../../core/failure.ts';
import type { Log } from '../../core/log.ts';
import { withKnownLinks } from '../../core/pairings/known-links.ts';
import {
  advance,
  linksOf,
  needsPortalRequests,
  type Pairing,
  type PairingEvent,
  type PairingFailureReason,
  timeLeft,
} from '../../core/pairings/pairing.ts';
import type { Unreachable } from '../../core/portals/portal.ts';
import { SpinGuard } from '../time/spin-guard.ts';
import { emitPairingFailed, type PairingContext } from './pairing-context.ts';
import { PortalReachability } from './portal-reachability.ts';

/** Reasons, besides the deadline, that end an unopened device flow and are not reported. */
const UNREPORTED_REASONS: readonly PairingFailureReason[] = ['replaced', 'cancelled'];

/**
 * The current state of a pairing: applies events, saves the result and notifies watchers. On a site, only the hub that
 * owns the pairing applies events; the others follow what it stores.
 */
export class PairingStateMachine {
  readonly #context: PairingContext;
  #pairing: Pairing;
  #isOwned: boolean;
  /** Aborted when another hub has become the owner. */
  #ownership = new AbortController();
  /** Aborts the wait or request under way when the pairing changes its step. */
  #stepAbort = new AbortController();
  /** Aborts only the wait under way. */
  #waitAbort = new AbortController();
  #writes: Promise<unknown> = Promise.resolve();
  #stopping = false;
  readonly #spinGuard: SpinGuard;
  readonly #watchers = new Set<() => void>();
  readonly #reachability: PortalReachability;

  /** @param isOwned false if another hub owns the pairing */
  constructor(context: PairingContext, pairing: Pairing, isOwned = true) {
    this.#context = context;
    this.#pairing = pairing;
    this.#isOwned = isOwned;
    this.#spinGuard = new SpinGuard(context.environment);
    this.#reachability = new PortalReachability(context, () => this.#pairing.connection);
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

  /** Aborted when another hub becomes the owner; a new signal each time this hub becomes it. */
  get ownership(): AbortSignal {
    return this.#ownership.signal;
  }

  /** Whether the hub stops. */
  get isStopping(): boolean {
    return this.#stopping;
  }

  /** Whether this hub owns the pairing and does not stop. */
  get isRunning(): boolean {
    return this.#isOwned && !this.#stopping;
  }

  /** Milliseconds until the pairing expires. */
  get timeLeft(): number {
    return timeLeft(this.#pairing, this.#context.environment.clock.now());
  }

  /** Why there is no link or code at the moment, as text; null while the portal responds. */
  get portalProblem(): string | null {
    return this.#reachability.text;
  }

  /** Milliseconds that the portal's last response asked to wait. */
  get retryAfterMs(): number {
    return this.#reachability.problem?.retryAfter ?? 0;
  }

  /** The current redirect address, as in {@link LoginLink}. */
  get redirect(): string | null {
    return this.#context.portalOf(this.#pairing.portal)?.portal.redirectAddress ?? null;
  }

  /** The name of the connection. */
  get name(): string {
    return this.#context.nameOf(this.#pairing.connection);
  }

  /** The hub stops; the pairing keeps its state. */
  stop(): void {
    this.#stopping = true;
    this.#stepAbort.abort();
  }

  /**
   * Another hub owns the pairing: whatever runs here ends. Call it in {@link exclusively}.
   * @param stored what that hub has stored; null if the pairing was removed with its connection
   */
  follow(stored: Pairing | null): void {
    const next = stored ?? advance(this.#pairing, { kind: 'failed', reason: 'cancelled' });
    this.#isOwned = false;
    this.#ownership.abort();
    this.#stepAbort.abort();
    this.#reachability.reset();
    this.#pairing = withKnownLinks(next, linksOf(this.#pairing.step));
    this.notifyWatchers();
  }

  /** This hub has become the owner, and continues from here. Call it in {@link exclusively}. */
  own(pairing: Pairing): void {
    this.#isOwned = true;
    this.#ownership.abort();
    this.#ownership = new AbortController();
    this.#stepAbort.abort();
    this.#stepAbort = new AbortController();
    if (this.#stopping) this.#stepAbort.abort();
    this.#pairing = withKnownLinks(pairing, linksOf(this.#pairing.step));
    this.notifyWatchers();
  }

  /** Follows what is stored. Call it in {@link exclusively}. @throws Failure as {@link Store} */
  async followStored(): Promise<void> {
    const { id } = this.#pairing;
    const [stored] = (await this.#context.site?.findPairings(new Set([id]))) ?? [];
    this.follow(stored ?? null);
  }

  /** The hub's clock was set: ends the wait if the portal's certificate had failed because of the clock. */
  onClockSet(): void {
    if (this.#reachability.problem?.certificateError !== undefined) this.wake();
  }

  /** The hub has another address: another link may be preferred, and an unreachable portal may be reachable again. */
  onAddressChanged(): void {
    const { problem } = this.#reachability;
    if (problem !== null && problem.retryAfter === null) this.wake();
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
   * restart. Does nothing if another hub owns the pairing.
   */
  async dispatch(event: PairingEvent): Promise<void> {
    if (!this.#isOwned) return;
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
    const isCurrent = await this.saveIfPossible(next);
    if (isReported && isCurrent) emitPairingFailed(this.#context.environment, next);
    this.notifyWatchers();
  }

  /**
   * Saves the result of an event before applying it, so that nothing is reported that a restart would lose.
   * @returns false if the event does not apply, or no longer does, or if another hub owns the pairing
   * @throws Failure as {@link Store}
   */
  async saveThenDispatch(event: PairingEvent): Promise<boolean> {
    for (;;) {
      const before = this.#pairing;
      const next = this.#isOwned ? advance(before, event) : before;
      if (next === before || !(await this.save(next))) return false;
      if (this.#pairing !== before) continue;
      this.setInMemory(next);
      return true;
    }
  }

  /** Like {@link save}, but logs that nothing can be written. @returns false if another hub owns the pairing */
  saveIfPossible(pairing: Pairing): Promise<boolean> {
    return this.save(pairing).catch((error: unknown) => {
      this.log.error('store_unwritable', { connection: this.name, error: messageOf(error) });
      return true;
    });
  }

  /** Resolves when all writes requested so far have succeeded or failed. */
  async whenSaved(): Promise<void> {
    await this.#writes;
  }

  /**
   * Saves a state that follows from the current one.
   * @returns false if another hub owns the pairing; then this one follows what is stored
   * @throws Failure as {@link Store}
   */
  save(pairing: Pairing): Promise<boolean> {
    const { ownership } = this;
    const wasOwned = this.#isOwned;
    return this.exclusively(async () => {
      // Another hub has changed it since: what was to be saved does not follow from that.
      if (wasOwned && ownership.aborted) return false;
      if (await this.#context.store.savePairing(pairing)) return true;
      await this.followStored();
      return false;
    });
  }

  /**
   * Runs `work` when the writes before it have ended, and before those after it. Sealing takes time, and an older state
   * must not overwrite a newer one. A store compares with what this hub has read last, so a pairing must be read and
   * followed without a write in between.
   */
  exclusively<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#writes.then(work);
    this.#writes = done.catch(() => undefined);
    return done;
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

  /** Await it once in each iteration of a loop of the pairing: see {@link SpinGuard}. */
  guardAgainstSpin(signal: AbortSignal): Promise<void> {
    return this.#spinGuard.beginIteration(signal);
  }

  /** Records whether the portal is reachable, and logs it when the portal becomes unreachable. */
  recordReachability(problem: Unreachable | null): void {
    if (this.#reachability.record(problem)) this.notifyWatchers();
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
}
