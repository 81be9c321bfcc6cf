import { styleText } from 'node:util';
import type { ApplianceAnswer, HubAnswer, StatusAnswer } from '../../control/messages.ts';
import type { ApplianceState } from '../../core/administration.ts';
import type { Notice } from '../../core/reports/notice.ts';
import { whatToDo } from '../../core/reports/problem.ts';
import { systemClock } from '../../system/clock.ts';
import { ago, formatDuration, inTime } from '../terminal/duration.ts';
import { printable } from '../terminal/output.ts';
import { alignColumns, tableWidth } from '../terminal/table.ts';

/** How the hub and its appliances stand, for people: first what needs them. Lines are of any length. */
export function statusText({ hub, appliances, notices }: StatusAnswer): string {
  const first = notices.length === 0 ? '' : `${notices.map(noticeLine).join('\n')}\n\n`;
  return `${first}${hubText(hub)}\n\n${appliancesText(appliances, hub)}`;
}

function hubText(hub: HubAnswer): string {
  const rows = [
    ['hub', `${printable(hub.name)} (${hub.id})`],
    ['version', hub.version],
    ['address', hub.address ?? 'none yet: the home network is not there'],
    ['ports', `${hub.https_port} (HTTPS), ${hub.http_port} (HTTP)`],
    ['CA fingerprint', hub.ca_fingerprint],
    ...oldCa(hub),
    ['running for', formatDuration(hub.uptime)],
  ];
  if (hub.registration_open_for !== undefined) {
    rows.push(['registration', `open to any appliance for another ${formatDuration(hub.registration_open_for)}`]);
  }
  const problems = (hub.problems ?? []).map(({ message }) => `\n\n${printable(message)}`);
  return alignColumns(rows) + problems.join('');
}

function oldCa({ ca_rotation }: HubAnswer): string[][] {
  if (ca_rotation === undefined) return [];
  const { old_fingerprint, until } = ca_rotation;
  return [['old CA', `${old_fingerprint}, until ${until ?? 'some time after the clock is confirmed'}`]];
}

/** The exit status of `latchkey status` where nothing gets better until a person acts. */
const PERSON_NEEDED = 3;

/** A notice that stands, as a line. */
export function noticeLine({ severity, message, what_to_do }: Notice): string {
  const mark = styleText(severity === 'error' ? 'red' : 'yellow', '!', { stream: process.stdout });
  return `${mark} ${printable(message)}. ${printable(what_to_do)}.`;
}

/** Sets the exit status by the notices that stand. */
export function tellByStatus(notices: readonly Notice[]): void {
  if (notices.some(({ severity }) => severity === 'error')) process.exitCode = PERSON_NEEDED;
}

const COLOURS = {
  unpaired: 'gray',
  pairing: 'cyan',
  active: 'green',
  retrying: 'yellow',
  needs_pairing: 'red',
} as const satisfies Record<ApplianceState, string>;

const HEAD = ['APPLIANCE', 'STATE', 'SCOPE', 'EXPIRES', 'REFRESH', 'REFRESHED'];
const SCOPE_COLUMN = HEAD.indexOf('SCOPE');

/** Columns of what is no terminal, and of a terminal that does not say. */
const DEFAULT_COLUMNS = 80;

/**
 * How appliances stand: a table, and below it what needs a person.
 * @param hub how many have asked to join, where that matters
 */
export function appliancesText(
  appliances: readonly ApplianceAnswer[],
  hub: Pick<HubAnswer, 'registration_asked'>,
): string {
  if (appliances.length === 0) return 'No appliances yet. Register one: latchkey appliance add NAME';
  const now = systemClock('').now().wall;
  const remarks = [...severalAsked(hub), ...appliances.flatMap((appliance) => remark(appliance, now))];
  const standing = table(appliances, now, process.stdout.columns ?? DEFAULT_COLUMNS);
  return remarks.length > 0 ? `${standing}\n\n${remarks.join('\n')}` : standing;
}

/** Their portal is told where not all have the same, their account where a portal tells one; where the table is too wide, scopes take a line for each name. */
function table(appliances: readonly ApplianceAnswer[], now: number, columns: number): string {
  const samePortal = new Set(appliances.map(({ portal }) => portal)).size === 1;
  const isTold = appliances.some(({ account }) => account !== null);
  const rows = appliances.map((appliance) => [
    ...row(appliance, now),
    ...(samePortal ? [] : [printable(appliance.portal)]),
    ...(isTold ? [printable(appliance.account ?? '–')] : []),
  ]);
  const head = [...HEAD, ...(samePortal ? [] : ['PORTAL']), ...(isTold ? ['ACCOUNT'] : [])];
  const wide = alignColumns([head, ...rows]);
  if (tableWidth(wide) <= columns) return wide;
  const narrow = alignColumns([head, ...rows.flatMap(withScopeBelow)]);
  // Lines that a terminal breaks are no table any more.
  if (tableWidth(narrow) <= columns || !process.stdout.isTTY) return narrow;
  return rows.map((cells) => stacked(head, cells)).join('\n');
}

/** One appliance below the other: each of its cells with what it is. */
function stacked(head: readonly string[], [name = '', ...cells]: readonly string[]): string {
  const rows = cells.map((cell, index) => [` ${(head[index + 1] ?? '').toLowerCase()}`, cell]);
  return `${name}\n${alignColumns(rows.filter(([, cell]) => cell !== '–'))}`;
}

function withScopeBelow(cells: readonly string[]): string[][] {
  const [first = '', ...more] = (cells[SCOPE_COLUMN] ?? '').split(' ');
  const top = cells.with(SCOPE_COLUMN, first);
  return [top, ...more.map((name) => cells.map((_, column) => (column === SCOPE_COLUMN ? name : '')))];
}

function row(appliance: ApplianceAnswer, now: number): string[] {
  return [
    printable(appliance.name),
    stateCell(appliance),
    printable(appliance.scope ?? '–'),
    inTime(appliance.expires_in),
    inTime(appliance.refresh_in),
    ago(appliance.last_refresh, now),
  ];
}

/** One that waits for approval is `unpaired` by the contract; a person is told what it waits for. */
function stateCell({ state, waiting_for_approval: waiting }: ApplianceAnswer): string {
  if (waiting !== undefined) return styleText('magenta', 'waits for approval', { stream: process.stdout });
  return styleText(COLOURS[state], state, { stream: process.stdout });
}

/** Among several that asked there may be one that nobody in the house has set up. */
function severalAsked({ registration_asked = 0 }: Pick<HubAnswer, 'registration_asked'>): string[] {
  if (registration_asked < 2) return [];
  return [
    `${registration_asked} appliances asked to join since registration was opened: approve only those that show the same code as here`,
  ];
}

function remark(appliance: ApplianceAnswer, now: number): string[] {
  const { name, state, problem, authorize_url, waiting_for_approval: waiting } = appliance;
  if (waiting !== undefined) {
    const address = waiting.address === null ? '' : ` from ${printable(waiting.address)}`;
    const software = waiting.software_id === null ? '' : `, says its software is ${printable(waiting.software_id)}`;
    return [
      `${name}: introduced itself ${ago(waiting.since, now)}${address} as client_id ${printable(appliance.client_id)}${software}`,
      `  its code is ${printable(waiting.comparison_code)}: compare it with the one that the appliance shows`,
      `  if it is yours: latchkey appliance approve ${name} --code ${printable(waiting.comparison_code)}`,
      `  if it is not:   latchkey appliance remove ${name}`,
    ];
  }
  const lines: string[] = [];
  if (appliance.without_credentials === true) lines.push(...withoutCredentials(appliance));
  if (appliance.wanted_scope !== undefined) lines.push(otherScope(appliance, appliance.wanted_scope));
  if (problem !== null) {
    const what = printable(problem.message);
    lines.push(`${name}: ${what}. Noticed ${ago(problem.since, now)}; ${whatToDo(problem.code, name)}`);
  } else if (state === 'unpaired' && authorize_url === undefined) {
    lines.push(`${name}: not paired yet: latchkey pair ${name}`);
  } else if (state === 'needs_pairing') {
    lines.push(`${name}: somebody must log in again: latchkey pair ${name}`);
  }
  if (authorize_url !== undefined) lines.push(`${name}: log in at ${printable(authorize_url)}`);
  return lines;
}

function withoutCredentials({ name, credentials_damaged: damaged }: ApplianceAnswer): string[] {
  if (damaged === true) {
    return [
      `${name}: nobody can ask for its token, as its entry in the store was damaged, or changed by something other than the hub`,
      `  remove it: latchkey appliance remove ${name}, then add it again and pair it`,
    ];
  }
  return [
    `${name}: nobody can ask for its token, as it is declared no longer. Declare it again, or`,
    `  give it a secret: latchkey appliance rotate-secret ${name}`,
    `  or forget it:     latchkey appliance remove ${name}`,
  ];
}

/** Nothing to type where a link is open already: logging in there brings the scope. */
function otherScope({ name, scope, authorize_url }: ApplianceAnswer, wanted: string | null): string {
  const named = (one: string | null) => (one === null ? 'no scope' : printable(one));
  const command = authorize_url === undefined ? `: latchkey pair ${name}` : '';
  return `${name}: its scope was changed to ${named(wanted)}; until somebody logs in it keeps ${named(scope)}${command}`;
}
