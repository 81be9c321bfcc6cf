import type { Grants, HeldGrant } from '../broker/grants.ts';
import type { Pairings } from '../broker/pairings.ts';
import type { ApplianceState, ApplianceStatus } from '../core/administration.ts';
import type { Appliance } from '../core/appliance.ts';
import type { Instant } from '../core/clock.ts';
import type { Problem } from '../core/problem.ts';

/** What `status` says of an appliance. */
export function applianceStatus(
  appliance: Appliance,
  grants: Grants,
  pairings: Pairings,
  now: Instant,
): ApplianceStatus {
  const held = grants.get(appliance.id);
  const run = pairings.ofAppliance(appliance.id);
  const step = run?.pairing.step;
  const pairing = step !== undefined && step.kind !== 'ended';
  const remaining = held === undefined ? null : grants.remaining(held);
  const due = held === undefined ? null : grants.dueAt(held);
  const problem = held === undefined ? null : problemOf(held, remaining, due, ago(now, now.uptime - grants.since), now);
  return {
    name: appliance.name,
    client_id: appliance.clientId,
    state: held === undefined ? (pairing ? 'pairing' : 'unpaired') : stateOf(held, problem),
    scope: held === undefined ? appliance.scope : held.grant.scope,
    expires_in: remaining === null ? null : Math.floor(remaining / 1000),
    refresh_in: due === null ? null : Math.max(0, Math.ceil((due - now.uptime) / 1000)),
    last_refresh: held === undefined ? null : instant(held.grant.portalTime ?? held.grant.obtained.wall),
    problem: problem && { code: problem.code, message: problem.message, since: instant(problem.since.wall) },
    portal: appliance.portal,
    ...(step?.kind === 'waiting' ? { authorize_url: step.link.authorizeUrl } : {}),
  };
}

function stateOf({ health }: HeldGrant, problem: Problem | null): ApplianceState {
  if (health.kind === 'refused') return 'needs_pairing';
  return problem === null ? 'active' : 'retrying';
}

function problemOf(
  { grant, health }: HeldGrant,
  remaining: number | null,
  due: number | null,
  started: Instant,
  now: Instant,
): Problem | null {
  if (health.kind !== 'good') return health.problem;
  if (remaining === null) return unknownAge(grant, due, started, now);
  // Past its time, and still without an answer; before that, an appliance that asks has it refreshed.
  if (remaining > 0 || due === null || due > now.uptime) return null;
  return { code: 'portal_unreachable', message: 'The portal has not answered yet', since: endOf(grant, now) };
}

function unknownAge({ obtained }: HeldGrant['grant'], due: number | null, since: Instant, now: Instant): Problem {
  const within = due === null ? 0 : Math.max(0, Math.ceil((due - now.uptime) / 1000));
  const message = `The hub was started anew and does not know how old this token is (it is from ${instant(obtained.wall)}): it is refreshed within ${within} s, or when an appliance asks, unless its age becomes known before`;
  return { code: 'clock_unknown', message, since };
}

/** When the token at hand ended, on the clock as it is now. */
function endOf({ obtained, lifetime }: HeldGrant['grant'], now: Instant): Instant {
  return ago(now, obtained.boot === now.boot ? now.uptime - obtained.uptime - lifetime : 0);
}

/** So many ms before `now`, on the clock as it is now. */
function ago(now: Instant, ms: number): Instant {
  return { ...now, uptime: now.uptime - ms, wall: now.wall - ms };
}

function instant(wall: number): string {
  return new Date(wall).toISOString().replace(/\.\d+Z$/, 'Z');
}
