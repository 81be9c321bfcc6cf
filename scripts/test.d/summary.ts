/** A check or test that failed or was skipped, and why. */
export interface Remark {
  readonly name: string;
  readonly reason: string;
}

/** What came of some checks or tests. */
export interface Summary {
  readonly passed: number;
  readonly failed: readonly Remark[];
  readonly skipped: readonly Remark[];
}

/** Adds summaries up. */
export function total(summaries: readonly Summary[]): Summary {
  return {
    passed: summaries.reduce((sum, { passed }) => sum + passed, 0),
    failed: summaries.flatMap(({ failed }) => failed),
    skipped: summaries.flatMap(({ skipped }) => skipped),
  };
}

/**
 * The end of a test run's output: what failed, what was skipped, what the set-up left out, each with its reason on the
 * same line; and last `N passed, N failed, N skipped`.
 */
export function conclusion(summary: Summary, leftOut: readonly string[]): string {
  const list = (title: string, remarks: readonly string[]) =>
    remarks.length === 0 ? [] : ['', title, ...remarks.map((remark) => `  ${remark}`)];
  const lines = (remarks: readonly Remark[]) => remarks.map(({ name, reason }) => `${name}: ${firstLine(reason)}`);
  return [
    ...list('Failed:', lines(summary.failed)),
    ...list('Skipped:', lines(summary.skipped)),
    ...list('Left out by the set-up:', leftOut),
    '',
    `${summary.passed} passed, ${summary.failed.length} failed, ${summary.skipped.length} skipped`,
  ].join('\n');
}

/** Characters of a reason that are shown. */
const LONGEST_REASON = 300;

function firstLine(text: string): string {
  return text.split('\n', 1)[0]?.slice(0, LONGEST_REASON) ?? '';
}
