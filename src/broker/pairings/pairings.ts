import { type Appliance, sameScope } from '../../core/appliances/appliance.ts';
import { Failure, messageOf } from '../../core/failure.ts';
import type { AuthorizationResponse, CallbackBrowser, LoginLinkResult } from '../../core/lan-service.ts';
import {
  advance,
  areDeviceCodesKnown,
  type DeviceCodes,
  isInstallerInitiated,
  type Pairing,
  type PairingFailureReason,
  usesPortal,
} from '../../core/pairings/pairing.ts';
import { isUnopenedDeviceFlow } from '../../core/reports/pairing-failure.ts';
import { Secret } from '../../core/secret.ts';
import { withTimeout } from '../../system/clock.ts';
import { sha256, timingSafeEqualText } from '../../system/secret-hash.ts';
import { emitPairingFailed, type PairingContext } from './pairing-context.ts';
import { PairingRun } from './pairing-run.ts';

/** A person who was sent back by the portal waits no longer than this for a result, in ms: under 10 s in all. */
const MAX_WAIT = 9500;
/** Bytes of the secret behind the marks of browsers that the hub sends to the portal: 256 bits. */
const MARK_SECRET_BYTES = 32;
/** Bytes of a nonce: 128 bits. */
const NONCE_BYTES = 16;
/** Pairings that occupy the portal at once: each polls it every few seconds. Device flows that nobody opened do not. */
const MAX_OPEN = 100;
/**
 * How many ended pairings are remembered, so that their result page can be shown again; beside them those whose appliance
 * may still ask how its device flow has ended.
 */
const MAX_ENDED = 1000;

/** What is to become of a pairing of the same appliance that is open, and which round the one that is begun is part of. */
export interface BeginPairingOptions {
  /** True: it goes on, and is the one that was asked for. Default: another takes its place. */
  readonly joinOpen?: boolean;
  readonly batch?: string;
}

/** The pairings, at most one open for each appliance. */
export class Pairings implements AsyncDisposable {
  readonly #context: PairingContext;
  readonly #runs = new Map<string, PairingRun>();
  readonly #byAppliance = new Map<string, PairingRun>();
  /** What is being begun, by appliance: one after the other. */
  readonly #startQueues = new Map<string, Promise<unknown>>();
  /** In memory alone: after a restart the portal itself, or an installer, has to confirm a login. */
  readonly #browserTokenKey: string;
  #stopped = false;

  constructor(context: PairingContext) {
    this.#context = context;
    this.#browserTokenKey = context.environment.random.token(MARK_SECRET_BYTES);
  }

  /** Takes up the pairings that the last run left; the newest of each appliance goes on where it is open. */
  async load(): Promise<void> {
    const kept = await this.#context.store.pairings();
    const newest = new Map(kept.map(({ appliance, id }) => [appliance, id]));
    for (const pairing of kept) {
      const goesOn = newest.get(pairing.appliance) === pairing.id;
      const taken = goesOn ? pairing : advance(pairing, { kind: 'failed', reason: 'replaced' });
      if (taken !== pairing) await this.#saveReplaced(pairing, taken);
      this.#add(PairingRun.resume(this.#context, taken));
    }
    this.#evictEnded();
  }

  /**
   * Starts a pairing for an installer. A device flow of the appliance that is open is taken over: its codes stay good. Any
   * other open pairing of the appliance is replaced, unless it may be joined.
   * @throws Failure `not_allowed` where too many are open, or as the store
   */
  begin(
    appliance: Appliance,
    { joinOpen: joins = false, batch: round }: BeginPairingOptions = {},
  ): Promise<PairingRun> {
    return this.#serialize(appliance.id, async () => {
      const going = joins ? this.#findMatchingOpen(appliance) : undefined;
      if (going !== undefined && isInstallerInitiated(going.pairing)) {
        if (round === undefined || (await going.joinBatch(round))) return going;
      }
      if (this.#isAtLimit(appliance.id)) {
        throw new Failure('not_allowed', `${MAX_OPEN} pairings are open: wait until one of them has ended`);
      }
      const open = this.#findMatchingOpen(appliance);
      const isTaken = open !== undefined && open.pairing.device !== null && (await open.takeOver());
      if (isTaken && (round === undefined || (await open.joinBatch(round)))) return open;
      return this.#replace(appliance, null, round);
    });
  }

  /**
   * Starts a device flow. An open pairing of the appliance takes its codes, and the links that are out stay good.
   * @throws Failure as the store
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
    if (!usesPortal(pairing) && this.#isAtLimit(pairing.appliance)) return { kind: 'too_many' };
    return run.openLink();
  }

  /** The open pairing of an appliance, where it is for what the appliance still is registered with. */
  #findMatchingOpen({ id, portal, scope }: Appliance): PairingRun | undefined {
    const open = this.#findOpen(id);
    return open?.pairing.portal === portal && sameScope(open.pairing.scope, scope) ? open : undefined;
  }

  #isAtLimit(except: string): boolean {
    const others = [...this.#byAppliance].filter(([other, run]) => other !== except && usesPortal(run.pairing));
    return others.length >= MAX_OPEN;
  }

  async #serialize<T>(appliance: string, begin: () => Promise<T>): Promise<T> {
    const begun = (this.#startQueues.get(appliance) ?? Promise.resolve()).catch(() => undefined).then(begin);
    this.#startQueues.set(appliance, begun);
    try {
      return await begun;
    } finally {
      if (this.#startQueues.get(appliance) === begun) this.#startQueues.delete(appliance);
    }
  }

  /** Begins another pairing in the place of the one that may be open. */
  async #replace({ id, portal, scope }: Appliance, device: DeviceCodes | null, round?: string): Promise<PairingRun> {
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
      ...(round === undefined ? {} : { batch: round }),
      step: { kind: 'asking' },
    };
    await this.#context.store.savePairing(pairing);
    // Only now, so that one that can't be begun replaces none.
    await this.#findOpen(id)?.endAsReplaced();
    const run = PairingRun.resume(this.#context, pairing);
    this.#add(run);
    this.#evictEnded();
    // The hub has stopped while one before it was waited for: the next run finds it.
    if (this.#stopped) await run[Symbol.asyncDispose]();
    return run;
  }

  /** @throws Failure `pairing_unknown` */
  get(id: string): PairingRun {
    const run = this.#runs.get(id);
    if (run !== undefined) return run;
    throw new Failure('pairing_unknown', 'this pairing is not known any more: start another with "latchkey pair"');
  }

  /** The pairing, open or ended, that a short link leads to. */
  findByShortKey(key: string): PairingRun | undefined {
    const hash = sha256(key);
    return this.find(({ shortKeyHash }) => shortKeyHash === hash);
  }

  /** The newest pairing that fits, open or ended. */
  find(fits: (run: PairingRun) => boolean): PairingRun | undefined {
    return [...this.#runs.values()].findLast(fits);
  }

  /** The pairings that fit, in the order in which they began, open or ended. */
  filter(fits: (run: PairingRun) => boolean): PairingRun[] {
    return [...this.#runs.values()].filter(fits);
  }

  /** The newest pairing of an appliance, open or ended. */
  newestFor(appliance: string): PairingRun | undefined {
    return this.#byAppliance.get(appliance);
  }

  /** The newest pairing of an appliance that somebody could have opened, open or ended. */
  newestOpened(appliance: string): PairingRun | undefined {
    const newest = this.#byAppliance.get(appliance);
    if (newest === undefined || !isUnopenedDeviceFlow(newest.pairing)) return newest;
    return this.find(({ pairing }) => pairing.appliance === appliance && !isUnopenedDeviceFlow(pairing));
  }

  /** The hub's clock was set: see `PairingRun`. */
  onClockSet(): void {
    for (const run of this.#runs.values()) run.onClockSet();
  }

  /** The hub has another address, or none: see `PairingRun`. */
  onAddressChanged(): void {
    for (const run of this.#runs.values()) if (run.isOpen) run.onAddressChanged();
  }

  /** Ends the open pairing of an appliance, if there is one, and what is left of one that gives way to it. */
  async end(appliance: string, reason: PairingFailureReason): Promise<void> {
    const open = [...this.#runs.values()].filter((run) => run.isOpen && run.pairing.appliance === appliance);
    await Promise.all(open.map((run) => run.fail(reason)));
  }

  /** Why the pairings of an appliance failed concerns nobody any more. */
  async clearFailures(appliance: string): Promise<void> {
    await Promise.all(this.filter(({ pairing }) => pairing.appliance === appliance).map((run) => run.clearFailure()));
  }

  /** Forgets the pairings of an appliance that was removed. */
  async removeAll(appliance: string): Promise<void> {
    await this.end(appliance, 'cancelled');
    this.#byAppliance.delete(appliance);
    for (const [id, run] of this.#runs) if (run.pairing.appliance === appliance) this.#runs.delete(id);
  }

  /** What a browser keeps that the hub sends to the portal for a pairing. @param id of the pairing */
  browserToken(id: string): Secret {
    return new Secret(sha256(`${this.#browserTokenKey} ${id}`));
  }

  /**
   * Takes what the portal's redirect brought.
   * @param from the browser: its address, and its {@link browserToken} if it has one
   * @returns the pairing, as far as it has come within the time that a person waits; null for a nonce nobody gave out
   */
  async receiveCallback(
    nonce: string,
    callback: AuthorizationResponse,
    { address, browserBinding: mark }: CallbackBrowser,
  ): Promise<Pairing | null> {
    const hash = sha256(nonce);
    const run = this.find(({ nonceHash }) => nonceHash === hash);
    if (run === undefined) return null;
    if (callback.kind === 'code') {
      const isSent = mark !== null && timingSafeEqualText(mark, this.browserToken(run.pairing.id).reveal());
      const received = run.receiveCode(callback.code, { address, wasSentByHub: isSent });
      await withTimeout(received, MAX_WAIT, this.#context.environment.timers);
    }
    if (callback.kind === 'error') {
      const refused = run.failLogin(callback.error === 'access_denied' ? 'refused_by_user' : 'portal_rejected');
      await withTimeout(refused, MAX_WAIT, this.#context.environment.timers);
    }
    return run.pairing;
  }

  /** The last run of the hub ended before it had written that a pairing gave way to another; it is told once. */
  async #saveReplaced(pairing: Pairing, ended: Pairing): Promise<void> {
    const { store, environment } = this.#context;
    try {
      await store.savePairing(ended);
      if (usesPortal(pairing)) emitPairingFailed(this.#context.environment, ended);
    } catch (error) {
      environment.log.error('store_unwritable', { error: messageOf(error) });
    }
  }

  /** Stops polling; the pairings stay open, and go on when the hub is started again. */
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

  /** Whether an appliance may still ask, with the codes that it has, how this one ended. */
  #isAwaited(run: PairingRun): boolean {
    const { pairing } = run;
    if (pairing.device === null || this.#byAppliance.get(pairing.appliance) !== run) return false;
    return areDeviceCodesKnown(pairing, this.#context.environment.clock.now());
  }
}
