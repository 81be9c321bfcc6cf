import type { Administration, IssuedCredentials, RegistrationEndpoint } from '../core/administration.ts';
import type { Appliance } from '../core/appliances/appliance.ts';
import type { ApplianceStatus } from '../core/appliances/appliance-status.ts';
import { rfc3339 } from '../core/clock.ts';
import { type Connection, damagedConnectionFailure, joinNames } from '../core/connections/connection.ts';
import type { WantedToken } from '../core/connections/connection-administration.ts';
import type { ConnectionStatus } from '../core/connections/connection-status.ts';
import { checkScope } from '../core/connections/scope.ts';
import { Failure } from '../core/failure.ts';
import type { Grant } from '../core/grants/grant.ts';
import { isSameIssuer } from '../core/portals/identity.ts';
import { newestFirst } from '../core/reports/history.ts';
import { Secret } from '../core/secret.ts';
import type { SetupCode } from '../core/setup-access.ts';
import { assertNotDeclared, type Credentials } from './appliances/appliances.ts';
import { assertConnectionFits } from './connections/connection-changes.ts';
import type { Broker } from './open-broker.ts';
import { createPairingAdministration } from './pairings/pairing-administration.ts';
import { applianceStatus } from './status/appliance-status.ts';
import { connectionStatus } from './status/connection-status.ts';

/** The longest time for which registration can be opened, in seconds. */
const MAX_OPEN_SECONDS = 86_400;
/** The longest lifetime of an invite, in seconds. */
const MAX_INVITE_SECONDS = 30 * 86_400;

/** The hub's current addresses and CA pin. */
export interface HubLinks {
  /** The URL of an endpoint on the home network. */
  endpoint(path: string): string;
  /** The same with a host that stays when the hub's address changes. */
  stableEndpoint(path: string): string;
  /**
   * The URL of a pairing's short link for phones on the home network, by its key; null while the hub has no address
   * there.
   */
  shortLink(key: string): string | null;
  /** The pin of the CA. */
  fingerprint(): string;
}

/**
 * Creates the part of the administration service behind the control socket and the installer's page that the broker
 * provides; the hub provides the rest.
 * @param user the name of the user in whose name it acts, as a reverse proxy reports it; left out if it is unknown
 */
export function createBrokerAdministration(broker: Broker, links: HubLinks, user?: string) {
  const { connections, appliances, grants, pairings, sessions, registrations, access, notices, store } = broker;
  const { clock, log, emit } = broker.environment;

  function connectionStatusOf(connection: Connection): ConnectionStatus {
    return connectionStatus(connection, broker, (userCode) => links.endpoint(`/pair?user_code=${userCode}`));
  }

  /**
   * @param statuses of its connections
   * @throws Failure `connection_unknown` if they were removed
   */
  function applianceStatusOf(appliance: Appliance, statuses: readonly ConnectionStatus[]): ApplianceStatus {
    return applianceStatus(appliance, statuses, broker);
  }

  function statusOf(appliance: Appliance): ApplianceStatus {
    return applianceStatusOf(appliance, connections.allOfAppliance(appliance).map(connectionStatusOf));
  }

  /** For texts. */
  function connectionNames(appliance: Appliance): string {
    return joinNames(connections.allOfAppliance(appliance).map(({ name }) => name));
  }

  /** @throws Failure `connection_unknown`, `name_invalid` */
  function getConnection(typed: string): Connection {
    const appliance = connections.findTyped(typed) === undefined ? appliances.findTyped(typed) : undefined;
    if (appliance === undefined) return connections.get(typed);
    const names = connectionNames(appliance);
    const rest =
      connections.allOfAppliance(appliance).length > 1
        ? `connections ${names}: name one of them instead`
        : `connection ${names}: name that one instead`;
    throw new Failure('connection_unknown', `the appliance ${appliance.title} uses the ${rest}`);
  }

  /** @throws Failure `not_allowed` if the only appliance of the connection waits for approval */
  function requireApproved(connection: Connection): Connection {
    if (!appliances.waitForApproval(connection.id)) return connection;
    const { name, title } = appliances.usersOf(connection.id)[0] ?? connection;
    throw new Failure('not_allowed', `${title} is not approved yet: run "latchkey appliance approve ${name}" first`);
  }

  /**
   * Revokes the deleted grant of a connection at the portal, if the portal has an endpoint for that. That of a damaged
   * connection is only deleted: its row may name another portal.
   * @returns whether the portal has revoked it; null if there is no grant
   */
  async function revokeGrant({ id, name, portal, damaged }: Connection, grant: Grant | null): Promise<boolean | null> {
    if (grant === null) return null;
    const connected = broker.portalOf(portal);
    if (damaged || connected === undefined || !isSameIssuer(grant.issuer, connected.identity)) return false;
    return grants.revoke(id, { name, portal: connected.portal }, grant, true);
  }

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
      grants.get(id) !== undefined || grants.getSuspended(id) !== undefined || store.grants.damaged.has(id);
    const deleted = await grants.delete(id);
    await endSessions(id);
    if (isPaired) emit({ kind: 'unpaired', connection: id, at: clock.now(), ...(user !== undefined && { user }) });
    log.info('connection_unpaired', { connection: name, user });
    return revokeGrant(connection, deleted);
  }

  function toIssuedCredentials({ appliance, secret }: Credentials): IssuedCredentials {
    return {
      name: appliance.name,
      title: appliance.title,
      clientId: appliance.clientId,
      clientSecret: secret,
      tokenEndpoint: links.endpoint('/oauth/token'),
      caFingerprint: links.fingerprint(),
    };
  }

  function registrationEndpoint(): RegistrationEndpoint {
    return { registrationEndpoint: links.endpoint('/oauth/register'), caFingerprint: links.fingerprint() };
  }

  function setupCode(): SetupCode {
    const { token, lifetime } = access.issueSignInToken();
    return {
      code: access.code,
      pageUrl: links.endpoint('/'),
      stablePageUrl: links.stableEndpoint('/'),
      signInUrl: new Secret(links.endpoint(`/sign-in/${token.reveal()}`)),
      signInExpiresIn: Math.floor(lifetime / 1000),
    };
  }

  return {
    connectionStatusOf,
    applianceStatusOf,
    async addConnection(typed, scope, portal) {
      await appliances.releaseName(connections.nameFor(typed));
      const connection = await connections.add(typed, scope, portal);
      log.info('connection_added', { connection: connection.name, portal: connection.portal, user });
      return connectionStatusOf(connection);
    },
    async renameConnection(typed, title) {
      const connection = connections.get(typed);
      const renamed = await appliances.renameConnection(connection, title);
      const { name } = renamed;
      if (renamed.title !== connection.title)
        log.info('connection_renamed', { connection: name, before: connection.title, title: renamed.title, user });
      return connectionStatusOf(renamed);
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
        isPortalTold ??= await revokeGrant(connection, grants.stopManaging(connection.id));
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
      await broker.grantImports.run(connection, request);
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
      const lines = newestFirst(await broker.historyRecorder.historyOf(getConnection(typed).id));
      return lines.map(({ first, last, ...line }) => ({ ...line, first: rfc3339(first), last: rfc3339(last) }));
    },
    async addAppliance(typed, choice) {
      const credentials = await appliances.add(typed, choice);
      const connection = connectionNames(credentials.appliance);
      log.info('appliance_added', { appliance: credentials.appliance.name, connection, user });
      return toIssuedCredentials(credentials);
    },
    async moveAppliance(typed, chosen) {
      const appliance = appliances.get(typed);
      const former = connections.allOfAppliance(appliance);
      const before = connectionNames(appliance);
      const targets = chosen.map((connection) => connections.get(connection));
      const left = former.filter((connection) => !targets.includes(connection));
      if (left.length === 0 && targets.every((target) => former.includes(target))) return statusOf(appliance);
      // Also from the store, because a grant that is being imported is only there.
      const hasGrant = async ({ id }: Connection) =>
        (grants.get(id) ?? grants.getSuspended(id)) !== undefined ||
        (await store.grants.get(id)) !== null ||
        store.grants.damaged.has(id);
      const moved = await appliances.move(appliance, targets, hasGrant);
      for (const { id } of left) {
        await pairings.endDeviceFlows(appliance.id, id);
        if (connections.byId(id) === undefined) await pairings.removeAll(id);
      }
      notices.scheduleCheck();
      log.info('appliance_moved', { appliance: appliance.name, before, connection: connectionNames(moved), user });
      return statusOf(moved);
    },
    async renameAppliance(typed, title) {
      const appliance = appliances.get(typed);
      const renamed = await appliances.rename(appliance, title);
      if (renamed.title !== appliance.title)
        log.info('appliance_renamed', { appliance: renamed.name, before: appliance.title, title: renamed.title, user });
      return statusOf(renamed);
    },
    async removeAppliance(typed) {
      const appliance = appliances.get(typed);
      assertNotDeclared(appliance);
      await pairings.endDeviceFlows(appliance.id);
      const removed = await appliances.remove(appliance);
      await sessions.endAll(appliance.id);
      notices.scheduleCheck();
      log.info('appliance_removed', { appliance: appliance.name, reason: 'request', user });
      if (removed === null) return null;
      await pairings.removeAll(removed.id);
      return revokeGrant(removed, grants.stopManaging(removed.id));
    },
    async rotateSecret(typed, replaceKeys) {
      const credentials = await appliances.rotateSecret(appliances.get(typed), replaceKeys);
      log.info('secret_rotated', { appliance: credentials.appliance.name, user });
      broker.refusedRequests.credentialsReplaced(credentials.appliance);
      return toIssuedCredentials(credentials);
    },
    hasUnusedSecret: (typed) => broker.refusedRequests.hasUnusedCredentials(appliances.get(typed)),
    async approveAppliance(typed, code, connection, portal = null) {
      const choice = {
        connection: connection === null ? null : connections.get(connection),
        portal: portal === null ? null : connections.resolvePortal(portal),
      };
      const appliance = await registrations.approve(appliances.get(typed), code, choice);
      notices.scheduleCheck();
      log.info('appliance_approved', { appliance: appliance.name, user });
      return statusOf(appliance);
    },
    async invite(request) {
      checkSeconds(request.ttl, 1, MAX_INVITE_SECONDS);
      const { invite, token } = await registrations.createInvite(request);
      log.info('invite_created', { appliance: invite.name ?? undefined, expires_in: request.ttl });
      return { token, name: invite.name, scope: invite.scope, expiresIn: request.ttl, ...registrationEndpoint() };
    },
    async openRegistration(seconds) {
      checkSeconds(seconds, 0, MAX_OPEN_SECONDS);
      // Each appliance that registers gets a connection at the default portal.
      if (seconds > 0) connections.resolvePortal(null);
      registrations.setOpenFor(seconds * 1000);
      if (seconds > 0) log.warn('registration_opened', { expires_in: seconds, user });
      else log.info('registration_closed', { user });
      return registrationEndpoint();
    },
    ...createPairingAdministration(broker, {
      getConnection,
      requireApproved,
      shortLink: (key) => links.shortLink(key),
      user,
    }),
    setupCode: async () => setupCode(),
    async rotateSetupCode() {
      await access.rotate();
      return setupCode();
    },
  } satisfies Partial<Administration> & Record<'connectionStatusOf' | 'applianceStatusOf', unknown>;
}

/** @throws Failure `hub_stopping` if another hub is about to replace this one, so that no further refresh is started */
export function assertNotStopping({ grants }: Pick<Broker, 'grants'>): void {
  if (!grants.stopping.aborted) return;
  throw new Failure('hub_stopping', 'the hub is applying a changed configuration: try again in a moment');
}

/** @throws Failure `not_allowed` */
function checkSeconds(seconds: number, min: number, max: number): void {
  if (seconds >= min && seconds <= max) return;
  throw new Failure('not_allowed', `${seconds} s is out of range: use ${min} to ${max} seconds (${max / 86_400} d)`);
}
