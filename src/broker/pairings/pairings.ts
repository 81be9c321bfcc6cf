import { type Connection, damagedConnectionFailure } from '../../core/connections/connection.ts';
import { sameScope } from '../../core/connections/scope.ts';
import { Failure, messageOf } from '../../core/failure.ts';
import { type CallbackBrowser, MAX_RESPONSE_TIME, type RejectedResponseReason } from '../../core/lan-service.ts';
import type { ReceivedResponse } from '../../core/pairings/authorization-response.ts';
import {
  areRivals,
  type DeviceCodes,
  type DeviceFlow,
  isInstallerInitiated,
  needsPortalRequests,
  type Pairing,
} from '../../core/pairings/pairing.ts';
import { isUnopenedDeviceFlow } from '../../core/reports/pairing-failure.ts';
import { Secret } from '../../core/secret.ts';
import { withTimeout } from '../../system/clock.ts';
import { sha256, timingSafeEqualText } from '../../system/secret-hash.ts';
import { SerialQueue } from '../../system/serial-queue.ts';
import type { PairingContext } from './login-completion.ts';
import { loginElsewhere, PairingRun } from './pairing-run.ts';

/** Bytes of the key behind the cookies of browsers that the hub sends to the portal: 256 bits. */
const BROWSER_KEY_BYTES = 32;
/** The setting with that key. */
const BROWSER_KEY_SETTING = 'pairing_browsers_key';
/** Bytes of a nonce: 128 bits. */
const NONCE_BYTES = 16;
/** The most ended pairings that are remembered, so that appliances and people still learn how they ended. */
const MAX_ENDED = 1000;
/** How often the ownership of open pairings is prolonged, in ms; the store of a site lets it end 30 s after that. */
const KEEP_INTERVAL = 10_000;

/** Whether an open pairing of the connection is joined, and what the new pairing records. */
interface BeginPairingOptions {
  /** True: an open pairing of the connection is returned. Default: it is replaced. */
  readonly joinOpen?: boolean;
  readonly batch?: string | undefined;
  /** The name of the user who starts it through a reverse proxy. */
  readonly user?: string | undefined;
  /** Who starts it, for the log. Default: `person`. */
  readonly by?: 'person' | 'on_start';
}

/**
 * The pairings. A connection has at most one that an installer started or that is open at the portal, and beside it one
 * for each appliance whose device flow waits.
 *
 * Every hub of a site knows all of them, and one hub runs each: its owner, which requests its links, polls and exchanges
 * its code. A hub that a browser or a person reaches becomes the owner before it changes a pairing; and another hub does
 * if the owner is dead. A hub without a site owns all of them.
 */
export class Pairings implements AsyncDisposable {
  readonly #context: PairingContext;
  /** Those that are known, open or ended, by id, in the order in which they began. */
  readonly #runs = new Map<string, PairingRun>();
  /** The starts of each connection, one after another. */
  readonly #starts = new Map<string, SerialQueue>();
  /** Reads one after the other, so that an older state never replaces a newer one. */
  readonly #reads = new SerialQueue();
  #isLoaded = false;
  #cancelKeeping: () => void = () => undefined;
  #keeping: Promise<void> = Promise.resolve();
  /** A setting, because a browser may come back after a restart, or to another hub of the site with the same name. */
  #browserTokenKey: string;
  #isStopped = false;

  constructor(context: PairingContext) {
    this.#context = context;
    this.#browserTokenKey = context.environment.random.token(BROWSER_KEY_BYTES);
  }

  /**
   * Loads the stored pairings. Those that are open continue, on a site those that this hub has owned or whose owner is
   * dead.
   * @throws Failure as {@link Store}
   */
  async load(): Promise<void> {
    const { store } = this.#context;
    await this.#reads.run(async () => {
      for (const stored of await store.pairings.all()) {
        const owned = stored.step.kind === 'ended' ? null : await store.pairings.take(stored.id, false);
        const run = this.#add(stored);
        if (owned !== null) run.runner.own(owned);
      }
      this.#isLoaded = true;
    });
    this.#endReplaced(this.filter(({ isOpen }) => isOpen));
    this.#scheduleKeeping();
    this.#browserTokenKey = await this.#storedBrowserTokenKey();
    this.#evictEnded();
  }

  /**
   * Applies what other hubs of the site have changed: see {@link SiteNews}.
   * @param ids of pairings
   * @param all whether any pairing may have changed
   * @throws Failure as {@link Store}
   */
  async applyNews(ids: ReadonlySet<string>, all: boolean): Promise<void> {
    // Loading will read everything.
    const changed = await this.#reads.run(() => (this.#isLoaded ? this.#read(all ? null : ids) : []));
    this.#endReplaced(changed.filter(({ isOpen }) => isOpen));
    this.#evictEnded();
  }

  /**
   * Starts a pairing for an installer. The newest open device flow of the connection is taken over, and its codes
   * stay valid. Any other open pairing of the connection is replaced, unless `joinOpen` is set.
   * @throws Failure `not_allowed` if the connection is damaged, or as {@link Store}
   */
  begin(
    connection: Connection,
    { joinOpen = false, batch, user, by = 'person' }: BeginPairingOptions = {},
  ): Promise<PairingRun> {
    return this.#serialize(connection.id, async () => {
      if (connection.damaged) throw damagedConnectionFailure(connection);
      const joinable = joinOpen ? this.#findMatchingOpen(connection) : undefined;
      if (joinable !== undefined && isInstallerInitiated(joinable.pairing)) {
        if (batch === undefined || (await joinable.joinBatch(batch))) return joinable;
      }
      const open = this.#findMatchingOpen(connection);
      const isTakenOver = open !== undefined && open.pairing.device !== null && (await open.takeOver(user));
      const isJoined = isTakenOver && (batch === undefined || (await open.joinBatch(batch)));
      const run = isJoined ? open : await this.#replace(connection, null, { batch, user });
      this.#context.environment.log.info('pairing_started', { connection: connection.name, by, user });
      return run;
    });
  }

  /**
   * Starts a device flow of an appliance. Its codes are attached to an open pairing of the connection, whose links stay
   * valid, unless that is the device flow of another appliance.
   * @param appliance its id
   * @throws Failure as {@link Store}
   */
  beginDeviceFlow(connection: Connection, appliance: string, codes: DeviceCodes): Promise<PairingRun> {
    return this.#serialize(connection.id, async () => {
      const open = this.#findMatchingOpen(connection, appliance);
      const { lifetime } = this.#context.times;
      const isAttached = await open?.runner.request({ kind: 'device', appliance, codes, lifetime });
      return open !== undefined && isAttached ? open : this.#replace(connection, { appliance, ...codes });
    });
  }

  /**
   * The newest open pairing of a connection, if it matches the connection's current portal and scope.
   * @param appliance the id of an appliance: device flows of others don't count
   */
  #findMatchingOpen({ id, portal, scope }: Connection, appliance?: string): PairingRun | undefined {
    const open = this.#findOpen(id, appliance);
    return open?.pairing.portal === portal && sameScope(open.pairing.scope, scope) ? open : undefined;
  }

  #serialize<T>(connection: string, begin: () => Promise<T>): Promise<T> {
    const queue = this.#starts.get(connection) ?? new SerialQueue();
    this.#starts.set(connection, queue);
    return queue.run(begin);
  }

  /** Begins a pairing that replaces the open one, if any. A device flow replaces only that of the same appliance. */
  async #replace(
    { id, portal, scope }: Connection,
    device: DeviceFlow | null,
    { batch, user }: BeginPairingOptions = {},
  ): Promise<PairingRun> {
    const { random, clock } = this.#context.environment;
    const pairing: Pairing = {
      id: random.uuid(),
      connection: id,
      portal,
      scope,
      nonce: random.token(NONCE_BYTES),
      begun: clock.now(),
      lifetime: this.#context.times.lifetime,
      spentCodes: [],
      lastFailure: null,
      device,
      ...(batch === undefined ? {} : { batch }),
      ...(user === undefined ? {} : { user }),
      step: { kind: 'asking' },
    };
    // Before the write: of two pairings that two hubs begin at the same time, neither replaces the other here.
    const replaced = this.#findOpen(id, device?.appliance);
    await this.#context.writeUnwritten();
    await this.#context.store.pairings.save(pairing);
    // It may have been read meanwhile.
    const run = this.#runs.get(pairing.id) ?? this.#add(pairing);
    // Only after the write: a pairing that can't be begun must not replace another.
    await replaced?.endAsReplaced();
    if (!run.runner.isOwned) run.runner.own(pairing);
    this.#endReplaced([run]);
    this.#evictEnded();
    // The hub stopped while this waited for the previous pairing; the next run resumes the pairing.
    if (this.#isStopped) await run[Symbol.asyncDispose]();
    return run;
  }

  #add(pairing: Pairing): PairingRun {
    const run = new PairingRun(this.#context, pairing);
    this.#runs.set(pairing.id, run);
    return run;
  }

  /** @throws Failure `pairing_unknown` */
  get(id: string): PairingRun {
    const run = this.#runs.get(id);
    if (run !== undefined) return run;
    throw new Failure('pairing_unknown', 'this pairing is no longer known: start another with "latchkey pair"');
  }

  /** The pairing with this nonce, open or ended. */
  findByNonce(nonce: string): PairingRun | undefined {
    const hash = sha256(nonce);
    return this.find(({ nonceHash }) => nonceHash === hash);
  }

  /** The pairing of a short link, open or ended. */
  findByShortKey(key: string): PairingRun | undefined {
    const hash = sha256(key);
    return this.find(({ shortKeyHash }) => shortKeyHash === hash);
  }

  /** What `find` finds, on a site also after the news of the other hubs: a browser may be faster than they are. */
  async findCaughtUp<T>(find: () => T | null | undefined): Promise<T | null> {
    const known = find() ?? null;
    if (known !== null) return known;
    return (await this.#context.lookForNews()) ? (find() ?? null) : null;
  }

  /** The newest matching pairing, open or ended. */
  find(matches: (run: PairingRun) => boolean): PairingRun | undefined {
    return [...this.#runs.values()].findLast(matches);
  }

  /** The matching pairings, open or ended, in the order in which they began. */
  filter(matches: (run: PairingRun) => boolean): PairingRun[] {
    return [...this.#runs.values()].filter(matches);
  }

  /** The open pairing of a connection, else the newest of those that have ended. */
  newestFor(connection: string): PairingRun | undefined {
    return this.#findOpen(connection) ?? this.#of(connection).at(-1);
  }

  /** The newest pairing of a connection, open or ended, without device flows that nobody opened. */
  newestOpened(connection: string): PairingRun | undefined {
    return this.#of(connection).findLast(({ pairing }) => !isUnopenedDeviceFlow(pairing));
  }

  /** The hub's clock was set: see {@link PairingRunner.onClockSet}. */
  onClockSet(): void {
    for (const run of this.#runs.values()) run.runner.onClockSet();
  }

  /** The hub has another address, or none: see {@link PairingRun.onAddressChanged}. */
  onAddressChanged(): void {
    for (const run of this.filter(({ isOpen }) => isOpen)) run.onAddressChanged();
  }

  /**
   * Ends the open pairings of a connection as cancelled, and any that is still being replaced.
   * @returns whether none goes on: see {@link PairingRun.fail}
   */
  async end(connection: string): Promise<boolean> {
    const open = this.#of(connection).filter(({ isOpen }) => isOpen);
    const ended = await Promise.all(open.map((run) => run.fail('cancelled')));
    return ended.every(Boolean);
  }

  /**
   * Cancels the open pairings of a connection.
   * @throws Failure `not_allowed` while another hub completes one
   */
  async cancel(connection: string): Promise<void> {
    if (!(await this.end(connection))) throw loginElsewhere();
  }

  /** Ends the device flows of an appliance that no longer uses their connection, unless an installer waits too. */
  async endDeviceFlows(appliance: string, connection?: string): Promise<void> {
    const open = this.filter(
      ({ isOpen, pairing }) =>
        isOpen && pairing.device?.appliance === appliance && (connection ?? pairing.connection) === pairing.connection,
    );
    await Promise.all(open.map((run) => (isInstallerInitiated(run.pairing) ? undefined : run.fail('cancelled'))));
  }

  /** Stops reporting why the pairings of a connection failed. */
  async clearFailures(connection: string): Promise<void> {
    await Promise.all(this.#of(connection).map((run) => run.runner.clearFailure()));
  }

  /** Forgets the pairings of a connection that was removed. */
  async removeAll(connection: string): Promise<void> {
    await this.end(connection);
    for (const { pairing } of this.#of(connection)) this.#runs.delete(pairing.id);
    this.#starts.delete(connection);
  }

  /** The cookie of a browser that the hub sends to the portal for a pairing. @param id of the pairing */
  browserToken(id: string): Secret {
    return new Secret(sha256(`${this.#browserTokenKey} ${id}`));
  }

  /**
   * Handles an authorization response.
   * @param browser that the portal redirected; null if a person has pasted the address
   * @param wanted the id of the pairing that it was pasted for
   * @returns the pairing, in the state it reaches within the time that a person waits, and why the response was not
   * used; null for an unknown nonce or state
   */
  async receive(
    received: ReceivedResponse,
    browser: CallbackBrowser | null,
    wanted?: string,
  ): Promise<{ readonly pairing: Pairing; readonly rejected: RejectedResponseReason | null } | null> {
    const { clock, timers } = this.#context.environment;
    const deadline = clock.now().uptime + MAX_RESPONSE_TIME;
    const run = await this.findCaughtUp(() =>
      'nonce' in received
        ? this.findByNonce(received.nonce)
        : this.find(({ responses }) => responses.knows(received.state)),
    );
    if (run === null) return null;
    if (wanted !== undefined && run.pairing.id !== wanted) return { pairing: run.pairing, rejected: 'other_pairing' };
    const handled = run.responses.receive(received, browser?.address ?? '', this.#isTrusted(run, browser));
    const rejected = await withTimeout(handled, deadline - clock.now().uptime, timers);
    return { pairing: run.pairing, rejected: rejected ?? null };
  }

  /** Whether the hub itself sent a browser to the portal, or a person with access to the hub pasted the address. */
  #isTrusted({ pairing }: PairingRun, browser: CallbackBrowser | null): boolean {
    if (browser === null) return true;
    const { browserToken } = browser;
    return browserToken !== null && timingSafeEqualText(browserToken, this.browserToken(pairing.id).reveal());
  }

  async #storedBrowserTokenKey(): Promise<string> {
    const { store, environment } = this.#context;
    const stored = await store.settings.get(BROWSER_KEY_SETTING);
    if (stored !== null) return stored;
    try {
      await store.settings.replace({ [BROWSER_KEY_SETTING]: null }, { [BROWSER_KEY_SETTING]: this.#browserTokenKey });
    } catch (error) {
      environment.log.error('store_unwritable', { error: messageOf(error) });
    }
    return (await store.settings.get(BROWSER_KEY_SETTING)) ?? this.#browserTokenKey;
  }

  /** Stops polling; the pairings stay open and resume at the next start. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopped = true;
    this.#cancelKeeping();
    await this.#keeping;
    await Promise.all([...this.#runs.values()].map((run) => run[Symbol.asyncDispose]()));
  }

  /** The pairings of a connection, open or ended. */
  #of(connection: string): PairingRun[] {
    return this.filter(({ pairing }) => pairing.connection === connection);
  }

  /**
   * The open pairing of a connection: the one that an installer waits for, else the newest.
   * @param appliance the id of an appliance: device flows of others don't count
   */
  #findOpen(connection: string, appliance?: string): PairingRun | undefined {
    const open = this.#of(connection).filter(
      ({ isOpen, pairing: { device } }) =>
        isOpen && (appliance === undefined || device === null || device.appliance === appliance),
    );
    return open.findLast(({ pairing }) => isInstallerInitiated(pairing)) ?? open.at(-1);
  }

  #evictEnded(): void {
    const ended = this.filter(({ isOpen }) => !isOpen);
    for (const { pairing } of ended.slice(0, -MAX_ENDED)) this.#runs.delete(pairing.id);
  }

  /**
   * Ends pairings that this hub owns if another hub has begun a later one for the same connection at the same time. The
   * store has the order, so all hubs agree which one is the later.
   * @param changed open pairings of the connections to look at
   */
  #endReplaced(changed: readonly PairingRun[]): void {
    for (const connection of new Set(changed.map(({ pairing }) => pairing.connection))) {
      if (this.#openRivals(connection).length === 0) continue;
      const compared = this.#serialize(connection, async () => {
        const ids = this.#openRivals(connection).map(({ pairing }) => pairing.id);
        const inOrder = (await this.#reads.run(() => this.#read(new Set(ids)))).filter(isWaiting);
        for (const [index, run] of inOrder.entries()) {
          const isReplaced = inOrder.slice(index + 1).some(({ pairing }) => areRivals(run.pairing, pairing));
          if (isReplaced && run.runner.isOwned) await run.endAsReplaced();
        }
      });
      // They are compared again when one of them changes, or its owner does.
      void compared.catch(() => undefined);
    }
  }

  /**
   * Reads pairings and follows those that other hubs own; forgets those that no longer exist.
   * @param ids null for all
   * @returns those that were read, in the order in which they began
   */
  async #read(ids: ReadonlySet<string> | null): Promise<PairingRun[]> {
    if (ids?.size === 0) return [];
    const { store } = this.#context;
    const known = this.filter(({ pairing }) => ids?.has(pairing.id) ?? true);
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
          this.#runs.delete(id);
        } else if (!run.runner.isOwned || taken.has(id)) run.runner.follow(found);
      }
      return stored.map((pairing) => this.#runs.get(pairing.id) ?? this.#add(pairing));
    });
  }

  /** The open pairings of a connection of which only one is wanted. */
  #openRivals(connection: string): PairingRun[] {
    const waiting = this.#of(connection).filter(isWaiting);
    return waiting.filter((run) => waiting.some((other) => other !== run && areRivals(run.pairing, other.pairing)));
  }

  #scheduleKeeping(): void {
    if (this.#isStopped) return;
    this.#cancelKeeping = this.#context.environment.timers.after(KEEP_INTERVAL, () => {
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
    for (const run of this.filter(({ runner }) => runner.isOwned)) await run.runner.catchUp();
    const owned = this.filter(({ runner, pairing }) => runner.isOwned && needsPortalRequests(pairing));
    // Two of them may wait again after a code exchange that was under way when the later one began.
    this.#endReplaced(owned);
    const ids = owned.map(({ pairing }) => pairing.id);
    const taken = ids.length === 0 ? [] : await this.#context.store.pairings.keep(ids);
    await this.applyNews(new Set(taken), false);
    const neglected = this.filter(
      (run) => run.isOpen && !run.runner.isOwned && (needsPortalRequests(run.pairing) || run.runner.timeLeft <= 0),
    );
    for (const run of neglected) {
      if (this.#isStopped) return;
      if (await run.runner.claimIfLapsed()) this.#endReplaced([run]);
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
