import { styleText } from 'node:util';
import type { ConditionResponse, ConnectionResponse } from '../../control/messages.ts';
import { CONNECTION_FIELDS } from '../../core/connections/connection-status.ts';
import { groupByConnection } from '../../core/health/condition.ts';
import type { Named } from '../../core/name.ts';
import { systemClock } from '../../system/clock.ts';
import { printable } from '../terminal/output.ts';
import { conditionLine, loginInstruction, SEVERITY_COLOURS } from './lines.ts';
import { fieldColumns, loginTable, nameColumns, portalColumns } from './login-table.ts';

/**
 * The state of connections with the appliances that use them: a table, and below it their remarks.
 * @param isShown whether a condition is already shown elsewhere
 */
export function connectionsText(
  connections: readonly ConnectionResponse[],
  conditions: readonly ConditionResponse[],
  isShown: (condition: ConditionResponse) => boolean = () => false,
): string {
  if (connections.length === 0) return 'No connections yet. Add one: latchkey connection add NAME';
  const now = systemClock('').now().wall;
  const grouped = groupByConnection(conditions);
  const remarks = connections.flatMap((connection) => {
    const own = grouped.get(connection.name) ?? [];
    const shown = own.filter((condition) => !isShown(condition));
    return connectionRemarks(connection, shown, now);
  });
  const column = (head: string, cell: (connection: ConnectionResponse) => string) => ({
    head,
    cells: connections.map(cell),
  });
  const table = loginTable([
    ...nameColumns('CONNECTION', connections),
    column('STATE', ({ name, state }) => {
      const [gravest] = grouped.get(name) ?? [];
      const colour = gravest === undefined ? 'green' : SEVERITY_COLOURS[gravest.severity];
      return styleText(colour, state, { stream: process.stdout });
    }),
    { ...column('SCOPE', ({ scope }) => printable(scope ?? '–')), hasWords: true },
    ...fieldColumns(CONNECTION_FIELDS, connections, now),
    ...portalColumns(connections),
    { ...column('APPLIANCES', ({ appliances }) => printable(appliances.join(' ') || '–')), hasWords: true },
  ]);
  return remarks.length > 0 ? `${table}\n\n${remarks.join('\n')}` : table;
}

/**
 * What a person should know about a connection, as lines.
 * @param conditions those that concern it and are not shown elsewhere
 */
export function connectionRemarks(
  {
    name,
    title,
    state,
    scope,
    wanted_scope: wanted,
    authorize_url: link,
    user_code,
    login_ends: ends,
  }: ConnectionResponse,
  conditions: readonly ConditionResponse[],
  now: number,
): string[] {
  const shown = conditions.filter(({ code }) => code !== 'login_open');
  // The condition `login_ending` says the same, and an ended login needs a new one anyway.
  const saysEnd = ends !== null && state !== 'needs_pairing' && !conditions.some(({ code }) => code === 'login_ending');
  return [
    ...shown.map((condition) => conditionLine(condition, now)),
    ...(saysEnd ? [`${printable(title)}: login ends on ${ends} unless somebody logs in again before`] : []),
    ...(wanted === undefined ? [] : [scopeChangeText({ name, title }, scope, wanted, link !== undefined)]),
    ...(link === undefined ? [] : [`${printable(title)}: ${loginInstruction(link, user_code, state)}`]),
  ];
}

/** Names no command if a login link is open already: a login through that link brings the scope. */
function scopeChangeText(
  { name, title }: Named,
  scope: string | null,
  wanted: string | null,
  isPairing: boolean,
): string {
  const scopeText = (value: string | null) => (value === null ? 'no scope' : printable(value));
  const command = isPairing ? '' : `: latchkey pair ${name}`;
  return `${printable(title)}: its configured scope was changed to ${scopeText(wanted)}; until somebody logs in again, it keeps ${scopeText(scope)}${command}`;
}
