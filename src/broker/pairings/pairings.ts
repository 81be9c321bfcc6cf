import { type Appliance, sameScope } from '../../core/appliances/appliance.ts';
import { Failure, messageOf } from '../../core/failure.ts';
import type { AuthorizationResponse, CallbackBrowser, LoginLinkResult } from '../../core/lan-service.ts';
import {
  advance,
  areDeviceCodesRetained,
  type DeviceCodes,
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

/** Whether an open pairing of the appliance is joined, and the batch of the new pairing. */
export interface BeginPairingOptions {
  /** True: an open pairing of the appliance is returned. Default: it is replaced. */
  readonly joinOpen?: boolean;
  readonly batch?: string;
}

/** The pairings, at most one open for each appliance. */
export class Pairings implements AsyncDisposable {
  readonly #context: PairingContext;
  readonly #runs = new Map<string, PairingRun>();
  readonly #byAppliance = new Map<string, PairingRun>();
  /** Serializes the starts of each appliance. */
  readonly #startQueues = new Map<string, Promise<unknown>>();
  /** Only in memory: after a restart the portal itself, or an installer, must confirm a login. */
  readonly #browserTokenKey: string;
  #stopped = false;

  constructor(context: PairingContext) {
    this.#context = context;
    this.#browserTokenKey = context.environment.random.token(BROWSER_KEY_BYTES);
  }

  /** Loads the pairings of the last run; the newest of each appliance continues if it is open. */
  async load(): Promise<void> {
    const stored = await this.#context.store.pairings();
    const newest = new Map(stored.map(({ appliance, id }) => [appliance, id]));
    for (const pairing of stored) {
      const isNewest = newest.get(pairing.appliance) === pairing.id;
      const resumed = isNewest ? pairing : advance(pairing, { kind: 'failed', reason: 'replaced' });
      if (resumed !== pairing) await this.#saveReplaced(pairing, resumed);
      this.#add(PairingRun.resume(this.#context, resumed));
    }
    this.#evictEnded();
  }

  /**
   * Starts a pairing for an installer. An open device flow of the appliance is taken over, and its codes stay valid.
   * Any other open pairing of the appliance is replaced, unless `joinOpen` is set.
   * @throws Failure `not_allowed` if too many are open, or as {@link Store}
   */
  begin(appliance: Appliance, { joinOpen = false, batch }: BeginPairingOptions = {}): Promise<PairingRun> {
    return this.#serialize(appliance.id, async () => {
      const joinable = joinOpen ? this.#findMatchingOpen(appliance) : undefined;
      if (joinable !== undefined && isInstallerInitiated(joinable.pairing)) {
        if (batch === undefined || (await joinable.joinBatch(batch))) return joinable;
      }
      if (this.#isAtLimit(appliance.id)) {
        throw new Failure('not_allowed', `${MAX_OPEN} pairings are open: wait until one of them has ended`);
      }
      const open = this.#findMatchingOpen(appliance);
      const isTakenOver = open !== undefined && open.pairing.device !== null && (await open.takeOver());
      if (isTakenOver && (batch === undefined || (await open.joinBatch(batch)))) return open;
      return this.#replace(appliance, null, batch);
    });
  }

  /**
   * Starts a device flow. Its codes are attached to an open pairing of the appliance, whose links stay valid.
   * @throws Failure as {@link Store}
   */
  beginDeviceFlow(appliance: Appliance, codes: DeviceCodes): Promise<PairingRun> {
    return this.#serialize(appliance.id, async () => {
      const open = this.#findMatchingOpen(appliance);
      return open !== undefined && (await open.attachDeviceCodes(codes)) ? open : this.#replace(appliance, codes);
    });
  }

  /** A fresh link for a person who opens the page of a device flow. */
  async openLink(run: PairingRun): Promise<LoginLinkResult> {
    const { pairing } = run;
    if (!needsPortalRequests(pairing) && this.#isAtLimit(pairing.appliance)) return { kind: 'too_many' };
    return run.openLink();
  }

  /** The open pairing of an appliance, if it matches the appliance's current portal and scope. */
  #findMatchingOpen({ id, portal, scope }: Appliance): PairingRun | undefined {
    const open = this.#findOpen(id);
    return open?.pairing.portal === portal && sameScope(open.pairing.scope, scope) ? open : undefined;
  }

  #isAtLimit(except: string): boolean {
    const others = [...this.#byAppliance].filter(
      ([other, run]) => other !== except && needsPortalRequests(run.pairing),
    );
    return others.length >= MAX_OPEN;
  }

  async #serialize<T>(appliance: string, begin: () => Promise<T>): Promise<T> {
    const started = (this.#startQueues.get(appliance) ?? Promise.resolve()).catch(() => undefined).then(begin);
    this.#startQueues.set(appliance, started);
    try {
      return await started;
    } finally {
      if (this.#startQueues.get(appliance) === started) this.#startQueues.delete(appliance);
    }
  }

  /** Begins a pairing that replaces an open one, if any. */
  async #replace({ id, portal, scope }: Appliance, device: DeviceCodes | null, batch?: string): Promise<PairingRun> {
    const { random, clock } = this.#context.environment;
    const pairing: Pairing = {
      id: random.uuid(),
      appliance: id,
      portal,
      scope,
      nonce: random.token(NONCE_BYTES),
      begun: clock.now(),
      lifetime: this.#context.times.lifetime,
      spentCodes: [],
      lastFailure: null,
      device,
      ...(batch === undefined ? {} : { batch }),
      step: { kind: 'asking' },
    };
    await this.#context.store.savePairing(pairing);
    // Only after the write: a pairing that can't be begun must not replace another.
    await this.#findOpen(id)?.endAsReplaced();
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

  /** The newest pairing of an appliance, open or ended. */
  newestFor(appliance: string): PairingRun | undefined {
    return this.#byAppliance.get(appliance);
  }

  /** The newest pairing of an appliance, open or ended, without device flows that nobody opened. */
  newestOpened(appliance: string): PairingRun | undefined {
    const newest = this.#byAppliance.get(appliance);
    if (newest === undefined || !isUnopenedDeviceFlow(newest.pairing)) return newest;
    return this.find(({ pairing }) => pairing.appliance === appliance && !isUnopenedDeviceFlow(pairing));
  }

  /** The hub's clock was set: see {@link PairingRun.onClockSet}. */
  onClockSet(): void {
    for (const run of this.#runs.values()) run.onClockSet();
  }

  /** The hub has another address, or none: see {@link PairingRun.onAddressChanged}. */
  onAddressChanged(): void {
    for (const run of this.#runs.values()) if (run.isOpen) run.onAddressChanged();
  }

  /** Ends the open pairing of an appliance, and any that is still being replaced. */
  async end(appliance: string, reason: PairingFailureReason): Promise<void> {
    const open = [...this.#runs.values()].filter((run) => run.isOpen && run.pairing.appliance === appliance);
    await Promise.all(open.map((run) => run.fail(reason)));
  }

  /** Stops reporting why the pairings of an appliance failed. */
  async clearFailures(appliance: string): Promise<void> {
    await Promise.all(this.filter(({ pairing }) => pairing.appliance === appliance).map((run) => run.clearFailure()));
  }

  /** Forgets the pairings of an appliance that was removed. */
  async removeAll(appliance: string): Promise<void> {
    await this.end(appliance, 'cancelled');
    this.#byAppliance.delete(appliance);
    for (const [id, run] of this.#runs) if (run.pairing.appliance === appliance) this.#runs.delete(id);
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

  #findOpen(appliance: string): PairingRun | undefined {
    const run = this.#byAppliance.get(appliance);
    return run?.isOpen ? run : undefined;
  }

  #add(run: PairingRun): void {
    this.#runs.set(run.pairing.id, run);
    this.#byAppliance.set(run.pairing.appliance, run);
  }

  #evictEnded(): void {
    const ended = [...this.#runs.values()].filter(({ isOpen: open }) => !open);
    for (const run of ended.slice(0, -MAX_ENDED)) {
      if (!this.#isAwaited(run)) this.#runs.delete(run.pairing.id);
    }
  }

  /** Whether an appliance may still poll, with its current codes, how this pairing ended. */
  #isAwaited(run: PairingRun): boolean {
    const { pairing } = run;
    if (pairing.device === null || this.#byAppliance.get(pairing.appliance) !== run) return false;
    return areDeviceCodesRetained(pairing, this.#context.environment.clock.now());
  }
}
