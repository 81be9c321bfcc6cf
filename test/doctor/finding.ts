import type { NamedCheckResult } from '../../src/doctor/check-result.ts';

/** What the doctor found in a check, as "result: detail". */
export function finding(checks: readonly NamedCheckResult[], name: string): string {
  const found = checks.find((check) => check.name === name);
  if (found === undefined) throw new Error(`there is no ${name} among ${checks.map((check) => check.name).join(', ')}`);
  return `${found.result}: ${found.detail}`;
}
