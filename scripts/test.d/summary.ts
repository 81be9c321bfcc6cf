import { readFileSync } from 'node:fs';

/** A check or test that failed or was skipped, and why. */
export interface TestRemark {
  readonly name: string;
  readonly reason: string;
}

/** What came of some checks or tests. */
export interface TestSummary {
  readonly passed: number;
  readonly failed: readonly TestRemark[];
  readonly skipped: readonly TestRemark[];
}

/** Adds summaries up. */
export function addSummaries(summaries: readonly TestSummary[]): TestSummary {
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
export function summaryText(summary: TestSummary, skipped: readonly string[]): string {
  const list = (title: string, remarks: readonly string[]) =>
    remarks.length === 0 ? [] : ['', title, ...remarks.map((remark) => `  ${remark}`)];
  const lines = (remarks: readonly TestRemark[]) => remarks.map(({ name, reason }) => `${name}: ${firstLine(reason)}`);
  return [
    ...list('Failed:', lines(summary.failed)),
    ...list('Skipped:', lines(summary.skipped)),
    ...list('Left out by the set-up:', skipped),
    '',
    `${summary.passed} passed, ${summary.failed.length} failed, ${summary.skipped.length} skipped`,
  ].join('\n');
}

/** Characters of a reason that are shown. */
const MAX_REASON_LENGTH = 300;

function firstLine(text: string): string {
  return text.split('\n', 1)[0]?.slice(0, MAX_REASON_LENGTH) ?? '';
}

/** What a part of a test run has taken, in seconds. */
export interface TestTimes {
  readonly name: string;
  readonly wall: number;
  /** Processor time of all processes; null where it was not measured. */
  readonly cpu: number | null;
}

/** What the test files have taken, by their folder; files that ran side by side are added up, so that walls overlap. */
export function readTestTimes(file: string): TestTimes[] {
  const byFolder = new Map<string, { wall: number; cpu: number }>();
  for (const line of linesOf(file)) {
    const { name, wall, cpu } = JSON.parse(line) as { name: string; wall: number; cpu: number };
    const folder = name.split('/').slice(0, 2).join('/');
    const sum = byFolder.get(folder) ?? { wall: 0, cpu: 0 };
    byFolder.set(folder, { wall: sum.wall + wall, cpu: sum.cpu + cpu });
  }
  return [...byFolder].map(([name, times]) => ({ name, ...times })).sort((a, b) => b.cpu - a.cpu);
}

/** A table of them, in the order that they are given in. */
export function timesTable(times: readonly TestTimes[]): string {
  const width = Math.max(...times.map(({ name }) => name.length), 'part'.length);
  const row = (name: string, wall: string, cpu: string) =>
    `  ${name.padEnd(width)}  ${wall.padStart(8)}  ${cpu.padStart(9)}`;
  return [
    'Where the time went, in seconds (files that ran side by side are added up):',
    row('part', 'wall', 'processor'),
    ...times.map(({ name, wall, cpu }) => row(name, wall.toFixed(1), cpu === null ? '–' : cpu.toFixed(1))),
  ].join('\n');
}

function linesOf(file: string): string[] {
  try {
    return readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '');
  } catch {
    return [];
  }
}
