import type { ApplianceStatus } from '../appliances/appliance-status.ts';
import { rfc3339 } from '../clock.ts';
import { joinNames } from '../connections/connection.ts';
import type { ConnectionStatus } from '../connections/connection-status.ts';
import { keysOf } from '../keys.ts';
import { uncapitalize } from '../letter-case.ts';
import { APPLIANCE_CONDITION_CODES, APPLIANCE_CONDITIONS } from './appliance-conditions.ts';
import type { ApplianceCondition, Condition, ConnectionCondition, HubCondition } from './condition.ts';
import { type FoundCondition, SEVERITIES } from './condition-record.ts';
import { type ConnectionSubject, PROBLEM_CONDITIONS, STATE_CONDITIONS } from './connection-conditions.ts';
import { HUB_CONDITIONS, type HubConditionCode } from './hub-conditions.ts';

/** A problem of the hub as a whole, or wrong setup codes that somebody types. `since` in RFC 3339 UTC. */
export interface HubConditionInput {
  readonly code: HubConditionCode;
  readonly message: string;
  readonly since: string;
  /** As in {@link HubCondition}. */
  readonly address?: string;
}

/** The state of the hub, its connections and its appliances at one moment. */
interface ConditionsInput {
  readonly connections: readonly ConnectionStatus[];
  readonly appliances: readonly ApplianceStatus[];
  readonly problems: readonly HubConditionInput[];
  /** The address of the installer's page. */
  readonly pageUrl: string;
  /** The hub's wall clock, in ms since 1970. */
  readonly now: number;
}

/**
 * Derives all conditions. This is the only place that decides whether something is wrong. The most severe conditions come
 * first; within a severity, those of the hub come before those of connections and appliances. A connection has at most
 * four: about its grant, the end of its login, its permissions and its last pairing; an appliance has at most one. If all
 * is well, there is none.
 */
export function deriveConditions({
  connections,
  appliances,
  problems,
  pageUrl: page,
  now,
}: ConditionsInput): Condition[] {
  const waiting = new Set(appliances.flatMap(({ name, waitingForApproval }) => (waitingForApproval ? [name] : [])));
  const usable = connections.filter(({ users }) => users.length === 0 || users.some(({ name }) => !waiting.has(name)));
  const conditions = [
    ...problems.map(hubCondition),
    ...usable.flatMap((connection) => connectionConditions(connection, page, now)),
    ...appliances.flatMap((appliance) => applianceConditions(appliance, page)),
  ];
  return conditions.sort((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity));
}

function hubCondition({ code, ...found }: HubConditionInput): HubCondition {
  const { severity, advice } = HUB_CONDITIONS[code];
  const subject = { connection: null, appliance: null, appliances: [] } as const;
  return { code, severity, ...subject, ...found, what_to_do: advice, until: null };
}

const STATE_CODES = keysOf(STATE_CONDITIONS);

function connectionConditions(status: ConnectionStatus, page: string, now: number): ConnectionCondition[] {
  const { name, title, users, own, portal, problem, expiresIn, credentialLocation = { portal } } = status;
  const subject: ConnectionSubject = {
    name,
    title,
    label: own ? title : `The login ${title}`,
    url: own ? `${page}appliances/${name}` : `${page}connections/${name}`,
    portal,
    credentialLocation,
  };
  const condition = (
    code: ConnectionCondition['code'],
    { message, advice, since = null, severity }: Required<FoundCondition>,
    until: string | null = null,
  ): ConnectionCondition => ({
    code,
    severity,
    connection: name,
    appliance: own ? name : null,
    appliances: users.map((user) => user.name),
    message: `${message}${affected(status)}`,
    what_to_do: advice,
    since,
    until,
  });

  const found = STATE_CODES.flatMap((code) => {
    const { severity, find } = STATE_CONDITIONS[code];
    const details = find(status, subject, now);
    return details === null ? [] : condition(code, { severity, since: null, ...details });
  });
  if (problem === null) return found;
  const code = problem.condition ?? problem.code;
  const { severity, consequence, advice } = PROBLEM_CONDITIONS[code];
  const message = `${subject.label} ${consequence}: ${uncapitalize(problem.message)}`;
  const until = expiresIn === null || expiresIn < 1 ? null : rfc3339(now + expiresIn * 1000);
  return [condition(code, { severity, message, advice: advice(subject), since: problem.since }, until), ...found];
}

/** Names the appliances that a condition of a shared connection concerns. */
function affected({ own, users }: ConnectionStatus): string {
  if (own || users.length === 0) return '';
  return `; ${joinNames(users.map(({ title }) => title))} ${users.length === 1 ? 'is' : 'are'} affected`;
}

function applianceConditions(status: ApplianceStatus, page: string): ApplianceCondition[] {
  const { name: appliance, connection } = status;
  for (const code of APPLIANCE_CONDITION_CODES) {
    const record = APPLIANCE_CONDITIONS[code];
    const found = record.find(status, `${page}appliances/${appliance}`);
    if (found === null) continue;
    const { message, advice, since = null, severity = record.severity } = found;
    const subject = { connection, appliance, appliances: [appliance] } as const;
    return [{ code, severity, ...subject, message, what_to_do: advice, since, until: null }];
  }
  return [];
}
