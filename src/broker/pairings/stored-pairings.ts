import { areRivals, isInstallerInitiated, needsPortalRequests } from '../../core/pairings/pairing.ts';
import { SerialQueue } from '../../system/serial-queue.ts';
import type { PairingContext } from './pairing-context.ts';
import { PairingRun } from './pairing-run.ts';

/** The most ended pairings that are remembered, so that appliances and people still learn how they ended. */
const MAX_ENDED = 1000;

/** The pairings that the hub knows, open or ended, in the order in which they began. */
export class PairingIndex {
  readonly #runs = new Map<string, PairingRun>();
  /** Ids of pairings that are stored, and added only when another one has ended. */
  readonly reserved = new Set<string>();
  /** Those of each connection, in the order in which they began. */
  readonly #byConnection = new Map<string, readonly PairingRun[]>();

  get(id: string): PairingRun | undefined {
    return this.#runs.get(id);
  }

  /** The newest matching pairing. */
  find(matches: (run: PairingRun) => boolean): PairingRun | undefined {
    return [...this.#runs.values()].findLast(matches);
  }

  /** The matching pairings. */
  filter(matches: (run: PairingRun) => boolean): PairingRun[] {
    return [...this.#runs.values()].filter(matches);
  }

  /** The pairings of a connection. */
  of(connection: string): readonly PairingRun[] {
    return this.#byConnection.get(connection) ?? [];
  }

  /**
   * The open pairing of a connection: the one that an installer waits for, else the newest.
   * @param appliance the id of an appliance: device flows of others don't count
   */
  findOpen(connection: string, appliance?: string): PairingRun | undefined {
    const open = this.of(connection).filter(
      ({ isOpen, pairing: { device } }) =>
        isOpen && (appliance === undefined || device === null || device.appliance === appliance),
    );
    return open.findLast(({ pairing }) => isInstallerInitiated(pairing)) ?? open.at(-1);
  }

  add(run: PairingRun): void {
    this.#runs.set(run.pairing.id, run);
    const { connection } = run.pairing;
    this.#byConnection.set(connection, [...this.of(connection), run]);
  }

  forget(run: PairingRun): void {
    const { id, connection } = run.pairing;
    this.#runs.delete(id);
    const others = this.of(connection).filter((other) => other !== run);
    if (others.length > 0) this.#byConnection.set(connection, others);
    else this.#byConnection.delete(connection);
  }

  /** Forgets the oldest ended pairings beyond a limit. */
  evictEnded(): void {
    for (const run of this.filter(({ isOpen }) => !isOpen).slice(0, -MAX_ENDED)) this.forget(run);
  }
}

/** How often the ownership of open pairings is prolonged, in ms; the store of a site lets it end 30 s after that. */
const KEEP_INTERVAL = 10_000;

/** What {@link StoredPairings} works with. */
interface StoredPairingsContext extends PairingContext {
  readonly index: PairingIndex;
  /** Runs work between the starts of pairings of a connection. */
  betweenStarts(connection: string, work: () => Promise<void>): Promise<void>;
}

/**
 * The pairings as they are stored. Every hub of a site knows all of them, and one hub runs each: its owner, which
 * requests its links, polls and exchanges its code. A hub that a browser or a person reaches becomes the owner before it
 * changes a pairing; and another hub does if the owner is dead. A hub without a site owns all of them.
 */
export class StoredPairings implements AsyncDisposable {
  readonly #context: StoredPairingsContext;
  /** Reads one after the other, so that an older state never replaces a newer one. */
  readonly #reads = new SerialQueue();
  #isLoaded = false;
  #isStopped = false;
  #cancelTimer: () => void = () => undefined;
  #keeping: Promise<void> = Promise.resolve();

  constructor(context: StoredPairingsContext) {
    this.#context = context;
  }

  /**
   * Loads all pairings. Those that this hub has owned, or whose owner is dead, continue here.
   * @throws Failure as {@link Store}
   */
  async load(): Promise<void> {
    const { store, index } = this.#context;
    await this.#reads.run(async () => {
      for (const stored of await store.pairings.all()) {
        const owned = stored.step.kind === 'ended' ? null : await store.pairings.take(stored.id, false);
        const run = new PairingRun(this.#context, stored);
        index.add(run);
        if (owned !== null) run.runner.own(owned);
      }
      this.#isLoaded = true;
    });
    this.endReplaced(index.filter((run) => run.isOpen));
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
    const changed = await this.#reads.run(() => (this.#isLoaded ? this.#read(all ? null : ids) : []));
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
          const inOrder = (await this.#reads.run(() => this.#read(new Set(ids)))).filter(isWaiting);
          for (const [index, run] of inOrder.entries()) {
            const isReplaced = inOrder.slice(index + 1).some(({ pairing }) => areRivals(run.pairing, pairing));
            if (isReplaced && run.runner.isOwned) await run.endAsReplaced();
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

  /**
   * Reads pairings and follows those that other hubs own; forgets those that no longer exist.
   * @param ids null for all
   * @returns those that were read, in the order in which they began
   */
  async #read(ids: ReadonlySet<string> | null): Promise<PairingRun[]> {
    const { store, index } = this.#context;
    const known = index.filter(({ pairing }) => ids?.has(pairing.id) ?? true);
    return withoutWrites(known, async () => {
      const stored = await store.pairings.all(ids ?? undefined);
      // Also those that have ended here, which may not be written yet.
      const owned = known.filter(({ runner }) => runner.isOwned).map(({ pairing }) => pairing.id);
      const taken = new Set(owned.length === 0 ? [] : await store.pairings.keep(owned));
      const byId = new Map(stored.map((pairing) => [pairing.id, pairing]));
      for (const run of known) {
        const { id } = run.pairing;
        const found = byId.get(id);
        if (found === undefined) {
          run.runner.follow(null);
          index.forget(run);
        } else if (!run.runner.isOwned || taken.has(id)) run.runner.follow(found);
      }
      for (const pairing of stored) {
        const isUnknown = index.get(pairing.id) === undefined && !index.reserved.has(pairing.id);
        if (isUnknown) index.add(new PairingRun(this.#context, pairing));
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
    const { store, index } = this.#context;
    for (const run of index.filter(({ runner }) => runner.isOwned)) await run.runner.catchUp();
    const owned = index.filter(({ runner, pairing }) => runner.isOwned && needsPortalRequests(pairing));
    // Two of them may wait again after a code exchange that was under way when the later one began.
    this.endReplaced(owned);
    const ids = owned.map(({ pairing }) => pairing.id);
    const taken = ids.length === 0 ? [] : await store.pairings.keep(ids);
    await this.applyNews(new Set(taken), false);
    const neglected = index.filter(
      (run) => run.isOpen && !run.runner.isOwned && (needsPortalRequests(run.pairing) || run.runner.timeLeft <= 0),
    );
    for (const run of neglected) {
      if (this.#isStopped) return;
      if (await run.runner.claimIfLapsed()) this.endReplaced([run]);
    }
  }
}

/** A pairing that has not ended and whose code is not being exchanged: a login that may succeed is not replaced. */
function isWaiting({ pairing: { step } }: PairingRun): boolean {
  return step.kind === 'asking' || step.kind === 'waiting';
}

/** Runs `work` while no write of these pairings is under way: see {@link PairingRunner.exclusively}. */
async function withoutWrites<T>(runs: readonly PairingRun[], work: () => Promise<T>): Promise<T> {
  const ended = Promise.withResolvers<void>();
  const waits = runs.map((run) => {
    const reached = Promise.withResolvers<void>();
    void run.runner.exclusively(async () => {
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
