import type { CertificateDateError } from '../clock.ts';
import type { Secret } from '../secret.ts';
import type { DeviceLink, LoginLink, PolledLink } from './login-link.ts';
import type { NotSent, TokenOutcome, TokenResponse } from './token-outcome.ts';

/** What a link is requested for. */
export interface LoginLinkRequest {
  /** The pairing's nonce. */
  readonly nonce: string;
  readonly scope: string | null;
}

/** What every response of the portal contains. */
interface PortalResponse {
  /** The portal's clock (`Date`), in ms since 1970; null if there was no response, or no `Date` in it. */
  readonly portalTime: number | null;
}

/** The outcome of a request for a link. */
export type LoginLinkOutcome = PortalResponse &
  (
    | {
        readonly kind: 'link';
        readonly link: LoginLink;
        /** Why the portal rejected the redirect address, so that only polling yields the code; left out if it did not. */
        readonly redirectRejected?: string;
      }
    /** A URL of the response has another origin: following it would reveal the hub's client secret. */
    | { readonly kind: 'foreign_origin'; readonly detail: string }
    /** A 3xx, or a 4xx other than 408 and 429; `clientUnknown`: the portal has no such client. */
    | { readonly kind: 'rejected'; readonly detail: string; readonly clientUnknown?: true }
    /** The portal does not accept the hub's client ID with its secret. */
    | { readonly kind: 'misconfigured'; readonly detail: string }
    | Unreachable
  );

/** The outcome of one poll for the result of a login. */
export type PollOutcome = PortalResponse &
  (
    | { readonly kind: 'code'; readonly code: Secret }
    | { readonly kind: 'granted'; readonly tokens: TokenResponse }
    | { readonly kind: 'not_yet' }
    /** The hub must poll 5 s less often from now on (RFC 8628, 3.5). */
    | { readonly kind: 'slow_down' }
    /** The person has refused. */
    | { readonly kind: 'denied' }
    /** The link has expired, or was used: a fresh one is needed. */
    | { readonly kind: 'ended' }
    | { readonly kind: 'misconfigured'; readonly detail: string }
    | Unreachable
  );

/** What an error response means, apart from its text: for a token request, or for the poll of a device code. */
export type ErrorMeaning =
  | Exclude<TokenOutcome['kind'], 'granted' | 'not_sent'>
  | Extract<PollOutcome, { kind: 'not_yet' | 'slow_down' | 'denied' | 'ended' }>['kind'];

/** No response, or one that only defers; `retryAfter` in ms, null if the portal named no time. */
export interface Unreachable {
  readonly kind: 'unreachable';
  readonly detail: string;
  readonly retryAfter: number | null;
  readonly certificateError?: CertificateDateError;
}

/** The successful authorization response that a browser brought (RFC 6749, 4.1.2; RFC 9207, 2). */
export interface CodeResponse {
  readonly code: Secret;
  /** Its `iss`; null if it has none, or if the portal was polled for the code. */
  readonly issuer: string | null;
}

/** The outcome of a request to revoke a grant's tokens (RFC 7009, 2.2). */
export type RevocationOutcome =
  /** Any 2xx: the token is invalid now, or was before. */
  | { readonly kind: 'revoked' }
  /** No revocation endpoint is configured for this portal: nothing was sent. */
  | { readonly kind: 'unsupported' }
  /** Another response, or none: the token may still be valid. */
  | { readonly kind: 'failed'; readonly detail: string };

/** The client of a portal. No method throws because of the portal or the network: outcomes are values. */
export interface Portal {
  /**
   * Where the portal redirects the browser at the moment, without what differs between pairings; null if nowhere. A link
   * for another address is stale.
   */
  readonly redirectAddress: string | null;
  requestLink(request: LoginLinkRequest, signal: AbortSignal): Promise<LoginLinkOutcome>;
  /** Polls for the result of a login; only for links that yield it so. */
  poll(link: PolledLink | DeviceLink, signal: AbortSignal): Promise<PollOutcome>;
  /**
   * Waits until a code or a refresh token can be sent: for the portal's addresses, and for the shortest time between two
   * requests, or until the signal is aborted. Call it before each, and before it is written ahead: a hub that is killed
   * while it waits has sent nothing.
   * @returns why nothing can be sent now; null if it can
   */
  prepareTokenRequest(signal: AbortSignal): Promise<NotSent | null>;
  /** The portal's clock from the `Date` of any response, in ms since 1970; null if none came. Sends no secret. */
  fetchTime(): Promise<number | null>;
  /** Exchanges a code for tokens. Never aborted, because the portal may act on the request at once. */
  exchangeCode(link: LoginLink, response: CodeResponse, scope: string | null): Promise<TokenOutcome>;
  /**
   * Refreshes a grant. Never aborted, for the same reason.
   * @param maySend asked immediately before the request is written: if it returns false, nothing is sent
   */
  refresh(refreshToken: Secret, maySend?: () => boolean): Promise<TokenOutcome>;
  /** Revokes a grant's refresh token, once and without retries. Takes at most 5 s. */
  revoke(tokens: RevokedTokens): Promise<RevocationOutcome>;
}

/** The tokens of a grant that is to be revoked. */
export interface RevokedTokens {
  /** Null if the portal gave none. */
  readonly refreshToken: Secret | null;
  readonly accessToken: Secret;
}
