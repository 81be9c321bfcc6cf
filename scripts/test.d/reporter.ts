import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';
import type { Reporter, TestCase, TestModule } from 'vitest/node';
import type { TestRemark, TestSummary } from './summary.ts';

interface Failure {
  readonly message: string;
}

/**
 * Writes a {@link TestSummary} to the file that LATCHKEY_TEST_REPORT names. vitest's own JSON report lacks the reasons
 * of skipped tests, and counts neither failed hooks nor errors outside of tests.
 */
export default class SummaryReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly Failure[]): void {
    const file = process.env['LATCHKEY_TEST_REPORT'];
    if (file !== undefined) writeFileSync(file, JSON.stringify(summarize(modules, unhandled)));
  }
}

function summarize(modules: readonly TestModule[], unhandled: readonly Failure[]): TestSummary {
  const failed: TestRemark[] = unhandled.map(({ message }) => ({
    name: 'an error outside of any test',
    reason: message,
  }));
  const skipped: TestRemark[] = [];
  let passed = 0;
  for (const module of modules) {
    const path = relative(process.cwd(), module.moduleId);
    for (const { message } of module.errors()) failed.push({ name: path, reason: message });
    if (module.state() === 'pending' || module.state() === 'queued')
      failed.push({ name: path, reason: 'did not finish' });
    for (const suite of module.children.allSuites()) {
      for (const { message } of suite.errors()) failed.push({ name: `${path} > ${suite.fullName}`, reason: message });
    }
    for (const test of module.children.allTests()) {
      const reason = failure(test);
      const result = test.result();
      const name = `${path} > ${test.fullName}`;
      if (reason !== null) failed.push({ name, reason });
      else if (result.state === 'skipped') skipped.push({ name, reason: result.note ?? 'no reason given' });
      else passed += 1;
    }
  }
  return { passed, failed, skipped };
}

function failure(test: TestCase): string | null {
  const result = test.result();
  if (result.state === 'pending') return 'did not finish';
  if (result.state === 'failed') return result.errors[0]?.message ?? 'no message';
  return null;
}
