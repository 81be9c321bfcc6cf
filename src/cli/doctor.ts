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

/** What is wrong is not told in fewer columns, however narrow the terminal is. */
const MIN_DETAIL_COLUMNS = 30;

/** `latchkey doctor` */
export function doctorCommand(): Command {
  return new Command('doctor')
    .description('look for what is wrong with the hub, its configuration and this machine, and say what to do')
    .option('--bundle <file>', 'also write a diagnostics archive (tar.gz) for support, with secrets removed')
    .option('--yes', 'replace the archive where the file is there')
    .option('--json', 'print JSON')
    .action(async (options: Options, command: Command) => {
      const status = await runDoctor(options, configPathOf(command)).catch((error: unknown) => {
        reportFailure(messageOf(error));
        return 1;
      });
      // A name that nobody looks up would hold the process for half a minute.
      process.stdout.write('', () => process.exit(status));
    });
}

async function runDoctor({ json, bundle, yes }: Options, file: string | undefined): Promise<number> {
  const target = bundle === undefined ? null : { path: bundle, replace: yes === true, flag: '--yes' };
  if (target !== null) await rejectExistingFile(target);
  const [{ createDoctorContext: gather }, { runChecks: examine }] = await Promise.all([
    import('../doctor/context.ts'),
    import('../doctor/run-checks.ts'),
  ]);
  const examination = { file, env: process.env };
  const context = await gather(examination);
  const checks = await examine(context);
  if (target !== null) {
    const { createDiagnosticsBundle: diagnosticsArchive } = await import('../doctor/bundle/bundle.ts');
    await writeFileAtomically(target, await diagnosticsArchive(context, checks, examination));
  }
  if (json === true) printJson({ checks, ...(bundle === undefined ? {} : { bundle }) });
  else {
    print(checksTable(checks, process.stdout.isTTY ? process.stdout.columns : undefined));
    if (bundle !== undefined)
      print(`\n${printable(bundle)} is for support, with secrets removed; its README.txt says what is inside.`);
  }
  return checks.some(({ result }) => result === 'fail') ? 1 : 0;
}

/** A line for each. @param columns of the terminal that they are read on: longer ones go on below themselves */
function checksTable(checks: readonly NamedCheckResult[], columns = Number.POSITIVE_INFINITY): string {
  const rows = checks.map(({ name, result, detail }) => ({
    head: [result, printable(name)],
    detail: rewriteCommands(printable(detail)),
  }));
  const room = columns - tableWidth(alignColumns(rows.map(({ head }) => [...head, '']))) - '  '.length;
  return alignColumns(
    rows.flatMap(({ head, detail }) =>
      wrapText(detail, Math.max(room, MIN_DETAIL_COLUMNS)).map((part, index) => [
        ...(index === 0 ? head : ['', '']),
        part,
      ]),
    ),
  );
}
