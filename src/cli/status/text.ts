import { styleText } from 'node:util';
import type { ApplianceResponse, ConditionResponse, HubResponse, StatusResponse } from '../../control/messages.ts';
import { type ConditionSeverity, groupByAppliance } from '../../core/health/condition.ts';
import type { Notice } from '../../core/reports/notice.ts';
import { systemClock } from '../../system/clock.ts';
import { formatDuration, formatTimeSince, formatTimeUntil } from '../terminal/duration.ts';
import { printable } from '../terminal/output.ts';
import { alignColumns, tableWidth } from '../terminal/table.ts';

/** How the hub and its appliances stand, for people: first what they must know. Lines are of any length. */
export function statusText(status: StatusResponse): string {
  const { hub, conditions, notices } = status;
  const first = notices.length === 0 ? '' : `${notices.map(noticeLine).join('\n')}\n\n`;
  const told = new Set(notices.map(duplicateKey));
  const isTold = (condition: ConditionResponse) => told.has(duplicateKey(condition));
  const ofHub = conditions.filter((one) => one.appliance === null && !isTold(one));
  return `${first}${[hubText(hub), ...ofHub.map((one) => conditionLine(one)), appliancesText(status, isTold)].join('\n\n')}`;
}

function duplicateKey({ appliance, what_to_do }: ConditionResponse | Notice): string {
  return `${appliance} ${what_to_do}`;
}

function hubText(hub: HubResponse): string {
  const rows = [
    ['hub', `${printable(hub.name)} (${hub.id})`],
    ['version', hub.version],
    ...(hub.test_mode === true ? [['mode', 'test mode: it has an emulated portal, and keeps nothing']] : []),
    ['address', hub.address ?? 'none yet: the home network is not there'],
    ['ports', `${hub.https_port} (HTTPS), ${hub.http_port} (HTTP)`],
    ['CA fingerprint', hub.ca_fingerprint],
    ...oldCaRows(hub),
    ['running for', formatDuration(hub.uptime)],
  ];
  if (hub.registration_open_for !== undefined) {
    rows.push(['registration', `open to any appliance for another ${formatDuration(hub.registration_open_for)}`]);
  }
  return alignColumns(rows);
}

function oldCaRows({ ca_rotation }: HubResponse): string[][] {
  if (ca_rotation === undefined) return [];
  const { old_fingerprint, until } = ca_rotation;
  return [['old CA', `${old_fingerprint}, until ${until ?? 'some time after the clock is confirmed'}`]];
}

/** A notice that stands, as a line. */
export function noticeLine({ severity, message, what_to_do }: Notice): string {
  const mark = styleText(severity === 'error' ? 'red' : 'yellow', '!', { stream: process.stdout });
  return `${mark} ${printable(message)}. ${printable(what_to_do)}.`;
}

/** A condition, as a line. */
export function conditionLine(
  { message, what_to_do, since }: ConditionResponse,
  now = systemClock('').now().wall,
): string {
  const noticed = since === null ? '' : ` Noticed ${formatTimeSince(since, now)}.`;
  return `${printable(message)}.${noticed} ${printable(what_to_do)}.`;
}

/** The exit status of `latchkey status`: 3 where nothing gets better until a person acts. */
export function exitStatusOf(conditions: readonly Pick<ConditionResponse, 'severity'>[]): 0 | 3 {
  return conditions.some(({ severity }) => severity === 'error') ? 3 : 0;
}

const COLOURS = { error: 'red', warning: 'yellow', info: 'cyan' } as const satisfies Record<ConditionSeverity, string>;

const HEADERS = ['APPLIANCE', 'STATE', 'SCOPE', 'EXPIRES', 'REFRESH', 'REFRESHED'];
const SCOPE_COLUMN = HEADERS.indexOf('SCOPE');

/** Columns of what is no terminal, and of a terminal that does not say. */
const DEFAULT_COLUMNS = 80;

/**
 * How appliances stand: a table, and below it what is not as it should be.
 * @param isTold whether a condition stands above the table already
 */
export function appliancesText(
  { hub, appliances, conditions }: Pick<StatusResponse, 'hub' | 'appliances' | 'conditions'>,
  isTold: (condition: ConditionResponse) => boolean = () => false,
): string {
  if (appliances.length === 0) return 'No appliances yet. Register one: latchkey appliance add NAME';
  const now = systemClock('').now().wall;
  const found = groupByAppliance(conditions);
  const judged = appliances.map((appliance) => ({ appliance, conditions: found.get(appliance.name) ?? [] }));
  const remarks = judged.flatMap((one) =>
    applianceRemarks(
      one.appliance,
      one.conditions.filter((each) => !isTold(each)),
      now,
    ),
  );
  const below = [...joinRequestsWarning(hub), ...remarks];
  const standing = appliancesTable(judged, now, process.stdout.columns ?? DEFAULT_COLUMNS);
  return below.length > 0 ? `${standing}\n\n${below.join('\n')}` : standing;
}

/** An appliance with its conditions, the gravest first. */
interface ApplianceConditions {
  readonly appliance: ApplianceResponse;
  readonly conditions: readonly ConditionResponse[];
}

/** Their portal is told where not all have the same, their account where a portal tells one; where the table is too wide, scopes take a line for each name. */
function appliancesTable(judged: readonly ApplianceConditions[], now: number, columns: number): string {
  const samePortal = new Set(judged.map(({ appliance }) => appliance.portal)).size === 1;
  const isTold = judged.some(({ appliance }) => appliance.account !== null);
  const rows = judged.map((one) => [
    ...applianceRow(one, now),
    ...(samePortal ? [] : [printable(one.appliance.portal)]),
    ...(isTold ? [printable(one.appliance.account ?? '–')] : []),
  ]);
  const head = [...HEADERS, ...(samePortal ? [] : ['PORTAL']), ...(isTold ? ['ACCOUNT'] : [])];
  const wide = alignColumns([head, ...rows]);
  if (tableWidth(wide) <= columns) return wide;
  return alignColumns([head, ...rows.flatMap(splitScope)]);
}

function splitScope(cells: readonly string[]): string[][] {
  const [first = '', ...more] = (cells[SCOPE_COLUMN] ?? '').split(' ');
  const top = cells.with(SCOPE_COLUMN, first);
  return [top, ...more.map((name) => cells.map((_, column) => (column === SCOPE_COLUMN ? name : '')))];
}

function applianceRow({ appliance, conditions }: ApplianceConditions, now: number): string[] {
  const { name, state, scope, waiting_for_approval: waiting } = appliance;
  const [gravest] = conditions;
  const colour = gravest === undefined ? 'green' : COLOURS[gravest.severity];
  return [
    printable(name),
    // One that waits for approval is `unpaired` by the contract; a person is told what it waits for.
    styleText(colour, waiting === undefined ? state : 'waits for approval', { stream: process.stdout }),
    printable(scope ?? '–'),
    formatTimeUntil(appliance.expires_in),
    formatTimeUntil(appliance.refresh_in),
    formatTimeSince(appliance.last_refresh, now),
  ];
}

/** Among several that asked there may be one that nobody in the house has set up. */
function joinRequestsWarning({ registration_asked = 0 }: Pick<HubResponse, 'registration_asked'>): string[] {
  if (registration_asked < 2) return [];
  return [
    `${registration_asked} appliances asked to join since registration was opened: approve only those that show the same code as here`,
  ];
}

function applianceRemarks(
  appliance: ApplianceResponse,
  conditions: readonly ConditionResponse[],
  now: number,
): string[] {
  const { name, authorize_url: link, wanted_scope: wanted, waiting_for_approval: waiting } = appliance;
  if (waiting !== undefined) {
    const address = waiting.address === null ? '' : ` from ${printable(waiting.address)}`;
    const software = waiting.software_id === null ? '' : `, says its software is ${printable(waiting.software_id)}`;
    return [
      `${name}: introduced itself ${formatTimeSince(waiting.since, now)}${address} as client_id ${printable(appliance.client_id)}${software}`,
      `  its code is ${printable(waiting.comparison_code)}: compare it with the one that the appliance shows`,
      `  if it is yours: latchkey appliance approve ${name} --code ${printable(waiting.comparison_code)}`,
      `  if it is not:   latchkey appliance remove ${name}`,
    ];
  }
  const shown = conditions.filter(({ code }) => code !== 'login_open');
  return [
    ...shown.map((condition) => conditionLine(condition, now)),
    ...(wanted === undefined ? [] : [scopeChangeText(appliance, wanted)]),
    ...(link === undefined ? [] : [`${name}: log in at ${printable(link)}`]),
  ];
}

/** Nothing to type where a link is open already: logging in there brings the scope. */
function scopeChangeText({ name, scope, authorize_url }: ApplianceResponse, wanted: string | null): string {
  const named = (one: string | null) => (one === null ? 'no scope' : printable(one));
  const command = authorize_url === undefined ? `: latchkey pair ${name}` : '';
  return `${name}: its scope was changed to ${named(wanted)}; until somebody logs in it keeps ${named(scope)}${command}`;
}
