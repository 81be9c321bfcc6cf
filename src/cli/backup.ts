import { randomBytes } from 'node:crypto';
import { open, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Command } from 'commander';
import { Failure } from '../core/failure.ts';
import { connectHub } from './hub-connection.ts';
import { print, printable, printJson } from './output.ts';
import { takePassphrase } from './passphrase.ts';

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
      await using claim = await claimName(file, options.force === true);
      const { copy, made, appliances, grants } = await hub.backUp(await takePassphrase(options.passphraseFile, true));
      await claim.write(copy);
      if (options.json === true) printJson({ file, made, appliances, grants });
      else {
        print(`${printable(file)} holds the hub's state of ${made} (appliances: ${appliances}, grants: ${grants}).

Keep the passphrase: nobody can open the copy without it. A grant in it is good until the hub refreshes it the
next time, unless the portal accepts an older refresh token; "latchkey restore" says which it does not.`);
      }
    });
}

/** A name in the file system that is this command's, so that nothing is overwritten. */
interface Claim extends AsyncDisposable {
  /** Writes the file, whole or not at all, closed to everybody else. */
  write(text: string): Promise<void>;
}

async function claimName(file: string, force: boolean): Promise<Claim> {
  const draft = join(dirname(file), `.${basename(file)}.${randomBytes(4).toString('hex')}`);
  const there = (await stat(file).catch(() => null)) !== null;
  if (there && !force) {
    throw new Failure('request_invalid', `${file} is there already: name another file, or replace it with --force`);
  }
  let written = false;
  try {
    // Before anybody types a passphrase.
    if (!there) await (await open(file, 'wx', 0o600)).close();
    return {
      async write(text) {
        await writeFile(draft, `${text}\n`, { mode: 0o600, flush: true }).catch((error: unknown) => {
          throw unwritable(file, error);
        });
        await rename(draft, file);
        written = true;
      },
      async [Symbol.asyncDispose]() {
        await rm(draft, { force: true });
        if (!there && !written) await rm(file, { force: true });
      },
    };
  } catch (error) {
    throw unwritable(file, error);
  }
}

function unwritable(file: string, cause: unknown): Failure {
  return new Failure(
    'request_invalid',
    `${file} can't be written: name a place that has room and that this user may write to`,
    { cause },
  );
}
