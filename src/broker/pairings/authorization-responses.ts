import type { RejectedResponseReason } from '../../core/lan-service.ts';
import type { AuthorizationError, AuthorizationResponse } from '../../core/pairings/authorization-response.ts';
import { linksOf } from '../../core/pairings/pairing.ts';
import { isIssuerOfAnother } from '../../core/portals/identity.ts';
import { isFromIssuer } from '../../core/portals/login-link.ts';
import type { Secret } from '../../core/secret.ts';
import { sha256, timingSafeEqualText } from '../../system/secret-hash.ts';
import type { PairingContext } from './pairing-context.ts';
import type { PairingRunner } from './pairing-runner.ts';
import type { RedirectedBrowser, RedirectedCode, RedirectedCodes } from './redirected-codes.ts';

/** Errors of a portal that is overloaded or out of order: the next login may succeed. */
const TRANSIENT_ERRORS: readonly string[] = ['temporarily_unavailable', 'server_error'];

/**
 * The authorization responses of one pairing (RFC 6749, 4.1.2). A code that names its link by its `state` is exchanged at
 * once: PKCE binds it to the link, so it proves that somebody has logged in through that. Any other is a hint: see
 * {@link RedirectedCodes}.
 */
export class AuthorizationResponses {
  readonly #context: Pick<PairingContext, 'portalOf'>;
  readonly #runner: PairingRunner;
  readonly #redirectedCodes: RedirectedCodes;

  constructor(context: Pick<PairingContext, 'portalOf'>, runner: PairingRunner, redirectedCodes: RedirectedCodes) {
    this.#context = context;
    this.#runner = runner;
    this.#redirectedCodes = redirectedCodes;
  }

  /** Whether the hub issued this `state` for a link of the pairing that it still knows. */
  knows(state: string): boolean {
    const { step, answeredStates = [] } = this.#runner.pairing;
    const links = linksOf(step).flatMap((link) => (link.kind === 'redirect' ? [link.state] : []));
    return [...links, ...answeredStates].some((known) => timingSafeEqualText(known, state));
  }

  /**
   * Handles the authorization response for a link. Resolves when its code is exchanged.
   * @param state of the link
   * @param isTrusted whether an error certainly comes from the portal: see {@link receiveError}
   * @returns why it was not used; null if it was, now or before
   */
  async receive(
    state: string,
    response: AuthorizationResponse,
    isTrusted: boolean,
  ): Promise<Exclude<RejectedResponseReason, 'other_pairing'> | null> {
    await this.#runner.tryClaim();
    const { step } = this.#runner.pairing;
    const link = linksOf(step).find((one) => one.kind === 'redirect' && one.state === state);
    if (response.kind === 'nothing' || (response.kind === 'code' && this.#isSpent(response.code))) {
      await this.#runner.whenIdle();
      return null;
    }
    if (link?.kind !== 'redirect' || step.kind === 'exchanging') return step.kind === 'ended' ? null : 'used';
    const issuer = response.issuer ?? null;
    if (!isFromIssuer(link, issuer) || (issuer !== null && this.#isIssuerOfAnother(issuer))) {
      this.#logRejection('foreign_issuer');
      return 'foreign_issuer';
    }
    if (response.kind === 'code') {
      const isTaken = await this.#runner.submitCode({ code: response.code, issuer }, link);
      // While another hub has the pairing, it can be tried again.
      return isTaken || this.#isSpent(response.code) || this.#runner.isElsewhere ? null : 'used';
    }
    if (response.error !== 'access_denied') this.#logRejection(errorCode(response.error));
    await this.receiveError(response, isTrusted);
    return null;
  }

  /** Handles a code that does not name its link. Resolves when it is exchanged, held or discarded. */
  async receiveCode({ code, issuer }: RedirectedCode, browser: RedirectedBrowser): Promise<void> {
    if (issuer !== undefined && this.#isIssuerOfAnother(issuer)) return this.#logRejection('foreign_issuer');
    await this.#runner.tryClaim();
    await this.#redirectedCodes.receive(code, browser);
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
    if (isTrusted && !TRANSIENT_ERRORS.includes(error)) {
      await this.#runner.failWhenIdle(reason, detail);
    } else {
      await this.#runner.tryClaim();
      await this.#redirectedCodes.askPortal();
      await this.#runner.dispatch({ kind: 'login_failed', reason, detail });
    }
  }

  /** Whether the code was sent to the portal. */
  #isSpent(code: Secret): boolean {
    return this.#runner.pairing.spentCodes.includes(sha256(code.reveal()));
  }

  /** Whether an `iss` is that of another configured portal. */
  #isIssuerOfAnother(issuer: string): boolean {
    const portal = this.#context.portalOf(this.#runner.pairing.portal);
    return portal !== undefined && isIssuerOfAnother(issuer, portal.identity);
  }

  #logRejection(reason: string): void {
    this.#runner.log.warn('login_response_rejected', { connection: this.#runner.name, reason });
  }
}

/** An error code (RFC 6749, 4.1.2.1) for the log; anything else may be a secret in the wrong place. */
function errorCode(error: string): string {
  return /^[a-z_]{1,40}$/.test(error) ? error : 'another error';
}
