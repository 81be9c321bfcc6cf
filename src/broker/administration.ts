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

/** Registration is held open for so long at most, in seconds. */
const MAX_OPEN_SECONDS = 86_400;
/** An invite is good for so long at most, in seconds. */
const MAX_INVITE_SECONDS = 30 * 86_400;

/** How the hub can be reached and recognized, as it is now. */
export interface HubLinks {
  /** An endpoint's address on the home network. */
  endpoint(path: string): string;
  /** Where a phone in the home network goes on to a pairing's link, by its short key; null while the hub has no address there. */
  shortLink(key: string): string | null;
  /** The pin of the certificate that appliances pin. */
  fingerprint(): string;
}

/** What people may ask of the broker; the rest of {@link Administration} is the hub's own. */
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

/** Serves people at the hub: what the control socket and the installer's page ask of the broker. */
export function createBrokerAdministration(broker: Broker, address: HubLinks): BrokerAdministration {
  const { appliances, grants, pairings, sessions, registrations, access, notices, store } = broker;
  const { clock, log, emit } = broker.environment;

  function statusOf(appliance: Appliance): ApplianceStatus {
    return applianceStatus(appliance, broker, (userCode) => address.endpoint(`/pair?user_code=${userCode}`));
  }

  function issued({ appliance, secret }: Credentials): IssuedCredentials {
    return {
      name: appliance.name,
      clientId: appliance.clientId,
      clientSecret: secret,
      tokenEndpoint: address.endpoint('/oauth/token'),
      caFingerprint: address.fingerprint(),
    };
  }

  function registrationPlace(): RegistrationEndpoint {
    return { registrationEndpoint: address.endpoint('/oauth/register'), caFingerprint: address.fingerprint() };
  }

  function setupCode(): SetupCode {
    const { token, lifetime } = access.issueSignInToken();
    return {
      code: access.code,
      pageUrl: address.endpoint('/'),
      signInUrl: new Secret(address.endpoint(`/sign-in/${token.reveal()}`)),
      signInExpiresIn: Math.floor(lifetime / 1000),
    };
  }

  return {
    statusOf,
    portals: () => appliances.portals,
    async addAppliance(name, scope, portal) {
      const credentials = await appliances.add(name, scope, portal);
      log.info('appliance_added', { appliance: name, portal: credentials.appliance.portal });
      return issued(credentials);
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
      return issued(credentials);
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
      return { token, name: invite.name, scope: invite.scope, expiresIn: request.ttl, ...registrationPlace() };
    },
    async openRegistration(seconds) {
      checkSeconds(seconds, 0, MAX_OPEN_SECONDS);
      registrations.setOpenFor(seconds * 1000);
      if (seconds > 0) log.warn('registration_opened', { expires_in: seconds });
      else log.info('registration_closed');
      return registrationPlace();
    },
    async pair(name) {
      await broker.ready;
      const run = await pairings.begin(requireApproved(appliances.get(name)));
      log.info('pairing_started', { appliance: name, by: 'person' });
      return run.pairing.id;
    },
    async *followPairing(id, signal) {
      // Who has followed it over a restart would be told that it is not known.
      await broker.ready;
      const run = pairings.get(id);
      yield* followPairing(run, signal, () => address.shortLink(run.shortKey));
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

/** @throws Failure `hub_stopping` where another hub is about to take this one's place, so that no refresh is started any more */
export function assertNotStopping({ grants }: Pick<Broker, 'grants'>): void {
  if (!grants.isStopping) return;
  throw new Failure('hub_stopping', 'the hub is taking a changed configuration over: try again in a moment');
}

/** @throws Failure `not_allowed` where it waits to be approved */
function requireApproved(appliance: Appliance): Appliance {
  if (appliance.waitingSince === null) return appliance;
  const { name } = appliance;
  throw new Failure('not_allowed', `${name} is not approved yet: run "latchkey appliance approve ${name}" first`);
}

function toHistoryEntry({ kind, why, first, last, count }: StoredHistoryEntry): HistoryEntry {
  return { kind, why, first: rfc3339(first), last: rfc3339(last), count };
}

/** @throws Failure `not_allowed` */
function checkSeconds(seconds: number, least: number, most: number): void {
  if (seconds >= least && seconds <= most) return;
  throw new Failure(
    'not_allowed',
    `${seconds} s is not allowed: give ${least} to ${most} seconds (${most / 86_400} d)`,
  );
}
