import type { LoginLinkResult } from '../../core/lan-service.ts';
import type { AuthorizationError } from '../../core/pairings/authorization-response.ts';
import {
  type DeviceCodes,
  type Pairing,
  type PairingFailureReason,
  resumeAfterRestart,
} from '../../core/pairings/pairing.ts';
import type { UnconfirmedLogin } from '../../core/pairings/pairing-administration.ts';
import { type CredentialLocation, isIssuerOfAnother } from '../../core/portals/identity.ts';
import type { LoginLink } from '../../core/portals/login-link.ts';
import type { CodeResponse } from '../../core/portals/portal.ts';
import { explainPairingFailure } from '../../core/reports/pairing-failure.ts';
import type { Secret } from '../../core/secret.ts';
import { withTimeout } from '../../system/clock.ts';
import { sha256 } from '../../system/secret-hash.ts';
import { AuthorizationResponses, errorCode } from './authorization-responses.ts';
import type { LoginReceiver } from './code-polling.ts';
import { LinkRenewal } from './link-renewal.ts';
import { LinkRequests } from './link-requests.ts';
import type { PairingContext } from './pairing-context.ts';
import { PairingExchange } from './pairing-exchange.ts';
import { MAX_OWNERSHIP_TRIES, PairingOwnership } from './pairing-ownership.ts';
import { PairingStateMachine } from './pairing-state-machine.ts';
import { type PairingParts, runPairing } from './pairing-steps.ts';
import { type RedirectedBrowser, type RedirectedCode, RedirectedCodes } from './redirected-codes.ts';
import { shortLinkKey } from './short-link-key.ts';

/** A new pairing waits at most this long for the code exchange of the one that it replaces, in ms. */
const MAX_WAIT = 8000;

/** Errors of a portal that is overloaded or out of order: the next login may succeed. */
const TRANSIENT_ERRORS: readonly string[] = ['temporarily_unavailable', 'server_error'];

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
  readonly #ownership: PairingOwnership;
  readonly #parts: PairingParts;
  readonly #redirectedCodes: RedirectedCodes;
  readonly #authorizationResponses: AuthorizationResponses;
  #done: Promise<void> = Promise.resolve();

  private constructor(context: PairingContext, pairing: Pairing, isOwned: boolean) {
    this.nonceHash = sha256(pairing.nonce);
    this.shortKey = shortLinkKey(pairing.id);
    this.shortKeyHash = sha256(this.shortKey);
    this.#context = context;
    this.#state = new PairingStateMachine(context, pairing, isOwned);
    const links = new LinkRequests(context, this.#state);
    const exchange = new PairingExchange(context, this.#state, () => this.#ownership.acquireOpen());
    this.#ownership = new PairingOwnership(context, this.#state, {
      own: (stored) => this.#own(stored),
      whenGrantStored: () => exchange.whenGrantStored(),
    });
    const receiver: LoginReceiver = {
      takeCode: (code, link) => this.#exchangeCode({ code, issuer: null }, link),
      takeTokens: async (link, granted, sent) => {
        // The portal issues them only once, so another hub that has become the owner meanwhile can't get them.
        if (this.#ownership.isElsewhere) await this.#ownership.acquireOpen();
        await exchange.acceptTokens(link, granted, sent);
      },
    };
    const renewal = new LinkRenewal(context.environment, this.#state, links);
    this.#parts = { context, state: this.#state, links, renewal, exchange, receiver };
    this.#authorizationResponses = new AuthorizationResponses(this.#state, {
      isIssuerOfAnother: (issuer) => this.#isIssuerOfAnother(issuer),
      exchangeCode: (response, link) => this.#exchangeCode(response, link),
      whenExchangeIdle: () => exchange.whenIdle(),
      receiveError: (response, isTrusted) => this.receiveError(response, isTrusted),
    });
    this.#redirectedCodes = new RedirectedCodes(context, this.#state, receiver, () => exchange.whenIdle());
  }

  /** Resumes a pairing from its current step; an ended one only keeps its result. */
  static resume(context: PairingContext, pairing: Pairing): PairingRun {
    const run = new PairingRun(context, resumeAfterRestart(pairing), true);
    run.#done = runPairing(run.#parts, pairing);
    return run;
  }

  /** A pairing that another hub of the site owns, or that has ended: somebody who uses it here makes this hub
   * its owner. */
  static follow(context: PairingContext, pairing: Pairing): PairingRun {
    return new PairingRun(context, pairing, false);
  }

  get pairing(): Pairing {
    return this.#state.pairing;
  }

  /** Whether this hub runs the pairing; false if another hub of the site does. */
  get isOwned(): boolean {
    return this.#state.isOwned;
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

  /** The scope that is requested at the portal; null if none is. */
  get requestedScope(): string | null {
    const { portal, scope } = this.pairing;
    return scope ?? this.#context.portalOf(portal)?.defaultScope ?? null;
  }

  /** The cause of this failure and what to do next, for the command line. */
  failureMessage(reason: PairingFailureReason): string {
    const { cause, advice } = explainPairingFailure(
      reason,
      this.#context.nameOf(this.pairing.connection),
      this.credentialLocation,
      this.pairing.failureDetail,
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
    this.#parts.renewal.onAddressChanged();
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
  async openLink(): Promise<LoginLinkResult> {
    await this.#ownership.acquireOpen();
    return this.#parts.links.open();
  }

  /** Logins that the portal has not confirmed and an installer may confirm. */
  get unconfirmed(): readonly UnconfirmedLogin[] {
    return this.#redirectedCodes.unconfirmed;
  }

  /**
   * Handles a code that a browser brought, see {@link RedirectedCodes}. Resolves when it is exchanged, held or
   * discarded, as that of another portal is.
   */
  async receiveCode({ code, issuer }: RedirectedCode, browser: RedirectedBrowser): Promise<void> {
    if (issuer !== undefined && this.#isIssuerOfAnother(issuer)) {
      const { log, name } = this.#state;
      return log.warn('login_response_rejected', { connection: name, reason: 'foreign_issuer' });
    }
    await this.#ownership.acquireOpen();
    await this.#redirectedCodes.receive(code, browser);
  }

  /** Whether the hub issued this `state` for a link of the pairing that it still knows. */
  knowsState(state: string): boolean {
    return this.#authorizationResponses.knows(state);
  }

  /** Handles an authorization response that names its link: see {@link AuthorizationResponses.receive}. */
  async receiveResponse(
    ...args: Parameters<AuthorizationResponses['receive']>
  ): ReturnType<AuthorizationResponses['receive']> {
    await this.#ownership.acquireOpen();
    return this.#authorizationResponses.receive(...args);
  }

  /**
   * Handles an error (RFC 6749, 4.1.2.1) that a browser brought. It ends the pairing only if it is lasting, and the
   * portal certainly sent it: anybody who saw the link can bring one. Otherwise the portal is asked, and the person may
   * log in again.
   * @param isTrusted whether the hub itself sent the browser to the portal, or a person with access to the hub pasted it
   */
  async receiveError({ error, description }: AuthorizationError, isTrusted: boolean): Promise<void> {
    const code = errorCode(error);
    const detail = isTrusted && description !== undefined ? `${code} (${description})` : code;
    const reason = error === 'access_denied' ? 'refused_by_user' : 'portal_rejected';
    if (isTrusted && !TRANSIENT_ERRORS.includes(error)) return this.failLogin(reason, detail);
    await this.#ownership.acquireOpen();
    await this.#redirectedCodes.askPortal();
    await this.#state.dispatch({ kind: 'login_failed', reason, detail });
  }

  /** Whether a received code waits for an installer's confirmation, or has waited too long; null for any other code. */
  confirmationStatus(code: Secret): 'unconfirmed' | 'too_late' | null {
    return this.#redirectedCodes.confirmationStatus(code);
  }

  /** An installer confirms a login. @param login its id; an unknown one is ignored @param user the installer's name */
  async confirm(login: string, user?: string): Promise<void> {
    await this.#ownership.acquireOpen();
    await this.#redirectedCodes.confirm(login, user);
  }

  /**
   * Attaches the codes of a device flow that an appliance starts or restarts.
   * @param appliance its id
   * @returns false if it needs another pairing
   * @throws Failure as {@link Store}
   */
  async attachDeviceCodes(appliance: string, codes: DeviceCodes): Promise<boolean> {
    const { environment, times } = this.#context;
    const { lifetime } = times;
    return this.#ownership.saveThenDispatch(() => ({
      ...{ kind: 'device', appliance, codes, lifetime },
      at: environment.clock.now(),
    }));
  }

  /**
   * An installer takes over a device flow: see {@link PairingEvent}.
   * @returns false if that needs another pairing
   * @throws Failure as {@link Store}
   */
  async takeOver(user?: string): Promise<boolean> {
    const { environment, times } = this.#context;
    const applied = await this.#ownership.saveThenDispatch(() => ({
      kind: 'installer',
      at: environment.clock.now(),
      lifetime: times.lifetime,
      isLinkUsable: this.#parts.links.hasUsableLink,
      ...(user !== undefined && { user }),
    }));
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
    return this.#ownership.saveThenDispatch(() => ({ kind: 'approved', scope }));
  }

  /**
   * Adds the pairing to a batch.
   * @returns false if the pairing has ended
   * @throws Failure as {@link Store}
   */
  async joinBatch(batch: string): Promise<boolean> {
    await this.#ownership.saveThenDispatch(() => ({ kind: 'batch', batch }));
    return this.pairing.batch === batch && this.isOpen;
  }

  /**
   * Ends the pairing so that another one can replace it. A code exchange under way may still produce a grant, and then
   * this pairing succeeds. It is awaited for some seconds; after that it continues beside the other pairing.
   */
  async endAsReplaced(): Promise<void> {
    const ended = this.failLogin('replaced');
    await withTimeout(ended, MAX_WAIT, this.#context.environment.timers);
  }

  /** Ends the pairing, as {@link fail}; the result of an exchange under way takes precedence. */
  async failLogin(reason: PairingFailureReason, detail?: string): Promise<void> {
    await this.#parts.exchange.whenIdle();
    await this.fail(reason, detail);
  }

  /**
   * Ends the pairing, unless it has ended already or its grant is being stored.
   * @returns false while another hub exchanges its code, so that it goes on: see {@link loginElsewhere}
   */
  async fail(reason: PairingFailureReason, detail?: string): Promise<boolean> {
    await this.#ownership.acquireOpen();
    await this.#parts.exchange.whenGrantStored();
    await this.#state.dispatch({ kind: 'failed', reason, ...(detail !== undefined && { detail }) });
    return this.pairing.step.kind !== 'exchanging';
  }

  /** Stops reporting that the pairing failed. */
  async clearFailure(): Promise<void> {
    for (let tries = 0; tries < MAX_OWNERSHIP_TRIES; tries++) {
      if (this.pairing.failed === undefined) return;
      if (!this.isOwned && !(await this.#ownership.tryAcquire())) return;
      const { failed: _, ...pairing } = this.pairing;
      this.#state.setInMemory(pairing);
      if (await this.#state.saveIfPossible(pairing)) return;
    }
  }

  /**
   * Becomes the owner of an open pairing if the lease of the last one has ended.
   * @returns whether this hub has become it
   * @throws Failure as {@link Store}
   */
  acquireIfLapsed(): Promise<boolean> {
    return this.#ownership.acquireIfLapsed();
  }

  /** Follows another owner: see {@link PairingStateMachine.follow}. */
  follow(stored: Pairing | null): void {
    this.#state.follow(stored);
  }

  /** Runs `work` between writes of the pairing: see {@link PairingStateMachine.exclusively}. */
  exclusively<T>(work: () => Promise<T>): Promise<T> {
    return this.#state.exclusively(work);
  }

  /** Stops and leaves the pairing open; waits for an exchange that was sent, and for pending writes. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#state.stop();
    this.#redirectedCodes.clear();
    await Promise.all([this.#done, this.#parts.exchange.whenIdle()]);
    await this.#state.whenSaved();
  }

  #isIssuerOfAnother(issuer: string): boolean {
    const portal = this.#context.portalOf(this.pairing.portal);
    return portal !== undefined && isIssuerOfAnother(issuer, portal.identity);
  }

  /** This hub has become the owner of the pairing as it is stored. */
  #own(stored: Pairing): void {
    this.#state.own(resumeAfterRestart(stored));
    this.#done = Promise.all([this.#done, runPairing(this.#parts, stored)]).then(() => undefined);
  }

  /**
   * Exchanges a code. Resolves when the exchange has ended, or another one that is under way.
   * @param link the link that it came through, if known
   */
  async #exchangeCode(response: CodeResponse, link: LoginLink | null): Promise<void> {
    for (let tries = 0; tries < MAX_OWNERSHIP_TRIES; tries++) {
      // Without a turn in between: the caller has just looked at the step.
      if (this.#ownership.isElsewhere) await this.#ownership.acquireOpen();
      this.#parts.links.invalidate();
      await this.#parts.exchange.submitCode(response, link);
      if (!this.#ownership.isElsewhere) return;
    }
  }
}
