import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { canTraceSystemCalls, ONE_POOL_THREAD } from '../../chaos/system-calls.ts';
import { fillDirectory, keyOf, openedCounts, start, WHOLE } from '../../store/rotated-store.ts';
import { IS_LONG_FORM } from '../../support/long.ts';
import { MAIN, SHARED_CACHE } from '../../support/program.ts';
import { memoryStateFolder } from '../../support/state-folder.ts';

/** System calls that change files. Each group is counted separately; the test kills at every `step`th call. */
const CALLS = [
  { calls: ['pwrite64'], step: IS_LONG_FORM ? 1 : 15 },
  { calls: ['fsync', 'fdatasync'], step: IS_LONG_FORM ? 1 : 2 },
  { calls: ['rename', 'renameat2', 'unlink', 'unlinkat', 'ftruncate'], step: 1 },
];
/** Well above the real number of calls. */
const MAX_CALLS = 400;

/** Opens the store like a hub and rotates its key. */
const SCRIPT = `
  import { writeSnapshot } from ${builtModule('store/sqlite/snapshot.js')};
  import { openStoreWithKeys } from ${builtModule('store/sqlite/key-rotation.js')};
  import { systemRandom } from ${builtModule('system/random.js')};
  const options = { freshKey: () => systemRandom.token(32), wall: Date.now };
  const { store, keyRotation } = await openStoreWithKeys(process.argv[1], undefined, options);
  const copy = () => writeSnapshot(store);
  await keyRotation.resumeInterrupted(copy);
  await keyRotation.rotate(copy);
  store[Symbol.dispose]();`;

/** The path of a built module, as a JavaScript string literal. */
function builtModule(module: string): string {
  return JSON.stringify(join(dirname(MAIN), module));
}

/** Rotates the key in a process that is killed as it enters the `when`th call. @returns whether it was killed */
function killedAt(path: string, calls: readonly string[], when: number): boolean {
  const names = [
    '',
    'latchkey.db',
    'latchkey.db-wal',
    'latchkey.db.copy',
    'latchkey.db.copy.new',
    'store.key',
    'store.key.next',
  ];
  const set = calls.join(',');
  const inject = ['-e', `trace=${set}`, '-e', `inject=${set}:signal=SIGKILL:when=${when}`];
  const strace = ['-f', '-o', '/dev/null', '-e', 'signal=none', ...inject];
  const pathArgs = names.flatMap((name) => ['-P', join(path, name)]);
  const rotation = [process.execPath, '--input-type=module', '-e', SCRIPT, path];
  const { status } = spawnSync('/usr/bin/strace', [...strace, ...pathArgs, ...rotation], {
    env: { ...process.env, NODE_COMPILE_CACHE: join(SHARED_CACHE, 'latchkey'), ...ONE_POOL_THREAD },
  });
  if (status !== 0 && status !== null && status !== 137) throw new Error(`the rotation ended with ${status}`);
  return status !== 0;
}

/**
 * Kills rotations at every `step`th of these calls, and starts a hub after each: the store must be whole.
 * @returns how often the store then had the key from before and from after the rotation
 */
async function keysAfter(calls: readonly string[], step: number): Promise<{ before: number; after: number }> {
  using prepared = memoryStateFolder();
  await fillDirectory(prepared.path);
  const kept = { before: 0, after: 0 };
  for (let when = 1; when < MAX_CALLS; when += step) {
    using folder = memoryStateFolder();
    cpSync(prepared.path, folder.path, { recursive: true });
    if (!killedAt(folder.path, calls, when)) break;
    // The first start completes the interrupted rotation; the next one has nothing to do.
    expect(await start(folder.path), `killed at ${calls} ${when}`).toEqual(WHOLE);
    const key = keyOf(folder.path);
    kept[key.equals(keyOf(prepared.path)) ? 'before' : 'after'] += 1;
    if (!key.equals(keyOf(prepared.path))) expect(openedCounts(folder.path, keyOf(prepared.path))).toEqual({});
    expect(readdirSync(folder.path)).not.toContain('store.key.next');
    expect(await start(folder.path)).toEqual(WHOLE);
  }
  return kept;
}

describe.skipIf(!canTraceSystemCalls())('rotation killed at a system call', () => {
  test.each(CALLS)(
    'a rotation killed at any of $calls leaves the store whole, with the old or the new key',
    async ({ calls, step }) => {
      const { before, after } = await keysAfter(calls, step);
      expect(before + after).toBeGreaterThanOrEqual(4);
      expect(before).toBeGreaterThan(0);
      expect(after).toBeGreaterThan(0);
    },
  );

  test('a rotation killed while it writes the new key leaves the store whole, with the old key', async () => {
    expect(await keysAfter(['write'], 1)).toEqual({ before: 1, after: 0 });
  });
});
