/** Whether the long forms of tests run: whole tables of which the suite has the rows that guard most. */
export const LONG = process.env['LATCHKEY_TEST_LONG'] === '1';

/** The rows of a table that run now. @param short those of them that the suite has */
export function inShort<T>(all: readonly T[], short: readonly T[]): readonly T[] {
  return LONG ? all : short;
}
