import { clockAtFault, MAX_TIMER_DELAY } from '../../core/clock.ts';
import { messageOf } from '../../core/failure.ts';
import type { Log } from '../../core/log.ts';
import {
  advance,
  type FailureReason,
  type Pairing,
  type PairingEvent,
  timeLeft,
  usesPortal,
} from '../../core/pairings/pairing.ts';
import type { Unreachable } from '../../core/portal.ts';
import { LogDeduplicator } from '../reports/log-deduplicator.ts';
import { emitFailure, type PairingContext } from './pairing-context.ts';

/** So many turns of a pairing's loops at the very same time are normal: see {@link PairingProgress.boundTurns}. */
const MAX_TURNS_AT_ONCE = 100;
const EMERGENCY_PAUSE_MS = 1000;
/** Why a device flow may end that nobody has opened, beside its deadline. */
const SILENT: readonly FailureReason[] = ['replaced', 'cancelled'];

/** Where a pairing stands while it is worked on: takes its steps, writes them down, and tells who watches. */
export class PairingProgress {
  readonly #context: PairingContext;
  #pairing: Pairing;
  /** The portal's last failure to answer, while it can't be reached. */
  #trouble: Unreachable | null = null;
  readonly #unreachable: LogDeduplicator;
  /** Ends the wait or the request under way whenever the pairing comes to another step. */
  #step = new AbortController();
  /** Ends the wait under way, and nothing else. */
  #wait = new AbortController();
  #writes: Promise<unknown> = Promise.resolve();
  #stopping = false;
  /** When a loop's last turn began, on the boot clock in ms, and how many more have begun at that very time. */
  #lastTurn = Number.NEGATIVE_INFINITY;
  #turnsAtOnce = 0;
  readonly #watchers = new Set<() => void>();

  constructor(context: PairingContext, pairing: Pairing) {
    this.#context = context;
    this.#pairing = pairing;
    this.#unreachable = new LogDeduplicator(context.environment.clock);
  }

  get pairing(): Pairing {
    return this.#pairing;
  }

  /** Aborted when the pairing comes to another step, or the hub stops. */
  get signal(): AbortSignal {
    return this.#step.signal;
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
  get trouble(): string | null {
    return this.#trouble === null ? null : this.#inWords(this.#trouble);
  }

  /** Milliseconds that the portal's last answer asked to wait. */
  get askedDelay(): number {
    return this.#trouble?.retryAfter ?? 0;
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
    this.#step.abort();
  }

  /** The hub's clock was set: where the portal's certificate did not fit it, no wait goes on. */
  clockSet(): void {
    if (this.#trouble?.certificate !== undefined) this.wake();
  }

  /** The hub has another address: another link may be the one to give, and a portal that was out of reach be there again. */
  addressChanged(): void {
    if (this.#trouble !== null && this.#trouble.retryAfter === null) this.wake();
    this.tell();
  }

  /** Ends the wait under way. */
  wake(): void {
    this.#wait.abort();
    this.#wait = new AbortController();
  }

  /** Calls `watcher` after every change, until the function it returns is called. */
  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Takes a step without writing it down. */
  take(next: Pairing): void {
    this.#enter(next);
    this.tell();
  }

  /**
   * Takes a step and writes it down; watchers are told when it is written. What can't be written now is found out anew
   * after a restart.
   */
  async move(event: PairingEvent): Promise<void> {
    const before = this.#pairing;
    const advanced = advance(before, event);
    if (advanced === before) return;
    // An appliance whose device flow nobody opens begins another, all day long.
    const isNews = usesPortal(before) || (event.kind === 'failed' && !SILENT.includes(event.reason));
    const hasFailed = isNews && advanced.step.kind === 'ended';
    const next = hasFailed ? { ...advanced, failed: this.#context.environment.clock.now() } : advanced;
    // Before anything is awaited: what belongs to the former step ends with it, and not when the card has taken the write.
    this.#enter(next);
    const { step } = next;
    if (step.kind === 'ended' && step.result.kind === 'failed') {
      this.log.at(isNews ? 'info' : 'debug', 'pairing_failed', { appliance: this.name, reason: step.result.reason });
    }
    await this.saveIfPossible(next);
    if (isNews) emitFailure(this.#context.environment, next);
    this.tell();
  }

  /**
   * Writes a step down before it takes it, so that nobody is told of one that a restart would forget.
   * @returns false where the event does not apply, or no longer
   * @throws Failure as the store
   */
  async moveOnceWritten(event: PairingEvent): Promise<boolean> {
    for (;;) {
      const before = this.#pairing;
      const next = advance(before, event);
      if (next === before) return false;
      await this.save(next);
      if (this.#pairing !== before) continue;
      this.take(next);
      return true;
    }
  }

  async saveIfPossible(pairing: Pairing): Promise<void> {
    await this.save(pairing).catch((error: unknown) => {
      this.log.error('store_unwritable', { appliance: this.name, error: messageOf(error) });
    });
  }

  /** Resolves when all that was to be written until now is, or could not be. */
  async written(): Promise<void> {
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
    await this.boundTurns(signal);
    const until = clock.now().uptime + Math.min(delay, this.timeLeft);
    const ended = AbortSignal.any([signal, this.#wait.signal]);
    for (let left = until - clock.now().uptime; left > 0 && !ended.aborted; left = until - clock.now().uptime) {
      await timers.sleep(Math.min(left, MAX_TIMER_DELAY), ended);
    }
    if (!signal.aborted && this.timeLeft <= 0) await this.move({ kind: 'deadline' });
    return !signal.aborted && !this.#stopping;
  }

  /**
   * To be awaited once in each turn of a loop whose waits may be over at once. Too many turns without any time passing are a
   * fault of ours: each further one takes a second, because a loop of microtasks alone would stop the whole hub.
   */
  async boundTurns(signal: AbortSignal): Promise<void> {
    const { clock, timers } = this.#context.environment;
    const { uptime } = clock.now();
    this.#turnsAtOnce = uptime === this.#lastTurn ? this.#turnsAtOnce + 1 : 0;
    this.#lastTurn = uptime;
    if (this.#turnsAtOnce > MAX_TURNS_AT_ONCE) await timers.sleep(EMERGENCY_PAUSE_MS, signal);
  }

  /** Remembers whether the portal answers, and tells the log when it stops doing so. */
  note(trouble: Unreachable | null): void {
    const before = this.#trouble;
    this.#trouble = trouble;
    if (before === null && trouble !== null) {
      const told = this.#unreachable.occurred('portal', this.#pairing.appliance);
      const level = told === null ? 'debug' : 'warn';
      this.log.at(level, 'portal_unreachable', { appliance: this.name, detail: this.#inWords(trouble) });
      // It may answer now and then.
      this.#unreachable.resolved('portal');
    }
    if (before?.detail !== trouble?.detail) this.tell();
  }

  get log(): Log {
    return this.#context.environment.log;
  }

  #enter(next: Pairing): void {
    const changed = this.#pairing.step.kind !== next.step.kind;
    this.#pairing = next;
    if (!changed) return;
    this.#step.abort();
    this.#step = new AbortController();
  }

  /** Calls whoever watches. */
  tell(): void {
    for (const watcher of this.#watchers) watcher();
  }

  #inWords({ detail, certificate }: Unreachable): string {
    const { environment, portalClock } = this.#context;
    const fault = certificate && clockAtFault(certificate, environment.clock.now(), portalClock.confirmed);
    return fault ?? detail;
  }
}
