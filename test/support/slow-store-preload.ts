// Preloaded into a daemon: the seed decides how long each write of its store takes.
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { MAIN } from './program.ts';
import { SeededRandom } from './seeded-random.ts';
import { MAX_WRITE_DELAY_MS, STORE_WRITES, storeSeed } from './slow-store.ts';

if (process.argv.includes('serve')) {
  // The same module instance that the daemon uses.
  const { SqliteStore } = await import(join(dirname(MAIN), 'store/sqlite/sqlite-store.js'));
  const dice = new SeededRandom(storeSeed());
  for (const name of STORE_WRITES) {
    const write = SqliteStore.prototype[name];
    SqliteStore.prototype[name] = async function (...args: unknown[]) {
      await sleep(dice.whole(0, MAX_WRITE_DELAY_MS));
      return write.apply(this, args);
    };
  }
}
