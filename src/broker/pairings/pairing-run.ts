import { messageOf } from '../../core/failure.ts';
import type { LoginLinkResult } from '../../core/lan-service.ts';
import {
  type DeviceCodes,
  isInstallerInitiated,
  linksOf,
  type Pairing,
  type PairingFailureReason,
  resumeAfterRestart,
} from '../../core/pairings/pairing.ts';
import type { UnconfirmedLogin } from '../../core/pairings/pairing-administration.ts';
import type { CredentialLocation, LoginLink } from '../../core/portal.ts';
import { explainPairingFailure } from '../../core/reports/pairing-failure.ts';
import type { Secret } from '../../core/secret.ts';
import { withTimeout } from '../../system/clock.ts';
import { sha256 } from '../../system/secret-hash.ts';
import { pollForCode } from './code-polling.ts';
import { LinkRenewal } from './link-renewal.ts';
import { LinkRequests } from './link-requests.ts';
import type { PairingContext } from './pairing-context.ts';
import { PairingExchange } from './pairing-exchange.ts';
import { PairingStateMachine } from './pairing-state-machine.ts';
import { type RedirectedBrowser, RedirectedCodes } from './redirected-codes.ts';
import { shortLinkKey } from './short-link-key.ts';

/** A pairing that takes the place of another waits no longer than this for a code that is being exchanged, in ms. */
const MAX_WAIT = 8000;

/**
 * One pairing at work: asks for the link, polls for the code, at once when a redirect says that there is one, and exchanges the
 * first code that comes, once. In a device flow of the appliance alone the portal is asked for nothing until a person
 * opens the link.
 */
export class PairingRun implements AsyncDisposable {
  /** SHA-256 of the pairing's nonce, base64url, to find it by. */
  readonly nonceHash: string;
  /** What its short link ends with, 16 characters of base64url. */
  readonly shortKey: string;
  /** SHA-256 of that, base64url, to find it by. */
  readonly shortKeyHash: string;
  readonly #context: PairingContext;
  readonly #state: PairingStateMachine;
  readonly #links: LinkRequests;
  readonly #renewal: LinkRenewal;
  readonly #exchange: PairingExchange;
  readonly #redirectedCodes: RedirectedCodes;
  #done: Promise<void> = Promise.resolve();

  private constructor(context: PairingContext, pairing: Pairing) {
    this.nonceHash = sha256(pairing.nonce);
    this.shortKey = shortLinkKey(pairing.id);
    this.shortKeyHash = sha256(this.shortKey);
    this.#context = context;
    this.#state = new PairingStateMachine(context, pairing);
    this.#links = new LinkRequests(context, this.#state);
    this.#renewal = new LinkRenewal(context.environment, this.#state, this.#links);
    this.#exchange = new PairingExchange(context, this.#state);
    this.#redirectedCodes = new RedirectedCodes(
      context,
      this.#state,
      (code, link) => this.#exchangeCode(code, link),
      () => this.#exchange.whenIdle(),
    );
  }

  /** Takes a pairing up where it stands; an ended one only remembers its result. */
  static resume(context: PairingContext, pairing: Pairing): PairingRun {
    const run = new PairingRun(context, resumeAfterRestart(pairing));
    run.#done = run.#start(pairing).catch(async (error: unknown) => {
      run.#state.log.error('pairing_crashed', { appliance: run.#state.name, error: messageOf(error) });
      await run.#state.dispatch({ kind: 'failed', reason: 'cancelled' });
    });
    return run;
  }

  get pairing(): Pairing {
    return this.#state.pairing;
  }

  /** Whether it has not ended yet. */
  get isOpen(): boolean {
    return this.pairing.step.kind !== 'ended';
  }

  /** Why there is no link or code just now, in words; null while the portal answers. */
  get portalProblem(): string | null {
    return this.#state.portalProblem;
  }

  /** Where the hub's credentials at its portal are corrected. */
  get credentialLocation(): CredentialLocation {
    const { portal } = this.pairing;
    return this.#context.portalOf(portal)?.credentialLocation ?? { portal };
  }

  /** Why it failed for such a reason, and what to do next, for people at the command line. */
  failureMessage(reason: PairingFailureReason): string {
    const { cause: why, advice: next } = explainPairingFailure(
      reason,
      this.#context.nameOf(this.pairing.appliance),
      this.credentialLocation,
    );
    return `${why}; ${next}`;
  }

  /** Milliseconds until the pairing expires. */
  get timeLeft(): number {
    return this.#state.timeLeft;
  }

  /** Where the portal shall bring the code now, as a {@link LoginLink} has it. */
  get redirect(): string | null {
    return this.#state.redirect;
  }

  /** The hub has another address, or none: an installer gets a fresh link where the one at hand leads elsewhere. */
  onAddressChanged(): void {
    this.#renewal.onAddressChanged();
    this.#state.onAddressChanged();
  }

  /** The hub's clock was set: where the portal's certificate did not fit it, the portal is asked again at once. */
  onClockSet(): void {
    this.#state.onClockSet();
  }

  /** Calls `watcher` after every change, until the function it returns is called. */
  watch(watcher: () => void): () => void {
    return this.#state.watch(watcher);
  }

  /** A fresh link for a person who opens a device flow's page, within the time that one waits. */
  openLink(): Promise<LoginLinkResult> {
    return this.#links.open();
  }

  /** Logins that the portal does not confirm; an installer may. */
  get unconfirmed(): readonly UnconfirmedLogin[] {
    return this.#redirectedCodes.unconfirmed;
  }

  /** Takes what a browser says is the code. Resolves when that is exchanged, or has come to nothing: see {@link RedirectedCodes}. */
  async receiveCode(code: Secret, visitor: RedirectedBrowser): Promise<void> {
    await this.#redirectedCodes.receive(code, visitor);
  }

  /** Whether a code that was received waits for an installer to confirm it, or did so for too long; null for any other. */
  confirmationStatus(code: Secret): 'unconfirmed' | 'too_late' | null {
    return this.#redirectedCodes.confirmationStatus(code);
  }

  /** An installer confirms a login. @param login its id; of one that is gone nothing happens */
  async confirm(login: string): Promise<void> {
    await this.#redirectedCodes.confirm(login);
  }

  /**
   * The appliance begins a device flow, or begins it anew: from now on these codes are the pairing's.
   * @returns false where another pairing must be begun for that
   * @throws Failure as the store
   */
  async attachDeviceCodes(codes: DeviceCodes): Promise<boolean> {
    await this.#exchange.whenGrantStored();
    const { environment, times } = this.#context;
    const at = environment.clock.now();
    return this.#state.saveThenDispatch({ kind: 'device', codes, at, lifetime: times.lifetime });
  }

  /**
   * An installer takes a device flow over: see {@link PairingEvent}.
   * @returns false where another pairing must be begun for that
   * @throws Failure as the store
   */
  async takeOver(): Promise<boolean> {
    await this.#exchange.whenGrantStored();
    const { environment, times } = this.#context;
    const at = environment.clock.now();
    const { hasUsableLink: linkServes } = this.#links;
    const taken = await this.#state.saveThenDispatch({
      kind: 'installer',
      at,
      lifetime: times.lifetime,
      isLinkUsable: linkServes,
    });
    if (this.pairing.step.kind === 'asking') this.#state.wake();
    return taken;
  }

  /**
   * It becomes part of a round.
   * @returns false where it has ended
   * @throws Failure as the store
   */
  async joinBatch(round: string): Promise<boolean> {
    await this.#exchange.whenGrantStored();
    await this.#state.saveThenDispatch({ kind: 'round', round });
    return this.pairing.batch === round && this.isOpen;
  }

  /**
   * Makes room for another pairing. A code that is being exchanged may bring a grant, and then this one has ended well; it
   * is waited for some seconds, and goes on beside the other one after that.
   */
  async endAsReplaced(): Promise<void> {
    const gone = this.#exchange.whenIdle().then(() => this.fail('replaced'));
    await withTimeout(gone, MAX_WAIT, this.#context.environment.timers);
  }

  /** A login was refused at the portal. What a code that is being exchanged brings counts for more. */
  async failLogin(reason: PairingFailureReason): Promise<void> {
    await this.#exchange.whenIdle();
    await this.fail(reason);
  }

  /** Ends the pairing, unless it has ended already, or ends just now with its grant being put in place. */
  async fail(reason: PairingFailureReason): Promise<void> {
    await this.#exchange.whenGrantStored();
    await this.#state.dispatch({ kind: 'failed', reason });
  }

  /** That it failed is told no longer. */
  async clearFailure(): Promise<void> {
    const { failed, ...pairing } = this.pairing;
    if (failed === undefined) return;
    this.#state.setInMemory(pairing);
    await this.#state.saveIfPossible(pairing);
  }

  /** Stops, leaving the pairing open; waits for an exchange that was sent, and for what is being written. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#state.stop();
    this.#redirectedCodes.clear();
    await Promise.all([this.#done, this.#exchange.whenIdle()]);
    await this.#state.whenSaved();
  }

  /** @param before as the last run left it */
  async #start(before: Pairing): Promise<void> {
    if (before.step.kind === 'exchanging') {
      const since = new Date(before.step.since.wall).toISOString();
      this.#state.log.warn('code_exchange_interrupted', { appliance: this.#state.name, since });
      // Told once, however often the hub is started before the portal gives a fresh link.
      await this.#state.saveIfPossible(this.pairing);
    }
    await this.#runSteps();
  }

  async #runSteps(): Promise<void> {
    while (!this.#state.stopping) {
      await this.#state.guardAgainstSpin(this.#state.signal);
      switch (this.pairing.step.kind) {
        case 'asking':
          await Promise.all([this.#requestLink(), linksOf(this.pairing.step).length > 0 && this.#poll()]);
          break;
        case 'waiting':
          await Promise.all([this.#poll(), this.#renewal.run()]);
          break;
        case 'exchanging':
          await this.#exchange.whenIdle();
          break;
        case 'ended':
          return;
      }
    }
  }

  /** Asks for a link until one is there, or the pairing comes to another step; without an installer it is left to people. */
  async #requestLink(): Promise<void> {
    const { signal } = this.#state;
    for (let failures = 0; !signal.aborted && !this.#state.stopping; ) {
      if (isInstallerInitiated(this.pairing)) failures = (await this.#links.requestOnce(failures)) ? 0 : failures + 1;
      else await this.#state.pause(Number.POSITIVE_INFINITY, signal);
    }
  }

  /**
   * Exchanges a code. Resolves when that has ended, or the exchange of another that is under way.
   * @param link the one that it came through, where that is known
   */
  async #exchangeCode(code: Secret, link: LoginLink | null): Promise<void> {
    this.#links.invalidate();
    await this.#exchange.submitCode(code, link);
  }

  #poll(): Promise<void> {
    return pollForCode(this.#context, this.#state, (code, link) => this.#exchangeCode(code, link));
  }
}
