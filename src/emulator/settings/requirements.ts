/** What a requirement applies to: the requests of the OAuth 2.0 endpoints, and `api`, calls of `/api/whoami`. */
export type Operation = 'authorize' | 'code' | 'device' | 'poll' | 'refresh' | 'client' | 'revoke' | 'api';

/** One requirement in a setting. */
export const REQUIREMENT =
  /(?:authorize|code|device|poll|refresh|client|revoke|api):[\w-]{1,100}(?:=(?:[\w.~{}:/,+-]|%[0-9A-Fa-f]{2})*)?/;

/**
 * The first requirement of an operation that a request does not meet, as a phrase, or null.
 * @param setting such as `authorize:access_type=offline code:audience`, or null
 * @param read a parameter or a header of the request by name
 */
export function unmetRequirement(
  setting: string | null,
  operation: Operation,
  clientId: string,
  read: (name: string) => string | undefined,
): string | null {
  for (const requirement of setting?.split(' ') ?? []) {
    if (!requirement.startsWith(`${operation}:`)) continue;
    const [name = '', ...rest] = requirement.slice(operation.length + 1).split('=');
    const found = read(name);
    if (found === undefined) return `${name} is missing`;
    const value = decodeURIComponent(rest.join('=')).replaceAll('{client_id}', clientId);
    if (rest.length > 0 && found !== value) return `${name} must be ${value}`;
  }
  return null;
}
