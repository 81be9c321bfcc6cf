import type { Grants } from '../broker/grants.ts';
import type { HouseFacts } from '../broker/notices.ts';
import type { ApplianceStatus, HubProblem } from '../core/administration.ts';
import type { Appliance } from '../core/appliance.ts';
import type { Instant } from '../core/clock.ts';
import type { GrantFacts } from '../core/notices.ts';

/** A grant should have been refreshed when this part of its token's lifetime has passed: `regularDue`. */
const REFRESHED_BY = 0.85;

/**
 * What notices go by.
 * @param appliances each with its status
 * @param page the address of the installer's page
 */
export function noticeFacts(
  appliances: readonly (readonly [Pick<Appliance, 'id'>, ApplianceStatus])[],
  problems: readonly HubProblem[],
  grants: Grants,
  page: string,
  now: Instant,
): HouseFacts {
  return {
    appliances: appliances.map(([{ id }, status]) => ({ status, grant: grantFacts(id, grants, now) })),
    problems: withUnwritten(
      problems,
      appliances.map(([, status]) => status),
    ),
    page,
  };
}

function grantFacts(appliance: string, grants: Grants, now: Instant): GrantFacts | null {
  const held = grants.get(appliance);
  if (held === undefined) return null;
  const { generation, lifetime } = held.grant;
  const age = grants.times.age(held, now);
  return {
    generation,
    lifetime,
    failing: held.health.kind === 'failing',
    left: grants.times.remaining(held, now),
    overdue: age === null ? null : Math.max(0, age - REFRESHED_BY * lifetime),
  };
}

/** What a refresh brought and the store did not take would be lost with the power: that is the hub's problem, whoever's grant it is. */
function withUnwritten(problems: readonly HubProblem[], appliances: readonly ApplianceStatus[]): readonly HubProblem[] {
  if (problems.some(({ code }) => code === 'store_unwritable')) return problems;
  const [unwritten] = appliances.filter(({ problem }) => problem?.code === 'store_unwritable');
  if (unwritten?.problem == null) return problems;
  const { name, problem } = unwritten;
  const message = `New tokens of ${name} are in memory alone: ${problem.message}`;
  return [...problems, { code: 'store_unwritable', message, since: problem.since }];
}
