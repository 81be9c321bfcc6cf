import { join } from 'node:path';
import type { ExamReport } from '../../../src/emulator/exam/exam.ts';
import { runExam } from '../../../src/emulator/exam/exam.ts';
import type { ExamResult } from '../../../src/emulator/exam/situation.ts';
import { selectSituations } from '../../../src/emulator/exam/situations/all.ts';

const CAREFUL_CLIENT = join(import.meta.dirname, 'careful-client.ts');

/** The command of a client that is right, but for these mistakes. */
export function clientWith(...mistakes: readonly string[]): string[] {
  return [process.execPath, CAREFUL_CLIENT, ...mistakes];
}

/** Runs an exam in this process. @param only groups and names of situations; without any, the whole exam */
export function examine(command: readonly string[], ...only: readonly string[]): Promise<ExamReport> {
  return runExam({ command, situations: selectSituations(only), signal: new AbortController().signal });
}

/** The names of the situations with a verdict. */
export function namesOf(report: ExamReport, verdict: ExamResult['verdict']): string[] {
  return report.results.filter((result) => result.verdict === verdict).map(({ name }) => name);
}
