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
import type { CredentialLocation } from '../../core/portals/identity.ts';
import type { LoginLink } from '../../core/portals/login-link.ts';
import type { CodeResponse } from '../../core/portals/portal.ts';
import { explainPairingFailure } from '../../core/reports/pairing-failure.ts';
import type { Secret } from '../../core/secret.ts';
import { withTimeout } from '../../system/clock.ts';
import { sha256 } from '../../system/secret-hash.ts';
import { AuthorizationResponses } from './authorization-responses.ts';
import { type LoginReceiver, pollForResult } from './code-polling.ts';
import { LinkRenewal } from './link-renewal.ts';
import { LinkRequests } from './link-requests.ts';
import type { PairingContext } from './pairing-context.ts';
import { PairingExchange } from './pairing-exchange.ts';
import { PairingStateMachine } from './pairing-state-machine.ts';
import { type RedirectedBrowser, RedirectedCodes } from './redirected-codes.ts';
import { shortLinkKey } from './short-link-key.ts';

/** A new pairing waits at most this long for the code exchange of the one that it replaces, in ms. */
const MAX_WAIT = 8000;

/**
 * Runs one pairing: requests the link, polls for the code (at once if a redirect announces one), and exchanges the
 * first code once. In a device flow without an installer, the portal gets no request until a person opens the link.
 */
export class PairingRun implements AsyncDisposable {
  /** SHA-256 of the pairing's nonce, base64url, for lookups. */
  readonly nonceHash: string;
  /** The end of its short link, 16 characters of base64url. */
  readonly shortKey: string;
  /** SHA-256 of `shortKey`, base64url, for lookups. */
  readonly shortKeyHash: string;
  readonly #context: PairingContext;
  readonly #state: PairingStateMachine;
  readonly #links: LinkRequests;
  readonly #renewal: LinkRenewal;
  readonly #exchange: PairingExchange;
  readonly #receiver: LoginReceiver;
  readonly #redirectedCodes: RedirectedCodes;
  /** Those that name their link by its `state`. */
  readonly authorizationResponses: AuthorizationResponses;
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
    this.#receiver = {
      takeCode: (code, link) => this.#exchangeCode({ code, issuer: null }, link),
      takeTokens: (link, granted, sent) => this.#exchange.acceptTokens(link, granted, sent),
    };
    this.authorizationResponses = new AuthorizationResponses(this.#state, {
      exchangeCode: (response, link) => this.#exchangeCode(response, link),
      whenExchangeIdle: () => this.#exchange.whenIdle(),
      failLogin: (reason) => this.failLogin(reason),
    });
    this.#redirectedCodes = new RedirectedCodes(context, this.#state, this.#receiver, () => this.#exchange.whenIdle());
  }

  /** Resumes a pairing from its current step; an ended one only keeps its result. */
  static resume(context: PairingContext, pairing: Pairing): PairingRun {
    const run = new PairingRun(context, resumeAfterRestart(pairing));
    run.#done = run.#start(pairing).catch(async (error: unknown) => {
      run.#state.log.error('pairing_crashed', { connection: run.#state.name, error: messageOf(error) });
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

  /** Why there is no link or code at the moment, as text; null while the portal responds. */
  get portalProblem(): string | null {
    return this.#state.portalProblem;
  }

  /** Where to correct the hub's credentials for its portal. */
  get credentialLocation(): CredentialLocation {
    const { portal } = this.pairing;
    return this.#context.portalOf(portal)?.credentialLocation ?? { portal };
  }

  /** The cause of this failure and what to do next, for the command line. */
  failureMessage(reason: PairingFailureReason): string {
    const { cause, advice } = explainPairingFailure(
      reason,
      this.#context.nameOf(this.pairing.connection),
      this.credentialLocation,
    );
    return `${cause}; ${advice}`;
  }

  /** Milliseconds until the pairing expires. */
  get timeLeft(): number {
    return this.#state.timeLeft;
  }

  /** The current redirect address, as in {@link LoginLink}. */
  get redirect(): string | null {
    return this.#state.redirect;
  }

  /** The hub has another address, or none: an installer gets a fresh link if the current one redirects elsewhere. */
  onAddressChanged(): void {
    this.#renewal.onAddressChanged();
    this.#state.onAddressChanged();
  }

  /**
   * The hub's clock was set: if the portal's certificate had failed because of the clock, the portal is asked again at
   * once.
   */
  onClockSet(): void {
    this.#state.onClockSet();
  }

  /** Calls `watcher` after every change, until the returned function is called. */
  watch(watcher: () => void): () => void {
    return this.#state.watch(watcher);
  }

  /** A fresh link for a person who opens a device flow's page; resolves within the time that a person waits. */
  openLink(): Promise<LoginLinkResult> {
    return this.#links.open();
  }

  /** Logins that the portal has not confirmed and an installer may confirm. */
  get unconfirmed(): readonly UnconfirmedLogin[] {
    return this.#redirectedCodes.unconfirmed;
  }

  /**
   * Handles a code that a browser brought, see {@link RedirectedCodes}. Resolves when it is exchanged, held or
   * discarded.
   */
  async receiveCode(code: Secret, browser: RedirectedBrowser): Promise<void> {
    await this.#redirectedCodes.receive(code, browser);
  }

  /** Whether a received code waits for an installer's confirmation, or has waited too long; null for any other code. */
  confirmationStatus(code: Secret): 'unconfirmed' | 'too_late' | null {
    return this.#redirectedCodes.confirmationStatus(code);
  }

  /** An installer confirms a login. @param login its id; an unknown one is ignored @param user the installer's name */
  async confirm(login: string, user?: string): Promise<void> {
    await this.#redirectedCodes.confirm(login, user);
  }

  /**
   * Attaches the codes of a device flow that an appliance starts or restarts.
   * @param appliance its id
   * @returns false if it needs another pairing
   * @throws Failure as {@link Store}
   */
  async attachDeviceCodes(appliance: string, codes: DeviceCodes): Promise<boolean> {
    await this.#exchange.whenGrantStored();
    const { environment, times } = this.#context;
    const at = environment.clock.now();
    return this.#state.saveThenDispatch({ kind: 'device', appliance, codes, at, lifetime: times.lifetime });
  }

  /**
   * An installer takes over a device flow: see {@link PairingEvent}.
   * @returns false if that needs another pairing
   * @throws Failure as {@link Store}
   */
  async takeOver(user?: string): Promise<boolean> {
    await this.#exchange.whenGrantStored();
    const { environment, times } = this.#context;
    const at = environment.clock.now();
    const { hasUsableLink: isLinkUsable } = this.#links;
    const applied = await this.#state.saveThenDispatch({
      kind: 'installer',
      at,
      lifetime: times.lifetime,
      isLinkUsable,
      ...(user !== undefined && { user }),
    });
    if (this.pairing.step.kind === 'asking') this.#state.wake();
    return applied;
  }

  /**
   * Ends the device flow as paired, because an installer permits its appliance to use the grant that the connection has.
   * @param scope of the grant
   * @returns false if it has ended, or a login is under way
   * @throws Failure as {@link Store}
   */
  approve(scope: string | null): Promise<boolean> {
    return this.#state.saveThenDispatch({ kind: 'approved', scope });
  }

  /**
   * Adds the pairing to a batch.
   * @returns false if the pairing has ended
   * @throws Failure as {@link Store}
   */
  async joinBatch(batch: string): Promise<boolean> {
    await this.#exchange.whenGrantStored();
    await this.#state.saveThenDispatch({ kind: 'batch', batch });
    return this.pairing.batch === batch && this.isOpen;
  }

  /**
   * Ends the pairing so that another one can replace it. A code exchange under way may still produce a grant, and then
   * this pairing succeeds. It is awaited for some seconds; after that it continues beside the other pairing.
   */
  async endAsReplaced(): Promise<void> {
    const ended = this.#exchange.whenIdle().then(() => this.fail('replaced'));
    await withTimeout(ended, MAX_WAIT, this.#context.environment.timers);
  }

  /** A login was refused at the portal. The result of an exchange under way takes precedence. */
  async failLogin(reason: PairingFailureReason): Promise<void> {
    await this.#exchange.whenIdle();
    await this.fail(reason);
  }

  /** Ends the pairing, unless it has ended already or its grant is being stored. */
  async fail(reason: PairingFailureReason): Promise<void> {
    await this.#exchange.whenGrantStored();
    await this.#state.dispatch({ kind: 'failed', reason });
  }

  /** Stops reporting that the pairing failed. */
  async clearFailure(): Promise<void> {
    const { failed, ...pairing } = this.pairing;
    if (failed === undefined) return;
    this.#state.setInMemory(pairing);
    await this.#state.saveIfPossible(pairing);
  }

  /** Stops and leaves the pairing open; waits for an exchange that was sent, and for pending writes. */
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
      this.#state.log.warn('code_exchange_interrupted', { connection: this.#state.name, since });
      // Saved, so that it is logged only once, even if the hub restarts before the portal returns a fresh link.
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

  /**
   * Requests links until the pairing changes its step. Without an installer it waits until a person opens the pairing.
   */
  async #requestLink(): Promise<void> {
    const { signal } = this.#state;
    for (let failures = 0; !signal.aborted && !this.#state.stopping; ) {
      if (isInstallerInitiated(this.pairing)) failures = (await this.#links.requestOnce(failures)) ? 0 : failures + 1;
      else await this.#state.pause(Number.POSITIVE_INFINITY, signal);
    }
  }

  /**
   * Exchanges a code. Resolves when the exchange has ended, or another one that is under way.
   * @param link the link that it came through, if known
   */
  async #exchangeCode(response: CodeResponse, link: LoginLink | null): Promise<void> {
    this.#links.invalidate();
    await this.#exchange.submitCode(response, link);
  }

  #poll(): Promise<void> {
    return pollForResult(this.#context, this.#state, this.#receiver);
  }
}
