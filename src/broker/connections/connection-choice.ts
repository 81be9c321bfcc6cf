import { type Connection, damagedConnectionFailure } from '../../core/connections/connection.ts';
import { sameScope } from '../../core/connections/scope.ts';
import { Failure } from '../../core/failure.ts';

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
