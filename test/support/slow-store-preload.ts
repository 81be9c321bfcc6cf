// Preloaded into a daemon: the seed decides how long each write of its store takes.
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { MAIN } from './program.ts';
import { SeededRandom } from './seeded-random.ts';
import { MAX_WRITE_DELAY_MS, storeSeed } from './slow-store.ts';

if (process.argv.includes('serve')) {
  // The same module instance that the daemon uses.
  const { CommitQueue } = await import(join(dirname(MAIN), 'store/sqlite/commit-queue.js'));
  const dice = new SeededRandom(storeSeed());
  for (const name of ['enqueue', 'writeNow']) {
    const write = CommitQueue.prototype[name];
    CommitQueue.prototype[name] = async function (...args: unknown[]) {
      await sleep(dice.whole(0, MAX_WRITE_DELAY_MS));
      return write.apply(this, args);
    };
  }
}
