import { Command } from 'commander';
import { connectHub } from './hub-connection.ts';
import { refuseExisting, writeWhole } from './terminal/new-file.ts';
import { print, printable, printJson } from './terminal/output.ts';
import { takePassphrase } from './terminal/prompt.ts';

interface Options {
  readonly passphraseFile?: string;
  readonly force?: boolean;
  readonly json?: boolean;
}

/** `latchkey backup FILE` */
export function backupCommand(): Command {
  return new Command('backup')
    .description("write a consistent copy of the hub's state to a file, encrypted with a passphrase")
    .argument('<file>', 'the file')
    .option('--passphrase-file <file>', 'read the passphrase from this file (default: ask)')
    .option('--force', 'replace the file where it is there')
    .option('--json', 'print JSON')
    .action(async (file: string, options: Options, command: Command) => {
      await using hub = await connectHub(command);
      const target = { path: file, replace: options.force === true, flag: '--force' };
      await refuseExisting(target);
      const { copy, made, appliances, grants } = await hub.backUp(await takePassphrase(options.passphraseFile, true));
      await writeWhole(target, `${copy}\n`);
      if (options.json === true) printJson({ file, made, appliances, grants });
      else {
        print(`${printable(file)} holds the hub's state of ${made} (appliances: ${appliances}, grants: ${grants}).

Keep the passphrase: nobody can open the copy without it. A grant in it is good until the hub refreshes it the
next time, unless the portal accepts an older refresh token; "latchkey restore" says which it does not.`);
      }
    });
}
