import { Command } from 'commander';
import { messageOf } from '../core/failure.ts';
import { configPathOf } from './hub-connection.ts';
import { checksTable } from './terminal/checks-table.ts';
import { print, printable, printJson, reportFailure } from './terminal/output.ts';
import { rejectExistingFile, writeFileAtomically } from './terminal/output-file.ts';

interface Options {
  readonly json?: boolean;
  readonly bundle?: string;
  readonly yes?: boolean;
}

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
