import type { Connection } from '../../core/connections/connection.ts';
import { sameScope } from '../../core/connections/scope.ts';
import { Failure, messageOf } from '../../core/failure.ts';
import type { CallbackBrowser, LoginLinkResult, RejectedResponseReason } from '../../core/lan-service.ts';
import type { AuthorizationResponse, StatefulResponse } from '../../core/pairings/authorization-response.ts';
import {
  advance,
  areDeviceCodesRetained,
  type DeviceCodes,
  type DeviceFlow,
  isInstallerInitiated,
  needsPortalRequests,
  type Pairing,
  type PairingFailureReason,
} from '../../core/pairings/pairing.ts';
import { isUnopenedDeviceFlow } from '../../core/reports/pairing-failure.ts';
import { Secret } from '../../core/secret.ts';
import { withTimeout } from '../../system/clock.ts';
import { sha256, timingSafeEqualText } from '../../system/secret-hash.ts';
import { emitPairingFailed, type PairingContext } from './pairing-context.ts';
import { PairingRun } from './pairing-run.ts';

/** A person whom the portal redirected waits at most this long for a result, in ms: less than 10 s in total. */
const MAX_WAIT = 9500;
/** Bytes of the key behind the cookies of browsers that the hub sends to the portal: 256 bits. */
const BROWSER_KEY_BYTES = 32;
/** Bytes of a nonce: 128 bits. */
const NONCE_BYTES = 16;
/**
 * The most pairings that use the portal at once: each polls it every few seconds. Unopened device flows do not count.
 */
const MAX_OPEN = 100;
/**
 * The most ended pairings that are remembered, so that their result page can be shown again. Pairings whose appliance
 * may still poll its device flow are kept in addition.
 */
const MAX_ENDED = 1000;

/** Whether an open pairing of the connection is joined, and what the new pairing records. */
export interface BeginPairingOptions {
  /** True: an open pairing of the connection is returned. Default: it is replaced. */
  readonly joinOpen?: boolean;
  readonly batch?: string | undefined;
  /** The name of the user who starts it through a reverse proxy. */
  readonly user?: string | undefined;
}

/**
 * The pairings. A connection has at most one that an installer started or that is open at the portal, and beside it one
 * for each appliance whose device flow waits.
 */
export class Pairings implements AsyncDisposable {
  readonly #context: PairingContext;
  readonly #runs = new Map<string, PairingRun>();
  /** Those of each connection, in the order in which they began. */
  readonly #byConnection = new Map<string, readonly PairingRun[]>();
  /** Serializes the starts of each connection. */
  readonly #startQueues = new Map<string, Promise<unknown>>();
  /** Only in memory: after a restart the portal itself, or an installer, must confirm a login. */
  readonly #browserTokenKey: string;
  #stopped = false;

  constructor(context: PairingContext) {
    this.#context = context;
    this.#browserTokenKey = context.environment.random.token(BROWSER_KEY_BYTES);
  }

  /** Loads the pairings of the last run; the newest of each connection, and of each device flow, continues if it is open. */
  async load(): Promise<void> {
    const stored = await this.#context.store.pairings();
    const newest = new Map(stored.map((pairing) => [flowKey(pairing), pairing.id]));
    for (const pairing of stored) {
      const isNewest = newest.get(flowKey(pairing)) === pairing.id;
      const resumed = isNewest ? pairing : advance(pairing, { kind: 'failed', reason: 'replaced' });
      if (resumed !== pairing) await this.#saveReplaced(pairing, resumed);
      this.#add(PairingRun.resume(this.#context, resumed));
    }
    this.#evictEnded();
  }

  /**
   * Starts a pairing for an installer. The newest open device flow of the connection is taken over, and its codes
   * stay valid. Any other open pairing of the connection is replaced, unless `joinOpen` is set.
   * @throws Failure `not_allowed` if too many are open, or as {@link Store}
   */
  begin(connection: Connection, { joinOpen = false, batch, user }: BeginPairingOptions = {}): Promise<PairingRun> {
    return this.#serialize(connection.id, async () => {
      const joinable = joinOpen ? this.#findMatchingOpen(connection) : undefined;
      if (joinable !== undefined && isInstallerInitiated(joinable.pairing)) {
        if (batch === undefined || (await joinable.joinBatch(batch))) return joinable;
      }
      if (this.#isAtLimit(connection.id)) {
        throw new Failure('not_allowed', `${MAX_OPEN} pairings are open: wait until one of them has ended`);
      }
      const open = this.#findMatchingOpen(connection);
      const isTakenOver = open !== undefined && open.pairing.device !== null && (await open.takeOver(user));
      if (isTakenOver && (batch === undefined || (await open.joinBatch(batch)))) return open;
      return this.#replace(connection, null, { batch, user });
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
      return open !== undefined && (await open.attachDeviceCodes(appliance, codes))
        ? open
        : this.#replace(connection, { appliance, ...codes });
    });
  }

  /** A fresh link for a person who opens the page of a device flow. */
  async openLink(run: PairingRun): Promise<LoginLinkResult> {
    const { pairing } = run;
    if (!needsPortalRequests(pairing) && this.#isAtLimit(pairing.connection)) return { kind: 'too_many' };
    return run.openLink();
  }

  /**
   * The newest open pairing of a connection, if it matches the connection's current portal and scope.
   * @param appliance the id of an appliance: device flows of others don't count
   */
  #findMatchingOpen({ id, portal, scope }: Connection, appliance?: string): PairingRun | undefined {
    const open = this.#findOpen(id, appliance);
    return open?.pairing.portal === portal && sameScope(open.pairing.scope, scope) ? open : undefined;
  }

  #isAtLimit(except: string): boolean {
    const others = this.filter(({ pairing }) => pairing.connection !== except && needsPortalRequests(pairing));
    return others.length >= MAX_OPEN;
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
    await this.#context.store.savePairing(pairing);
    // Only after the write: a pairing that can't be begun must not replace another.
    await this.#findOpen(id, device?.appliance)?.endAsReplaced();
    const run = PairingRun.resume(this.#context, pairing);
    this.#add(run);
    this.#evictEnded();
    // The hub stopped while this waited for the previous pairing; the next run resumes the pairing.
    if (this.#stopped) await run[Symbol.asyncDispose]();
    return run;
  }

  /** @throws Failure `pairing_unknown` */
  get(id: string): PairingRun {
    const run = this.#runs.get(id);
    if (run !== undefined) return run;
    throw new Failure('pairing_unknown', 'this pairing is no longer known: start another with "latchkey pair"');
  }

  /** The pairing of a short link, open or ended. */
  findByShortKey(key: string): PairingRun | undefined {
    const hash = sha256(key);
    return this.find(({ shortKeyHash }) => shortKeyHash === hash);
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
    return this.#findOpen(connection) ?? this.#runsOf(connection).at(-1);
  }

  /** The newest pairing of a connection, open or ended, without device flows that nobody opened. */
  newestOpened(connection: string): PairingRun | undefined {
    return this.#runsOf(connection).findLast(({ pairing }) => !isUnopenedDeviceFlow(pairing));
  }

  /** The hub's clock was set: see {@link PairingRun.onClockSet}. */
  onClockSet(): void {
    for (const run of this.#runs.values()) run.onClockSet();
  }

  /** The hub has another address, or none: see {@link PairingRun.onAddressChanged}. */
  onAddressChanged(): void {
    for (const run of this.#runs.values()) if (run.isOpen) run.onAddressChanged();
  }

  /** Ends the open pairings of a connection, and any that is still being replaced. */
  async end(connection: string, reason: PairingFailureReason): Promise<void> {
    const open = this.#runsOf(connection).filter((run) => run.isOpen);
    await Promise.all(open.map((run) => run.fail(reason)));
  }

  /** Ends the device flows of an appliance that no longer uses their connection, unless an installer waits too. */
  async endDeviceFlows(appliance: string): Promise<void> {
    const open = this.filter(({ isOpen, pairing }) => isOpen && pairing.device?.appliance === appliance);
    await Promise.all(open.map((run) => (isInstallerInitiated(run.pairing) ? undefined : run.fail('cancelled'))));
  }

  /** Stops reporting why the pairings of a connection failed. */
  async clearFailures(connection: string): Promise<void> {
    await Promise.all(this.#runsOf(connection).map((run) => run.clearFailure()));
  }

  /** Forgets the pairings of a connection that was removed. */
  async removeAll(connection: string): Promise<void> {
    await this.end(connection, 'cancelled');
    for (const run of this.#runsOf(connection)) this.#forget(run);
  }

  /** STUB, replaced when merged: other hubs of the site have changed pairings. */
  async applyNews(ids: ReadonlySet<string>, all: boolean): Promise<void> {
    const stored = new Set((await this.#context.store.pairings()).map(({ id }) => id));
    for (const run of [...this.#runs.values()]) {
      if (!stored.has(run.pairing.id) && (all || ids.has(run.pairing.id))) this.#forget(run);
    }
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
    const hash = sha256(nonce);
    const run = this.find(({ nonceHash }) => nonceHash === hash);
    if (run === undefined) return null;
    if (callback.kind === 'code') {
      const isSent =
        browserToken !== null && timingSafeEqualText(browserToken, this.browserToken(run.pairing.id).reveal());
      const received = run.receiveCode(callback.code, { address, wasSentByHub: isSent });
      await withTimeout(received, MAX_WAIT, this.#context.environment.timers);
    }
    if (callback.kind === 'error') {
      const refused = run.failLogin(callback.error === 'access_denied' ? 'refused_by_user' : 'portal_rejected');
      await withTimeout(refused, MAX_WAIT, this.#context.environment.timers);
    }
    return run.pairing;
  }

  /**
   * Handles an authorization response that names its request.
   * @param wanted the id of the pairing that it was pasted for; left out if the portal redirected the browser
   * @returns the pairing, in the state it reaches within the time that a person waits, and why the response was not
   * used; null for an unknown state
   */
  async receiveRedirect(
    { state, response }: StatefulResponse,
    wanted?: string,
  ): Promise<{ readonly pairing: Pairing; readonly rejected: RejectedResponseReason | null } | null> {
    const run = this.find((candidate) => candidate.authorizationResponses.knows(state));
    if (run === undefined) return null;
    if (wanted !== undefined && run.pairing.id !== wanted) return { pairing: run.pairing, rejected: 'other_pairing' };
    let rejected: RejectedResponseReason | null = null;
    const received = run.authorizationResponses.receive(state, response).then((reason) => {
      rejected = reason;
    });
    await withTimeout(received, MAX_WAIT, this.#context.environment.timers);
    return { pairing: run.pairing, rejected };
  }

  /** Saves that a pairing was replaced, if the last run ended before it could; the failure is emitted once. */
  async #saveReplaced(pairing: Pairing, ended: Pairing): Promise<void> {
    const { store, environment } = this.#context;
    try {
      await store.savePairing(ended);
      if (needsPortalRequests(pairing)) emitPairingFailed(this.#context.environment, ended);
    } catch (error) {
      environment.log.error('store_unwritable', { error: messageOf(error) });
    }
  }

  /** Stops polling; the pairings stay open and resume at the next start. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true;
    await Promise.all([...this.#runs.values()].map((run) => run[Symbol.asyncDispose]()));
  }

  /**
   * The open pairing of a connection: the one that an installer waits for, else the newest.
   * @param appliance the id of an appliance: device flows of others don't count
   */
  #findOpen(connection: string, appliance?: string): PairingRun | undefined {
    const open = this.#runsOf(connection).filter(
      ({ isOpen, pairing: { device } }) =>
        isOpen && (appliance === undefined || device === null || device.appliance === appliance),
    );
    return open.findLast(({ pairing }) => isInstallerInitiated(pairing)) ?? open.at(-1);
  }

  #runsOf(connection: string): readonly PairingRun[] {
    return this.#byConnection.get(connection) ?? [];
  }

  #add(run: PairingRun): void {
    this.#runs.set(run.pairing.id, run);
    const { connection } = run.pairing;
    this.#byConnection.set(connection, [...this.#runsOf(connection), run]);
  }

  #evictEnded(): void {
    const ended = [...this.#runs.values()].filter(({ isOpen: open }) => !open);
    for (const run of ended.slice(0, -MAX_ENDED)) {
      if (!this.#isAwaited(run)) this.#forget(run);
    }
  }

  #forget(run: PairingRun): void {
    const { id, connection } = run.pairing;
    this.#runs.delete(id);
    const others = this.#runsOf(connection).filter((other) => other !== run);
    if (others.length > 0) this.#byConnection.set(connection, others);
    else this.#byConnection.delete(connection);
  }

  /** Whether an appliance may still poll, with its current codes, how this pairing ended. */
  #isAwaited(run: PairingRun): boolean {
    const { pairing } = run;
    const key = flowKey(pairing);
    const newest = this.#runsOf(pairing.connection).findLast((other) => flowKey(other.pairing) === key);
    if (pairing.device === null || newest !== run) return false;
    return areDeviceCodesRetained(pairing, this.#context.environment.clock.now());
  }
}

/** What a newer pairing replaces: the pairing of a connection, or the device flow of one appliance. */
function flowKey({ connection, device }: Pairing): string {
  return `${connection} ${device?.appliance ?? connection}`;
}
