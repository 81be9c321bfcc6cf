import type { CertificateDateError } from '../clock.ts';
import type { Secret } from '../secret.ts';

/** A successful token response (RFC 6749, 5.1; docs/portal.md). */
export interface TokenResponse {
  readonly accessToken: Secret;
  /** Null if a refresh response has none: the old one stays valid. */
  readonly refreshToken: Secret | null;
  /** Null if the response has none: the scope is as requested, or as before. */
  readonly scope: string | null;
  /** Lifetime of the access token, in ms; below 1000 if it has ended, or if the portal says nothing that can be true. */
  readonly lifetime: number;
  /** The portal's `expires_in`, in seconds, if that can't be true; left out if it can. */
  readonly impossibleLifetime?: number;
  /**
   * The account with which somebody logged in, for display only: at most 128 characters. Left out if the portal does
   * not report it.
   */
  readonly account?: string;
  /**
   * The ID token (OpenID Connect Core, 2), a JWT of at most 16384 characters whose signature is not verified. Left out if
   * the response has none.
   */
  readonly idToken?: Secret;
  /** Remaining lifetime of the refresh token, in ms. Left out if the portal does not report it. */
  readonly refreshTokenLifetime?: number;
}

/** It failed before anything was written to a new connection: the portal has not seen the request. */
export interface NotSent {
  readonly kind: 'not_sent';
  readonly detail: string;
  readonly certificateError?: CertificateDateError;
}

/**
 * The outcome of one request to the portal's token endpoint. Every possible response is one of these, because the next
 * step depends on one question: may the portal have invalidated the code or the refresh token that was sent?
 */
export type TokenOutcome =
  | { readonly kind: 'granted'; readonly tokens: TokenResponse; readonly portalTime: number | null }
  | NotSent
  /** 429, 503, or a firewall that names a time: try again later; `retryAfter` in ms, null if no time is named. */
  | {
      readonly kind: 'deferred';
      readonly detail: string;
      readonly retryAfter: number | null;
      readonly portalTime: number | null;
    }
  /** The request was sent, but no complete response came: the portal may have acted on it. */
  | { readonly kind: 'ambiguous'; readonly detail: string }
  /** `invalid_grant`: the portal no longer accepts this code or refresh token. */
  | { readonly kind: 'refused'; readonly detail: string; readonly portalTime: number | null }
  /**
   * `invalid_client` or `unauthorized_client`: the hub's own credentials are wrong; `detail` is a sentence that says
   * which to check. Or the portal is missing from the configuration, so that none was asked.
   */
  | {
      readonly kind: 'misconfigured';
      readonly detail: string;
      readonly portalTime: number | null;
      readonly isMissing?: true;
    }
  /**
   * A 3xx or 4xx without an error code of the portal: of a firewall or proxy before it, or for a wrong path. It says
   * nothing about the grant.
   */
  | {
      readonly kind: 'blocked';
      readonly detail: string;
      readonly portalTime: number | null;
      /** Where a redirect leads, which the hub does not follow; left out if it is none. */
      readonly redirect?: string;
    }
  /** Any other error code of the portal (RFC 6749, 5.2, or its own). */
  | {
      readonly kind: 'rejected';
      /** Null if a number outside of `error` says what is wrong. */
      readonly error: string | null;
      readonly detail: string;
      readonly portalTime: number | null;
    };
