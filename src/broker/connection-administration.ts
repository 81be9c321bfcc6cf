import { rfc3339 } from '../core/clock.ts';
import { type Connection, damagedConnectionFailure, joinNames } from '../core/connections/connection.ts';
import type { ConnectionAdministration, WantedToken } from '../core/connections/connection-administration.ts';
import type { ConnectionStatus } from '../core/connections/connection-status.ts';
import { checkScope } from '../core/connections/scope.ts';
import { Failure } from '../core/failure.ts';
import type { Grant } from '../core/grants/grant.ts';
import { isSameIssuer } from '../core/portals/identity.ts';
import { type HistoryEntry, newestFirst, type StoredHistoryEntry } from '../core/reports/history.ts';
import { assertConnectionFits } from './connections/connection-changes.ts';
import type { Broker } from './open-broker.ts';

/** What the administration of connections needs besides the broker. */
interface ConnectionContext {
  /** @throws Failure `connection_unknown`, `name_invalid` */
  getConnection(name: string): Connection;
  /** @throws Failure `not_allowed` if the only appliance of the connection waits for approval */
  requireApproved(connection: Connection): Connection;
  connectionStatusOf(connection: Connection): ConnectionStatus;
  /** The name of the user in whose name it acts; undefined if it is unknown. */
  readonly user: string | undefined;
}

/** Creates the administration of connections and their grants. */
export function createConnectionAdministration(
  broker: Broker,
  { getConnection, requireApproved, connectionStatusOf, user }: ConnectionContext,
): ConnectionAdministration {
  const { connections, appliances, grants, grantImports, pairings, sessions, notices, store } = broker;
  const { clock, log, emit } = broker.environment;

  async function endSessions(connection: string): Promise<void> {
    for (const appliance of appliances.usersOf(connection)) await sessions.endFor(appliance, connection);
  }

  /** Deletes the grant of a connection, with everything that follows from it. @returns as {@link revokeGrant} */
  async function unpair(connection: Connection): Promise<boolean | null> {
    const { id, name } = connection;
    await pairings.cancel(id);
    await pairings.clearFailures(id);
    // Another hub may have completed a login a moment ago.
    await store.catchUp();
    const isPaired =
      grants.get(id) !== undefined || grants.getSuspended(id) !== undefined || store.damagedGrants.has(id);
    const deleted = await grants.delete(id);
    await endSessions(id);
    if (isPaired) emit({ kind: 'unpaired', connection: id, at: clock.now(), ...(user !== undefined && { user }) });
    log.info('connection_unpaired', { connection: name, user });
    return revokeGrant(connection, deleted, broker);
  }

  return {
    async addConnection(typed, scope, portal) {
      await appliances.releaseName(connections.nameFor(typed));
      const connection = await connections.add(typed, scope, portal);
      log.info('connection_added', { connection: connection.name, portal: connection.portal, user });
      return connectionStatusOf(connection);
    },
    async removeConnection(typed, evenIfUsed) {
      const connection = connections.get(typed);
      const { name, title } = connection;
      const users = appliances.usersOf(connection.id).map((user) => user.title);
      if (users.length > 0 && !evenIfUsed) {
        const [uses, they] = users.length === 1 ? ['uses', 'it'] : ['use', 'they'];
        throw new Failure(
          'connection_in_use',
          `${joinNames(users)} ${uses} the connection ${title}: move or remove ${they === 'it' ? 'it' : 'them'} first, or add --yes; ${they} must log in anew then`,
        );
      }
      // As the own connection of an appliance it stays, and is sealed again: not with a grant that may be another one's.
      let isPortalTold = connection.damaged ? await unpair(connection) : null;
      await endSessions(connection.id);
      if (await appliances.removeConnection(connection)) {
        await pairings.removeAll(connection.id);
        isPortalTold ??= await revokeGrant(connection, grants.stopManaging(connection.id), broker);
      } else if (!connection.damaged) isPortalTold = await unpair(connection);
      notices.scheduleCheck();
      log.info('connection_removed', { connection: name, user });
      return isPortalTold;
    },
    async importGrant({ name: typed, portal, scope, ...request }) {
      await broker.ready;
      assertNotStopping(broker);
      const name = connections.nameFor(typed);
      await appliances.releaseName(name);
      const existing = connections.find(name);
      const wanted = { scope: checkScope(scope), portal: portal === null ? null : connections.resolvePortal(portal) };
      if (existing !== undefined) assertConnectionFits('the import', wanted, existing);
      const connection = existing ?? connections.create(typed, scope, portal);
      await grantImports.run(connection, request);
      notices.scheduleCheck();
      return connectionStatusOf(connection);
    },
    unpair: async (typed) => unpair(getConnection(typed)),
    async token(typed, { minTtl = 0, rejected = null }: Partial<WantedToken> = {}) {
      const connection = requireApproved(getConnection(typed));
      const { name, title } = connection;
      if (connection.damaged) throw damagedConnectionFailure(connection);
      if (rejected !== null) await grants.reportRejectedToken(connection.id, rejected.reveal());
      const result = await broker.tokenIssuer.issue(connection.id, null, { minTtl });
      if (result.kind === 'token') return result;
      const why = {
        unavailable: 'has no token for now: "latchkey status" says why',
        needs_pairing: `must be paired again: run "latchkey pair ${name}"`,
        not_paired: `is not paired: run "latchkey pair ${name}"`,
        other_scope: 'has another scope',
      };
      throw new Failure('token_unavailable', `${title} ${why[result.kind]}`);
    },
    async refresh(typed) {
      const connection = getConnection(typed);
      const { name, title } = connection;
      const managed = grants.get(connection.id);
      if (managed?.grant.refreshToken === null) {
        throw new Failure(
          'token_unavailable',
          `${title} can't be refreshed, because the portal gave no refresh token: ask for the scope offline_access, then run "latchkey pair ${name}"`,
        );
      }
      if (managed === undefined) {
        const { problem } = connectionStatusOf(connection);
        const why =
          problem === null ? `is not paired: run "latchkey pair ${name}"` : `can't be refreshed: ${problem.message}`;
        throw new Failure('token_unavailable', `${title} ${why}`);
      }
      assertNotStopping(broker);
      await grants.refresh(connection.id, true);
      return connectionStatusOf(connection);
    },
    async history(typed) {
      return newestFirst(await broker.historyRecorder.historyOf(getConnection(typed).id)).map(toHistoryEntry);
    },
  };
}

/**
 * Revokes the deleted grant of a connection at the portal, if the portal has an endpoint for that. That of a damaged
 * connection is only deleted: its row may name another portal.
 * @returns whether the portal has revoked it; null if there is no grant
 */
export async function revokeGrant(
  { id, name, portal, damaged }: Connection,
  grant: Grant | null,
  { grants, portalOf }: Pick<Broker, 'grants' | 'portalOf'>,
): Promise<boolean | null> {
  if (grant === null) return null;
  const connected = portalOf(portal);
  if (damaged || connected === undefined || !isSameIssuer(grant.issuer, connected.identity)) return false;
  return grants.revoke(id, { name, portal: connected.portal }, grant, true);
}

/** @throws Failure `hub_stopping` if another hub is about to replace this one, so that no further refresh is started */
export function assertNotStopping({ grants }: Pick<Broker, 'grants'>): void {
  if (!grants.stopping.aborted) return;
  throw new Failure('hub_stopping', 'the hub is applying a changed configuration: try again in a moment');
}

function toHistoryEntry({ first, last, ...line }: StoredHistoryEntry): HistoryEntry {
  return { ...line, first: rfc3339(first), last: rfc3339(last) };
}
