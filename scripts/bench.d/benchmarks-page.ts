import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { formatRatio, formatSpread, ratioOf } from './statistics.ts';
import type { Measurement, Report, Suite } from './suite.ts';

const root = join(import.meta.dirname, '../..');

/** When a suite ran, and how busy the machine was. */
export interface RunConditions {
  readonly began: string;
  readonly ended: string;
  /** The machine's load average over one minute, before and after the run. */
  readonly load: readonly [number, number];
}

/** Writes a suite's report into its section of docs/benchmarks.md. */
export function writeSuiteSection(suite: Suite, run: RunConditions, report: Report): void {
  writeSection(suite.name, suite.title, circumstances(suite, run), report);
}

/** Writes a report into its section of docs/benchmarks.md. @param how the command, date and machine, as Markdown */
export function writeSection(name: string, title: string, how: string, { targets, tables }: Report): void {
  const file = join(root, 'docs/benchmarks.md');
  const page = readFileSync(file, 'utf8');
  const [begin, end] = [`<!-- bench: ${name} -->`, `<!-- end of bench: ${name} -->`];
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from === -1 || to < from)
    throw new Error(`docs/benchmarks.md: the section "${name}" is missing: add ${begin} and ${end}`);
  const section = [begin, `## ${title}`, how, targetTable(targets), ...tables, ''];
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

/** A table of measurements, one row per subject: median, lowest and highest value. */
export function measurementTable(
  measured: readonly Measurement[],
  whats: readonly string[],
  ofs: readonly string[],
): string {
  const head = whats.map((what) => {
    const unit = measured.find((one) => one.what === what)?.unit ?? '';
    return unit === '' ? what : `${what}, ${unit}`;
  });
  const rows = ofs.map((of) => {
    const cells = whats.map((what) => {
      const one = measured.find((other) => other.what === what && other.of === of);
      return one === undefined ? '' : formatSpread(one.values, digits(one.values));
    });
    return `| ${[of, ...cells].join(' | ')} |`;
  });
  return [`| ${['', ...head].join(' | ')} |`, `|${'---|'.repeat(head.length + 1)}`, ...rows].join('\n');
}

/**
 * A table of this checkout's measurements that are named `row: what`, one row per `row`: median, lowest and highest
 * value.
 */
export function rowTable(measured: readonly Measurement[], rows: readonly string[], whats: readonly string[]): string {
  const own = measured
    .filter(({ of }) => of === 'latchkey')
    .map((one) => {
      const [of = '', what = ''] = one.what.split(': ');
      return { ...one, of, what };
    });
  return measurementTable(own, whats, rows);
}

/** All measurements as lines for the terminal. */
export function measurementLines(measured: readonly Measurement[]): string {
  return measured
    .map(
      ({ what, of, unit, values }) =>
        `${what.padEnd(48)} ${of.padEnd(24)} ${formatSpread(values, digits(values))} ${unit}`,
    )
    .join('\n');
}

/** A table that compares this checkout with another revision, measured in the same rounds. */
export function comparisonLines(measured: readonly Measurement[], other: string): string {
  const rows = measured
    .filter(({ of }) => of === other)
    .flatMap((then) => {
      const now = measured.find(({ what, of }) => what === then.what && of === 'latchkey');
      if (now === undefined) return [];
      const compared = ratioOf(now, then);
      const isBetter = compared.middle?.every((value) => (then.better === 'more' ? value > 1 : value < 1)) ?? false;
      const here = `${formatRatio(compared)}${isBetter ? ', better' : ''}`;
      return `| ${then.what}, ${then.unit} | ${cell(then)} | ${cell(now)} | ${here} |`;
    });
  return [`| | ${other} | here | here is |`, '|---|---|---|---|', ...rows].join('\n');
}

function cell({ values }: Measurement): string {
  return formatSpread(values, digits(values));
}

function digits(values: readonly number[]): number {
  const most = Math.max(...values.map(Math.abs));
  return values.every(Number.isInteger) || most >= 100 ? 0 : most >= 10 ? 1 : 2;
}

function uname(): string {
  return execFileSync('uname', ['-rm']).toString().trim();
}
