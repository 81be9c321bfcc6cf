/**
 * How many times slower than a quiet machine this one may be. `scripts/test` calibrates it at its start; a single test that is run
 * by itself has the default.
 */
const SLOWNESS = Number(process.env['LATCHKEY_TEST_SLOWNESS'] ?? 8);

/** A deadline for what hangs. @param ms that it takes at the very most on a quiet machine */
export function scaleDeadline(ms: number): number {
  return ms * SLOWNESS;
}
