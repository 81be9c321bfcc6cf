import { styleText } from 'node:util';
import type { ApplianceResponse, ConditionResponse, HubResponse, StatusResponse } from '../../control/messages.ts';
import { type ConditionSeverity, groupByAppliance } from '../../core/health/condition.ts';
import type { Notice } from '../../core/reports/notice.ts';
import { systemClock } from '../../system/clock.ts';
import { formatDuration, formatTimeSince, formatTimeUntil } from '../terminal/duration.ts';
import { printable } from '../terminal/output.ts';
import { alignColumns, tableWidth } from '../terminal/table.ts';

/** The status for people, the most important first. Lines may have any length. */
export function statusText(status: StatusResponse): string {
  const { hub, conditions, notices } = status;
  const first = notices.length === 0 ? '' : `${notices.map(noticeLine).join('\n')}\n\n`;
  const noticeKeys = new Set(notices.map(duplicateKey));
  const isShown = (condition: ConditionResponse) => noticeKeys.has(duplicateKey(condition));
  const ofHub = conditions.filter((condition) => condition.appliance === null && !isShown(condition));
  const hubLines = ofHub.map((condition) => conditionLine(condition));
  return `${first}${[hubText(hub), ...hubLines, appliancesText(status, isShown)].join('\n\n')}`;
}

function duplicateKey({ appliance, what_to_do }: ConditionResponse | Notice): string {
  return `${appliance} ${what_to_do}`;
}

function hubText(hub: HubResponse): string {
  const rows = [
    ['hub', `${printable(hub.name)} (${hub.id})`],
    ['version', hub.version],
    ...(hub.test_mode === true ? [['mode', 'test mode: with an emulated portal, and nothing is stored']] : []),
    ['address', hub.address ?? 'none yet: the hub is not connected to the home network'],
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
  return [
    [
      'old CA',
      `${old_fingerprint}, until ${until ?? 'a time that the hub sets when NTP or the portal has confirmed its clock'}`,
    ],
  ];
}

/** An active notice, as a line. */
export function noticeLine({ severity, message, what_to_do }: Notice): string {
  const mark = styleText(severity === 'error' ? 'red' : 'yellow', '!', { stream: process.stdout });
  return `${mark} ${printable(message)}. ${printable(what_to_do)}.`;
}

/** A condition, as a line. */
export function conditionLine(
  { message, what_to_do, since }: ConditionResponse,
  now = systemClock('').now().wall,
): string {
  const sinceText = since === null ? '' : ` Noticed ${formatTimeSince(since, now)}.`;
  return `${printable(message)}.${sinceText} ${printable(what_to_do)}.`;
}

/** The exit status of `latchkey status`: 3 if something does not improve until somebody acts. */
export function exitStatusOf(conditions: readonly Pick<ConditionResponse, 'severity'>[]): 0 | 3 {
  return conditions.some(({ severity }) => severity === 'error') ? 3 : 0;
}

const COLOURS = { error: 'red', warning: 'yellow', info: 'cyan' } as const satisfies Record<ConditionSeverity, string>;

const HEADERS = ['APPLIANCE', 'STATE', 'SCOPE', 'EXPIRES', 'REFRESH', 'REFRESHED'];
const SCOPE_COLUMN = HEADERS.indexOf('SCOPE');

/** The width if standard output is no terminal, or does not report its width. */
const DEFAULT_COLUMNS = 80;

/**
 * The state of appliances: a table, and below it the conditions.
 * @param isShown whether a condition is already shown above the table
 */
export function appliancesText(
  { hub, appliances, conditions }: Pick<StatusResponse, 'hub' | 'appliances' | 'conditions'>,
  isShown: (condition: ConditionResponse) => boolean = () => false,
): string {
  if (appliances.length === 0) return 'No appliances yet. Register one: latchkey appliance add NAME';
  const now = systemClock('').now().wall;
  const grouped = groupByAppliance(conditions);
  const rows = appliances.map((appliance) => ({ appliance, conditions: grouped.get(appliance.name) ?? [] }));
  const remarks = rows.flatMap((row) =>
    applianceRemarks(
      row.appliance,
      row.conditions.filter((condition) => !isShown(condition)),
      now,
    ),
  );
  const below = [...joinRequestsWarning(hub), ...remarks];
  const table = appliancesTable(rows, now, process.stdout.columns ?? DEFAULT_COLUMNS);
  return below.length > 0 ? `${table}\n\n${below.join('\n')}` : table;
}

/** An appliance with its conditions, the gravest first. */
interface ApplianceConditions {
  readonly appliance: ApplianceResponse;
  readonly conditions: readonly ConditionResponse[];
}

/**
 * Has a column for the portals if they differ, and one for the accounts if a portal reports one. If the table is too
 * wide, each name of a scope gets its own line.
 */
function appliancesTable(appliances: readonly ApplianceConditions[], now: number, columns: number): string {
  const samePortal = new Set(appliances.map(({ appliance }) => appliance.portal)).size === 1;
  const hasAccounts = appliances.some(({ appliance }) => appliance.account !== null);
  const rows = appliances.map((row) => [
    ...applianceRow(row, now),
    ...(samePortal ? [] : [printable(row.appliance.portal)]),
    ...(hasAccounts ? [printable(row.appliance.account ?? '–')] : []),
  ]);
  const head = [...HEADERS, ...(samePortal ? [] : ['PORTAL']), ...(hasAccounts ? ['ACCOUNT'] : [])];
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
    // The JSON state of an appliance that waits for approval is `unpaired`; people need to know what it waits for.
    styleText(colour, waiting === undefined ? state : 'waits for approval', { stream: process.stdout }),
    printable(scope ?? '–'),
    formatTimeUntil(appliance.expires_in),
    formatTimeUntil(appliance.refresh_in),
    formatTimeSince(appliance.last_refresh, now),
  ];
}

/** If several appliances asked to join, one of them may not belong to this home. */
function joinRequestsWarning({ registration_asked = 0 }: Pick<HubResponse, 'registration_asked'>): string[] {
  if (registration_asked < 2) return [];
  return [
    `${registration_asked} appliances have asked to join since registration was opened: approve only those that show the same code as this list`,
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
    const software = waiting.software_id === null ? '' : `, reports the software ${printable(waiting.software_id)}`;
    return [
      `${name}: asked to join ${formatTimeSince(waiting.since, now)}${address}, client_id ${printable(appliance.client_id)}${software}`,
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

/** Names no command if a login link is open already: a login through that link brings the scope. */
function scopeChangeText({ name, scope, authorize_url }: ApplianceResponse, wanted: string | null): string {
  const scopeText = (value: string | null) => (value === null ? 'no scope' : printable(value));
  const command = authorize_url === undefined ? `: latchkey pair ${name}` : '';
  return `${name}: its configured scope was changed to ${scopeText(wanted)}; until somebody logs in again, it keeps ${scopeText(scope)}${command}`;
}
