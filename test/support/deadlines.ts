/**
 * How many times slower than a quiet machine this machine may be. `scripts/test` calibrates it at its start; a single
 * test has the default.
 */
const SLOWNESS = Number(process.env['LATCHKEY_TEST_SLOWNESS'] ?? 8);

/** A deadline that detects a hang. @param ms the longest time that it takes on a quiet machine */
export function scaleDeadline(ms: number): number {
  return ms * SLOWNESS;
}
