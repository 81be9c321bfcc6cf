import type { RejectedResponseReason } from '../../core/lan-service.ts';
import type {
  AuthorizationError,
  AuthorizationResponse,
  ReceivedResponse,
} from '../../core/pairings/authorization-response.ts';
import { linksOf } from '../../core/pairings/pairing.ts';
import type { UnconfirmedLogin } from '../../core/pairings/pairing-administration.ts';
import { isIssuerOfAnother } from '../../core/portals/identity.ts';
import { isFromIssuer } from '../../core/portals/login-link.ts';
import type { Secret } from '../../core/secret.ts';
import { withTimeout } from '../../system/clock.ts';
import { type RateLimit, TokenBuckets } from '../../system/limits/token-buckets.ts';
import { sha256, timingSafeEqualText } from '../../system/secret-hash.ts';
import { pollLinks } from './code-polling.ts';
import type { PairingContext } from './login-completion.ts';
import type { PairingRunner } from './pairing-runner.ts';

/** Errors of a portal that is overloaded or out of order: the next login may succeed. */
const TRANSIENT_ERRORS: readonly string[] = ['temporarily_unavailable', 'server_error'];
/** The portal is polled at once and after these further delays in ms: polling may lag a little behind the redirect. */
const POLL_DELAYS = [0, 1000, 2000];
/** A slow portal is awaited at most this long in total, in ms: the browser waits, and the code lives 30 s. */
const CHECK_TIMEOUT = 4500;
/**
 * Limits the polls that redirects cause for one pairing, besides the regular ones: anybody who saw the link can send
 * any number of codes.
 */
const POLL_LIMIT: RateLimit = { burst: 6, interval: 5000 };
/** A code lives 30 to 60 s; one that is not confirmed within this time is dropped, in ms. */
const CODE_LIFETIME_MS = 60_000;
/** The most codes that wait for confirmation, one per address. */
const MAX_UNCONFIRMED = 3;
/** How often a code is checked again because the pairing changed its step meanwhile. */
const MAX_CHECKS = 3;

/** A code that waits for a person to confirm it. */
interface UnconfirmedCode extends UnconfirmedLogin {
  /** Null once it has expired: it is remembered so that the same browser does not ask again. */
  code: Secret | null;
  /** Cancels the timer that drops it. */
  readonly disarm: () => void;
}

/**
 * The authorization responses of one pairing (RFC 6749, 4.1.2). A code that names its link by its `state` is exchanged at
 * once: PKCE binds it to the link, so it proves that somebody has logged in through that.
 *
 * Any other is a hint and not proof, because anybody who saw the link can send codes, including one of their own account
 * (docs/decisions/redirected-codes.md). The portal is polled at once for the code of this login, and that code is
 * exchanged. If the portal has none, the redirected code is accepted only from a browser that the hub itself sent there;
 * any other is held until an installer confirms it. Held codes are only in memory, so another hub of a site neither shows
 * nor confirms them.
 */
export class AuthorizationResponses {
  readonly #context: PairingContext;
  readonly #runner: PairingRunner;
  readonly #pollBuckets = new TokenBuckets();
  /**
   * The check under way, and the next one, which all codes share that arrive during the first: they may be newer than
   * its last poll.
   */
  #check: Promise<void> = Promise.resolve();
  #nextCheck: Promise<void> | null = null;
  /** By address. */
  readonly #unconfirmedCodes = new Map<string, UnconfirmedCode>();

  constructor(context: PairingContext, runner: PairingRunner) {
    this.#context = context;
    this.#runner = runner;
  }

  /** Whether the hub issued this `state` for a link of the pairing that it still knows. */
  knows(state: string): boolean {
    const { step, answeredStates = [] } = this.#runner.pairing;
    const links = linksOf(step).flatMap((link) => (link.kind === 'redirect' ? [link.state] : []));
    return [...links, ...answeredStates].some((known) => timingSafeEqualText(known, state));
  }

  /**
   * Handles a response. Resolves when its code is exchanged, held or discarded.
   * @param address of the browser that brought it
   * @param isTrusted whether the hub itself sent the browser to the portal for this pairing, or a person with access to
   * the hub pasted the address
   * @returns why it was not used; null if it was, now or before, or if it does not name a link
   */
  async receive(
    received: ReceivedResponse,
    address: string,
    isTrusted: boolean,
  ): Promise<Exclude<RejectedResponseReason, 'other_pairing'> | null> {
    await this.#runner.tryClaim();
    const { response } = received;
    if ('state' in received) return this.#receiveForLink(received.state, response, isTrusted);
    if (response.kind === 'code') await this.#receiveCode(response, address, isTrusted);
    if (response.kind === 'error') await this.#receiveError(response, isTrusted);
    return null;
  }

  async #receiveForLink(
    state: string,
    response: AuthorizationResponse,
    isTrusted: boolean,
  ): Promise<Exclude<RejectedResponseReason, 'other_pairing'> | null> {
    const { step } = this.#runner.pairing;
    const link = linksOf(step).find((one) => one.kind === 'redirect' && one.state === state);
    if (response.kind === 'nothing' || (response.kind === 'code' && this.#isSpent(response.code))) {
      await this.#runner.whenIdle();
      return null;
    }
    if (link?.kind !== 'redirect' || step.kind === 'exchanging') return step.kind === 'ended' ? null : 'used';
    const issuer = response.issuer ?? null;
    if (!isFromIssuer(link, issuer) || this.#isIssuerOfAnother(issuer)) {
      this.#logRejection('foreign_issuer');
      return 'foreign_issuer';
    }
    if (response.kind === 'code') {
      const isTaken = await this.#runner.submitCode({ code: response.code, issuer }, link);
      // While another hub has the pairing, it can be tried again.
      return isTaken || this.#isSpent(response.code) || this.#runner.isElsewhere ? null : 'used';
    }
    if (response.error !== 'access_denied') this.#logRejection(errorCode(response.error));
    await this.#receiveError(response, isTrusted);
    return null;
  }

  /**
   * Handles an error (RFC 6749, 4.1.2.1) that a browser brought. It ends the pairing only if it is lasting, and the
   * portal certainly sent it: anybody who saw the link can bring one. Otherwise the portal is asked, and the person may
   * log in again.
   */
  async #receiveError({ error, description }: AuthorizationError, isTrusted: boolean): Promise<void> {
    const code = errorCode(error);
    const detail = isTrusted && description !== undefined ? `${code} (${description})` : code;
    const reason = error === 'access_denied' ? 'refused_by_user' : 'portal_rejected';
    if (isTrusted && !TRANSIENT_ERRORS.includes(error)) {
      await this.#runner.failWhenIdle(reason, detail);
    } else {
      if (this.#runner.isRunning && this.#isPolled) await this.#checkWithPortal();
      await this.#runner.whenIdle();
      await this.#runner.dispatch({ kind: 'login_failed', reason, detail });
    }
  }

  /** Handles a code that does not name its link. */
  async #receiveCode(
    { code, issuer }: Extract<AuthorizationResponse, { kind: 'code' }>,
    address: string,
    isTrusted: boolean,
  ): Promise<void> {
    if (this.#isIssuerOfAnother(issuer ?? null)) return this.#logRejection('foreign_issuer');
    for (let checks = 0; checks < MAX_CHECKS; checks++) {
      await this.#runner.whenIdle();
      if (this.#isSettled(code)) return;
      const { signal } = this.#runner;
      await this.#checkWithPortal();
      if (!signal.aborted) break;
    }
    await this.#runner.whenIdle();
    if (this.#isSettled(code)) return;
    if (isTrusted) await this.#runner.submitCode({ code, issuer: null }, null);
    else this.#holdForConfirmation(code, address);
  }

  /** The logins that an installer may confirm now. */
  get unconfirmed(): readonly UnconfirmedLogin[] {
    const { step, spentCodes } = this.#runner.pairing;
    if (step.kind === 'ended') return [];
    return [...this.#unconfirmedCodes.values()]
      .filter(({ id, code }) => code !== null && !spentCodes.includes(id))
      .map(({ id, address }) => ({ id, address }));
  }

  /** Whether a code waits for confirmation, or has waited too long; null for any other code. */
  confirmationStatus(code: Secret): 'unconfirmed' | 'too_late' | null {
    const held = this.#findHeld(sha256(code.reveal()));
    if (held === undefined || this.#isSpent(code)) return null;
    return held.code === null ? 'too_late' : 'unconfirmed';
  }

  /**
   * An installer confirms that a login was theirs. Resolves when its exchange has ended; an unknown login is ignored.
   * @param user the installer's name
   */
  async confirm(id: string, user?: string): Promise<void> {
    await this.#runner.tryClaim();
    const held = this.#findHeld(id);
    if (!held?.code) return;
    this.#runner.log.info('login_confirmed', { connection: this.#runner.name, address: held.address, user });
    await this.#runner.submitCode({ code: held.code, issuer: null }, null);
  }

  /** Drops all held codes. */
  clear(): void {
    for (const { disarm } of this.#unconfirmedCodes.values()) disarm();
    this.#unconfirmedCodes.clear();
  }

  get #isPolled(): boolean {
    return linksOf(this.#runner.pairing.step).some(({ kind }) => kind === 'poll');
  }

  /** Whether no check is needed: the code was exchanged or is held, or the pairing accepts no such login. */
  #isSettled(code: Secret): boolean {
    const isKnown = this.#findHeld(sha256(code.reveal())) !== undefined || this.#isSpent(code);
    return isKnown || !this.#runner.isRunning || !this.#isPolled;
  }

  /** Whether the code was sent to the portal. */
  #isSpent(code: Secret): boolean {
    return this.#runner.pairing.spentCodes.includes(sha256(code.reveal()));
  }

  /** @param hash of the code */
  #findHeld(hash: string): UnconfirmedCode | undefined {
    return [...this.#unconfirmedCodes.values()].find(({ id }) => id === hash);
  }

  /** Whether an `iss` is that of another configured portal. */
  #isIssuerOfAnother(issuer: string | null): boolean {
    const portal = this.#context.portalOf(this.#runner.pairing.portal);
    return issuer !== null && portal !== undefined && isIssuerOfAnother(issuer, portal.identity);
  }

  #checkWithPortal(): Promise<void> {
    this.#nextCheck ??= this.#check.then(() => {
      this.#nextCheck = null;
      this.#check = withTimeout(this.#pollNow(), CHECK_TIMEOUT, this.#context.environment.timers);
      return this.#check;
    });
    return this.#nextCheck;
  }

  async #pollNow(): Promise<void> {
    const { signal } = this.#runner;
    for (const delay of POLL_DELAYS) {
      if (delay > 0) await this.#context.environment.timers.sleep(delay, signal);
      const { isRunning, pairing } = this.#runner;
      const { step } = pairing;
      if (signal.aborted || !isRunning || step.kind === 'exchanging' || linksOf(step).length === 0) return;
      if (this.#takePollPermit()) await pollLinks(this.#context, this.#runner, signal);
    }
  }

  /** Takes a token from the poll bucket; fails while the portal asks to retry later. */
  #takePollPermit(): boolean {
    const now = this.#context.environment.clock.now().uptime;
    return this.#runner.retryAfterMs === 0 && this.#pollBuckets.take('', POLL_LIMIT, now) === 0;
  }

  #holdForConfirmation(code: Secret, address: string): void {
    const previous = this.#unconfirmedCodes.get(address);
    if (previous === undefined && this.#unconfirmedCodes.size >= MAX_UNCONFIRMED) {
      const expired = [...this.#unconfirmedCodes].find(([, held]) => held.code === null);
      if (expired === undefined) return;
      this.#unconfirmedCodes.delete(expired[0]);
    }
    previous?.disarm();
    const disarm = this.#context.environment.timers.after(CODE_LIFETIME_MS, () => {
      held.code = null;
      this.#runner.notifyWatchers();
    });
    const held: UnconfirmedCode = { id: sha256(code.reveal()), address, code, disarm };
    this.#unconfirmedCodes.set(address, held);
    if (previous === undefined)
      this.#runner.log.warn('login_confirmation_needed', { connection: this.#runner.name, address });
    this.#runner.notifyWatchers();
  }

  #logRejection(reason: string): void {
    this.#runner.log.warn('login_response_rejected', { connection: this.#runner.name, reason });
  }
}

/** An error code (RFC 6749, 4.1.2.1) for the log; anything else may be a secret in the wrong place. */
function errorCode(error: string): string {
  return /^[a-z_]{1,40}$/.test(error) ? error : 'another error';
}
