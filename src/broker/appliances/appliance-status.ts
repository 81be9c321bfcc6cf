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
 * What `status` says of an appliance.
 * @param pairPage the address of the hub's own page for a user code
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
  const held = grants.get(appliance.id);
  const run = pairings.newestFor(appliance.id);
  const resting = grants.getSuspended(appliance.id);
  const remaining = held === undefined ? null : grants.schedule.remaining(held, now);
  const due = held === undefined ? null : grants.schedule.dueAt(held, now);
  const started = ago(now, now.uptime - grants.schedule.startedAt);
  const restingProblem = resting === undefined ? null : portalChangedProblem(appliance, resting, started);
  const problem = held === undefined ? restingProblem : problemOf(held, remaining, due, started, now);
  const status: ApplianceStatus = {
    name: appliance.name,
    clientId: appliance.clientId,
    state:
      held === undefined
        ? stateWithoutGrant(run?.isOpen === true, resting !== undefined)
        : stateWithGrant(held, problem),
    scope: held === undefined ? appliance.scope : held.grant.scope,
    expiresIn: remaining === null ? null : Math.floor(remaining / 1000),
    refreshIn: due === null ? null : Math.max(0, Math.ceil((due - now.uptime) / 1000)),
    lastRefresh: held === undefined ? null : refreshedAt(held.grant, grants.schedule.age(held, now), now),
    problem: problem && { code: problem.code, message: problem.message, since: rfc3339(problem.since.wall) },
    portal: appliance.portal,
    account: held?.grant.account ?? null,
    ...(appliance.origin === 'declared' ? { declared: true } : {}),
    ...(problem !== null && problem === restingProblem ? { grantMissing: 'portal_changed' } : {}),
    ...registrationFields(appliance),
    ...(appliance.credentials.kind === 'none' ? { withoutCredentials: true } : {}),
    ...(hasScopeChanged(appliance, held?.grant) ? { wantedScope: appliance.scope } : {}),
    ...(run === undefined ? {} : loginFields(run, pairPage)),
    ...(problem?.isUntried && { credentialsUntried: true }),
    ...(problem?.code === 'misconfigured' ? { credentialLocation: credentialLocationAt(appliance.portal) } : {}),
  };
  const whole = withStoreProblem(status, appliance.id, store, rfc3339(started.wall));
  const isOver = (whole.state === 'unpaired' || whole.state === 'needs_pairing') && run?.isOpen !== true;
  return isOver
    ? { ...whole, ...pairingFailureFields(pairings.newestOpened(appliance.id), now, grants.schedule.startedAt) }
    : whole;
}

/**
 * What an appliance's status becomes where the store has lost its grant or its credentials, or can't be written.
 * @param appliance its id
 */
function withStoreProblem(
  whole: ApplianceStatus,
  appliance: string,
  { writeProblem: unwritable, damagedGrants, damagedAppliances }: BrokerStore,
  since: string,
): ApplianceStatus {
  const damaged = whole.withoutCredentials === true && damagedAppliances.has(appliance);
  const status: ApplianceStatus = damaged ? { ...whole, credentialsDamaged: true } : whole;
  if (status.state === 'unpaired' && damagedGrants.has(appliance)) {
    const message = "The hub's store was damaged where it held this grant, and there is no copy of it";
    return {
      ...status,
      state: 'needs_pairing',
      problem: { code: 'refused', message, since },
      grantMissing: 'grant_damaged',
    };
  }
  if (status.state === 'active' && unwritable !== null) {
    const message = `The hub can't write its store, so it starts no refresh: ${unwritable}`;
    return { ...status, state: 'retrying', problem: { code: 'store_unwritable', message, since } };
  }
  return status;
}

const MINUTE_MS = 60_000;

/**
 * When the token at hand was given, by the hub's clock as it is now, which may have been set since, or may not be the portal's.
 * Whole minutes are put right, so that it does not change with each look. Null where that clock has not come so far yet.
 */
function refreshedAt({ obtained, portalTime }: Grant, age: number | null, now: Instant): string | null {
  if (age === null) {
    const told = portalTime ?? obtained.wall;
    return told <= now.wall ? rfc3339(told) : null;
  }
  const off = now.wall - age - obtained.wall;
  return rfc3339(obtained.wall + MINUTE_MS * Math.round(off / MINUTE_MS));
}

/** Why the last pairing of an appliance that is not paired has failed. */
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

/** Where a person may log in. Without an installer the portal's own link is made when the hub's page is opened. */
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
      softwareId: softwareId,
      comparisonCode: comparisonCode(clientId),
      address: registeredFrom?.address ?? null,
    },
  };
}

/** The state of an appliance without a grant that is at work. */
function stateWithoutGrant(isPairing: boolean, hasResting: boolean): ApplianceState {
  if (isPairing) return 'pairing';
  return hasResting ? 'needs_pairing' : 'unpaired';
}

/** The configuration says another portal than the one that gave the grant. */
function portalChangedProblem({ portal }: Appliance, { issuer }: Grant, since: Instant): Problem {
  const giver = `${issuer.origin} (client_id ${issuer.clientId})`;
  const message = `It was paired with ${giver}, which is not what the configuration has as its portal now, ${portal}: the grant is kept, and is at work again when the configuration is as it was; a new login takes its place`;
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
  // Past its time, and still without an answer; before that, an appliance that asks has it refreshed.
  if (remaining > 0 || due === null || due > now.uptime) return null;
  return { code: 'portal_unreachable', message: 'The portal has not answered yet', since: tokenExpiry(grant, now) };
}

/** Its appliance said so; whether the next one is better is up to the portal. */
function rejectedTokenProblem(since: Instant, due: number | null, now: Instant): Problem {
  const within = due === null ? 0 : Math.max(0, Math.ceil((due - now.uptime) / 1000));
  const message = `The cloud refused the access token, the appliance says: the hub gets another one ${within === 0 ? 'now' : `in ${within} s`}`;
  return { code: 'portal_rejected', message, since };
}

function unknownAgeProblem({ obtained }: Grant, due: number | null, since: Instant, now: Instant): Problem {
  const within = due === null ? 0 : Math.max(0, Math.ceil((due - now.uptime) / 1000));
  const message = `The hub was started anew and does not know how old this token is (it is from ${rfc3339(obtained.wall)}): it is refreshed within ${within} s, or when an appliance asks, unless its age becomes known before`;
  return { code: 'clock_unknown', message, since };
}

/** When the token at hand ended, on the clock as it is now. */
function tokenExpiry({ obtained, lifetime }: Grant, now: Instant): Instant {
  return ago(now, obtained.boot === now.boot ? now.uptime - obtained.uptime - lifetime : 0);
}

/** So many ms before `now`, on the clock as it is now. */
function ago(now: Instant, ms: number): Instant {
  return { ...now, uptime: now.uptime - ms, wall: now.wall - ms };
}
