// The report of a run of the experiments: a table for the terminal, and one for docs/reliability.md.
import { SKIPPED } from '../../test/chaos/experiment.ts';
import type { ExperimentOutcome } from './run.ts';

/** An experiment and its result. */
export interface ExperimentRun {
  /** The name of its file without the suffix, as `--only` takes it. */
  readonly id: string;
  readonly name: string;
  readonly outcome: ExperimentOutcome;
  readonly seconds: number;
}

/** Whether the hub held the experiment's promise, or why that is not known. */
export function verdict({ outcome }: ExperimentRun): 'held' | 'BROKEN' | 'FAILED' | 'stopped' | 'skipped' {
  if (outcome.kind === 'failed') return 'FAILED';
  if (outcome.kind === 'stopped') return 'stopped';
  if (SKIPPED in outcome.finding.figures) return SKIPPED;
  return outcome.finding.broken.length === 0 ? 'held' : 'BROKEN';
}

/** The counts in the form of a test run's last line. @param leaked whether a log contained a secret */
export function summaryLine(results: readonly ExperimentRun[], leaked: boolean): string {
  const verdicts = results.map(verdict);
  const count = (...of: readonly ReturnType<typeof verdict>[]) => verdicts.filter((one) => of.includes(one)).length;
  const failed = count('BROKEN', 'FAILED') + (leaked ? 1 : 0);
  return `${count('held')} passed, ${failed} failed, ${count('skipped', 'stopped')} skipped`;
}

/** The table for the terminal, followed by each broken promise. */
export function resultsTable(results: readonly ExperimentRun[]): string {
  const rows = results.flatMap((result) => {
    const lines = figures(result);
    const head = [result.id, lines[0] ?? '', verdict(result)];
    return [head, ...lines.slice(1).map((line) => ['', line, ''])];
  });
  const all = [['experiment', 'figures', 'promise'], ...rows];
  const widths = [0, 1].map((column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const drawn = all.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  const rule = '─'.repeat(Math.max(...drawn.map((line) => line.length)));
  const problems = results.flatMap(({ id, outcome }) => {
    if (outcome.kind === 'failed') return [`${id} failed: ${outcome.reason}`];
    return outcome.kind === 'finding' ? outcome.finding.broken.map((promise) => `${id}: ${promise}`) : [];
  });
  return [drawn[0], rule, ...drawn.slice(1), ...problems.map((line) => `\n${line}`)].join('\n');
}

function figures({ outcome, seconds }: ExperimentRun): string[] {
  const took = `${Math.round(seconds)} s`;
  if (outcome.kind === 'failed') return [`did not finish, after ${took}`];
  if (outcome.kind === 'stopped') return [`stopped after ${took}: ${outcome.last}`];
  return [...Object.entries(outcome.finding.figures).map(([name, value]) => `${name}: ${value}`), `took: ${took}`];
}

const BEGIN = '<!-- figures: written by scripts/chaos -->';
const END = '<!-- end of figures -->';

/**
 * Writes the figures between the page's two markers. Rows of experiments that did not run stay as they are.
 * @throws Error if a marker is missing
 */
export function updatePage(page: string, results: readonly ExperimentRun[], date: string, command: string): string {
  const [before, rest] = page.split(BEGIN);
  const [old, after] = rest?.split(END) ?? [];
  if (before === undefined || old === undefined || after === undefined) {
    throw new Error(`docs/reliability.md has lost its markers, "${BEGIN}" and "${END}"`);
  }
  const rows = new Map([...old.matchAll(/^\| `([\w-]+)` \|.*$/gm)].map(([row, id]) => [id, row]));
  for (const result of results) {
    if (!['held', 'BROKEN'].includes(verdict(result))) continue;
    const cells = [`\`${result.id}\``, figures(result).join('<br>'), verdict(result), `${date}, \`${command}\``];
    rows.set(result.id, `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`);
  }
  const head = ['| experiment | figures | promise | run |', '|---|---|---|---|'];
  const body = [...rows].sort(([a = ''], [b = '']) => a.localeCompare(b)).map(([, row]) => row);
  return `${before}${BEGIN}\n${[...head, ...body].join('\n')}\n${END}${after}`;
}
