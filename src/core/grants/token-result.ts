import type { ProblemCode } from '../reports/problem.ts';
import type { Secret } from '../secret.ts';

/** Why there is no new token: what is wrong with the grant, or that the portal has not answered yet. */
export type WhyUnavailable = Exclude<ProblemCode, 'refused'> | 'no_answer_yet';

/** Why the token at hand is not handed out; `age_unknown` after a boot, where it may have run out. */
export type WhyNotAtHand = 'run_out' | 'distrusted' | 'age_unknown';

/** What an appliance is answered when it asks for its token. */
export type TokenResult =
  /** `expiresIn` is what is left, in whole seconds, rounded down. */
  | { readonly kind: 'token'; readonly accessToken: Secret; readonly expiresIn: number; readonly scope: string | null }
  | { readonly kind: 'not_paired' }
  /** A person must log in again, and no token at hand lives. */
  | { readonly kind: 'needs_pairing' }
  /** No token for now; `retryAfter` in whole seconds. */
  | {
      readonly kind: 'unavailable';
      readonly retryAfter: number;
      readonly why: WhyUnavailable;
      readonly atHand: WhyNotAtHand;
    }
  /** The hub can't narrow or widen a portal's token; `scope` is what the grant has. */
  | { readonly kind: 'other_scope'; readonly scope: string | null };
