/** Whether the long forms of tests run: whole tables of which the suite has the rows that guard most. */
export const IS_LONG_FORM = process.env['LATCHKEY_TEST_LONG'] === '1';

/** The rows of a table that run now. @param short those of them that the suite has */
export function selectRows<T>(all: readonly T[], short: readonly T[]): readonly T[] {
  return IS_LONG_FORM ? all : short;
}

/**
 * The same for a table whose rows begin with a name.
 * @param short names of those that the suite has
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
