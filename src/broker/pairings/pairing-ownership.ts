import { Failure, messageOf } from '../../core/failure.ts';
import type { Pairing, PairingEvent } from '../../core/pairings/pairing.ts';
import type { PairingContext } from './pairing-context.ts';
import type { PairingStateMachine } from './pairing-state-machine.ts';

/** A person waits at most this long for the code exchange of another hub, in ms. */
const MAX_WAIT = 8000;
/** How often the store is asked meanwhile, in ms; news of its end are faster. */
const RETRY_INTERVAL = 500;

/** How often a change is tried again because another hub has become the owner meanwhile. */
export const MAX_OWNERSHIP_TRIES = 3;

/** What runs a pairing on the hub that owns it. */
interface OwnedRun {
  /** This hub has become the owner of the pairing as it is stored. */
  own(stored: Pairing): void;
  /** Resolves when no grant is being stored. */
  whenGrantStored(): Promise<void>;
}

/**
 * How this hub becomes the owner of one pairing of a site. Without a site it always is.
 */
export class PairingOwnership {
  readonly #context: Pick<PairingContext, 'site' | 'environment'>;
  readonly #state: PairingStateMachine;
  readonly #run: OwnedRun;
  #acquiring: Promise<boolean> | null = null;

  constructor(context: Pick<PairingContext, 'site' | 'environment'>, state: PairingStateMachine, run: OwnedRun) {
    this.#context = context;
    this.#state = state;
    this.#run = run;
  }

  /** Whether another hub has to give an open pairing up before this one may change it. */
  get isElsewhere(): boolean {
    const { isOwned, pairing } = this.#state;
    return !isOwned && pairing.step.kind !== 'ended';
  }

  /**
   * Becomes the owner, because somebody waits, or to change how it has ended. If the owner exchanges a code, the end of
   * that is awaited for some seconds.
   * @returns whether this hub is the owner
   * @throws Failure as {@link Store}
   */
  acquire(): Promise<boolean> {
    this.#acquiring ??= this.#acquire().finally(() => {
      this.#acquiring = null;
    });
    return this.#acquiring;
  }

  /**
   * Becomes the owner if the lease of the last one has ended.
   * @returns whether this hub has become it
   * @throws Failure as {@link Store}
   */
  acquireIfLapsed(): Promise<boolean> {
    return this.#take(false);
  }

  /** Like {@link acquire}, but logs if the store can't be written. */
  tryAcquire(): Promise<boolean> {
    return this.acquire().catch((error: unknown) => {
      this.#state.log.error('store_unwritable', { connection: this.#state.name, error: messageOf(error) });
      return false;
    });
  }

  /** Becomes the owner of a pairing that is open, if that is possible: see {@link acquire}. */
  async acquireOpen(): Promise<void> {
    if (this.isElsewhere) await this.tryAcquire();
  }

  /**
   * Applies an event that somebody waits for; see {@link PairingStateMachine.saveThenDispatch}.
   * @param event called when this hub owns the pairing
   */
  async saveThenDispatch(event: () => PairingEvent): Promise<boolean> {
    for (let tries = 0; tries < MAX_OWNERSHIP_TRIES; tries++) {
      if (this.isElsewhere && !(await this.acquire())) return false;
      await this.#run.whenGrantStored();
      if (await this.#state.saveThenDispatch(event())) return true;
      if (!this.isElsewhere) return false;
    }
    return false;
  }

  async #acquire(): Promise<boolean> {
    const { clock } = this.#context.environment;
    const until = clock.now().uptime + MAX_WAIT;
    while (!this.#state.isOwned && !this.#state.isStopping) {
      if (await this.#take(true)) break;
      const left = until - clock.now().uptime;
      if (!this.isElsewhere || left <= 0) break;
      await this.#changeWithin(Math.min(RETRY_INTERVAL, left));
    }
    return this.#state.isRunning;
  }

  #take(isUrgent: boolean): Promise<boolean> {
    const { site } = this.#context;
    return this.#state.exclusively(async () => {
      if (site === null || this.#state.isOwned || this.#state.isStopping) return false;
      const stored = await site.takePairing(this.#state.pairing.id, isUrgent);
      if (stored !== null) this.#run.own(stored);
      else if (isUrgent) await this.#state.followStored();
      return stored !== null;
    });
  }

  /** Resolves after `delay` ms, or when the pairing changes. */
  async #changeWithin(delay: number): Promise<void> {
    const changed = new AbortController();
    const unwatch = this.#state.watch(() => changed.abort());
    await this.#context.environment.timers.sleep(delay, changed.signal);
    unwatch();
  }
}

/** Why a pairing, or the login of a connection, can't be ended now. */
export function loginElsewhere(): Failure {
  return new Failure('not_allowed', 'another hub of the site is completing a login: try again in a minute');
}
