import * as v from 'valibot';
import type { TokenResponse } from '../../src/core/portals/token-outcome.ts';
import { parseBody, readTokenResponse } from '../../src/portal/token-response.ts';

/** The tokens in the body of a response; null if it has none. @param tokenLifetime as for `readTokenResponse` */
export function parseTokenResponse(body: string, tokenLifetime: number | null = null): TokenResponse | null {
  return readTokenResponse(parseBody(v.unknown(), body), tokenLifetime);
}
