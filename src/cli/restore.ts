import { readFile, stat } from 'node:fs/promises';
import { Command } from 'commander';
import type { RestoreAnswer } from '../control/messages.ts';
import { Failure } from '../core/failure.ts';
import { connectHub } from './hub-connection.ts';
import { print, printable, printJson } from './terminal/output.ts';
import { mayGoOn, takePassphrase } from './terminal/prompt.ts';

interface Options {
  readonly yes?: boolean;
  readonly passphraseFile?: string;
  readonly json?: boolean;
}

/** Bytes: more than a copy of the largest hub. */
const MAX_COPY_BYTES = 60 * 1024 * 1024;

const WARNING = `Never run two hubs restored from the same backup: each refresh of the one makes the other's refresh token
worthless, and a portal may then revoke both. Restore it only if the hub that it was made on no longer runs.`;

/** `latchkey restore FILE` */
export function restoreCommand(): Command {
  return new Command('restore')
    .description('put a copy that "backup" made in place; grants at hand that are newer are kept')
    .argument('<file>', 'the file')
    .option('--yes', 'the hub that it was made on no longer runs: do not ask back')
    .option('--passphrase-file <file>', 'read the passphrase from this file (default: ask)')
    .option('--json', 'print JSON')
    .action(async (file: string, options: Options, command: Command) => {
      const copy = await readCopyFile(file);
      await using hub = await connectHub(command);
      if (options.yes !== true && !(await mayGoOn(WARNING))) return;
      const report = await hub.restore(copy, await takePassphrase(options.passphraseFile, false));
      if (options.json === true) printJson(report);
      else show(report);
    });
}

async function readCopyFile(file: string): Promise<string> {
  try {
    if ((await stat(file)).size > MAX_COPY_BYTES)
      throw new Failure('copy_unusable', `${file} is too large for a copy: name one that "latchkey backup" made`);
    return await readFile(file, 'utf8');
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure(
      'request_invalid',
      `${file} can't be read: name a copy that is there and that this user may read`,
      { cause: error },
    );
  }
}

function show({ made, hub_id, restored, kept }: RestoreAnswer): void {
  print(`The hub starts again as ${printable(hub_id)}, with its state of ${made}.`);
  if (restored.length > 0) {
    print(`\nGrants of the copy, in doubt until their next refresh: ${restored.map(printable).join(', ')}`);
  }
  if (kept.length > 0) print(`\nGrants at hand that are not older, and were kept: ${kept.map(printable).join(', ')}`);
}
