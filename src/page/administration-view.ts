import type { Administration, StatusReport } from '../core/administration.ts';
import type { ApplianceStatus } from '../core/appliances/appliance-status.ts';
import type { Clock, Timers } from '../core/clock.ts';
import type { ConnectionStatus } from '../core/connections/connection-status.ts';
import { Failure } from '../core/failure.ts';
import type { LanService } from '../core/lan-service.ts';
import { findNamed, type Named } from '../core/name.ts';
import type { Random } from '../core/random.ts';
import { pathParameter } from './http.ts';
import type { AuthenticatedRequest } from './page-context.ts';
import type { LoginHosts } from './pairing/login-hosts.ts';
import type { IssuedByForm, SentForms } from './sent-forms.ts';

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
  | 'hasUnusedSecret'
  | 'history'
  | 'label'
  | 'getPairing'
  | 'getBatch'
  | 'followPairing'
>;

/** What the installer's pages are made with. */
export interface PageServices {
  readonly administration: AdministrationView;
  readonly service: LanService;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  /** The credentials that forms have issued. */
  readonly issued: SentForms<IssuedByForm>;
  /** The connections that forms have added. */
  readonly added: SentForms<Named>;
  readonly hosts: LoginHosts;
  /** Whether notices go anywhere else than to the page. */
  readonly sendsNotices?: boolean;
}

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
