import { readFileSync } from 'node:fs';

/** A check or test that failed or was skipped, and why. */
export interface TestRemark {
  readonly name: string;
  readonly reason: string;
}

/** The results of some checks or tests. */
export interface TestSummary {
  readonly passed: number;
  readonly failed: readonly TestRemark[];
  readonly skipped: readonly TestRemark[];
}

/** Combines summaries into one. */
export function addSummaries(summaries: readonly TestSummary[]): TestSummary {
  return {
    passed: summaries.reduce((sum, { passed }) => sum + passed, 0),
    failed: summaries.flatMap(({ failed }) => failed),
    skipped: summaries.flatMap(({ skipped }) => skipped),
  };
}

/**
 * The end of a test run's output: what failed, what was skipped and what the set-up could not install, each with its
 * reason on the same line; the last line is `N passed, N failed, N skipped`.
 * @param skipped lines of the set-up, `package: reason`
 */
export function summaryText(summary: TestSummary, skipped: readonly string[]): string {
  const list = (title: string, remarks: readonly string[]) =>
    remarks.length === 0 ? [] : ['', title, ...remarks.map((remark) => `  ${remark}`)];
  const lines = (remarks: readonly TestRemark[]) => remarks.map(({ name, reason }) => `${name}: ${firstLine(reason)}`);
  return [
    ...list('Failed:', lines(summary.failed)),
    ...list('Skipped:', lines(summary.skipped)),
    ...list('Not installed by the set-up:', skipped),
    '',
    `${summary.passed} passed, ${summary.failed.length} failed, ${summary.skipped.length} skipped`,
  ].join('\n');
}

/** Longer reasons are cut, in characters. */
const MAX_REASON_LENGTH = 300;

function firstLine(text: string): string {
  return text.split('\n', 1)[0]?.slice(0, MAX_REASON_LENGTH) ?? '';
}

/** The time that a part of a test run took, in seconds. */
export interface TestTimes {
  readonly name: string;
  readonly wall: number;
  /** Processor time of all its processes. */
  readonly cpu: number;
}

/** The times of the test files, summed by folder. Wall times of files that ran in parallel are added up. */
export function readTestTimes(file: string): TestTimes[] {
  const byFolder = new Map<string, { wall: number; cpu: number }>();
  for (const line of linesOf(file)) {
    const { name, wall, cpu } = JSON.parse(line) as { name: string; wall: number; cpu: number };
    const folder = /^(test\/(?:release\/)?[^/]+)/.exec(name)?.[1] ?? name;
    const sum = byFolder.get(folder) ?? { wall: 0, cpu: 0 };
    byFolder.set(folder, { wall: sum.wall + wall, cpu: sum.cpu + cpu });
  }
  return [...byFolder].map(([name, times]) => ({ name, ...times })).sort((a, b) => b.cpu - a.cpu);
}

/** A table of times for the terminal, in the given order. */
export function timesTable(times: readonly TestTimes[]): string {
  const width = Math.max(...times.map(({ name }) => name.length), 'part'.length);
  const row = (name: string, wall: string, cpu: string) =>
    `  ${name.padEnd(width)}  ${wall.padStart(8)}  ${cpu.padStart(9)}`;
  return [
    'Times in seconds (files that ran in parallel are added up):',
    row('part', 'wall', 'CPU'),
    ...times.map(({ name, wall, cpu }) => row(name, wall.toFixed(1), cpu.toFixed(1))),
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
