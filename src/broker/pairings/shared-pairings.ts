import { areRivals, needsPortalRequests } from '../../core/pairings/pairing.ts';
import type { SiteStore } from '../../core/site.ts';
import type { PairingContext } from './pairing-context.ts';
import type { PairingIndex } from './pairing-index.ts';
import { PairingRun } from './pairing-run.ts';

/** How often the ownership of pairings is prolonged, in ms; the store lets it end 30 s after that. */
const KEEP_INTERVAL = 10_000;

/** What the pairings of this hub share with those of the others. */
interface SharedPairingsContext extends PairingContext {
  readonly site: SiteStore;
  readonly index: PairingIndex;
  /** Runs work between the starts of pairings of a connection. */
  betweenStarts(connection: string, work: () => Promise<void>): Promise<void>;
}

/**
 * The pairings of a site. Every hub knows all of them, and one hub runs each: its owner, which requests its links,
 * polls and exchanges its code. A hub that a browser or a person reaches becomes the owner before it changes a pairing;
 * and another hub does if the owner is dead.
 */
export class SharedPairings implements AsyncDisposable {
  readonly #context: SharedPairingsContext;
  #queue: Promise<unknown> = Promise.resolve();
  #isLoaded = false;
  #isStopped = false;
  #cancelTimer: () => void = () => undefined;
  #keeping: Promise<void> = Promise.resolve();

  constructor(context: SharedPairingsContext) {
    this.#context = context;
  }

  /**
   * Loads all pairings. Those that this hub has owned, or whose owner is dead, continue here.
   * @throws Failure as {@link Store}
   */
  async load(): Promise<void> {
    const { store, site, index } = this.#context;
    await this.#inTurn(async () => {
      for (const stored of await store.pairings()) {
        const owned = stored.step.kind === 'ended' ? null : await site.takePairing(stored.id, false);
        index.add(owned === null ? PairingRun.follow(this.#context, stored) : PairingRun.resume(this.#context, owned));
      }
      this.#isLoaded = true;
    });
    this.endReplaced(index.filter(({ isOpen }) => isOpen));
    this.#scheduleKeeping();
  }

  /**
   * Applies what other hubs have changed: see {@link SiteNews}.
   * @param ids of pairings
   * @param all whether any pairing may have changed
   * @throws Failure as {@link Store}
   */
  async applyNews(ids: ReadonlySet<string>, all: boolean): Promise<void> {
    // Loading will read everything.
    if (!all && ids.size === 0) return;
    const changed = await this.#inTurn(() => (this.#isLoaded ? this.#read(all ? null : ids) : []));
    this.endReplaced(changed.filter(({ isOpen }) => isOpen));
  }

  /**
   * Ends pairings that this hub owns if another hub has begun a later one for the same connection at the same time. The
   * store has the order, so all hubs agree which one is the later.
   * @param changed open pairings of the connections to look at
   */
  endReplaced(changed: readonly PairingRun[]): void {
    for (const connection of new Set(changed.map(({ pairing }) => pairing.connection))) {
      if (this.#openRivals(connection).length === 0) continue;
      void this.#context
        .betweenStarts(connection, async () => {
          const ids = this.#openRivals(connection).map(({ pairing }) => pairing.id);
          if (ids.length === 0) return;
          const inOrder = (await this.#inTurn(() => this.#read(new Set(ids)))).filter(isWaiting);
          for (const [index, run] of inOrder.entries()) {
            const isReplaced = inOrder.slice(index + 1).some(({ pairing }) => areRivals(run.pairing, pairing));
            if (isReplaced && run.isOwned) await run.endAsReplaced();
          }
        })
        // They are compared again when one of them changes, or its owner does.
        .catch(() => undefined);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopped = true;
    this.#cancelTimer();
    await this.#keeping;
  }

  /** Reads one after the other, so that an older state never replaces a newer one. */
  #inTurn<T>(work: () => Promise<T> | T): Promise<T> {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => undefined);
    return done;
  }

  /**
   * Reads pairings and follows those that other hubs own; forgets those that no longer exist.
   * @param ids null for all
   * @returns those that were read, in the order in which they began
   */
  async #read(ids: ReadonlySet<string> | null): Promise<PairingRun[]> {
    const { store, site, index } = this.#context;
    const known = index.filter(({ pairing }) => ids?.has(pairing.id) ?? true);
    return withoutWrites(known, async () => {
      const stored = ids === null ? await store.pairings() : await site.findPairings(ids);
      // Also those that have ended here, which may not be written yet.
      const owned = known.filter(({ isOwned }) => isOwned).map(({ pairing }) => pairing.id);
      const taken = new Set(owned.length === 0 ? [] : await site.keepPairings(owned));
      const byId = new Map(stored.map((pairing) => [pairing.id, pairing]));
      for (const run of known) {
        const { id } = run.pairing;
        const found = byId.get(id);
        if (found === undefined) {
          run.follow(null);
          index.forget(run);
        } else if (!run.isOwned || taken.has(id)) run.follow(found);
      }
      for (const pairing of stored) {
        const isUnknown = index.get(pairing.id) === undefined && !index.reserved.has(pairing.id);
        if (isUnknown) index.add(PairingRun.follow(this.#context, pairing));
      }
      return stored.flatMap(({ id }) => index.get(id) ?? []);
    });
  }

  /** The open pairings of a connection of which only one is wanted. */
  #openRivals(connection: string): PairingRun[] {
    const waiting = this.#context.index.of(connection).filter(isWaiting);
    return waiting.filter((run) => waiting.some((other) => other !== run && areRivals(run.pairing, other.pairing)));
  }

  #scheduleKeeping(): void {
    if (this.#isStopped) return;
    this.#cancelTimer = this.#context.environment.timers.after(KEEP_INTERVAL, () => {
      // The store itself reports if it can't be written.
      this.#keeping = this.#keepAndAcquire()
        .catch(() => undefined)
        .then(() => this.#scheduleKeeping());
    });
  }

  /**
   * Keeps the open pairings of this hub, and becomes the owner of those whose owner is dead. A device flow that nobody
   * has opened needs no owner until its time is over.
   */
  async #keepAndAcquire(): Promise<void> {
    const { site, index } = this.#context;
    const owned = index.filter(({ isOwned, pairing }) => isOwned && needsPortalRequests(pairing));
    const ids = owned.map(({ pairing }) => pairing.id);
    const taken = ids.length === 0 ? [] : await site.keepPairings(ids);
    await this.applyNews(new Set(taken), false);
    const neglected = index.filter(
      (run) => run.isOpen && !run.isOwned && (needsPortalRequests(run.pairing) || run.timeLeft <= 0),
    );
    for (const run of neglected) {
      if (this.#isStopped) return;
      if (await run.acquireIfLapsed()) this.endReplaced([run]);
    }
  }
}

/** A pairing that has not ended and whose code is not being exchanged: a login that may succeed is not replaced. */
function isWaiting({ pairing: { step } }: PairingRun): boolean {
  return step.kind === 'asking' || step.kind === 'waiting';
}

/** Runs `work` while no write of these pairings is under way: see {@link PairingRun.exclusively}. */
async function withoutWrites<T>(runs: readonly PairingRun[], work: () => Promise<T>): Promise<T> {
  const ended = Promise.withResolvers<void>();
  const waits = runs.map((run) => {
    const reached = Promise.withResolvers<void>();
    void run.exclusively(async () => {
      reached.resolve();
      await ended.promise;
    });
    return reached.promise;
  });
  try {
    await Promise.all(waits);
    return await work();
  } finally {
    ended.resolve();
  }
}
