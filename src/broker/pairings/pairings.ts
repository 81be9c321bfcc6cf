import { type Connection, damagedConnectionFailure } from '../../core/connections/connection.ts';
import { sameScope } from '../../core/connections/scope.ts';
import { Failure, messageOf } from '../../core/failure.ts';
import { type CallbackBrowser, MAX_RESPONSE_TIME, type RejectedResponseReason } from '../../core/lan-service.ts';
import type { AuthorizationResponse, StatefulResponse } from '../../core/pairings/authorization-response.ts';
import { type DeviceCodes, type DeviceFlow, isInstallerInitiated, type Pairing } from '../../core/pairings/pairing.ts';
import { isUnopenedDeviceFlow } from '../../core/reports/pairing-failure.ts';
import { Secret } from '../../core/secret.ts';
import { withTimeout } from '../../system/clock.ts';
import { sha256, timingSafeEqualText } from '../../system/secret-hash.ts';
import type { PairingContext } from './pairing-context.ts';
import { loginElsewhere, PairingRun } from './pairing-run.ts';
import { PairingIndex, StoredPairings } from './stored-pairings.ts';

/** Bytes of the key behind the cookies of browsers that the hub sends to the portal: 256 bits. */
const BROWSER_KEY_BYTES = 32;
/** The setting with that key. */
const BROWSER_KEY_SETTING = 'pairing_browsers_key';
/** Bytes of a nonce: 128 bits. */
const NONCE_BYTES = 16;
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
 */
export class Pairings implements AsyncDisposable {
  readonly #context: PairingContext;
  readonly #index = new PairingIndex();
  /** Serializes the starts of each connection. */
  readonly #startQueues = new Map<string, Promise<unknown>>();
  readonly #stored: StoredPairings;
  /** A setting, because a browser may come back after a restart, or to another hub of the site with the same name. */
  #browserTokenKey: string;
  #stopped = false;

  constructor(context: PairingContext) {
    this.#context = context;
    this.#browserTokenKey = context.environment.random.token(BROWSER_KEY_BYTES);
    this.#stored = new StoredPairings({
      ...context,
      index: this.#index,
      betweenStarts: (connection, work) => this.#serialize(connection, work),
    });
  }

  /** Loads the stored pairings. Those that are open continue, on a site those of this hub. */
  async load(): Promise<void> {
    await this.#stored.load();
    this.#browserTokenKey = await this.#storedBrowserTokenKey();
    this.#index.evictEnded();
  }

  /**
   * Applies what other hubs of the site have changed.
   * @param ids of pairings
   * @param all whether any pairing may have changed
   * @throws Failure as {@link Store}
   */
  async applyNews(ids: ReadonlySet<string>, all: boolean): Promise<void> {
    await this.#stored.applyNews(ids, all);
    this.#index.evictEnded();
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
    const open = this.#index.findOpen(id, appliance);
    return open?.pairing.portal === portal && sameScope(open.pairing.scope, scope) ? open : undefined;
  }

  async #serialize<T>(connection: string, begin: () => Promise<T>): Promise<T> {
    const started = (this.#startQueues.get(connection) ?? Promise.resolve()).catch(() => undefined).then(begin);
    this.#startQueues.set(connection, started);
    try {
      return await started;
    } finally {
      if (this.#startQueues.get(connection) === started) this.#startQueues.delete(connection);
    }
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
    const replaced = this.#index.findOpen(id, device?.appliance);
    this.#index.reserved.add(pairing.id);
    try {
      await this.#context.writeUnwritten();
      await this.#context.store.pairings.save(pairing);
      // Only after the write: a pairing that can't be begun must not replace another.
      await replaced?.endAsReplaced();
    } finally {
      this.#index.reserved.delete(pairing.id);
    }
    const run = new PairingRun(this.#context, pairing);
    this.#index.add(run);
    run.runner.own(pairing);
    this.#stored.endReplaced([run]);
    this.#index.evictEnded();
    // The hub stopped while this waited for the previous pairing; the next run resumes the pairing.
    if (this.#stopped) await run[Symbol.asyncDispose]();
    return run;
  }

  /** @throws Failure `pairing_unknown` */
  get(id: string): PairingRun {
    const run = this.#index.get(id);
    if (run !== undefined) return run;
    throw new Failure('pairing_unknown', 'this pairing is no longer known: start another with "latchkey pair"');
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
    return this.#index.find(matches);
  }

  /** The matching pairings, open or ended, in the order in which they began. */
  filter(matches: (run: PairingRun) => boolean): PairingRun[] {
    return this.#index.filter(matches);
  }

  /** The open pairing of a connection, else the newest of those that have ended. */
  newestFor(connection: string): PairingRun | undefined {
    return this.#index.findOpen(connection) ?? this.#index.of(connection).at(-1);
  }

  /** The newest pairing of a connection, open or ended, without device flows that nobody opened. */
  newestOpened(connection: string): PairingRun | undefined {
    return this.#index.of(connection).findLast(({ pairing }) => !isUnopenedDeviceFlow(pairing));
  }

  /** The hub's clock was set: see {@link PairingRunner.onClockSet}. */
  onClockSet(): void {
    for (const run of this.#index.filter(() => true)) run.runner.onClockSet();
  }

  /** The hub has another address, or none: see {@link PairingRun.onAddressChanged}. */
  onAddressChanged(): void {
    for (const run of this.#index.filter(({ isOpen }) => isOpen)) run.onAddressChanged();
  }

  /**
   * Ends the open pairings of a connection as cancelled, and any that is still being replaced.
   * @returns whether none goes on: see {@link PairingRun.fail}
   */
  async end(connection: string): Promise<boolean> {
    const open = this.#index.of(connection).filter((run) => run.isOpen);
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
    await Promise.all(this.#index.of(connection).map((run) => run.runner.clearFailure()));
  }

  /** Forgets the pairings of a connection that was removed. */
  async removeAll(connection: string): Promise<void> {
    await this.end(connection);
    for (const run of this.#index.of(connection)) this.#index.forget(run);
  }

  /** The cookie of a browser that the hub sends to the portal for a pairing. @param id of the pairing */
  browserToken(id: string): Secret {
    return new Secret(sha256(`${this.#browserTokenKey} ${id}`));
  }

  /**
   * Handles the portal's redirect.
   * @param from the browser: its address, and its {@link browserToken} if it has one
   * @returns the pairing, in the state it reaches within the time that a person waits; null for an unknown nonce
   */
  async receiveCallback(
    nonce: string,
    callback: AuthorizationResponse,
    { address, browserToken }: CallbackBrowser,
  ): Promise<Pairing | null> {
    const deadline = this.#responseDeadline();
    const hash = sha256(nonce);
    const run = await this.findCaughtUp(() => this.find(({ nonceHash }) => nonceHash === hash));
    if (run === null) return null;
    const wasSentByHub = this.#wasSentByHub(run, browserToken);
    if (callback.kind === 'code') {
      await this.#waitUntil(deadline, run.responses.receiveCode(callback, { address, wasSentByHub }));
    }
    if (callback.kind === 'error') await this.#waitUntil(deadline, run.responses.receiveError(callback, wasSentByHub));
    return run.pairing;
  }

  #wasSentByHub({ pairing }: PairingRun, browserToken: string | null): boolean {
    return browserToken !== null && timingSafeEqualText(browserToken, this.browserToken(pairing.id).reveal());
  }

  /**
   * Handles an authorization response that names its request.
   * @param browserToken of the browser that the portal redirected; null if it has none
   * @param wanted the id of the pairing that it was pasted for; left out if the portal redirected the browser
   * @returns the pairing, in the state it reaches within the time that a person waits, and why the response was not
   * used; null for an unknown state
   */
  async receiveRedirect(
    { state, response }: StatefulResponse,
    browserToken: string | null = null,
    wanted?: string,
  ): Promise<{ readonly pairing: Pairing; readonly rejected: RejectedResponseReason | null } | null> {
    const deadline = this.#responseDeadline();
    const run = await this.findCaughtUp(() => this.find((candidate) => candidate.responses.knows(state)));
    if (run === null) return null;
    if (wanted !== undefined && run.pairing.id !== wanted) return { pairing: run.pairing, rejected: 'other_pairing' };
    const isTrusted = wanted !== undefined || this.#wasSentByHub(run, browserToken);
    const rejected = await this.#waitUntil(deadline, run.responses.receive(state, response, isTrusted));
    return { pairing: run.pairing, rejected: rejected ?? null };
  }

  /** When a browser whose request has just arrived needs its response, on the boot clock in ms. */
  #responseDeadline(): number {
    return this.#context.environment.clock.now().uptime + MAX_RESPONSE_TIME;
  }

  #waitUntil<Result>(deadline: number, received: Promise<Result>): Promise<Result | undefined> {
    const { clock, timers } = this.#context.environment;
    return withTimeout(received, deadline - clock.now().uptime, timers);
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
    this.#stopped = true;
    await this.#stored[Symbol.asyncDispose]();
    await Promise.all(this.#index.filter(() => true).map((run) => run[Symbol.asyncDispose]()));
  }
}
