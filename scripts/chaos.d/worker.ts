// The process of one experiment: see run.ts.
import { pathToFileURL } from 'node:url';
import type { Experiment } from '../../test/chaos/experiment.ts';
import { SeededRandom } from '../../test/support/seeded-random.ts';
import type { WorkerJob, WorkerMessage } from './run.ts';

const { file, seed, long } = JSON.parse(process.argv[2] ?? '') as WorkerJob;
const stop = new AbortController();
const { signal } = stop;
process.once('SIGTERM', () => stop.abort(new Error('the run was stopped')));
// The runner is gone: nobody waits for this any more.
process.once('disconnect', () => process.kill(-process.pid, 'SIGKILL'));

try {
  const { experiment } = (await import(pathToFileURL(file).href)) as { experiment: Experiment };
  const progress = (line: string) => {
    signal.throwIfAborted();
    tell({ kind: 'progress', line });
  };
  const finding = await experiment.run({ long, seed, signal, progress }, new SeededRandom(seed));
  tell({ kind: 'finding', finding });
} catch (error) {
  const reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
  tell(signal.aborted ? { kind: 'stopped' } : { kind: 'failed', reason });
}

function tell(told: WorkerMessage): void {
  if (process.connected) process.send?.(told, () => told.kind !== 'progress' && process.exit());
}
