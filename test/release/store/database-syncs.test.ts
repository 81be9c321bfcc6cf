import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Secret } from '../../../src/core/secret.ts';
import {
  canTraceSystemCalls,
  failSyncs,
  ONE_POOL_THREAD,
  parseSystemCalls,
  type SystemCall,
} from '../../chaos/system-calls.ts';
import { sampleGrant } from '../../core/samples.ts';
import { addAppliance, open, WALLBOX } from '../../store/test-store.ts';
import { MAIN } from '../../support/program.ts';
import { memoryStateFolder, stateFolder } from '../../support/state-folder.ts';

const store = JSON.stringify(join(dirname(MAIN), 'store/sqlite/open-store.js'));
const sealing = JSON.stringify(join(dirname(MAIN), 'store/keys/sealing.js'));

/** Saves this many settings, one after another, and is killed. Each failure is ignored. */
const SCRIPT = `
  import { openStore } from ${store};
  import { jweSealing } from ${sealing};
  const store = await openStore(process.argv[1], jweSealing(new Uint8Array(32)), Date.now);
  for (let count = 0; count < Number(process.argv[2]); count++) {
    await store.settings.save({ ['name-' + (count % 7)]: 'x'.repeat(600) + count }).catch(() => undefined);
  }
  process.kill(process.pid, 'SIGKILL');`;

/**
 * The calls of the script on the database and its WAL, in order.
 * @param failing the `fdatasync` that fails
 */
function traceScript(folder: string, settings: number, failing?: number): SystemCall[] {
  const file = join(folder, 'calls');
  const state = join(folder, 'state');
  const calls = 'pwrite64,ftruncate,fsync,fdatasync';
  const trace = ['-f', '-y', '-s', '0', '-o', file, '-e', `trace=${calls}`, '-e', 'signal=none'];
  spawnSync('mkdir', ['-m', '700', state]);
  if (failing !== undefined) trace.push('-e', `inject=fdatasync:error=EIO:when=${failing}`);
  const script = [process.execPath, '--input-type=module', '-e', SCRIPT, state, String(settings)];
  spawnSync('/usr/bin/strace', [...trace, ...script], { env: { ...process.env, ...ONE_POOL_THREAD } });
  return parseSystemCalls(readFileSync(file, 'utf8')).filter(({ on }) => /latchkey\.db(-wal)?$/.test(on));
}

describe.skipIf(!canTraceSystemCalls())('order of writes and syncs', () => {
  test('the WAL is emptied after the database is on disk, and used again after it is empty on disk', () => {
    using folder = memoryStateFolder();
    const calls = traceScript(folder.path, 200);
    const opened = calls.findLastIndex(({ name }) => name === 'fsync');
    /** What a power cut would lose. */
    const unsynced = new Set<'database' | 'WAL' | 'emptying of the WAL'>();
    let checkpoints = 0;
    for (const { name, on } of calls.slice(opened + 1)) {
      const isWal = on.endsWith('-wal');
      if (name === 'fdatasync' && isWal) {
        unsynced.delete('WAL');
        unsynced.delete('emptying of the WAL');
      } else if (name === 'fdatasync') {
        unsynced.delete('database');
      } else if (!isWal) {
        expect(unsynced, 'before a write to the database').not.toContain('WAL');
        unsynced.add('database');
      } else if (name === 'ftruncate') {
        expect(unsynced, 'before the WAL is emptied').toEqual(new Set());
        unsynced.add('emptying of the WAL');
        checkpoints += 1;
      } else {
        expect([...unsynced], 'before a write to the WAL').not.toContain('database');
        expect([...unsynced], 'before a write to the WAL').not.toContain('emptying of the WAL');
        unsynced.add('WAL');
      }
    }
    expect(checkpoints).toBeGreaterThanOrEqual(2);
  });

  test('the WAL is synced before its frames are overwritten if the database could not be synced', () => {
    using folder = memoryStateFolder();
    const healthy = traceScript(folder.path, 200);
    const syncs = healthy.filter(({ name }) => name === 'fdatasync');
    // The first sync of the database after it was opened is that of a checkpoint.
    const failing = syncs.findIndex(({ on }, index) => index > 2 && on.endsWith('latchkey.db')) + 1;
    expect(failing).toBeGreaterThan(3);
    using other = memoryStateFolder();
    const calls = traceScript(other.path, 200, failing);
    const failed = calls.filter(({ name }) => name === 'fdatasync')[failing - 1];
    const after = calls.slice(calls.indexOf(failed ?? expect.fail()) + 1);
    const firstFrames = after.findIndex(
      ({ name, on, bytes }) => name === 'pwrite64' && on.endsWith('-wal') && bytes > 32,
    );
    const isHeaderSynced = after
      .slice(0, firstFrames)
      .some(({ name, on }) => (name === 'fdatasync' || name === 'fsync') && on.endsWith('-wal'));
    expect(isHeaderSynced).toBe(true);
  });

  test('a WAL whose sync has failed is written again before it is synced again', () => {
    using folder = memoryStateFolder();
    const calls = traceScript(folder.path, 3, 2);
    const syncs = calls.flatMap(({ name }, index) => (name === 'fdatasync' ? [index] : []));
    const rewritten = calls.slice(syncs[1], syncs[2]).filter(({ name }) => name === 'pwrite64');
    // SQLite writes headers and pages of 1 KiB; this is the whole file.
    expect(rewritten.map(({ bytes }) => bytes > 1024)).toEqual([true]);
    expect(syncs.length).toBeGreaterThanOrEqual(4);
  });
});

test.skipIf(!canTraceSystemCalls())(
  'an appliance stays if it is added once more and that can not be synced',
  async () => {
    using folder = stateFolder();
    using store = open(folder.path);
    await addAppliance(store, WALLBOX);
    {
      await using _failing = await failSyncs(process.pid);
      const again = store.registry.save({ addedAppliances: [WALLBOX] });
      await expect(again).rejects.toMatchObject({ code: 'store_unwritable' });
    }
    expect((await store.registry.appliances()).map(({ id }) => id)).toEqual([WALLBOX.id]);
  },
);

test.skipIf(!canTraceSystemCalls())('an import that can not be synced leaves no refresh token', async () => {
  using folder = stateFolder();
  using store = open(folder.path);
  await addAppliance(store, WALLBOX);
  const placeholder = sampleGrant({ connection: WALLBOX.id });
  {
    await using _failing = await failSyncs(process.pid);
    const begun = store.grants.beginImport(WALLBOX.id, () => placeholder, { token: 'hash', at: placeholder.obtained });
    await expect(begun).rejects.toMatchObject({ code: 'store_unwritable' });
  }
  await store.settings.save({ name: 'a later write' });
  expect(await store.grants.all()).toEqual([]);
});

test.skipIf(!canTraceSystemCalls())(
  'a grant that was refused does not replace the stored one when it is written again after a failed sync',
  async () => {
    using folder = stateFolder();
    using store = open(folder.path);
    await addAppliance(store, WALLBOX);
    const stored = sampleGrant({ connection: WALLBOX.id });
    await store.grants.replace(stored);
    const refused = { ...stored, refreshToken: new Secret('of another login') };
    {
      await using _failing = await failSyncs(process.pid);
      await expect(store.grants.replace(refused)).rejects.toMatchObject({ code: 'store_unwritable' });
    }
    expect(await store.grants.replace(refused)).toBe(false);
    expect((await store.grants.get(WALLBOX.id))?.grant.refreshToken?.reveal()).toBe(stored.refreshToken?.reveal());
  },
);
