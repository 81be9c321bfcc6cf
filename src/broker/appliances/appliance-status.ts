import type { ApplianceState, ApplianceStatus } from '../../core/administration.ts';
import type { Appliance } from '../../core/appliances/appliance.ts';
import { type Instant, rfc3339 } from '../../core/clock.ts';
import { type Grant, hasScopeChanged } from '../../core/grants/grant.ts';
import { isInstallerInitiated, preferredLink } from '../../core/pairings/pairing.ts';
import { recentPairingFailure } from '../../core/reports/pairing-failure.ts';
import type { Problem } from '../../core/reports/problem.ts';
import { comparisonCode } from '../../system/comparison-code.ts';
import type { ManagedGrant } from '../grants/managed-grant.ts';
import type { Broker } from '../open-broker.ts';
import type { PairingRun } from '../pairings/pairing-run.ts';
import type { BrokerStore } from '../ports.ts';

/**
 * The status of an appliance, as `latchkey status` reports it.
 * @param pairPage the URL of the hub's page for a user code
 */
export function applianceStatus(
  appliance: Appliance,
  {
    grants,
    pairings,
    store,
    environment,
    credentialLocationAt,
  }: Pick<Broker, 'grants' | 'pairings' | 'store' | 'environment' | 'credentialLocationAt'>,
  pairPage: (userCode: string) => string,
  now = environment.clock.now(),
): ApplianceStatus {
  const managed = grants.get(appliance.id);
  const run = pairings.newestFor(appliance.id);
  const suspended = grants.getSuspended(appliance.id);
  const remaining = managed === undefined ? null : grants.schedule.remaining(managed, now);
  const due = managed === undefined ? null : grants.schedule.dueAt(managed, now);
  const started = ago(now, now.uptime - grants.schedule.startedAt);
  const suspendedProblem = suspended === undefined ? null : portalChangedProblem(appliance, suspended, started);
  const problem = managed === undefined ? suspendedProblem : problemOf(managed, remaining, due, started, now);
  const status: ApplianceStatus = {
    name: appliance.name,
    clientId: appliance.clientId,
    state:
      managed === undefined
        ? stateWithoutGrant(run?.isOpen === true, suspended !== undefined)
        : stateWithGrant(managed, problem),
    scope: managed === undefined ? appliance.scope : managed.grant.scope,
    expiresIn: remaining === null ? null : Math.floor(remaining / 1000),
    refreshIn: due === null ? null : Math.max(0, Math.ceil((due - now.uptime) / 1000)),
    lastRefresh: managed === undefined ? null : refreshedAt(managed.grant, grants.schedule.age(managed, now), now),
    problem: problem && { code: problem.code, message: problem.message, since: rfc3339(problem.since.wall) },
    portal: appliance.portal,
    account: managed?.grant.account ?? null,
    ...(appliance.origin === 'declared' ? { declared: true } : {}),
    ...(problem !== null && problem === suspendedProblem ? { grantMissing: 'portal_changed' } : {}),
    ...registrationFields(appliance),
    ...(appliance.credentials.kind === 'none' ? { withoutCredentials: true } : {}),
    ...(hasScopeChanged(appliance, managed?.grant) ? { wantedScope: appliance.scope } : {}),
    ...(run === undefined ? {} : loginFields(run, pairPage)),
    ...(problem?.isUntried && { credentialsUntried: true }),
    ...(problem?.code === 'misconfigured' ? { credentialLocation: credentialLocationAt(appliance.portal) } : {}),
  };
  const fullStatus = withStoreProblem(status, appliance.id, store, rfc3339(started.wall));
  const isOver = (fullStatus.state === 'unpaired' || fullStatus.state === 'needs_pairing') && run?.isOpen !== true;
  return isOver
    ? { ...fullStatus, ...pairingFailureFields(pairings.newestOpened(appliance.id), now, grants.schedule.startedAt) }
    : fullStatus;
}

/**
 * Adjusts an appliance's status if the store has lost its grant or credentials, or can't be written.
 * @param appliance its id
 */
function withStoreProblem(
  base: ApplianceStatus,
  appliance: string,
  { writeProblem, damagedGrants, damagedAppliances }: BrokerStore,
  since: string,
): ApplianceStatus {
  const damaged = base.withoutCredentials === true && damagedAppliances.has(appliance);
  const status: ApplianceStatus = damaged ? { ...base, credentialsDamaged: true } : base;
  if (status.state === 'unpaired' && damagedGrants.has(appliance)) {
    const message = "The part of the hub's store that held this grant was damaged, and there is no copy of it";
    return {
      ...status,
      state: 'needs_pairing',
      problem: { code: 'refused', message, since },
      grantMissing: 'grant_damaged',
    };
  }
  if (status.state === 'active' && writeProblem !== null) {
    const message = `The hub can't write its store, so it starts no refresh: ${writeProblem}`;
    return { ...status, state: 'retrying', problem: { code: 'store_unwritable', message, since } };
  }
  return status;
}

const MINUTE_MS = 60_000;

/**
 * When the access token was obtained, by the hub's current clock, which may have been set since or differ from the
 * portal's. The difference is rounded to whole minutes, so that the result does not change with each call. Null if the
 * token's age is unknown, and the recorded time is still ahead of the hub's clock.
 */
function refreshedAt({ obtained, portalTime }: Grant, age: number | null, now: Instant): string | null {
  if (age === null) {
    const obtainedAt = portalTime ?? obtained.wall;
    return obtainedAt <= now.wall ? rfc3339(obtainedAt) : null;
  }
  const clockOffset = now.wall - age - obtained.wall;
  return rfc3339(obtained.wall + MINUTE_MS * Math.round(clockOffset / MINUTE_MS));
}

/** Why the last pairing of an unpaired appliance failed. */
function pairingFailureFields(
  run: PairingRun | undefined,
  now: Instant,
  started: number,
): Pick<ApplianceStatus, 'pairingFailed' | 'credentialLocation'> {
  const failure = run === undefined ? null : recentPairingFailure(run.pairing, now, started);
  if (run === undefined || failure === null) return {};
  const { reason, at } = failure;
  return {
    pairingFailed: { reason, message: run.failureMessage(reason), at: rfc3339(at.wall) },
    credentialLocation: run.credentialLocation,
  };
}

/**
 * Where a person may log in. If no installer started the pairing, the portal's link is created when the hub's page is
 * opened.
 */
function loginFields(
  { pairing, redirect }: PairingRun,
  pairPage: (userCode: string) => string,
): Pick<ApplianceStatus, 'authorizeUrl'> {
  const { step, device } = pairing;
  if (step.kind === 'waiting' && isInstallerInitiated(pairing)) {
    return { authorizeUrl: (preferredLink(step, redirect) ?? step.link).authorizeUrl };
  }
  const isOpen = step.kind === 'waiting' || step.kind === 'asking';
  return isOpen && device !== null ? { authorizeUrl: pairPage(device.userCode) } : {};
}

function registrationFields({
  clientId,
  waitingSince,
  softwareId,
  registeredFrom,
}: Appliance): Pick<ApplianceStatus, 'waitingForApproval'> {
  if (waitingSince === null) return {};
  return {
    waitingForApproval: {
      since: rfc3339(waitingSince.wall),
      softwareId,
      comparisonCode: comparisonCode(clientId),
      address: registeredFrom?.address ?? null,
    },
  };
}

/** The state of an appliance without a usable grant. */
function stateWithoutGrant(isPairing: boolean, hasSuspended: boolean): ApplianceState {
  if (isPairing) return 'pairing';
  return hasSuspended ? 'needs_pairing' : 'unpaired';
}

/** The problem of a suspended grant, see {@link Grants}. */
function portalChangedProblem({ portal }: Appliance, { issuer }: Grant, since: Instant): Problem {
  const issuerText = `${issuer.origin} (client_id ${issuer.clientId})`;
  const message = `It was paired with ${issuerText}, but its portal in the configuration is now ${portal}: the hub keeps the grant and uses it again if you restore the configuration; a new login replaces it`;
  return { code: 'refused', message, since };
}

function stateWithGrant({ health }: ManagedGrant, problem: Problem | null): ApplianceState {
  if (health.kind === 'refused') return 'needs_pairing';
  return problem === null ? 'active' : 'retrying';
}

function problemOf(
  { grant, health }: ManagedGrant,
  remaining: number | null,
  due: number | null,
  started: Instant,
  now: Instant,
): Problem | null {
  if (health.kind !== 'good') return health.problem;
  if (grant.accessTokenRejectedAt !== null) return rejectedTokenProblem(grant.accessTokenRejectedAt, due, now);
  if (remaining === null) return unknownAgeProblem(grant, due, started, now);
  // A problem only if the token has expired and there still is no response: before that, an appliance's token request
  // triggers a refresh.
  if (remaining > 0 || due === null || due > now.uptime) return null;
  return { code: 'portal_unreachable', message: 'The portal has not responded yet', since: tokenExpiry(grant, now) };
}

/** The problem that the appliance reported. Whether the next token works is up to the portal. */
function rejectedTokenProblem(since: Instant, due: number | null, now: Instant): Problem {
  const within = due === null ? 0 : Math.max(0, Math.ceil((due - now.uptime) / 1000));
  const message = `The appliance reported that the cloud refuses its access token: the hub gets another one ${within === 0 ? 'now' : `in ${within} s`}`;
  return { code: 'portal_rejected', message, since };
}

function unknownAgeProblem({ obtained }: Grant, due: number | null, since: Instant, now: Instant): Problem {
  const within = due === null ? 0 : Math.max(0, Math.ceil((due - now.uptime) / 1000));
  const message = `The hub was restarted and does not know the age of this token (obtained at ${rfc3339(obtained.wall)}): it refreshes the token within ${within} s, or when an appliance requests it, unless it learns the age first`;
  return { code: 'clock_unknown', message, since };
}

/** When the access token expired, by the current clock. */
function tokenExpiry({ obtained, lifetime }: Grant, now: Instant): Instant {
  return ago(now, obtained.boot === now.boot ? now.uptime - obtained.uptime - lifetime : 0);
}

/** The instant `ms` before `now`, by the current clock. */
function ago(now: Instant, ms: number): Instant {
  return { ...now, uptime: now.uptime - ms, wall: now.wall - ms };
}
