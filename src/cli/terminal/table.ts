import { stripVTControlCharacters } from 'node:util';

/** The width if standard output is no terminal, or reports none, as one on a serial line does. */
export const DEFAULT_COLUMNS = 80;

/** Aligns the columns of a table, two spaces apart. Cells may contain colour codes. */
export function alignColumns(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, textWidth(cell));
    });
  }
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - textWidth(cell)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** The width of a table of {@link alignColumns}, in terminal columns. */
export function tableWidth(table: string): number {
  return Math.max(...table.split('\n').map(textWidth));
}

function textWidth(cell: string): number {
  return [...stripVTControlCharacters(cell)].length;
}

/** Wraps a line between words, so that each part fits. A longer word, such as a link, is not split. */
export function wrapText(line: string, columns: number): string[] {
  if (tableWidth(line) <= columns) return [line];
  const parts: string[] = [];
  for (const word of line.trim().split(/ +/)) {
    const longer = `${parts.at(-1)} ${word}`;
    if (parts.length > 0 && tableWidth(longer) <= columns) parts[parts.length - 1] = longer;
    else parts.push(word);
  }
  return parts;
}
