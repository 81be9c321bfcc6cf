// Preloaded into the daemon: writes what it holds after a full collection, a line of bytes every two seconds: the heap,
// the room that the heap has, what is outside of it, and resident memory.
import { appendFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const file = process.env['LATCHKEY_TEST_HEAP'];
if (file !== undefined && process.argv.includes('serve')) {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  setInterval(() => {
    collect();
    const { heapUsed, heapTotal, external, rss } = process.memoryUsage();
    appendFileSync(file, `${heapUsed} ${heapTotal} ${external} ${rss}\n`);
  }, 2000).unref();
}
