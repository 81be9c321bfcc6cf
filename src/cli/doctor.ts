import { Command } from 'commander';
import type { Finding } from '../hub/doctor/finding.ts';
import { print, printable, printJson } from './output.ts';
import { alignColumns } from './table.ts';

/** `latchkey doctor` */
export function doctorCommand(): Command {
  return new Command('doctor')
    .description('look for what is wrong with the hub, its configuration and this machine, and say what to do')
    .option('--json', 'print JSON')
    .action(async (options: { json?: boolean }, command: Command) => {
      const [{ gather }, { examine }] = await Promise.all([
        import('../hub/doctor/subject.ts'),
        import('../hub/doctor/examine.ts'),
      ]);
      const { config } = command.optsWithGlobals<{ config?: string }>();
      const subject = await gather({ file: config, env: process.env });
      const checks = await examine(subject);
      if (options.json === true) printJson({ checks });
      else print(alignColumns(checks.map(rowOf)));
      const status = checks.some(({ result }) => result === 'fail') ? 1 : 0;
      // A name that nobody looks up would hold the process for half a minute.
      process.stdout.write('', () => process.exit(status));
    });
}

function rowOf({ name, result, detail }: Finding): string[] {
  return [result, printable(name), printable(detail)];
}
