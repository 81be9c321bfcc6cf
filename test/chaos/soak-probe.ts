// Preloaded into the daemon. Every two seconds it writes a line with the memory after a full collection, in bytes: used
// heap, total heap, external memory and resident memory.
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
