import { Failure } from '../failure.ts';
import type { Named } from '../name.ts';

/** One login at one portal. One or more appliances use it, or none yet. */
export interface Connection extends Named {
  /** The hub's internal id. It never changes. */
  readonly id: string;
  /** The name of its portal, a key of the configuration's `portals`. */
  readonly portal: string;
  /** The scope that the hub requests for its grant; null for none. */
  readonly scope: string | null;
  /**
   * - `implicit`: made for an appliance that was added without a connection; it has the appliance's name and title, and is removed
   *   when no appliance uses it any more;
   * - `added`: by an installer, or kept because it has a grant; only an installer removes it;
   * - `declared`: by the configuration, as `[connections.NAME]`, or for an appliance that is declared without a
   *   connection. Only the configuration removes or changes it.
   */
  readonly origin: 'implicit' | 'added' | 'declared';
  /**
   * Its row in the store was damaged or changed, so any part but its id may be wrong. It keeps its grant but gives no
   * tokens, and the row stays damaged until an installer removes the connection. Left out otherwise.
   */
  readonly damaged?: true;
}

/** A connection that the configuration declares. */
export interface DeclaredConnection {
  readonly name: string;
  readonly scope: string | null;
  /** Null for the default portal. */
  readonly portal: string | null;
}

/** What a person can do about a damaged connection, as a sentence without a full stop. */
export function damagedConnectionAdvice(name: string): string {
  return `Run "latchkey connection remove ${name} --yes", declare or add it again, and log in again; if somebody else had access to the hub's disk or database, follow docs/stolen-card.md`;
}

/** The failure for a damaged connection that somebody wants to use. */
export function damagedConnectionFailure({ name }: Connection): Failure {
  const what = `the entry of the connection ${name} in the store was damaged, or changed by something other than the hub`;
  return new Failure('not_allowed', `${what}: ${damagedConnectionAdvice(name)}`);
}

/**
 * Whether the connection is that of one appliance alone: its only user has its name and uses no other, and no installer has
 * added it. People see it as a part of the appliance.
 * @param users `more`: as in `Appliance`
 */
export function isOwnConnection(
  { name, origin }: Pick<Connection, 'name' | 'origin'>,
  users: readonly { readonly name: string; readonly more?: readonly string[] }[],
): boolean {
  const [user] = users;
  return origin !== 'added' && users.length === 1 && user?.name === name && user.more === undefined;
}

/** The names of appliances as part of a sentence, such as "thermostat and dashboard". */
export function joinNames(names: readonly string[]): string {
  const last = names.at(-1) ?? '';
  return names.length < 2 ? last : `${names.slice(0, -1).join(', ')} and ${last}`;
}
