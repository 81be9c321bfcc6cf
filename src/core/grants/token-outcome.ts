import type { CertificateDateError } from '../clock.ts';
import type { Secret } from '../secret.ts';

/** What a token response gives (specification, part "Token response"). */
export interface TokenResponse {
  readonly accessToken: Secret;
  /** Null where a refresh response carries none: the old one stays good. */
  readonly refreshToken: Secret | null;
  /** Null where the portal names none: as asked for, or as before. */
  readonly scope: string | null;
  /** Milliseconds that the access token lives. */
  readonly lifetime: number;
  /** With which account somebody logged in, for display alone: at most 128 characters. Left out if the portal does not tell. */
  readonly account?: string;
}

/**
 * What became of one request to the portal's token endpoint. Every possible answer is one of these, because what
 * follows depends on one question: may the portal have spent the code or the refresh token that was sent?
 */
export type TokenOutcome =
  | { readonly kind: 'granted'; readonly tokens: TokenResponse; readonly portalTime: number | null }
  /** It failed before anything was written to a fresh connection: the portal knows nothing of it. */
  | { readonly kind: 'not_sent'; readonly detail: string; readonly certificateError?: CertificateDateError }
  /** 429 or 503: later, after `retryAfter` milliseconds where the portal says so. */
  | {
      readonly kind: 'deferred';
      readonly detail: string;
      readonly retryAfter: number | null;
      readonly portalTime: number | null;
    }
  /** Sent, and no whole answer: the portal may have acted on it. */
  | { readonly kind: 'ambiguous'; readonly detail: string }
  /** `invalid_grant`: the portal no longer takes this code or refresh token. */
  | { readonly kind: 'refused'; readonly detail: string; readonly portalTime: number | null }
  /** `invalid_client` or `unauthorized_client`: the hub's own credentials are wrong; `detail`, a sentence, says which to check. */
  | { readonly kind: 'misconfigured'; readonly detail: string; readonly portalTime: number | null }
  /** Any other 3xx or 4xx: a firewall, a wrong path. */
  | { readonly kind: 'rejected'; readonly detail: string; readonly portalTime: number | null };
