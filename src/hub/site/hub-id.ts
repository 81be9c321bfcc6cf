import { randomBytes } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Failure } from '../../core/failure.ts';
import { HUB_ID } from '../../core/site.ts';
import { syncDirectory } from '../../system/bounded-file.ts';

/** A new id, such as `latchkey-5f0c9a1e`. */
export function createHubId(): string {
  return `latchkey-${randomBytes(4).toString('hex')}`;
}

/**
 * The id of a hub of a site, from the file `hub-id` in its state directory, which is created at the first start. A hub
 * on SQLite has its id in the store.
 * @throws Failure `state_dir_unusable`
 */
export async function loadHubId(stateDirectory: string): Promise<string> {
  const path = hubIdPath(stateDirectory);
  const text = await readFile(path, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT') return null;
    throw new Failure(
      'state_dir_unusable',
      `the hub's id in ${path} can't be read: let the user that the hub runs as read it`,
      { cause },
    );
  });
  if (text === null) {
    const created = createHubId();
    await saveHubId(stateDirectory, created);
    return created;
  }
  const id = text.trim();
  if (HUB_ID.test(id)) return id;
  throw new Failure(
    'state_dir_unusable',
    `${path} does not contain the id of a hub, such as "latchkey-5f0c9a1e": restore the file, or delete it so that the hub gets a new id`,
  );
}

/** Gives the hub another id from its next start on. @throws Failure `state_dir_unusable` */
export async function saveHubId(stateDirectory: string, id: string): Promise<void> {
  const path = hubIdPath(stateDirectory);
  try {
    await writeFile(`${path}.new`, `${id}\n`, { mode: 0o600, flush: true });
    await rename(`${path}.new`, path);
    await syncDirectory(stateDirectory);
  } catch (cause) {
    throw new Failure('state_dir_unusable', `the hub's id can't be written to ${path}: check the disk`, { cause });
  }
}

function hubIdPath(stateDirectory: string): string {
  return join(stateDirectory, 'hub-id');
}
