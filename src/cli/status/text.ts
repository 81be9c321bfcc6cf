import { styleText } from 'node:util';
import type {
  ApplianceResponse,
  ConditionResponse,
  ConnectionResponse,
  HubResponse,
  SiteResponse,
  StatusResponse,
} from '../../control/messages.ts';
import { HUB_FIELDS } from '../../core/administration.ts';
import { APPLIANCE_FIELDS } from '../../core/appliances/appliance-status.ts';
import { formatDuration } from '../../core/clock.ts';
import { CONNECTION_FIELDS } from '../../core/connections/connection-status.ts';
import { concernsHub, groupByAppliance } from '../../core/health/condition.ts';
import type { Notice } from '../../core/health/notice.ts';
import { systemClock } from '../../system/clock.ts';
import { formatTimeSince } from '../terminal/duration.ts';
import { printable } from '../terminal/output.ts';
import { alignColumns } from '../terminal/table.ts';
import { connectionRemarks, connectionsText } from './connections-text.ts';
import { conditionLine, noticeLine, SEVERITY_COLOURS } from './lines.ts';
import { fieldColumns, loginTable, nameColumns, portalColumns } from './login-table.ts';

/** The status for people, the most important first. Lines may have any length. */
export function statusText(status: StatusResponse): string {
  const { hub, conditions, notices } = status;
  const first = notices.length === 0 ? '' : `${notices.map(noticeLine).join('\n')}\n\n`;
  const noticeKeys = new Set(notices.map(duplicateKey));
  const isShown = (condition: ConditionResponse) => noticeKeys.has(duplicateKey(condition));
  const ofHub = conditions.filter((condition) => concernsHub(condition) && !isShown(condition));
  const hubLines = ofHub.map((condition) => conditionLine(condition));
  const shared = status.connections.filter(({ own }) => own !== true);
  const sharedText = shared.length === 0 ? [] : [connectionsText(shared, conditions, isShown)];
  const now = systemClock('').now().wall;
  const usage = usageText(status.appliances, now);
  const parts = [
    hubText(hub, now),
    ...hubLines,
    ...(status.site === undefined ? [] : [siteText(status.site, now)]),
    appliancesText(status, isShown, false),
    ...sharedText,
    ...(usage === null ? [] : [usage]),
  ];
  return `${first}${parts.join('\n\n')}`;
}

function duplicateKey({ connection, appliance, what_to_do }: ConditionResponse | Notice): string {
  return `${connection} ${appliance} ${what_to_do}`;
}

function hubText(hub: HubResponse, now: number): string {
  const localPort = hub.local_port === undefined ? '' : `, ${hub.local_port} (HTTP, on this machine only)`;
  const rows = [
    ['hub', `${printable(hub.name)} (${hub.id})`],
    ['version', hub.version],
    ...(hub.test_mode === true ? [['mode', 'test mode: with an emulated portal, and nothing is stored']] : []),
    ['address', hub.address ?? 'none yet: the hub is not connected to the home network'],
    ['ports', `${hub.https_port} (HTTPS), ${hub.http_port} (HTTP)${localPort}`],
    ['CA fingerprint', hub.ca_fingerprint],
    ...oldCaRows(hub),
    ...fieldColumns(HUB_FIELDS, [hub], now).map(({ head, cells: [cell = ''] }) => [head, cell]),
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

/** The exit status of `latchkey status`: 3 if something does not improve until somebody acts. */
export function exitStatusOf(conditions: readonly Pick<ConditionResponse, 'severity'>[]): 0 | 3 {
  return conditions.some(({ severity }) => severity === 'error') ? 3 : 0;
}

/**
 * The state of appliances: a table, and below it their remarks and those of their connections.
 * @param isShown whether a condition is already shown elsewhere
 * @param showsShared whether the remarks include those of shared connections
 */
export function appliancesText(
  { hub, appliances, connections, conditions }: Omit<StatusResponse, 'notices'>,
  isShown: (condition: ConditionResponse) => boolean = () => false,
  showsShared = true,
): string {
  if (appliances.length === 0) {
    const isWithoutPortal = conditions.some(({ code }) => code === 'no_portal');
    return `No appliances yet.${isWithoutPortal ? '' : ' Register one: latchkey appliance add NAME'}`;
  }
  const now = systemClock('').now().wall;
  const grouped = groupByAppliance(conditions);
  const byName = new Map(connections.map((connection) => [connection.name, connection]));
  const remarked = new Set<string>();
  const remarks = appliances.flatMap((appliance) => {
    if (appliance.waiting_for_approval !== undefined) return approvalRemarks(appliance, now);
    const shown = (grouped.get(appliance.name) ?? []).filter((condition) => !isShown(condition));
    const connection = byName.get(appliance.connection);
    if (connection?.own === true) return connectionRemarks(connection, shown, now);
    const own = shown.filter((condition) => condition.appliance !== null).map((one) => conditionLine(one, now));
    if (!showsShared || connection === undefined || remarked.has(connection.name)) return own;
    remarked.add(connection.name);
    const ofConnection = shown.filter((condition) => condition.appliance === null);
    return [...own, ...connectionRemarks(connection, ofConnection, now)];
  });
  const below = [...joinRequestsWarning(hub), ...remarks];
  const table = appliancesTable(appliances, byName, grouped, now);
  return below.length > 0 ? `${table}\n\n${below.join('\n')}` : table;
}

/**
 * Has a column for the connections if one of them is shared.
 * @param conditions of each appliance, the gravest first
 */
function appliancesTable(
  appliances: readonly ApplianceResponse[],
  connections: ReadonlyMap<string, ConnectionResponse>,
  conditions: ReadonlyMap<string | null, readonly ConditionResponse[]>,
  now: number,
): string {
  const column = (head: string, cell: (appliance: ApplianceResponse) => string) => ({
    head,
    cells: appliances.map(cell),
  });
  const hasShared = appliances.some(({ connection }) => connections.get(connection)?.own !== true);
  return loginTable([
    ...nameColumns('APPLIANCE', appliances),
    column('STATE', ({ name, state, waiting_for_approval: waiting }) => {
      const [gravest] = conditions.get(name) ?? [];
      const colour = gravest === undefined ? 'green' : SEVERITY_COLOURS[gravest.severity];
      // The JSON state of an appliance that waits for approval is `unpaired`; people need to know what it waits for.
      return styleText(colour, waiting === undefined ? state : 'waits for approval', { stream: process.stdout });
    }),
    { ...column('SCOPE', ({ scope }) => printable(scope ?? '–')), hasWords: true },
    ...fieldColumns(CONNECTION_FIELDS, appliances, now),
    ...fieldColumns(APPLIANCE_FIELDS, appliances, now),
    ...(hasShared ? [{ ...column('CONNECTION', connectionsOf), hasWords: true as const }] : []),
    ...portalColumns(appliances),
  ]);
}

/** All that an appliance uses; first the one that the rest of its row is about. */
function connectionsOf({ connection, connections = [] }: ApplianceResponse): string {
  return printable([...new Set([connection, ...connections])].join(' '));
}

/** If several appliances asked to join, one of them may not belong to this home. */
function joinRequestsWarning({ registration_asked = 0 }: Pick<HubResponse, 'registration_asked'>): string[] {
  if (registration_asked < 2) return [];
  return [
    `${registration_asked} appliances have asked to join since registration was opened: approve only those that show the same code as this list`,
  ];
}

function approvalRemarks(
  { name, title, client_id, waiting_for_approval: waiting }: ApplianceResponse,
  now: number,
): string[] {
  if (waiting === undefined) return [];
  const software = waiting.software_id === null ? '' : `, reports the software ${printable(waiting.software_id)}`;
  return [
    `${printable(title)}: asked to join ${formatTimeSince(waiting.since, now)} from ${printable(waiting.address)}, client_id ${printable(client_id)}${software}`,
    `  its code is ${printable(waiting.comparison_code)}: compare it with the one that the appliance shows`,
    `  if it is yours: latchkey appliance approve ${name} --code ${printable(waiting.comparison_code)}`,
    `  if it is not:   latchkey appliance remove ${name}`,
  ];
}

/** The hubs of a site, as a table. */
function siteText({ id, hubs }: SiteResponse, now: number): string {
  return `Hubs of the site ${id}:\n${alignColumns([
    ['HUB', 'ID', 'ADDRESS', 'VERSION', 'LAST SEEN'],
    ...hubs.map((hub) => [
      printable(hub.name),
      printable(hub.id),
      hub.address ?? '–',
      printable(hub.version),
      hub.this_hub === true ? 'this hub' : formatTimeSince(hub.last_seen, now),
    ]),
  ])}`;
}

/** A table of the tokens that each appliance got; null if there is nothing to say. @param now milliseconds since 1970 */
function usageText(appliances: readonly ApplianceResponse[], now: number): string | null {
  const hasRefused = appliances.some(({ refused }) => refused !== undefined);
  if (!hasRefused && appliances.every(({ last_token: last }) => last === null)) return null;
  return alignColumns([
    ['TOKENS', 'LAST', 'TODAY', '14 DAYS', ...(hasRefused ? ['REFUSED REQUESTS'] : [])],
    ...appliances.flatMap(({ name, last_token, tokens, refused, usage = [] }) => [
      [
        ...countCells(printable(name), { last_token, tokens }, now),
        ...(hasRefused ? [refused === undefined ? '–' : `${refused.count} since ${refused.since}`] : []),
      ],
      ...usage.map((each) => [
        ...countCells(`  ${printable(each.connection)}`, each, now),
        ...(hasRefused ? [''] : []),
      ]),
    ]),
  ]);
}

function countCells(
  name: string,
  { last_token: last, tokens }: Pick<ApplianceResponse, 'last_token' | 'tokens'>,
  now: number,
): string[] {
  return [
    name,
    last === null ? 'never' : formatTimeSince(last, now),
    String(tokens.today),
    String(tokens.last_14_days),
  ];
}
