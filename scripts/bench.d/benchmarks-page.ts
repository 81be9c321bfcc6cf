import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import {
  formatRatio,
  LATCHKEY,
  type Measurement,
  type Measurements,
  median,
  type Report,
  ratioOf,
  type Suite,
} from './suite.ts';

const root = join(import.meta.dirname, '../..');

/** When a suite ran, and how busy the machine was. */
export interface RunConditions {
  readonly began: string;
  readonly ended: string;
  /** The machine's load average over one minute, before and after the run. */
  readonly load: readonly [number, number];
}

/** Writes a suite's report into its section of docs/benchmarks.md. */
export function writeSuiteSection(suite: Suite, run: RunConditions, { targets, tables }: Report): void {
  const { name, title } = suite;
  const file = join(root, 'docs/benchmarks.md');
  const page = readFileSync(file, 'utf8');
  const [begin, end] = [`<!-- bench: ${name} -->`, `<!-- end of bench: ${name} -->`];
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from === -1 || to < from)
    throw new Error(`docs/benchmarks.md: the section "${name}" is missing: add ${begin} and ${end}`);
  const section = [begin, `## ${title}`, circumstances(suite, run), targetTable(targets), ...tables, ''];
  writeFileSync(file, page.slice(0, from) + section.filter((part) => part !== null).join('\n\n') + page.slice(to));
}

function circumstances({ name }: Suite, { began, ended, load }: RunConditions): string {
  const [before, after] = load.map((value) => value.toFixed(1));
  return `\`./scripts/bench ${name}\`, ${began.slice(0, 16)} to ${ended.slice(11, 16)} UTC: Node ${process.versions.node},
Linux ${uname()}, ${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}, load average ${before} before and ${after} after.`;
}

function targetTable(targets: Report['targets']): string | null {
  if (targets.length === 0) return null;
  const lines = targets.map(({ text, measured, verdict }) => {
    return `| ${text} | ${measured} | ${verdict === 'met' ? 'met' : `**${verdict}**`} |`;
  });
  return ['| target | measured | |', '|---|---|---|', ...lines].join('\n');
}

/** A table of this checkout's measurements: median, lowest and highest value. Rows without any are left out. */
export function measurementTable(measured: Measurements, rows: readonly string[], whats: readonly string[]): string {
  const head = whats.map((what) => {
    const unit = measured.all.find((one) => one.what === what)?.unit ?? '';
    return unit === '' ? what : `${what}, ${unit}`;
  });
  const body = rows.flatMap((row) => {
    const cells = whats.map((what) => formatSpread(measured.find(row, what)?.values ?? []));
    return cells.every((cell) => cell === '') ? [] : [`| ${[row, ...cells].join(' | ')} |`];
  });
  return [`| ${['', ...head].join(' | ')} |`, `|${'---|'.repeat(head.length + 1)}`, ...body].join('\n');
}

/** All measurements as lines for the terminal. */
export function measurementLines({ all }: Measurements): string {
  return all
    .map((one) => `${labelOf(one).padEnd(64)} ${one.of.padEnd(20)} ${formatSpread(one.values)} ${one.unit}`)
    .join('\n');
}

/** A table that compares this checkout with another revision, measured in the same rounds. */
export function comparisonLines(measured: Measurements, other: string): string {
  const rows = measured.all
    .filter(({ of }) => of === other)
    .flatMap((then) => {
      const now = measured.find(then.row, then.what);
      if (now === undefined) return [];
      const compared = ratioOf(now, then);
      const isBetter = compared.middle?.every((value) => (then.better === 'more' ? value > 1 : value < 1)) ?? false;
      const here = `${formatRatio(compared)}${isBetter ? ', better' : ''}`;
      const cells = [`${labelOf(then)}, ${then.unit}`, formatSpread(then.values), formatSpread(now.values), here];
      return [`| ${cells.join(' | ')} |`];
    });
  return [`| | ${other} | here | here is |`, '|---|---|---|---|', ...rows].join('\n');
}

function labelOf({ row, what }: Measurement): string {
  return row === LATCHKEY ? what : `${row}: ${what}`;
}

/** The median, with the lowest and the highest value in brackets: `77 (73–94)`. */
function formatSpread(values: readonly number[]): string {
  if (values.length === 0) return '';
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const most = Math.max(Math.abs(low), Math.abs(high));
  const digits = values.every(Number.isInteger) || most >= 100 ? 0 : most >= 10 ? 1 : 2;
  const middle = median(values).toFixed(digits);
  return values.length === 1 ? middle : `${middle} (${low.toFixed(digits)}–${high.toFixed(digits)})`;
}

function uname(): string {
  return execFileSync('uname', ['-rm']).toString().trim();
}
