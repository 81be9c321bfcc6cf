import type { ApplianceStatus } from '../../core/administration.ts';
import type { Appliance } from '../../core/appliances/appliance.ts';
import { type Instant, rfc3339 } from '../../core/clock.ts';
import type { ApplianceCondition, Condition } from '../../core/health/condition.ts';
import { deriveConditions, type HubConditionInput } from '../../core/health/derive-conditions.ts';
import type { GrantNoticeInput } from '../../core/reports/notice-policy.ts';
import type { Grants } from '../grants/grants.ts';
import type { Broker } from '../open-broker.ts';
import type { NoticeInput } from './notices.ts';

/** A grant is overdue when this part of its token's lifetime has passed without a refresh, see `nextRefreshAt`. */
const REFRESH_DEADLINE_RATIO = 0.85;
/** The most approval notices at one time, for the first appliances: one device may register from many addresses. */
const MAX_APPROVAL_NOTICES = 5;

/**
 * Conditions without a notice: damaged credentials have a notice of the hub, missing ones are due to the configuration,
 * and the person who started a pairing sees it fail.
 */
const CODES_WITHOUT_NOTICE: readonly Condition['code'][] = [
  'credentials_damaged',
  'without_credentials',
  'pairing_failed',
];

/**
 * The conditions of the hub and its appliances, derived once for all surfaces, and the other facts that notices depend
 * on.
 * @param appliances each with its status
 * @param page the URL of the installer's page
 */
export function collectNoticeInput(
  appliances: readonly (readonly [Pick<Appliance, 'id'>, ApplianceStatus])[],
  problems: readonly HubConditionInput[],
  { access, grants, environment }: Pick<Broker, 'access' | 'grants' | 'environment'>,
  page: string,
): NoticeInput {
  const now = environment.clock.now();
  const wrongCodes = access.failedLoginBurst();
  const conditions = deriveConditions({
    appliances: appliances.map(([, status]) => status),
    problems: wrongCodes === null ? problems : [...problems, wrongSetupCodesFact(wrongCodes)],
    pageUrl: page,
    now: now.wall,
  });
  const noticeable = noticeableConditions(conditions);
  return {
    conditions,
    appliances: appliances.map(([{ id }, { name, state }]) => ({
      ...{ name, state, grant: grantFacts(id, grants, now) },
      condition: noticeable.get(name) ?? null,
    })),
  };
}

/** The condition of each appliance that may cause a notice, by the appliance's name. */
function noticeableConditions(conditions: readonly Condition[]): ReadonlyMap<string, ApplianceCondition> {
  const ofAppliances = conditions.filter((one): one is ApplianceCondition => one.appliance !== null);
  const waiting = ofAppliances.filter(({ code }) => code === 'approval_needed');
  const excess = new Set(waiting.sort((a, b) => startTime(a) - startTime(b)).slice(MAX_APPROVAL_NOTICES));
  const noticeable = ofAppliances.filter((one) => !excess.has(one) && !CODES_WITHOUT_NOTICE.includes(one.code));
  return new Map(noticeable.map((one) => [one.appliance, one]));
}

function startTime({ since }: ApplianceCondition): number {
  return since === null ? 0 : Date.parse(since);
}

function grantFacts(appliance: string, grants: Grants, now: Instant): GrantNoticeInput | null {
  const managed = grants.get(appliance);
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
  return { code: 'wrong_setup_codes', message, since: rfc3339(since) };
}
