import { stripVTControlCharacters } from 'node:util';

/** Rows with their columns aligned, two spaces apart. Cells may carry colours. */
export function alignColumns(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, width(cell));
    });
  }
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - width(cell)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** The columns that a table of {@link alignColumns} takes. */
export function tableWidth(table: string): number {
  return Math.max(...table.split('\n').map(width));
}

function width(cell: string): number {
  return [...stripVTControlCharacters(cell)].length;
}
