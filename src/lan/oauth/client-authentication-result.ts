import type { Appliance } from '../../core/appliances/appliance.ts';

/** What a request says of who sends it. */
export type ClientAuthenticationResult =
  | { readonly kind: 'authenticated'; readonly appliance: Appliance }
  /** Wrong or missing credentials: 401 `invalid_client`. */
  | { readonly kind: 'refused'; readonly description: string }
  /** Two ways of authenticating at once, or parts that do not agree (RFC 6749, 2.3): 400 `invalid_request`. */
  | { readonly kind: 'malformed'; readonly description: string }
  /** It can't be told just now: 503; `retryAfter` in whole seconds. */
  | { readonly kind: 'unavailable'; readonly description: string; readonly retryAfter: number };

export function invalidClient(description: string): ClientAuthenticationResult {
  return { kind: 'refused', description };
}

export function invalidRequest(description: string): ClientAuthenticationResult {
  return { kind: 'malformed', description };
}

export function temporarilyUnavailable(description: string, retryAfter: number): ClientAuthenticationResult {
  return { kind: 'unavailable', description, retryAfter };
}
