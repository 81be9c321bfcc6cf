import { type Appliance, connectionIds } from '../../core/appliances/appliance.ts';
import { type Connection, damagedConnectionFailure, isOwnConnection } from '../../core/connections/connection.ts';
import { sameScope } from '../../core/connections/scope.ts';
import { Failure } from '../../core/failure.ts';
import type { Random } from '../../core/random.ts';
import type { RegistryChange } from '../../core/store.ts';
import type { Connections } from './connections.ts';

/**
 * Checks that a connection gives an appliance tokens of its portal and scope.
 * @param wanted `portal`: null for any; `scope`: null for any
 * @throws Failure `connection_mismatch`, or `not_allowed` if it is damaged
 */
export function assertConnectionFits(
  appliance: string,
  wanted: { readonly scope: string | null; readonly portal: string | null },
  connection: Connection,
): void {
  if (connection.damaged) throw damagedConnectionFailure(connection);
  const { name, portal, scope } = connection;
  if (wanted.portal !== null && wanted.portal !== portal) {
    throw new Failure(
      'connection_mismatch',
      `${appliance} is for the portal ${wanted.portal}, and the connection ${name} is at ${portal}: choose a connection at ${wanted.portal}, or add the appliance for ${portal}`,
    );
  }
  if (wanted.scope === null || sameScope(wanted.scope, scope)) return;
  throw new Failure(
    'connection_mismatch',
    `${appliance} has the scope ${JSON.stringify(wanted.scope)}, and the connection ${name} has ${scope === null ? 'none' : JSON.stringify(scope)}: choose a connection with the same scope, or add the appliance without a scope`,
  );
}

/** The failure for an appliance whose own connection would have a name that is taken. */
export function ownConnectionExistsFailure(name: string): Failure {
  return new Failure(
    'connection_exists',
    `there is a connection ${name} already: add --connection ${name} to use it, or choose another name for the appliance`,
  );
}

/**
 * @param users the appliances that use it
 * @throws Failure `connection_declared`, or `not_allowed` if it is the own one of an appliance or was damaged
 */
export function assertConnectionRenamable(connection: Connection, users: readonly Appliance[]): void {
  const { name, origin, damaged } = connection;
  if (damaged) throw damagedConnectionFailure(connection);
  if (origin === 'declared') {
    throw new Failure(
      'connection_declared',
      `${name} is declared in the hub's configuration, in the table [connections.${name}] or [appliances.${name}]: change the name of that table (it is then another connection, which must be paired), and run "latchkey reload"`,
    );
  }
  if (isOwnConnection(connection, users)) {
    throw new Failure(
      'not_allowed',
      `${name} is the own connection of the appliance ${name}, and is called like it: run "latchkey appliance rename ${name} TITLE"`,
    );
  }
}

/** An appliance that uses these connections and no others. @param ids at least one */
export function withConnections(
  { more: _, ...appliance }: Appliance,
  [connection = appliance.connection, ...more]: readonly string[],
): Appliance {
  return { ...appliance, connection, ...(more.length > 0 && { more }) };
}

/**
 * The change of connections that were made for appliances and that nothing uses any more.
 * @param isKept whether one stays, without an appliance; otherwise it is removed
 */
export function unusedConnections(
  unused: readonly Connection[],
  isKept: (connection: Connection) => boolean,
): Required<Pick<RegistryChange, 'updatedConnections' | 'removedConnections'>> {
  const { kept = [], removed = [] } = Object.groupBy(unused, (one) => (isKept(one) ? 'kept' : 'removed'));
  return {
    updatedConnections: kept.map((connection) => ({ ...connection, origin: 'added' })),
    removedConnections: removed.map(({ id }) => id),
  };
}

/**
 * The change that removes a connection. Each appliance that uses no other gets a connection of its own. If one has the name of
 * the connection, the connection stays as its own one.
 * @param users the appliances that use it
 * @throws Failure `connection_declared`, or `connection_exists` if another connection has the name of one of the appliances
 */
export function connectionRemoval(
  connection: Connection,
  users: readonly Appliance[],
  connections: Pick<Connections, 'find' | 'byId'>,
  random: Pick<Random, 'uuid'>,
): RegistryChange & Required<Pick<RegistryChange, 'removedConnections'>> {
  const { id, name, scope, portal, origin } = connection;
  if (origin === 'declared') {
    throw new Failure(
      'connection_declared',
      `${name} is declared in the hub's configuration: remove it there, and run "latchkey reload"`,
    );
  }
  const remaining = (user: Appliance) =>
    connectionIds(user).filter((other) => other !== id && connections.byId(other) !== undefined);
  const owner = users.find((user) => user.name === name && remaining(user).length === 0);
  const moved = users.filter((user) => user !== owner);
  const orphans = moved.filter((user) => remaining(user).length === 0);
  const added = orphans.map((user): Connection => {
    if (connections.find(user.name) === undefined)
      return { id: random.uuid(), name: user.name, title: user.title, scope, portal, origin: 'implicit' };
    throw new Failure(
      'connection_exists',
      `${user.name} can't get a connection of its own, because there is a connection ${user.name} already: move ${user.name} to another connection first`,
    );
  });
  return {
    addedConnections: added,
    updatedConnections: owner ? [{ id, name, title: owner.title, scope, portal, origin: 'implicit' }] : [],
    updatedAppliances: moved.map((user) => {
      const own = added[orphans.indexOf(user)];
      return withConnections(user, own === undefined ? remaining(user) : [own.id]);
    }),
    removedConnections: owner ? [] : [id],
  };
}
