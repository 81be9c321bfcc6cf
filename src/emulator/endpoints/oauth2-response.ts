import type { TokenResponseBody } from '../oauth/issued-grants.ts';

/** The token response of `/oauth2/token` (RFC 6749, 5.1): without a scope if none was granted, because null is no scope. */
export function oauth2TokenResponse({ scope, ...body }: TokenResponseBody): object {
  return { ...body, ...(scope !== null && { scope }) };
}
