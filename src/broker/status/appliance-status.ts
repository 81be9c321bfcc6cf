import type { Appliance } from '../../core/appliances/appliance.ts';
import type { ApplianceStatus } from '../../core/appliances/appliance-status.ts';
import { unusualUsage } from '../../core/appliances/usage.ts';
import { confirmedTimeAt, elapsed, rfc3339 } from '../../core/clock.ts';
import type { ConnectionState, ConnectionStatus } from '../../core/connections/connection-status.ts';
import { Failure } from '../../core/failure.ts';
import { comparisonCode } from '../../system/comparison-code.ts';
import type { RefusedRequests } from '../appliances/refused-requests.ts';
import type { Grants } from '../grants/grants.ts';
import type { BrokerStore, Environment } from '../ports.ts';
import type { UsageRecorder } from '../reports/usage-recorder.ts';
import type { ReferenceClock } from '../time/reference-clock.ts';

/** What the status of an appliance is derived from. */
interface StatusSources {
  readonly environment: Pick<Environment, 'clock'>;
  readonly store: Pick<BrokerStore, 'damagedAppliances'>;
  readonly grants: Pick<Grants, 'get' | 'schedule'>;
  readonly referenceClock: Pick<ReferenceClock, 'confirmed'>;
  readonly usageRecorder: Pick<UsageRecorder, 'usageOf'>;
  readonly refusedRequests: Pick<RefusedRequests, 'of'>;
}

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
  const { damagedAppliances } = sources.store;
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
    ...usageFields(appliance, login.state === 'active', sources),
    ...(refused && { refused }),
    ...(appliance.origin === 'declared' ? { declared: true } : {}),
    ...registrationFields(appliance),
    ...(hasCredentials ? {} : { withoutCredentials: true }),
    ...(!hasCredentials && damagedAppliances.has(appliance.id) ? { credentialsDamaged: true } : {}),
  };
}

/** @param isActive whether its connection is; otherwise the appliance may be unable to get tokens */
function usageFields(
  { id, connection, more = [] }: Appliance,
  isActive: boolean,
  { environment, grants, referenceClock, usageRecorder }: StatusSources,
): Pick<ApplianceStatus, 'lastToken' | 'tokens' | 'unusualUsage'> {
  const now = environment.clock.now();
  const { last, ...tokens } = usageRecorder.usageOf(id, now);
  const fields = { lastToken: last === null ? null : rfc3339(last), tokens };
  const grant = grants.get(connection)?.grant;
  // The counts of several connections can't be compared with the lifetime of one token.
  if (!isActive || grant === undefined || (more.length > 0 && last !== null)) return fields;
  const time = confirmedTimeAt(referenceClock.confirmed, now);
  const sinceLogin = grant.login && elapsed(grant.login.at, now);
  const available = Math.min(now.uptime - grants.schedule.startedAt, sinceLogin ?? Number.POSITIVE_INFINITY);
  const unusual = unusualUsage({ now: time, last, today: tokens.today, lifetime: grant.lifetime, available });
  return unusual === null ? fields : { ...fields, unusualUsage: unusual };
}

function registrationFields({ clientId, softwareId, waiting }: Appliance): Pick<ApplianceStatus, 'waitingForApproval'> {
  if (waiting === null) return {};
  return {
    waitingForApproval: {
      since: rfc3339(waiting.since.wall),
      softwareId,
      comparisonCode: comparisonCode(clientId),
      address: waiting.from,
    },
  };
}
