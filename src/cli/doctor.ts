import { Command } from 'commander';
import { messageOf } from '../core/failure.ts';
import type { NamedCheckResult } from '../doctor/check-result.ts';
import { rewriteCommands } from '../system/command-invocation.ts';
import { configPathOf } from './hub-connection.ts';
import { print, printable, printJson, reportFailure } from './terminal/output.ts';
import { rejectExistingFile, writeFileAtomically } from './terminal/output-file.ts';
import { alignColumns, tableWidth, wrapText } from './terminal/table.ts';

interface Options {
  readonly json?: boolean;
  readonly bundle?: string;
  readonly yes?: boolean;
}

/** The detail column is never narrower than this, however narrow the terminal is. */
const MIN_DETAIL_COLUMNS = 30;

/** `latchkey doctor` */
export function doctorCommand(): Command {
  return new Command('doctor')
    .description('check the hub, its configuration and this machine for problems, and say what to do')
    .option('--bundle <file>', 'also write a diagnostics archive (tar.gz) for support, with secrets removed')
    .option('--yes', 'overwrite an existing archive')
    .option('--json', 'print JSON')
    .action(async (options: Options, command: Command) => {
      const status = await runDoctor(options, configPathOf(command)).catch((error: unknown) => {
        reportFailure(messageOf(error));
        return 1;
      });
      // A pending DNS lookup would keep the process alive for half a minute.
      process.stdout.write('', () => process.exit(status));
    });
}

async function runDoctor({ json, bundle, yes }: Options, file: string | undefined): Promise<number> {
  const target = bundle === undefined ? null : { path: bundle, replace: yes === true, flag: '--yes' };
  if (target !== null) await rejectExistingFile(target);
  const [{ createDoctorContext }, { runChecks }] = await Promise.all([
    import('../doctor/context.ts'),
    import('../doctor/run-checks.ts'),
  ]);
  const options = { file, env: process.env };
  const context = await createDoctorContext(options);
  const checks = await runChecks(context);
  if (target !== null) {
    const { createDiagnosticsBundle } = await import('../doctor/bundle/bundle.ts');
    await writeFileAtomically(target, await createDiagnosticsBundle(context, checks, options));
  }
  if (json === true) printJson({ checks, ...(bundle === undefined ? {} : { bundle }) });
  else {
    print(checksTable(checks, process.stdout.isTTY ? process.stdout.columns : undefined));
    if (bundle !== undefined)
      print(`\n${printable(bundle)} is for support, with secrets removed; its README.txt says what is inside.`);
  }
  return checks.some(({ result }) => result === 'fail') ? 1 : 0;
}

/** One row per check. @param columns width of the terminal; longer details are wrapped within their column */
function checksTable(checks: readonly NamedCheckResult[], columns = Number.POSITIVE_INFINITY): string {
  const rows = checks.map(({ name, result, detail }) => ({
    head: [result, printable(name)],
    detail: rewriteCommands(printable(detail)),
  }));
  const detailColumns = columns - tableWidth(alignColumns(rows.map(({ head }) => [...head, '']))) - '  '.length;
  return alignColumns(
    rows.flatMap(({ head, detail }) =>
      wrapText(detail, Math.max(detailColumns, MIN_DETAIL_COLUMNS)).map((part, index) => [
        ...(index === 0 ? head : ['', '']),
        part,
      ]),
    ),
  );
}
