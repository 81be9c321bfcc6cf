// The process of one experiment: see run.ts.
import { pathToFileURL } from 'node:url';
import type { Experiment } from '../../test/chaos/experiment.ts';
import { SeededRandom } from '../../test/support/seeded-random.ts';
import type { WorkerJob, WorkerMessage } from './run.ts';

const { file, seed, long, minutes } = JSON.parse(process.argv[2] ?? '') as WorkerJob;
const stop = new AbortController();
const { signal } = stop;
process.once('SIGTERM', () => stop.abort(new Error('the run was stopped')));
// The runner has ended, so nothing needs the result.
process.once('disconnect', () => process.kill(-process.pid, 'SIGKILL'));

try {
  const { experiment } = (await import(pathToFileURL(file).href)) as { experiment: Experiment };
  const progress = (line: string) => {
    signal.throwIfAborted();
    send({ kind: 'progress', line });
  };
  const finding = await experiment.run({ long, minutes, seed, signal, progress }, new SeededRandom(seed));
  send({ kind: 'finding', finding });
} catch (error) {
  const reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
  send(signal.aborted ? { kind: 'stopped' } : { kind: 'failed', reason });
}

function send(message: WorkerMessage): void {
  if (process.connected) process.send?.(message, () => message.kind !== 'progress' && process.exit());
}
