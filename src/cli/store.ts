import { readFile, stat } from 'node:fs/promises';
import { Command } from 'commander';
import type { RestoreResponse, StoreKeyRotationResponse } from '../control/messages.ts';
import { Failure } from '../core/failure.ts';
import { connectHub, waitForRestart } from './hub-connection.ts';
import { print, printable, printJson, reportIfSlow } from './terminal/output.ts';
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
    .description("write a backup of the hub's state to a file, encrypted with a passphrase")
    .argument('<file>', 'the file')
    .option('--passphrase-file <file>', 'read the passphrase from this file (default: ask)')
    .option('--force', 'overwrite an existing file')
    .option('--json', 'print JSON')
    .action(async (file: string, options: BackupOptions, command: Command) => {
      await using hub = await connectHub(command);
      const target = { path: file, replace: options.force === true, flag: '--force' };
      await rejectExistingFile(target);
      const { copy, made, appliances, grants } = await hub.request('backUp', {
        passphrase: await getPassphrase(options.passphraseFile, true),
      });
      await writeFileAtomically(target, `${copy}\n`);
      if (options.json === true) printJson({ file, made, appliances, grants });
      else {
        print(`${printable(file)} contains the hub's state of ${made} (appliances: ${appliances}, grants: ${grants}).

Keep the passphrase: without it nobody can open the backup. A grant in the backup no longer works
after the hub has refreshed that grant again, unless the portal also accepts older refresh tokens. "latchkey restore"
lists the appliances that may have to be paired again.`);
      }
    });
}

interface RestoreOptions {
  readonly yes?: boolean;
  readonly passphraseFile?: string;
  readonly json?: boolean;
}

/** Bytes: more than a backup of the largest site, and less than the hub accepts. */
const MAX_BACKUP_BYTES = 62 * 1024 * 1024;

const RESTORE_WARNING = `Never run two hubs restored from the same backup: each refresh by one hub invalidates the refresh token of the
other, and a portal may then revoke both. Restore the backup only if the hub that made it no longer runs.`;

/** `latchkey restore FILE` */
export function restoreCommand(): Command {
  return new Command('restore')
    .description('restore a backup; grants on this hub that are newer are kept')
    .argument('<file>', 'the file')
    .option('--yes', 'confirm that the hub that made the backup no longer runs, and do not ask')
    .option('--passphrase-file <file>', 'read the passphrase from this file (default: ask)')
    .option('--json', 'print JSON')
    .action(async (file: string, options: RestoreOptions, command: Command) => {
      const copy = await readBackupFile(file);
      await using hub = await connectHub(command);
      if (options.yes !== true && !(await confirmWarning(RESTORE_WARNING))) return;
      const report = await hub.request('restore', {
        copy,
        passphrase: await getPassphrase(options.passphraseFile, false),
      });
      let isBack = false;
      try {
        await reportIfSlow('the hub, which restarts with the restored state …', waitForRestart(command));
        isBack = true;
      } finally {
        if (options.json === true) printJson(report);
        else printRestoreReport(report, isBack);
      }
    });
}

async function readBackupFile(file: string): Promise<string> {
  try {
    if ((await stat(file)).size > MAX_BACKUP_BYTES)
      throw new Failure(
        'copy_unusable',
        `${file} is too large to be a backup: name a file that "latchkey backup" made`,
      );
    return await readFile(file, 'utf8');
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure('request_invalid', `${file} can't be read: check the name, and whether this user may read it`, {
      cause: error,
    });
  }
}

function printRestoreReport({ made, hub_id, restored, kept }: RestoreResponse, isBack: boolean): void {
  print(`The hub ${isBack ? 'runs again' : 'restarts'} as ${printable(hub_id)}, with its state of ${made}.
The setup code of its page is that of the backup, too; "latchkey setup-code" shows it.`);
  if (restored.length > 0) {
    print(
      `\nGrants from the backup (after their next refresh, "latchkey status" shows which must be paired again): ${restored.map(printable).join(', ')}`,
    );
  }
  if (kept.length > 0)
    print(
      `\nGrants of this hub that were kept, because those in the backup are not newer: ${kept.map(printable).join(', ')}`,
    );
}

/** `latchkey snapshot` */
export function snapshotCommand(): Command {
  return new Command('snapshot')
    .description("write a new snapshot of the hub's store now, for programs that back up its files")
    .option('--json', 'print JSON')
    .action(async (options: { json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const { file, made } = await hub.request('takeSnapshot');
      if (options.json === true) printJson({ file, made });
      else print(`${printable(file)} contains the hub's state of ${made}.`);
    });
}

/** `latchkey store-key` */
export function storeKeyCommand(): Command {
  return new Command('store-key')
    .description("replace the key that encrypts the hub's store")
    .requiredOption('--rotate', 'create a new key and encrypt everything again; the hub keeps running meanwhile')
    .option('--json', 'print JSON')
    .action(async (options: { json?: boolean }, command: Command) => {
      await using hub = await connectHub(command);
      const rotation = await hub.request('rotateStoreKey');
      if (options.json === true) printJson(rotation);
      else print(rotationText(rotation));
    });
}

function rotationText({ leftovers, snapshot_problem, is_credential }: StoreKeyRotationResponse): string {
  const parts = ['The store is encrypted with a new key; the old key no longer opens it.'];
  if (is_credential) {
    parts.push(`Now replace the old credential file with the new one:
  sudo mv /etc/latchkey/credentials/store.key.next /etc/latchkey/credentials/store.key`);
  }
  if (snapshot_problem !== null) {
    parts.push(`There is no snapshot of the store until the hub can make the next one: ${printable(snapshot_problem)}`);
  }
  if (leftovers.length > 0) {
    parts.push(`The old key still opens these files; delete them when you no longer need them:
${leftovers.map((path) => `  ${printable(path)}`).join('\n')}`);
  }
  return parts.join('\n\n');
}
