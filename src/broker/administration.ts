import type {
  Administration,
  ApplianceStatus,
  IssuedCredentials,
  RegistrationEndpoint,
} from '../core/administration.ts';
import type { Appliance } from '../core/appliances/appliance.ts';
import { rfc3339 } from '../core/clock.ts';
import { Failure } from '../core/failure.ts';
import { type HistoryEntry, newestFirst, type StoredHistoryEntry } from '../core/reports/history.ts';
import { Secret } from '../core/secret.ts';
import type { SetupCode } from '../core/setup-access.ts';
import { applianceStatus } from './appliances/appliance-status.ts';
import { assertNotDeclared, type Credentials } from './appliances/appliances.ts';
import type { Broker } from './open-broker.ts';
import { createPairingAdministration, followPairing } from './pairings/pairing-administration.ts';

/** The longest time for which registration can be opened, in seconds. */
const MAX_OPEN_SECONDS = 86_400;
/** The longest lifetime of an invite, in seconds. */
const MAX_INVITE_SECONDS = 30 * 86_400;

/** The hub's current addresses and CA pin. */
export interface HubLinks {
  /** The URL of an endpoint on the home network. */
  endpoint(path: string): string;
  /**
   * The URL of a pairing's short link for phones on the home network, by its key; null while the hub has no address
   * there.
   */
  shortLink(key: string): string | null;
  /** The pin of the CA. */
  fingerprint(): string;
}

/** The part of {@link Administration} that the broker provides; the hub provides the rest. */
export type BrokerAdministration = Omit<
  Administration,
  | 'status'
  | 'testNotices'
  | 'caStatus'
  | 'rotateCa'
  | 'setOldCaLifetime'
  | 'rotateStoreKey'
  | 'backUp'
  | 'restore'
  | 'reload'
  | 'reloadOutcome'
  | 'label'
> & {
  statusOf(appliance: Appliance): ApplianceStatus;
};

/** Creates the administration service behind the control socket and the installer's page. */
export function createBrokerAdministration(broker: Broker, links: HubLinks): BrokerAdministration {
  const { appliances, grants, pairings, sessions, registrations, access, notices, store } = broker;
  const { clock, log, emit } = broker.environment;

  function statusOf(appliance: Appliance): ApplianceStatus {
    return applianceStatus(appliance, broker, (userCode) => links.endpoint(`/pair?user_code=${userCode}`));
  }

  function toIssuedCredentials({ appliance, secret }: Credentials): IssuedCredentials {
    return {
      name: appliance.name,
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
      signInUrl: new Secret(links.endpoint(`/sign-in/${token.reveal()}`)),
      signInExpiresIn: Math.floor(lifetime / 1000),
    };
  }

  return {
    statusOf,
    portals: () => appliances.portals,
    async addAppliance(name, scope, portal) {
      const credentials = await appliances.add(name, scope, portal);
      log.info('appliance_added', { appliance: name, portal: credentials.appliance.portal });
      return toIssuedCredentials(credentials);
    },
    async removeAppliance(name) {
      const appliance = appliances.get(name);
      assertNotDeclared(appliance);
      await pairings.removeAll(appliance.id);
      await appliances.remove(appliance);
      grants.stopManaging(appliance.id);
      await sessions.endAll(appliance.id);
      notices.scheduleCheck();
      log.info('appliance_removed', { appliance: name, reason: 'request' });
    },
    async rotateSecret(name, replaceKeys) {
      const credentials = await appliances.rotateSecret(appliances.get(name), replaceKeys);
      log.info('secret_rotated', { appliance: name });
      return toIssuedCredentials(credentials);
    },
    async approveAppliance(name, code) {
      const appliance = await registrations.approve(appliances.get(name), code);
      notices.scheduleCheck();
      log.info('appliance_approved', { appliance: name });
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
      registrations.setOpenFor(seconds * 1000);
      if (seconds > 0) log.warn('registration_opened', { expires_in: seconds });
      else log.info('registration_closed');
      return registrationEndpoint();
    },
    async pair(name) {
      await broker.ready;
      const run = await pairings.begin(requireApproved(appliances.get(name)));
      log.info('pairing_started', { appliance: name, by: 'person' });
      return run.pairing.id;
    },
    async *followPairing(id, signal) {
      // A client that follows a pairing across a restart would get an unknown-pairing error otherwise.
      await broker.ready;
      const run = pairings.get(id);
      yield* followPairing(run, signal, () => links.shortLink(run.shortKey));
    },
    ...createPairingAdministration(broker, requireApproved),
    async unpair(name) {
      const { id } = appliances.get(name);
      const isPaired =
        grants.get(id) !== undefined || grants.getSuspended(id) !== undefined || store.damagedGrants.has(id);
      await pairings.end(id, 'cancelled');
      await pairings.clearFailures(id);
      await grants.delete(id);
      await sessions.endAll(id);
      if (store.damagedGrants.has(id)) await store.forgetGrant(id, await store.generation(id));
      if (isPaired) emit({ kind: 'unpaired', appliance: id, at: clock.now() });
      log.info('appliance_unpaired', { appliance: name });
    },
    async token(name) {
      const result = await broker.tokenIssuer.issue(requireApproved(appliances.get(name)).id, null);
      if (result.kind === 'token') return result;
      const why = {
        unavailable: 'has no token for now: "latchkey status" says why',
        needs_pairing: `must be paired again: run "latchkey pair ${name}"`,
        not_paired: `is not paired: run "latchkey pair ${name}"`,
        other_scope: 'has another scope',
      };
      throw new Failure('token_unavailable', `${name} ${why[result.kind]}`);
    },
    async refresh(name) {
      const appliance = appliances.get(name);
      if (grants.get(appliance.id) === undefined) {
        const { problem } = statusOf(appliance);
        const why =
          problem === null ? `is not paired: run "latchkey pair ${name}"` : `can't be refreshed: ${problem.message}`;
        throw new Failure('token_unavailable', `${name} ${why}`);
      }
      assertNotStopping(broker);
      await grants.refresh(appliance.id);
      return statusOf(appliance);
    },
    async history(name) {
      return newestFirst(await broker.historyRecorder.historyOf(appliances.get(name).id)).map(toHistoryEntry);
    },
    setupCode: async () => setupCode(),
    async rotateSetupCode() {
      await access.rotate();
      return setupCode();
    },
  };
}

/** @throws Failure `hub_stopping` if another hub is about to replace this one, so that no further refresh is started */
export function assertNotStopping({ grants }: Pick<Broker, 'grants'>): void {
  if (!grants.isStopping) return;
  throw new Failure('hub_stopping', 'the hub is applying a changed configuration: try again in a moment');
}

/** @throws Failure `not_allowed` if the appliance waits for approval */
function requireApproved(appliance: Appliance): Appliance {
  if (appliance.waitingSince === null) return appliance;
  const { name } = appliance;
  throw new Failure('not_allowed', `${name} is not approved yet: run "latchkey appliance approve ${name}" first`);
}

function toHistoryEntry({ kind, why, first, last, count }: StoredHistoryEntry): HistoryEntry {
  return { kind, why, first: rfc3339(first), last: rfc3339(last), count };
}

/** @throws Failure `not_allowed` */
function checkSeconds(seconds: number, min: number, max: number): void {
  if (seconds >= min && seconds <= max) return;
  throw new Failure('not_allowed', `${seconds} s is out of range: use ${min} to ${max} seconds (${max / 86_400} d)`);
}
