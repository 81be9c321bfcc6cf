import { rewriteCommands } from '../../system/command-invocation.ts';
import { printable } from './output.ts';
import { alignColumns, DEFAULT_COLUMNS, tableWidth, wrapText } from './table.ts';

/** The detail column is never narrower than this, however narrow the terminal is. */
const MIN_DETAIL_COLUMNS = 30;

/** The result of a check, of the hub or of a portal. */
interface ShownCheck {
  readonly name: string;
  readonly result: 'ok' | 'warn' | 'fail';
  readonly detail: string;
}

/** One row per check. @param columns width of the terminal; longer details are wrapped within their column */
export function checksTable(checks: readonly ShownCheck[], columns = Number.POSITIVE_INFINITY): string {
  // Some terminals report no width.
  const width = columns || DEFAULT_COLUMNS;
  const rows = checks.map(({ name, result, detail }) => ({
    head: [result, printable(name)],
    detail: rewriteCommands(printable(detail)),
  }));
  const detailColumns = width - tableWidth(alignColumns(rows.map(({ head }) => [...head, '']))) - '  '.length;
  return alignColumns(
    rows.flatMap(({ head, detail }) =>
      wrapText(detail, Math.max(detailColumns, MIN_DETAIL_COLUMNS)).map((part, index) => [
        ...(index === 0 ? head : ['', '']),
        part,
      ]),
    ),
  );
}
