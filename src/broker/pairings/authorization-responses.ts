import type { RejectedResponseReason } from '../../core/lan-service.ts';
import type { AuthorizationError, AuthorizationResponse } from '../../core/pairings/authorization-response.ts';
import { linksOf } from '../../core/pairings/pairing.ts';
import { isFromIssuer, type LoginLink } from '../../core/portals/login-link.ts';
import type { CodeResponse } from '../../core/portals/portal.ts';
import { sha256, timingSafeEqualText } from '../../system/secret-hash.ts';
import type { PairingStateMachine } from './pairing-state-machine.ts';

/** What follows from the authorization responses of a pairing. */
export interface ResponseReceiver {
  /** Whether an `iss` is that of another configured portal. */
  isIssuerOfAnother(issuer: string): boolean;
  /** Exchanges a code. Resolves when the exchange has ended, or another one that is under way. */
  exchangeCode(response: CodeResponse, link: LoginLink): Promise<void>;
  /** Resolves when no code is being exchanged. */
  whenExchangeIdle(): Promise<void>;
  /** Handles an error: see `PairingRun.receiveError`. */
  receiveError(response: AuthorizationError, isTrusted: boolean): Promise<void>;
}

/**
 * The authorization responses of one pairing that name their link by its `state` (RFC 6749, 4.1.2). Such a code is
 * exchanged at once: PKCE binds it to the link, so it proves that somebody has logged in through that.
 */
export class AuthorizationResponses {
  readonly #state: PairingStateMachine;
  readonly #receiver: ResponseReceiver;

  constructor(state: PairingStateMachine, receiver: ResponseReceiver) {
    this.#state = state;
    this.#receiver = receiver;
  }

  /** Whether the hub issued this `state` for a link of the pairing that it still knows. */
  knows(state: string): boolean {
    const { step, answeredStates = [] } = this.#state.pairing;
    const links = linksOf(step).flatMap((link) => (link.kind === 'redirect' ? [link.state] : []));
    return [...links, ...answeredStates].some((known) => timingSafeEqualText(known, state));
  }

  /**
   * Handles the authorization response for a link. Resolves when its code is exchanged.
   * @param state of the link
   * @param isTrusted whether an error certainly comes from the portal: see `PairingRun.receiveError`
   * @returns why it was not used; null if it was, now or before
   */
  async receive(
    state: string,
    response: AuthorizationResponse,
    isTrusted: boolean,
  ): Promise<Exclude<RejectedResponseReason, 'other_pairing'> | null> {
    const { step, spentCodes } = this.#state.pairing;
    const link = linksOf(step).find((one) => one.kind === 'redirect' && one.state === state);
    const isRepeated = response.kind === 'code' && spentCodes.includes(sha256(response.code.reveal()));
    if (isRepeated || response.kind === 'nothing') {
      await this.#receiver.whenExchangeIdle();
      return null;
    }
    if (link?.kind !== 'redirect' || step.kind === 'exchanging') return step.kind === 'ended' ? null : 'used';
    const issuer = response.issuer ?? null;
    if (!isFromIssuer(link, issuer) || (issuer !== null && this.#receiver.isIssuerOfAnother(issuer))) {
      this.#logRejection('foreign_issuer');
      return 'foreign_issuer';
    }
    if (response.kind === 'code') await this.#receiver.exchangeCode({ code: response.code, issuer }, link);
    else {
      if (response.error !== 'access_denied') this.#logRejection(errorCode(response.error));
      await this.#receiver.receiveError(response, isTrusted);
    }
    return null;
  }

  #logRejection(reason: string): void {
    this.#state.log.warn('login_response_rejected', { connection: this.#state.name, reason });
  }
}

/** An error code (RFC 6749, 4.1.2.1) for the log; anything else may be a secret in the wrong place. */
export function errorCode(error: string): string {
  return /^[a-z_]{1,40}$/.test(error) ? error : 'another error';
}
