import type { Appliance } from '../../core/appliances/appliance.ts';
import type { ApplianceStatus } from '../../core/appliances/appliance-status.ts';
import { type UnusualUsage, unusualUsage } from '../../core/appliances/usage.ts';
import { confirmedTimeAt, elapsed, type Instant, rfc3339, wallTimeOf, wholeMinutes } from '../../core/clock.ts';
import type { ConnectionState, ConnectionStatus } from '../../core/connections/connection-status.ts';
import { Failure } from '../../core/failure.ts';
import { comparisonCode } from '../../system/comparison-code.ts';
import type { RefusedRequests } from '../appliances/refused-requests.ts';
import type { Connections } from '../connections/connections.ts';
import type { Grants } from '../grants/grants.ts';
import type { BrokerStore, Environment } from '../ports.ts';
import type { UsageRecorder } from '../reports/usage-recorder.ts';
import type { ReferenceClock } from '../time/reference-clock.ts';

/** What the status of an appliance is derived from. */
interface StatusSources {
  readonly environment: Pick<Environment, 'clock'>;
  readonly store: Pick<BrokerStore, 'registry'>;
  readonly grants: Pick<Grants, 'get' | 'schedule'>;
  readonly referenceClock: Pick<ReferenceClock, 'confirmed'>;
  readonly usageRecorder: Pick<UsageRecorder, 'usageOf'>;
  readonly connections: Pick<Connections, 'find'>;
  readonly refusedRequests: Pick<RefusedRequests, 'of'>;
}

type UsageCounts = ReturnType<UsageRecorder['usageOf']>;

/** The most urgent first. */
const BY_URGENCY: readonly ConnectionState[] = ['needs_pairing', 'unpaired', 'pairing', 'retrying', 'active'];

/**
 * The status of an appliance, as `latchkey status` reports it.
 * @param statuses of its connections
 * @throws Failure `connection_unknown` if they were removed
 */
export function applianceStatus(
  appliance: Appliance,
  statuses: readonly ConnectionStatus[],
  sources: StatusSources,
): ApplianceStatus {
  const [shown] = statuses.toSorted((a, b) => BY_URGENCY.indexOf(a.state) - BY_URGENCY.indexOf(b.state));
  if (shown === undefined)
    throw new Failure('connection_unknown', `the connection of ${appliance.name} was removed: try again`);
  const {
    name: connection,
    users: _,
    loginEnds: __,
    loginEndingSince: ___,
    declared: _____,
    own: ____,
    ...login
  } = shown;
  const { damagedAppliances } = sources.store.registry;
  const hasCredentials = appliance.credentials.kind !== 'none';
  const refused = sources.refusedRequests.of(appliance);
  return {
    ...login,
    name: appliance.name,
    title: appliance.title,
    clientId: appliance.clientId,
    connection,
    ...(statuses.length > 1 && { connections: statuses.map(({ name }) => name) }),
    ...(appliance.ignoresScope && { ignoresScope: true }),
    ...usageFields(appliance, statuses, sources),
    ...(refused && { refused }),
    ...(appliance.origin === 'declared' ? { declared: true } : {}),
    ...registrationFields(appliance, sources.environment.clock.now()),
    ...(hasCredentials ? {} : { withoutCredentials: true }),
    ...(!hasCredentials && damagedAppliances.has(appliance.id) ? { credentialsDamaged: true } : {}),
  };
}

/** @param statuses of its connections; while one is not active, the appliance may be unable to get its tokens */
function usageFields(
  { id }: Appliance,
  statuses: readonly ConnectionStatus[],
  sources: StatusSources,
): Pick<ApplianceStatus, 'lastToken' | 'tokens' | 'usage' | 'unusualUsage' | 'unusualConnection'> {
  const { environment, usageRecorder, connections, referenceClock } = sources;
  const now = environment.clock.now();
  const time = confirmedTimeAt(referenceClock.confirmed, now);
  const clockError = time === null ? 0 : wholeMinutes(now.wall - time);
  const all = usageRecorder.usageOf(id, now);
  const isOne = statuses.length === 1;
  const pairs = statuses.map((status) => {
    const connection = connections.find(status.name)?.id ?? '';
    const counts = isOne ? all : usageRecorder.usageOf(id, now, connection);
    return { status, counts, unusual: unusualUsageOf(status, connection, counts, sources) };
  });
  const found =
    pairs.find(({ unusual }) => unusual !== null && unusual !== 'asks_often') ?? pairs.find(({ unusual }) => unusual);
  // An appliance that never asked for any is not set up yet.
  const isNew = all.last === null && found?.unusual === 'never_served';
  const ofEach = ({ status: { name, title }, counts }: (typeof pairs)[number]) => ({
    connection: name,
    title,
    ...tokenFields(counts, clockError),
  });
  return {
    ...tokenFields(all, clockError),
    ...(!isOne && { usage: pairs.map(ofEach) }),
    ...(found?.unusual && { unusualUsage: found.unusual }),
    ...(found && !isOne && !isNew && { unusualConnection: found.status.title }),
  };
}

/** @param clockError by how much the hub's clock is ahead of the true time, by which tokens are recorded, in ms */
function tokenFields(
  { last, ...tokens }: UsageCounts,
  clockError: number,
): Pick<ApplianceStatus, 'lastToken' | 'tokens'> {
  return { lastToken: last === null ? null : rfc3339(last + clockError), tokens };
}

/** @param connection the id of the connection */
function unusualUsageOf(
  { state }: ConnectionStatus,
  connection: string,
  { last, today }: UsageCounts,
  { environment, grants, referenceClock }: StatusSources,
): UnusualUsage | null {
  const grant = grants.get(connection)?.grant;
  if (state !== 'active' || grant === undefined) return null;
  const now = environment.clock.now();
  const time = confirmedTimeAt(referenceClock.confirmed, now);
  const sinceLogin = grant.login && elapsed(grant.login.at, now);
  const available = Math.min(now.uptime - grants.schedule.startedAt, sinceLogin ?? Number.POSITIVE_INFINITY);
  return unusualUsage({ now: time, last, today, lifetime: grant.lifetime, available });
}

function registrationFields(
  { clientId, softwareId, waiting }: Appliance,
  now: Instant,
): Pick<ApplianceStatus, 'waitingForApproval'> {
  if (waiting === null) return {};
  return {
    waitingForApproval: {
      since: rfc3339(wallTimeOf(waiting.since, now)),
      softwareId,
      comparisonCode: comparisonCode(clientId),
      address: waiting.from,
    },
  };
}
