/** Whether the long forms of tests run: whole tables, of which the suite runs only the most important rows. */
export const IS_LONG_FORM = process.env['LATCHKEY_TEST_LONG'] === '1';

/** The rows of a table that run now. @param short the rows for the suite */
export function selectRows<T>(all: readonly T[], short: readonly T[]): readonly T[] {
  return IS_LONG_FORM ? all : short;
}

/**
 * The same for a table whose rows begin with a name.
 * @param short the names of the rows for the suite
 * @throws Error for a name that no row has
 */
export function selectNamedRows<Row extends readonly [name: string, ...rest: unknown[]]>(
  all: readonly Row[],
  short: readonly string[],
): readonly Row[] {
  const unknown = short.find((wanted) => !all.some(([name]) => name === wanted));
  if (unknown !== undefined) throw new Error(`no row is named ${unknown}`);
  return selectRows(
    all,
    all.filter(([name]) => short.includes(name)),
  );
}
