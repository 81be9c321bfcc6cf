// Checks that apply to every response of the hub.
import type { RawResponse } from '../exchange.ts';
import type { FuzzRequest } from '../requests.ts';

/** The maximum `Retry-After` of a 503 or 429, in seconds. */
const MAX_RETRY_AFTER_SECONDS = 3600;

/** Statuses of the HTTP layer, independent of the endpoint: headers too large, a wrong host name, a bad expectation. */
const OF_HTTP = [408, 417, 421, 431];

/** The error codes of the OAuth endpoints (RFC 6749, 5.2; 7591, 3.2.2; 8628, 3.5; 6750, 3.1; 7009, 2.2.1). */
const ERRORS = new Set([
  'access_denied',
  'authorization_pending',
  'expired_token',
  'invalid_client',
  'invalid_client_metadata',
  'invalid_grant',
  'invalid_request',
  'invalid_scope',
  'invalid_target',
  'invalid_token',
  'slow_down',
  'temporarily_unavailable',
  'unauthorized_client',
  'unsupported_grant_type',
]);

/** The permitted characters of error_description (RFC 6749, 5.2). */
const DESCRIPTION = /^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/;

/**
 * What is wrong with a response; the text is different for each kind of problem.
 * @param operation as {@link OperationCoverage.count} names it
 */
export function checkResponse(
  operation: string,
  request: FuzzRequest,
  { status, text }: RawResponse,
  secrets: readonly string[],
): string[] {
  const wrong: string[] = [];
  const [head = ''] = text.split('\r\n\r\n', 1);
  const body = text.slice(head.length + 4);
  const header = (name: string) => new RegExp(`^${name}: *(.*)$`, 'im').exec(head)?.[1]?.trim();
  if (status === 503 || status === 429) {
    const wait = Number(header('retry-after'));
    if (!(Number.isInteger(wait) && wait >= 1 && wait <= MAX_RETRY_AFTER_SECONDS))
      wrong.push(`answered ${status} without a valid Retry-After`);
  } else if (status >= 500) wrong.push(`answered ${status}`);
  if (secrets.some((secret) => text.includes(secret))) wrong.push('reveals a secret');
  if (head.includes('\nX-Header') || head.includes('\nX: y')) wrong.push('has a header that the request injected');
  // Invalid HTTP may get a response before the endpoint is known.
  if (!operation.startsWith('POST /oauth/') || !request.sound || OF_HTTP.includes(status)) return wrong;
  if (request.forged === true && status < 400) wrong.push(`accepted a forged authentication: ${status}`);
  if (request.origin === 'http') {
    // The 404 says in JSON where the endpoint is.
    const exists = status !== 404 && (/^content-type: application\/json/im.test(head) || status < 400);
    return exists ? [...wrong, `exists without TLS: ${status}`] : wrong;
  }
  if (!/^cache-control: no-store$/im.test(head)) wrong.push(`lacks Cache-Control: no-store: ${status}`);
  if (status < 400) return wrong;
  const problem = errorIn(chunked(head) ? body.replaceAll(/^[\da-f]+\r\n|\r\n(0\r\n\r\n)?$/gi, '') : body);
  if (problem !== null) wrong.push(`answered ${status} with ${problem}`);
  // RFC 9110, 15.5.2.
  const challenged = header('www-authenticate') !== undefined;
  if (challenged !== (status === 401)) wrong.push(`answered ${status} ${challenged ? 'with a' : 'without'} challenge`);
  return wrong;
}

function chunked(head: string): boolean {
  return /^transfer-encoding: chunked/im.test(head);
}

function errorIn(body: string): string | null {
  try {
    const { error, error_description } = JSON.parse(body) as Record<string, unknown>;
    if (typeof error !== 'string' || !ERRORS.has(error)) return 'an unknown error code';
    if (typeof error_description !== 'string' || !DESCRIPTION.test(error_description))
      return 'an invalid error_description';
    return null;
  } catch {
    return 'a body that is not JSON';
  }
}
