import { tableWidth } from './table.ts';

/** A line broken between words, so that each part fits. A word that is longer, such as a link, stays whole. */
export function filled(line: string, columns: number): string[] {
  if (tableWidth(line) <= columns) return [line];
  const parts: string[] = [];
  for (const word of line.trim().split(/ +/)) {
    const longer = `${parts.at(-1)} ${word}`;
    if (parts.length > 0 && tableWidth(longer) <= columns) parts[parts.length - 1] = longer;
    else parts.push(word);
  }
  return parts;
}
