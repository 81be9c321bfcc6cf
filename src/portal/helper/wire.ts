import * as v from 'valibot';
import { Secret } from '../../core/secret.ts';
import { parseBody } from '../token-response.ts';

/** The three URLs of one login (docs/portal.md). */
export interface LoginEndpoints {
  /** Where a person logs in. */
  readonly authorizeUrl: string;
  /** Where the hub polls for the authorization code. */
  readonly codeUrl: string;
  /** The token endpoint for the code. */
  readonly tokenUrl: string;
}

/** A length that browsers accept; a QR code holds even less. */
const linkAddress = v.pipe(v.string(), v.maxLength(8192));

const helperConfiguration = v.object({
  authorize_url: linkAddress,
  code_url: linkAddress,
  accesstoken_request_url: linkAddress,
});

/** Characters of an authorization code: RFC 6749, appendix A.11. */
const codeResponse = v.object({ code: v.pipe(v.string(), v.regex(/^[\x20-\x7e]{1,4096}$/)) });

/** Parses the response of the config endpoint; null if it is invalid. */
export function parseLoginEndpoints(body: string): LoginEndpoints | null {
  const parsed = parseBody(helperConfiguration, body);
  if (parsed === null) return null;
  const { authorize_url, code_url, accesstoken_request_url } = parsed;
  return { authorizeUrl: authorize_url, codeUrl: code_url, tokenUrl: accesstoken_request_url };
}

/** Parses the response to a poll once there is a code; null if it is invalid. */
export function parseAuthorizationCode(body: string): Secret | null {
  const parsed = parseBody(codeResponse, body);
  return parsed === null ? null : new Secret(parsed.code);
}
