// Preloaded into the daemon: writes what its heap holds after a full collection, a line of bytes every two seconds.
import { appendFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const file = process.env['LATCHKEY_TEST_HEAP'];
if (file !== undefined && process.argv.includes('serve')) {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  setInterval(() => {
    collect();
    appendFileSync(file, `${process.memoryUsage().heapUsed}\n`);
  }, 2000).unref();
}
