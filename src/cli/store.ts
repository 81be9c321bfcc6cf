import { readFile, stat } from 'node:fs/promises';
import { Command } from 'commander';
import type { RestoreResponse, StoreKeyRotationResponse } from '../control/messages.ts';
import { Failure } from '../core/failure.ts';
import { connectHub } from './hub-connection.ts';
import { print, printable, printJson } from './terminal/output.ts';
import { rejectExistingFile, writeFileAtomically } from './terminal/output-file.ts';
import { confirmWarning, getPassphrase } from './terminal/prompt.ts';

interface BackupOptions {
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
    .action(async (file: string, options: BackupOptions, command: Command) => {
      await using hub = await connectHub(command);
      const target = { path: file, replace: options.force === true, flag: '--force' };
      await rejectExistingFile(target);
      const { copy, made, appliances, grants } = await hub.backUp(await getPassphrase(options.passphraseFile, true));
      await writeFileAtomically(target, `${copy}\n`);
      if (options.json === true) printJson({ file, made, appliances, grants });
      else {
        print(`${printable(file)} holds the hub's state of ${made} (appliances: ${appliances}, grants: ${grants}).

Keep the passphrase: nobody can open the copy without it. A grant in it is good until the hub refreshes it the
next time, unless the portal accepts an older refresh token; "latchkey restore" says which it does not.`);
      }
    });
}

interface RestoreOptions {
  readonly yes?: boolean;
  readonly passphraseFile?: string;
  readonly json?: boolean;
}

/** Bytes: more than a copy of the largest hub. */
const MAX_BACKUP_BYTES = 60 * 1024 * 1024;

const RESTORE_WARNING = `Never run two hubs restored from the same backup: each refresh of the one makes the other's refresh token
worthless, and a portal may then revoke both. Restore it only if the hub that it was made on no longer runs.`;

/** `latchkey restore FILE` */
export function restoreCommand(): Command {
  return new Command('restore')
    .description('put a copy that "backup" made in place; grants at hand that are newer are kept')
    .argument('<file>', 'the file')
    .option('--yes', 'the hub that it was made on no longer runs: do not ask back')
    .option('--passphrase-file <file>', 'read the passphrase from this file (default: ask)')
    .option('--json', 'print JSON')
    .action(async (file: string, options: RestoreOptions, command: Command) => {
      const copy = await readBackupFile(file);
      await using hub = await connectHub(command);
      if (options.yes !== true && !(await confirmWarning(RESTORE_WARNING))) return;
      const report = await hub.restore(copy, await getPassphrase(options.passphraseFile, false));
      if (options.json === true) printJson(report);
      else printRestoreReport(report);
    });
}

async function readBackupFile(file: string): Promise<string> {
  try {
    if ((await stat(file)).size > MAX_BACKUP_BYTES)
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

function printRestoreReport({ made, hub_id, restored, kept }: RestoreResponse): void {
  print(`The hub starts again as ${printable(hub_id)}, with its state of ${made}.`);
  if (restored.length > 0) {
    print(`\nGrants of the copy, in doubt until their next refresh: ${restored.map(printable).join(', ')}`);
  }
  if (kept.length > 0) print(`\nGrants at hand that are not older, and were kept: ${kept.map(printable).join(', ')}`);
}

/** `latchkey store-key` */
export function storeKeyCommand(): Command {
  return new Command('store-key')
    .description("replace the key that the hub's store is sealed with")
    .requiredOption('--rotate', 'make another key and seal everything anew; the hub goes on meanwhile')
    .option('--json', 'print JSON')
    .action(async (options: { json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const rotation = await hub.rotateStoreKey();
      if (options.json === true) printJson(rotation);
      else print(rotationText(rotation));
    });
}

function rotationText({ leftovers, copy_problem, is_credential }: StoreKeyRotationResponse): string {
  const parts = ['The store has another key, and everything in it is sealed anew: the key before opens nothing of it.'];
  if (is_credential) {
    parts.push(`Now put the new credential in the place of the one before, where it lies:
  sudo mv /etc/latchkey/credentials/store.key.next /etc/latchkey/credentials/store.key`);
  }
  if (copy_problem !== null) {
    parts.push(`There is no daily copy until the next one can be made: ${printable(copy_problem)}`);
  }
  if (leftovers.length > 0) {
    parts.push(`The key before still opens these; delete them when nothing in them is missed:
${leftovers.map((path) => `  ${printable(path)}`).join('\n')}`);
  }
  return parts.join('\n\n');
}
