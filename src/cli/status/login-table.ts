import { formatDuration } from '../../core/clock.ts';
import type { Named } from '../../core/name.ts';
import type { FieldValue, StatusField } from '../../core/status-field.ts';
import { formatTimeSince, formatTimeUntil } from '../terminal/duration.ts';
import { printable } from '../terminal/output.ts';
import { alignColumns, DEFAULT_COLUMNS, tableWidth } from '../terminal/table.ts';

/** A column of a {@link loginTable}, with a cell for each row. */
export interface Column {
  readonly head: string;
  readonly cells: readonly string[];
  /** The cells have words that may stand below each other. */
  readonly hasWords?: true;
}

/**
 * A table of appliances or connections. If it is too wide for the terminal, each word of the columns that have words gets
 * its own line.
 */
export function loginTable(columns: readonly Column[]): string {
  const rows = (columns[0]?.cells ?? []).map((_, row) => columns.map(({ cells }) => cells[row] ?? ''));
  const head = columns.map((column) => column.head);
  const wide = alignColumns([head, ...rows]);
  if (tableWidth(wide) <= (process.stdout.columns || DEFAULT_COLUMNS)) return wide;
  const lines = rows.flatMap((row) => {
    const words = row.map((cell, index) => (columns[index]?.hasWords === true ? cell.split(' ') : [cell]));
    const height = Math.max(...words.map(({ length }) => length));
    return Array.from({ length: height }, (_, line) => words.map((column) => column[line] ?? ''));
  });
  return alignColumns([head, ...lines]);
}

/** The columns of the fields that have a heading. */
export function fieldColumns<Field extends StatusField>(
  fields: Readonly<Record<string, Field>>,
  rows: readonly Readonly<Partial<Record<Field['member'], FieldValue>>>[],
  now: number,
): Column[] {
  return Object.values(fields).flatMap((field) => {
    const { member, heading }: { readonly member: Field['member']; readonly heading?: string } = field;
    return heading === undefined
      ? []
      : [{ head: heading, cells: rows.map((row) => fieldText(field, row[member], now)) }];
  });
}

/** The value of a field for people. @param now the time on this machine's clock, in ms since 1970 */
function fieldText({ kind, reached }: StatusField, value: FieldValue, now: number): string {
  if (value === null || value === undefined) return '–';
  if (typeof value === 'string') return kind === 'instant' ? formatTimeSince(value, now) : printable(value);
  return kind === 'seconds_since' ? formatDuration(value) : formatTimeUntil(value, reached);
}

/** The name and, if one is called otherwise, the titles. @param head above the names */
export function nameColumns(head: string, rows: readonly Named[]): Column[] {
  const names: Column = { head, cells: rows.map(({ name }) => printable(name)) };
  const titles: Column = { head: 'TITLE', cells: rows.map(({ title }) => printable(title)), hasWords: true };
  return rows.every(({ name, title }) => name === title) ? [names] : [names, titles];
}

/** A column for the portals, unless all have the same, and one for the accounts, if a portal reports one. */
export function portalColumns(
  logins: readonly { readonly portal: string; readonly account: string | null }[],
): Column[] {
  const samePortal = new Set(logins.map(({ portal }) => portal)).size === 1;
  const hasAccounts = logins.some(({ account }) => account !== null);
  return [
    ...(samePortal ? [] : [{ head: 'PORTAL', cells: logins.map(({ portal }) => printable(portal)) }]),
    ...(hasAccounts ? [{ head: 'ACCOUNT', cells: logins.map(({ account }) => printable(account ?? '–')) }] : []),
  ];
}
