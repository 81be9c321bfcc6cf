// Preloaded into a daemon: each write of its store takes as long as the seed says.
import { setTimeout as sleep } from 'node:timers/promises';
import { SeededRandom } from './seeded-random.ts';
import { storeSeed, WRITES } from './slow-store.ts';

if (process.argv.includes('serve')) {
  // The very module that the daemon will use.
  const main = process.env['LATCHKEY_TEST_MAIN'] ?? new URL('../../src/main.ts', import.meta.url).pathname;
  const ending = main.endsWith('.ts') ? 'ts' : 'js';
  const { SqliteStore } = await import(main.replace(/main\.[jt]s$/, `store/sqlite-store.${ending}`));
  const slowest = Number(process.env['LATCHKEY_TEST_SLOWEST_WRITE']);
  const dice = new SeededRandom(storeSeed());
  for (const name of WRITES) {
    const write = SqliteStore.prototype[name];
    SqliteStore.prototype[name] = async function (...args: unknown[]) {
      await sleep(dice.whole(0, slowest));
      return write.apply(this, args);
    };
  }
}
