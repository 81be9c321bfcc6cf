/** How many letters of a similar name may be wrong, and which share of its letters. */
const MAX_ERRORS = 3;
const MAX_ERROR_RATIO = 0.35;
/** In characters; longer input is not compared. */
const MAX_LENGTH = 100;

/** The known name that is most similar to an unknown one, as ` (did you mean NAME?)`; empty if none is similar. */
export function didYouMean(unknown: string, names: readonly string[]): string {
  const nearest = nearestName(unknown, names);
  return nearest === null ? '' : ` (did you mean ${nearest}?)`;
}

/**
 * The known name that is most similar to an unknown one; null if none is similar. Of two that are, it is the one that
 * begins with the unknown one. Case, `_` and `-` are ignored, because files and programs spell names differently.
 */
export function nearestName(unknown: string, names: readonly string[]): string | null {
  const typed = normalizeName(unknown);
  if (typed.length > MAX_LENGTH) return null;
  const [nearest] = names
    .map((name) => ({ name, known: normalizeName(name) }))
    .map((one) => ({ ...one, errors: editDistance(typed, one.known) }))
    .filter(({ known, errors }) => errors <= Math.min(MAX_ERRORS, MAX_ERROR_RATIO * known.length))
    .sort((a, b) => a.errors - b.errors || Number(b.known.startsWith(typed)) - Number(a.known.startsWith(typed)));
  return nearest?.name ?? null;
}

function normalizeName(name: string): string {
  return name.toLowerCase().replaceAll(/[_-]/g, '');
}

/** The number of wrong, missing, extra or swapped letters (optimal string alignment distance). */
function editDistance(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, column) => column)];
  const at = (row: number, column: number) => rows[row]?.[column] ?? Number.POSITIVE_INFINITY;
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    rows.push(row);
    for (let j = 1; j <= b.length; j++) {
      const replaced = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwap = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = isSwap ? at(i - 2, j - 2) + 1 : Number.POSITIVE_INFINITY;
      row.push(Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, replaced, swapped));
    }
  }
  return at(a.length, b.length);
}
