import { html } from 'ghtml';
import type { ExamReport } from '../../emulator/exam/exam.ts';
import type { Verdict } from '../../emulator/exam/judgement.ts';
import type { ExamResult } from '../../emulator/exam/situation.ts';
import { printable } from '../terminal/output.ts';
import { alignColumns, wrapText } from '../terminal/table.ts';

const VERDICTS: Readonly<Record<Verdict, string>> = {
  passed: 'passed',
  failed: 'FAILED',
  not_applicable: 'does not apply',
};

/** The report for people: one row per situation, then an explanation of each failure. */
export function examTable({ client, passed, failed, not_applicable, results }: ExamReport, columns = 100): string {
  const rows = results.map(({ verdict, group, name }) => [VERDICTS[verdict], group, name]);
  const failures = results.filter(({ verdict }) => verdict === 'failed');
  const skipped = new Map<string, string[]>();
  for (const { verdict, seen, name } of results) {
    if (verdict === 'not_applicable') skipped.set(seen, [...(skipped.get(seen) ?? []), name]);
  }
  const block = (label: string, text: string) =>
    wrapText(printable(text), columns - 8).map((line, index) => `  ${(index === 0 ? label : '').padEnd(6)}${line}`);
  return [
    alignColumns(rows),
    ...failures.map(({ group, name, seen, right, source }) =>
      ['', `FAILED ${group}: ${name}`, ...block('seen', seen), ...block('right', right), ...block('says', source)].join(
        '\n',
      ),
    ),
    ...[...skipped].map(([seen, names]) =>
      ['', 'does not apply:', ...block('', names.join(', ')), ...block('why', seen)].join('\n'),
    ),
    '',
    `${printable(client)}: ${passed} passed, ${failed} failed, ${not_applicable} not applicable`,
  ].join('\n');
}

/** The report as JUnit XML, which CI systems show. */
export function junitReport({ client, failed, not_applicable, results }: ExamReport): string {
  return html`<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="${xmlText(client)}" tests="${results.length}" failures="${failed}" skipped="${not_applicable}">
!${results.map(testCase).join('\n')}
</testsuite>`;
}

function testCase({ group, name, verdict, seen, right, source }: ExamResult): string {
  const text = xmlText(`${seen}\nRight: ${right}\n${source}`);
  const inner = {
    passed: '',
    failed: html`<failure message="${xmlText(seen)}">${text}</failure>`,
    not_applicable: html`<skipped message="${xmlText(seen)}"/>`,
  }[verdict];
  return html`  <testcase classname="${group}" name="${name}">!${inner}</testcase>`;
}

/** Without characters that XML forbids. */
function xmlText(text: string): string {
  return text.replaceAll(/[^\t\n\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu, '\u{fffd}');
}
