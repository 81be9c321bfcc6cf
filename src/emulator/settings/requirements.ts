/** What a requirement applies to: the requests of the OAuth 2.0 endpoints, and `api`, calls of `/api/whoami`. */
export type Operation = 'authorize' | 'code' | 'device' | 'poll' | 'refresh' | 'client' | 'revoke' | 'api';

/** One requirement in a setting. */
export const REQUIREMENT =
  /(?:authorize|code|device|poll|refresh|client|revoke|api):[\w-]{1,100}(?:=(?:[\w.~{}:/,+-]|%[0-9A-Fa-f]{2})*)?/;

/** A parameter or a header that a request must have. */
interface Requirement {
  readonly name: string;
  /** Its value, or null if any will do. */
  readonly value: string | null;
}

/** The requirements of an operation. @param setting such as `authorize:access_type=offline code:audience`, or null */
export function requirementsOf(setting: string | null, operation: Operation, clientId: string): Requirement[] {
  return (setting ?? '')
    .split(' ')
    .filter((one) => one.startsWith(`${operation}:`))
    .map((one) => {
      const [name = '', ...value] = one.slice(operation.length + 1).split('=');
      const text = value.length === 0 ? null : decodeURIComponent(value.join('='));
      return { name, value: text === null ? null : text.replaceAll('{client_id}', clientId) };
    });
}

/**
 * The first requirement that values do not meet, as a phrase, or null.
 * @param read a parameter or a header by name
 */
export function unmetRequirement(
  requirements: readonly Requirement[],
  read: (name: string) => string | undefined,
): string | null {
  for (const { name, value } of requirements) {
    const found = read(name);
    if (found === undefined) return `${name} is missing`;
    if (value !== null && found !== value) return `${name} must be ${value}`;
  }
  return null;
}
