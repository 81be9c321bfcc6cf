import type { Appliance } from '../../core/appliances/appliance.ts';

/** The result of client authentication. */
export type ClientAuthenticationResult =
  | { readonly kind: 'authenticated'; readonly appliance: Appliance }
  /** Wrong or missing credentials: 401 `invalid_client`; `appliance` if they name one that the hub knows. */
  | {
      readonly kind: 'refused';
      readonly description: string;
      readonly appliance?: Appliance | undefined;
      /** What the hub's owner sees; default: the description. */
      readonly reason?: string;
    }
  /**
   * More than one authentication method, or parameters that contradict each other (RFC 6749, 2.3): 400
   * `invalid_request`.
   */
  | { readonly kind: 'malformed'; readonly description: string }
  /** The hub can't check the credentials at the moment: 503; `retryAfter` in whole seconds. */
  | { readonly kind: 'unavailable'; readonly description: string; readonly retryAfter: number };

/** 401 `invalid_client`. @param appliance that the credentials name */
export function invalidClient(description: string, appliance?: Appliance) {
  return { kind: 'refused', description, appliance } as const;
}

/** 400 `invalid_request`. */
export function invalidRequest(description: string): ClientAuthenticationResult {
  return { kind: 'malformed', description };
}

/** 503 `temporarily_unavailable`. @param retryAfter in whole seconds */
export function temporarilyUnavailable(description: string, retryAfter: number): ClientAuthenticationResult {
  return { kind: 'unavailable', description, retryAfter };
}
