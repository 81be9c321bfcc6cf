// Goes ahead of a hub's program: at SIGUSR2 all garbage is collected, and what is left is written to $BENCH_HEAP.
import { renameSync, writeFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const file = process.env.BENCH_HEAP;
setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');

process.on('SIGUSR2', () => {
  collect();
  collect();
  writeFileSync(`${file}.new`, JSON.stringify(process.memoryUsage()));
  renameSync(`${file}.new`, file);
});
