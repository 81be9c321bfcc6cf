import type { Administration, StatusReport } from '../core/administration.ts';
import type { ApplianceStatus } from '../core/appliances/appliance-status.ts';
import type { ConnectionStatus } from '../core/connections/connection-status.ts';
import { Failure } from '../core/failure.ts';
import { findNamed } from '../core/name.ts';
import { pathParameter } from './http.ts';
import type { AuthenticatedRequest } from './page-context.ts';

/**
 * What pages read of the hub. Whatever they change goes through the request's own administration
 * (`AuthenticatedRequest`), so that it is recorded in the name of the user.
 */
export type AdministrationView = Pick<
  Administration,
  | 'status'
  | 'portals'
  | 'describePortals'
  | 'cloudChoices'
  | 'enteredPortal'
  | 'reloadOutcome'
  | 'history'
  | 'label'
  | 'getPairing'
  | 'getBatch'
  | 'followPairing'
>;

/** The appliance that a request's path names, within the hub's status. @throws Failure `appliance_unknown` */
export async function findAppliance(
  req: AuthenticatedRequest,
  administration: Pick<Administration, 'status'>,
): Promise<{ readonly appliance: ApplianceStatus; readonly status: StatusReport }> {
  const name = pathParameter(req, 'name');
  const status = await administration.status();
  const appliance = findNamed(status.appliances, name);
  if (appliance === undefined) throw new Failure('appliance_unknown', name);
  return { appliance, status };
}

/** The connection that a request's path names, within the hub's status. @throws Failure `connection_unknown` */
export async function findConnection(
  req: AuthenticatedRequest,
  administration: Pick<Administration, 'status'>,
): Promise<{ readonly connection: ConnectionStatus; readonly status: StatusReport }> {
  const name = pathParameter(req, 'name');
  const status = await administration.status();
  const connection = findNamed(status.connections, name);
  if (connection === undefined) throw new Failure('connection_unknown', name);
  return { connection, status };
}
