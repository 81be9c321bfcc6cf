import { type Appliance, connectionIds } from '../core/appliances/appliance.ts';
import { sessionConnection } from '../core/appliances/session.ts';
import { confirmedTimeAt, type Instant } from '../core/clock.ts';
import { isOwnConnection } from '../core/connections/connection.ts';
import {
  type FoundDeviceFlow,
  type LanService,
  MAX_RESPONSE_TIME,
  type PairedConnection,
  type TokenResult,
} from '../core/lan-service.ts';
import { isInstallerInitiated, type Pairing, preferredLink } from '../core/pairings/pairing.ts';
import { toShownLink } from '../core/portals/login-link.ts';
import { withTimeout } from '../system/clock.ts';
import { sha256 } from '../system/secret-hash.ts';
import type { Broker } from './open-broker.ts';
import { connectionStatus } from './status/connection-status.ts';

/** The scope of a request; null if it names none, or if the hub ignores it. */
function relevantScope({ ignoresScope }: Appliance, requested: string | null): string | null {
  return ignoresScope ? null : requested;
}

/** What the LAN service needs besides the broker. */
interface LanServiceContext extends Pick<LanService, 'hub'> {
  /** When the daemon was started. */
  readonly started: Instant;
  /** The current CA pin. */
  caFingerprint(): string;
  /** Counts the results of token requests. */
  tokenRequested(appliance: string, kind: TokenResult['kind']): void;
}

/** Creates the service behind the OAuth endpoints and the pages on the LAN. */
export function createLanService(
  broker: Broker,
  { started, hub, caFingerprint, tokenRequested }: LanServiceContext,
): LanService {
  const { connections, appliances, grants, pairings, pairingBatches, deviceFlows, sessions, registrations, ready } =
    broker;
  const { clock, log, timers } = broker.environment;

  /** @returns undefined if `work` takes longer */
  function byDeadline<Result>(work: Promise<Result>, deadline: number): Promise<Result | undefined> {
    return withTimeout(work, deadline - clock.now().uptime, timers);
  }

  function pairedConnection({ connection }: Pairing): PairedConnection {
    const found = connections.byId(connection);
    const { name, title } = found ?? { name: 'The connection', title: 'The connection' };
    const users = appliances.usersOf(connection);
    return { connection: name, title, users, ...(found && isOwnConnection(found, users) && { own: true }) };
  }

  /** @param wanted its name; left out if the request does not say */
  function chooseConnection(appliance: Appliance, wanted?: string) {
    const used = connections.allOfAppliance(appliance);
    const [only, ...more] = used.filter(({ name }) => wanted === undefined || name === wanted);
    if (only !== undefined && more.length === 0) return only;
    return { kind: 'other_connection', connections: used.map(({ name }) => name) } as const;
  }

  /** The grant of a pairing's connection, if nobody needs to log in again; undefined otherwise. */
  function usableGrant({ connection: id }: Pairing) {
    const connection = connections.byId(id);
    return connection === undefined || grants.needsPairing(connection) ? undefined : grants.get(id)?.grant;
  }

  function foundDeviceFlow(pairing: Pairing): FoundDeviceFlow {
    const { kind } = pairing.step;
    const found = pairedConnection(pairing);
    const { connection: name, title, own } = found;
    const appliance = appliances.byId(pairing.device?.appliance ?? '');
    return {
      pairing,
      ...found,
      appliance: appliance === undefined ? { name, title } : { name: appliance.name, title: appliance.title },
      isApprovable:
        (kind === 'asking' || kind === 'waiting') &&
        !isInstallerInitiated(pairing) &&
        usableGrant(pairing) !== undefined,
      // Also if another scope is configured by now: the former grant is still in use.
      needsInstaller: own !== true && (grants.get(pairing.connection)?.health.kind ?? 'refused') !== 'refused',
    };
  }

  return {
    findClient: (clientId) => appliances.byClientId(clientId),
    lookForNews: (deadline) => broker.newsLook.take(deadline),
    timeReadings: () =>
      broker.referenceClock.readings.flatMap((reading) => {
        const [now, since] = [confirmedTimeAt(reading, clock.now()), confirmedTimeAt(reading, started)];
        return now === null || since === null ? [] : [{ now, startedAt: since }];
      }),
    confirmTime: (deadline) => broker.portalTimeProbe.confirm(undefined, deadline),
    existedBeforeStart: ({ id }) => broker.previouslyKnown.has(id),
    recordAuthentication(appliance) {
      registrations.markAuthenticated(appliance.id);
      broker.refusedRequests.end(appliance);
    },
    recordRefusal: (appliance, reason, address) => broker.refusedRequests.record(appliance, reason, address),

    async issueToken(appliance, request) {
      const { id } = appliance;
      const { minTtl, deadline = clock.now().uptime + MAX_RESPONSE_TIME } = request;
      const scope = relevantScope(appliance, request.scope);
      const chosen = chooseConnection(appliance, request.connection);
      if ('kind' in chosen) {
        tokenRequested(id, chosen.kind);
        return chosen;
      }
      const { id: connection } = chosen;
      const managed = grants.get(connection);
      if (managed !== undefined && grants.schedule.age(managed) === null) {
        // No refresh will show the portal's clock, or one would end the token that other appliances still use.
        const needsTime = managed.grant.refreshToken === null || grants.schedule.endsAccessToken(managed);
        if (needsTime) await broker.portalTimeProbe.confirm(connections.byId(connection)?.portal, deadline);
      }
      const issued = await broker.tokenIssuer.issue(connection, scope, { minTtl, deadline });
      // It may have been removed, or have got another connection, while it waited for a refresh.
      const isUnchanged = appliances.isUser(id, connection);
      const result: TokenResult = isUnchanged ? issued : { kind: 'not_paired' };
      if (result.kind === 'token') broker.usageRecorder.record(id, connection);
      tokenRequested(id, result.kind);
      const needsLogin = result.kind === 'not_paired' || result.kind === 'needs_pairing';
      return needsLogin && isUnchanged && !isOwnConnection(chosen, appliances.usersOf(connection))
        ? { ...result, connection: chosen.name }
        : result;
    },
    async revoke(appliance, token) {
      const end = await sessions.end(appliance.id, token);
      if (end === 'none') for (const id of connectionIds(appliance)) await grants.reportRejectedToken(id, token);
      return end === 'unwritten' ? 'unwritten' : 'revoked';
    },

    async beginDeviceFlow(appliance, scope, connection) {
      await ready;
      const chosen = chooseConnection(appliance, connection);
      return 'kind' in chosen ? chosen : deviceFlows.begin(appliance, chosen, relevantScope(appliance, scope));
    },
    async pollDeviceFlow({ id }, deviceCode, deadline) {
      const isReady = ready.then(() => true);
      if ((await byDeadline(isReady, deadline)) === undefined) return null;
      const first = deviceFlows.poll(id, deviceCode);
      const mayBeKnown = first.kind === 'unknown' && (await broker.newsLook.take(deadline));
      const poll = mayBeKnown ? deviceFlows.poll(id, deviceCode) : first;
      if (poll.kind !== 'paired') return poll;
      return { kind: 'paired', connection: connections.byId(poll.connection)?.name ?? '' };
    },
    async createSession({ id }, deviceCode, connection, deadline) {
      const created = sessions.create(id, sha256(deviceCode), connections.get(connection).id);
      return (await byDeadline(created, deadline)) ?? null;
    },
    findSession(appliance, refreshToken) {
      const session = sessions.find(appliance.id, refreshToken);
      if (session === undefined) return undefined;
      const id = sessionConnection(session, connectionIds(appliance));
      if (id === undefined) return {};
      const name = connectionIds(appliance).includes(id) ? connections.byId(id)?.name : undefined;
      return name === undefined ? undefined : { connection: name };
    },

    hub,
    describeConnections: (appliance) =>
      connections.allOfAppliance(appliance).map((connection) => {
        const { name, title } = connection;
        const { state } = connectionStatus(connection, broker, (userCode) => userCode);
        return { name, title, cloud: broker.portalOf(connection.portal)?.preset ?? null, state };
      }),

    get caFingerprint() {
      return caFingerprint();
    },
    isInvite: (token) => registrations.isInvite(token),
    async register(metadata, token, address) {
      let registration = await registrations.register(metadata, token, address);
      if (registration.kind === 'token_refused' && (await broker.newsLook.take())) {
        registration = await registrations.register(metadata, token, address);
      }
      broker.notices.scheduleCheck();
      return registration;
    },

    async findPairingByUserCode(userCode) {
      await ready;
      const pairing = await pairings.findCaughtUp(() => deviceFlows.findByUserCode(userCode));
      return pairing && foundDeviceFlow(pairing);
    },
    async approveDeviceFlow(userCode, user) {
      await ready;
      const pairing = deviceFlows.findByUserCode(userCode);
      const grant = pairing === null ? undefined : usableGrant(pairing);
      if (pairing === null || grant === undefined) return;
      if (!(await deviceFlows.approve(userCode, grant.scope))) return;
      const { appliance, connection } = foundDeviceFlow(pairing);
      log.info('device_flow_approved', { appliance: appliance.name, connection, user });
    },
    async refuseDeviceFlow(userCode) {
      await ready;
      await deviceFlows.refuse(userCode);
    },
    requestLoginLink: (userCode) => deviceFlows.openLink(userCode),
    async findPairingByShortKey(key) {
      await ready;
      const run = await pairings.findCaughtUp(() => pairings.findByShortKey(key));
      if (run === null) return null;
      const { pairing, runner } = run;
      const link = preferredLink(pairing.step, runner.redirect);
      return {
        pairing,
        ...pairedConnection(pairing),
        link: link === undefined ? null : toShownLink(link),
      };
    },
    async receiveResponse(received, { batchToken, ...browser }) {
      await ready;
      const result = await pairings.receive(received, browser);
      if (result === null) return null;
      const { pairing } = result;
      const { response } = received;
      const code = response.kind === 'code' ? response.code : null;
      return {
        ...result,
        ...pairedConnection(pairing),
        login: code && pairings.get(pairing.id).responses.confirmationStatus(code),
        batch: pairingBatches.forBrowser(pairing.nonce, code, batchToken),
      };
    },
    browserToken: (pairing) => pairings.browserToken(pairing),
    async continueBatch(nonce, retry, batchToken) {
      await ready;
      return pairingBatches.continueInBrowser(nonce, retry, batchToken);
    },
  };
}
