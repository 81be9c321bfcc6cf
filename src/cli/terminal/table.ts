import { stripVTControlCharacters } from 'node:util';

/** Rows with their columns aligned, two spaces apart. Cells may carry colours. */
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

/** The columns that a table of {@link alignColumns} takes. */
export function tableWidth(table: string): number {
  return Math.max(...table.split('\n').map(textWidth));
}

function textWidth(cell: string): number {
  return [...stripVTControlCharacters(cell)].length;
}

/** A line broken between words, so that each part fits. A word that is longer, such as a link, stays whole. */
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
