import type { Secret } from './secret.ts';

/**
 * Why there is no token: a portal that can't be reached, or asks to be left alone; one that has not answered yet; or a
 * token that the cloud refused, with no other there so far.
 */
export type WhyUnavailable = 'out_of_reach' | 'no_answer_yet' | 'distrusted';

/** What an appliance is answered when it asks for its token. */
export type HandOut =
  /** `expiresIn` is what is left, in whole seconds, rounded down. */
  | { readonly kind: 'token'; readonly accessToken: Secret; readonly expiresIn: number; readonly scope: string | null }
  | { readonly kind: 'not_paired' }
  /** A person must log in again, and no token at hand lives. */
  | { readonly kind: 'needs_pairing' }
  /** No token for now; `retryAfter` in whole seconds. */
  | { readonly kind: 'unavailable'; readonly retryAfter: number; readonly why: WhyUnavailable }
  /** The hub can't narrow or widen a portal's token; `scope` is what the grant has. */
  | { readonly kind: 'other_scope'; readonly scope: string | null };
