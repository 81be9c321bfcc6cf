import type { ApplianceStatus } from '../../core/appliances/appliance-status.ts';
import { type Instant, rfc3339 } from '../../core/clock.ts';
import type { Connection } from '../../core/connections/connection.ts';
import type { ConnectionStatus } from '../../core/connections/connection-status.ts';
import { type Condition, concernsHub, type SubjectCondition, subjectRecord } from '../../core/health/condition.ts';
import { deriveConditions, type HubConditionInput } from '../../core/health/derive-conditions.ts';
import { type GrantNoticeInput, isReminder, type SubjectNoticeInput } from '../../core/health/notice-policy.ts';
import { mapInSlices } from '../../system/slices.ts';
import type { StoredSetupAccess } from '../access/setup-access.ts';
import type { Grants } from '../grants/grants.ts';
import type { Environment } from '../ports.ts';
import type { NoticeInput } from '../reports/notices.ts';

/** What the facts are taken from, besides the status of all. */
interface NoticeSources {
  readonly access: Pick<StoredSetupAccess, 'tooManyWrongCodes'>;
  readonly grants: Pick<Grants, 'get' | 'schedule'>;
  readonly environment: Pick<Environment, 'clock'>;
}

/** A grant is overdue when this part of its token's lifetime has passed without a refresh, see `nextRefreshAt`. */
const REFRESH_DEADLINE_RATIO = 0.85;
/** The most approval notices at one time, for the first appliances: one device may register from many addresses. */
const MAX_APPROVAL_NOTICES = 5;

/**
 * The conditions of the hub, its connections and its appliances, derived once for all surfaces, and the other facts that notices depend
 * on.
 * @param connections each with its status
 * @param page the URL of the installer's page
 */
export async function collectNoticeInput(
  connections: readonly (readonly [Pick<Connection, 'id'>, ConnectionStatus])[],
  appliances: readonly ApplianceStatus[],
  problems: readonly HubConditionInput[],
  { access, grants, environment }: NoticeSources,
  page: string,
): Promise<NoticeInput> {
  const now = environment.clock.now();
  const wrongCodes = access.tooManyWrongCodes();
  const conditions = deriveConditions({
    connections: connections.map(([, status]) => status),
    appliances,
    problems: wrongCodes === null ? problems : [...problems, wrongSetupCodesFact(wrongCodes)],
    pageUrl: page,
    now: now.wall,
  });
  const noticeable = noticeableConditions(conditions);
  const reminders = noticeableConditions(conditions.filter(isReminder));
  const subjects = await mapInSlices(connections, ([{ id }, { name, title, state, own }]): SubjectNoticeInput => {
    const key = own ? `appliance ${name}` : `connection ${name}`;
    const [condition = null, reminder] = [noticeable.get(key), reminders.get(key)];
    const subject = { key, title, state, condition, grant: grantFacts(id, grants, now) };
    return reminder === undefined || reminder === condition ? subject : { ...subject, reminder };
  });
  const known = new Set(subjects.map(({ key }) => key));
  const waiting = appliances.flatMap(({ name, title, state, waitingForApproval }): SubjectNoticeInput[] => {
    const key = `appliance ${name}`;
    if (waitingForApproval === undefined || known.has(key)) return [];
    return [{ key, title, state, grant: null, condition: noticeable.get(key) ?? null }];
  });
  return { conditions, subjects: [...subjects, ...waiting] };
}

/** The condition of each connection or appliance that may cause a notice, by its key. */
function noticeableConditions(conditions: readonly Condition[]): ReadonlyMap<string, SubjectCondition> {
  const candidates = conditions.filter((one): one is SubjectCondition => !concernsHub(one));
  const waiting = candidates.filter(({ code }) => code === 'approval_needed');
  const excess = new Set(waiting.sort((a, b) => startTime(a) - startTime(b)).slice(MAX_APPROVAL_NOTICES));
  const noticeable = candidates.filter((one) => !excess.has(one) && subjectRecord(one.code).notice !== null);
  return new Map(
    // The gravest comes first, and is the one that counts.
    noticeable
      .toReversed()
      .map((one) => [one.appliance === null ? `connection ${one.connection}` : `appliance ${one.appliance}`, one]),
  );
}

function startTime({ since }: SubjectCondition): number {
  return since === null ? 0 : Date.parse(since);
}

function grantFacts(connection: string, grants: NoticeSources['grants'], now: Instant): GrantNoticeInput | null {
  const managed = grants.get(connection);
  if (managed === undefined) return null;
  const { generation, lifetime } = managed.grant;
  const age = grants.schedule.age(managed, now);
  return {
    generation,
    lifetime,
    isFailing: managed.health.kind === 'failing',
    remaining: grants.schedule.remaining(managed, now),
    overdue: age === null ? null : Math.max(0, age - REFRESH_DEADLINE_RATIO * lifetime),
  };
}

function wrongSetupCodesFact({
  address,
  since,
}: {
  readonly address: string;
  readonly since: number;
}): HubConditionInput {
  const message = `Too many wrong setup codes were typed at the hub's page, the last ones from ${address}`;
  return { code: 'wrong_setup_codes', message, since: rfc3339(since), address };
}
