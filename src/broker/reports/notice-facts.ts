import type { ApplianceStatus } from '../../core/administration.ts';
import type { Appliance } from '../../core/appliances/appliance.ts';
import { type Instant, rfc3339 } from '../../core/clock.ts';
import type { GrantFacts, HubFact } from '../../core/reports/notices.ts';
import type { Grants } from '../grants/grants.ts';
import type { Broker } from '../open-broker.ts';
import type { HouseFacts } from './notices.ts';

/** A grant should have been refreshed when this part of its token's lifetime has passed: `nextRefreshAt`. */
const REFRESHED_BY = 0.85;
/** So many that wait for approval are told of at one time, the first ones: one device may register by many addresses. */
const MAX_APPROVAL_NOTICES = 5;

/**
 * What notices go by.
 * @param appliances each with its status
 * @param page the address of the installer's page
 */
export function noticeFacts(
  appliances: readonly (readonly [Pick<Appliance, 'id'>, ApplianceStatus])[],
  problems: readonly HubFact[],
  { access, grants, environment }: Pick<Broker, 'access' | 'grants' | 'environment'>,
  page: string,
): HouseFacts {
  const now = environment.clock.now();
  const wrongCodes = access.wrongCodes();
  const waiting = appliances.flatMap(([, { name, waitingForApproval: waits }]) => (waits ? [{ name, ...waits }] : []));
  const first = waiting.sort((a, b) => Date.parse(a.since) - Date.parse(b.since)).slice(0, MAX_APPROVAL_NOTICES);
  const told = new Set(first.map(({ name }) => name));
  return {
    appliances: appliances.map(([{ id }, status]) => ({
      status: withApproval(status, told.has(status.name)),
      grant: grantFacts(id, grants, now),
    })),
    problems: [
      ...withUnwritten(
        problems,
        appliances.map(([, status]) => status),
      ),
      ...(wrongCodes === null ? [] : [guessing(wrongCodes)]),
    ],
    page,
  };
}

function withApproval(status: ApplianceStatus, isTold: boolean): ApplianceStatus {
  const { waitingForApproval: _, ...rest } = status;
  return isTold ? status : rest;
}

function grantFacts(appliance: string, grants: Grants, now: Instant): GrantFacts | null {
  const held = grants.get(appliance);
  if (held === undefined) return null;
  const { generation, lifetime } = held.grant;
  const age = grants.schedule.age(held, now);
  return {
    generation,
    lifetime,
    failing: held.health.kind === 'failing',
    left: grants.schedule.remaining(held, now),
    overdue: age === null ? null : Math.max(0, age - REFRESHED_BY * lifetime),
  };
}

function guessing({ address, since }: { readonly address: string; readonly since: number }): HubFact {
  const message = `Too many wrong setup codes were typed at the hub's page, the last ones from ${address}`;
  return { code: 'wrong_setup_codes', message, since: rfc3339(since) };
}

/** What a refresh brought and the store did not take would be lost with the power: that is the hub's problem, whoever's grant it is. */
function withUnwritten(problems: readonly HubFact[], appliances: readonly ApplianceStatus[]): readonly HubFact[] {
  if (problems.some(({ code }) => code === 'store_unwritable')) return problems;
  const [unwritten] = appliances.filter(({ problem }) => problem?.code === 'store_unwritable');
  if (unwritten?.problem == null) return problems;
  const { name, problem } = unwritten;
  const message = `New tokens of ${name} are in memory alone: ${problem.message}`;
  return [...problems, { code: 'store_unwritable', message, since: problem.since }];
}
