import { formatDuration, type Instant, rfc3339, wallTimeOf, wholeMinutes } from '../../core/clock.ts';
import { type Connection, isOwnConnection } from '../../core/connections/connection.ts';
import type { ConnectionState, ConnectionStatus } from '../../core/connections/connection-status.ts';
import { missingScope } from '../../core/connections/scope.ts';
import { type Grant, hasScopeChanged } from '../../core/grants/grant.ts';
import { type LoginEnd, loginEnd } from '../../core/grants/login-end.ts';
import { isInstallerInitiated, preferredLink } from '../../core/pairings/pairing.ts';
import type { CredentialLocation } from '../../core/portals/identity.ts';
import { typedUserCode } from '../../core/portals/login-link.ts';
import { recentPairingFailure } from '../../core/reports/pairing-failure.ts';
import type { Problem, ProblemCode } from '../../core/reports/problem.ts';
import type { Appliances } from '../appliances/appliances.ts';
import type { GrantRunner } from '../grants/grant-runner.ts';
import type { Grants } from '../grants/grants.ts';
import type { PairingRun } from '../pairings/pairing-run.ts';
import type { Pairings } from '../pairings/pairings.ts';
import type { BrokerStore, ConnectedPortal, Environment } from '../ports.ts';
import type { ReferenceClock } from '../time/reference-clock.ts';

/** What the status of a connection is derived from. */
interface StatusSources {
  readonly appliances: Pick<Appliances, 'usersOf'>;
  readonly grants: Pick<Grants, 'get' | 'getSuspended' | 'schedule'>;
  readonly pairings: Pick<Pairings, 'newestFor' | 'newestOpened'>;
  readonly store: BrokerStore;
  readonly environment: Pick<Environment, 'clock'>;
  credentialLocationAt(portal: string): CredentialLocation;
  portalOf(portal: string): ConnectedPortal | undefined;
  readonly referenceClock: Pick<ReferenceClock, 'confirmedBy'>;
}

/**
 * The status of a connection, as `latchkey status` reports it.
 * @param pairPage the URL of the hub's page for a user code
 */
export function connectionStatus(
  connection: Connection,
  { appliances, grants, pairings, store, environment, credentialLocationAt, portalOf, referenceClock }: StatusSources,
  pairPage: (userCode: string) => string,
  now = environment.clock.now(),
): ConnectionStatus {
  const managed = grants.get(connection.id);
  const run = pairings.newestFor(connection.id);
  const suspended = grants.getSuspended(connection.id);
  const remaining = managed === undefined ? null : grants.schedule.remaining(managed, now);
  const due = managed === undefined ? null : grants.schedule.dueAt(managed, now);
  const started = ago(now, now.uptime - grants.schedule.startedAt);
  const suspendedProblem = suspendedProblemOf(connection, suspended, started);
  const connected = portalOf(connection.portal);
  const problem =
    managed === undefined
      ? suspendedProblem
      : ((connected === undefined ? missingPortalProblem(connection, managed, started) : null) ??
        problemOf(managed, remaining, due, started, now));
  const limits = connected ?? NO_LIMITS;
  const requestedScope = managed?.grant.requestedScope ?? connected?.defaultScope ?? null;
  const missing = missingScope(requestedScope, managed?.grant.scope ?? null);
  const end =
    managed === undefined ? null : loginEnd(managed.grant, limits, now, referenceClock.confirmedBy(connection.portal));
  const isWithoutRefreshToken = managed?.grant.refreshToken === null;
  const usedBy = appliances.usersOf(connection.id);
  const users = usedBy.map(({ name, title }) => ({ name, title }));
  const status: ConnectionStatus = {
    name: connection.name,
    title: connection.title,
    state:
      managed === undefined
        ? stateWithoutGrant(run?.isOpen === true && !connection.damaged, suspendedProblem !== null)
        : stateWithGrant(managed, problem),
    scope: managed === undefined ? connection.scope : managed.grant.scope,
    expiresIn: remaining === null ? null : Math.floor(remaining / 1000),
    refreshIn: due === null || isWithoutRefreshToken ? null : secondsUntil(due, now),
    lastRefresh: managed === undefined ? null : refreshedAt(managed.grant, grants.schedule.age(managed, now), now),
    ...loginEndFields(end, now),
    problem: problem && {
      code: codeOn(store, problem.code),
      message: problem.message,
      since: rfc3339(wallTimeOf(problem.since, now)),
      ...(problem.condition && { condition: problem.condition }),
    },
    portal: connection.portal,
    account: managed?.grant.account ?? null,
    users,
    ...(connection.origin === 'declared' ? { declared: true } : {}),
    ...(isOwnConnection(connection, usedBy) ? { own: true } : {}),
    ...(hasScopeChanged(connection, managed?.grant) ? { wantedScope: connection.scope } : {}),
    ...(missing.length > 0 && managed?.health.kind !== 'refused' ? { missingScope: missing } : {}),
    ...(run === undefined ? {} : loginFields(run, pairPage)),
    ...(isWithoutRefreshToken ? { withoutRefreshToken: true } : {}),
    ...(problem?.code === 'misconfigured' ? { credentialLocation: credentialLocationAt(connection.portal) } : {}),
  };
  const fullStatus = withStoreProblem(status, connection.id, store, rfc3339(started.wall));
  const isOver = (fullStatus.state === 'unpaired' || fullStatus.state === 'needs_pairing') && run?.isOpen !== true;
  return isOver
    ? { ...fullStatus, ...pairingFailureFields(pairings.newestOpened(connection.id), now, grants.schedule.startedAt) }
    : fullStatus;
}

/**
 * Adjusts a connection's status if the store has lost its grant, or can't be written.
 * @param connection its id
 */
function withStoreProblem(
  status: ConnectionStatus,
  connection: string,
  store: BrokerStore,
  since: string,
): ConnectionStatus {
  const { writeProblem, grants } = store;
  if (status.state === 'unpaired' && grants.damaged.has(connection)) {
    const message = "The part of the hub's store that held this grant was damaged, and there is no copy of it";
    return {
      ...status,
      state: 'needs_pairing',
      problem: { code: 'refused', message, since, condition: 'grant_damaged' },
    };
  }
  if (status.state === 'active' && writeProblem !== null) {
    const message = `The hub can't write its store, so it starts no refresh: ${writeProblem}`;
    return { ...status, state: 'retrying', problem: { code: codeOn(store, 'store_unwritable'), message, since } };
  }
  return status;
}

function codeOn({ writeProblemCode }: BrokerStore, code: ProblemCode): ProblemCode {
  return code === 'store_unwritable' ? writeProblemCode : code;
}

const NO_LIMITS = { loginLifetime: null, idleLifetime: null } as const;

/**
 * When the login ends and, if that is near, since when it is, by the hub's current clock: whole minutes that do not
 * change with each call, as in {@link refreshedAt}.
 */
function loginEndFields(end: LoginEnd | null, now: Instant): Pick<ConnectionStatus, 'loginEnds' | 'loginEndingSince'> {
  if (end === null) return { loginEnds: null };
  const { remaining, recorded, reminder } = end;
  const at = wholeMinutes(recorded) + wholeMinutes(now.wall + remaining - recorded);
  const isNear = remaining <= reminder;
  return { loginEnds: rfc3339(at), ...(isNear && { loginEndingSince: rfc3339(at - reminder) }) };
}

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
  return rfc3339(obtained.wall + wholeMinutes(clockOffset));
}

/** Why the last pairing of an unpaired connection failed. */
function pairingFailureFields(
  run: PairingRun | undefined,
  now: Instant,
  started: number,
): Pick<ConnectionStatus, 'pairingFailed' | 'credentialLocation'> {
  const failure = run === undefined ? null : recentPairingFailure(run.pairing, now, started);
  if (run === undefined || failure === null) return {};
  const { reason, at, detail } = failure;
  return {
    pairingFailed: {
      reason,
      message: run.failureMessage(reason),
      at: rfc3339(wallTimeOf(at, now)),
      ...(detail !== undefined && { detail }),
    },
    credentialLocation: run.credentialLocation,
  };
}

/**
 * Where a person may log in. If no installer started the pairing, the portal's link is created when the hub's page is
 * opened.
 */
function loginFields(
  { pairing, runner }: PairingRun,
  pairPage: (userCode: string) => string,
): Pick<ConnectionStatus, 'authorizeUrl' | 'userCode'> {
  const { step, device } = pairing;
  if (step.kind === 'waiting' && isInstallerInitiated(pairing)) {
    const link = preferredLink(step, runner.redirect) ?? step.link;
    const userCode = typedUserCode(link);
    return { authorizeUrl: link.authorizeUrl, ...(userCode !== null && { userCode }) };
  }
  const isOpen = step.kind === 'waiting' || step.kind === 'asking';
  return isOpen && device !== null ? { authorizeUrl: pairPage(device.userCode) } : {};
}

/** The state of a connection without a usable grant. */
function stateWithoutGrant(isPairing: boolean, hasSuspended: boolean): ConnectionState {
  if (isPairing) return 'pairing';
  return hasSuspended ? 'needs_pairing' : 'unpaired';
}

/** Why a connection's grant is not used, if it has one, see {@link Grants}; null if there is no such reason. */
function suspendedProblemOf(
  { portal, damaged }: Connection,
  suspended: Grant | undefined,
  since: Instant,
): Problem | null {
  if (damaged) {
    const message =
      'Its entry in the store was damaged, or something other than the hub changed it, so it may be that of another login: the hub issues nothing for it';
    return { code: 'refused', message, since, condition: 'connection_damaged' };
  }
  if (suspended === undefined) return null;
  const { issuer } = suspended;
  const issuerText = `${issuer.origin} (client_id ${issuer.clientId})`;
  const message = `It was paired with ${issuerText}, but its portal in the configuration is now ${portal}: the hub keeps the grant and uses it again if you restore the configuration; a new login replaces it`;
  return { code: 'refused', message, since, condition: 'portal_changed' };
}

/** Whatever was wrong before, nothing happens without the portal. Only a refused grant needs a person besides. */
function missingPortalProblem({ portal }: Connection, { grant, health }: GrantRunner, since: Instant): Problem | null {
  if (health.kind === 'refused') return null;
  const message = `Its portal ${portal} (${grant.issuer.origin}) is not in the configuration`;
  return { code: 'misconfigured', message, since, condition: 'portal_missing' };
}

function stateWithGrant({ health }: GrantRunner, problem: Problem | null): ConnectionState {
  if (health.kind === 'refused') return 'needs_pairing';
  return problem === null ? 'active' : 'retrying';
}

function problemOf(
  { grant, health }: GrantRunner,
  remaining: number | null,
  due: number | null,
  started: Instant,
  now: Instant,
): Problem | null {
  if (health.kind !== 'good') return health.problem;
  if (grant.accessTokenRejectedAt !== null) return rejectedTokenProblem(grant.accessTokenRejectedAt, due, now);
  if (remaining === null) return unknownAgeProblem(grant, due, started, now);
  // A problem only if the token has expired and there still is no response: before that, an appliance's token request
  // triggers a refresh. Without a refresh token, the hub commits the end of the token at this moment.
  if (remaining > 0 || due === null || due > now.uptime || grant.refreshToken === null) return null;
  return { code: 'portal_unreachable', message: 'The portal has not responded yet', since: tokenExpiry(grant, now) };
}

/** The problem that an appliance reported. Whether the next token works is up to the portal. */
function rejectedTokenProblem(since: Instant, due: number | null, now: Instant): Problem {
  const wait = due === null ? 0 : secondsUntil(due, now);
  const message = `An appliance reported that the portal rejects its access token: the hub gets another one ${wait === 0 ? 'now' : `within ${formatDuration(wait, Math.ceil)}`}`;
  return { code: 'portal_rejected', message, since, condition: 'access_token_rejected' };
}

function unknownAgeProblem(
  { obtained, refreshToken }: Grant,
  due: number | null,
  since: Instant,
  now: Instant,
): Problem {
  const within = due === null ? 0 : secondsUntil(due, now);
  const refresh = `it refreshes the token within ${formatDuration(within, Math.ceil)}, or when an appliance requests it, unless it learns the age first`;
  const wait = 'it issues the token again when it learns the age, because the portal gave no refresh token';
  const message = `The hub was restarted and does not know the age of this token (obtained at ${rfc3339(obtained.wall)}): ${refreshToken === null ? wait : refresh}`;
  return { code: 'clock_unknown', message, since };
}

/** Whole seconds, rounded up. @param due on the boot clock in ms */
function secondsUntil(due: number, now: Instant): number {
  return Math.max(0, Math.ceil((due - now.uptime) / 1000));
}

/** When the access token expired, by the current clock. */
function tokenExpiry({ obtained, lifetime }: Grant, now: Instant): Instant {
  return ago(now, obtained.boot === now.boot ? now.uptime - obtained.uptime - lifetime : 0);
}

/** The instant `ms` before `now`, by the current clock. */
function ago(now: Instant, ms: number): Instant {
  return { ...now, uptime: now.uptime - ms, wall: now.wall - ms };
}
