// Runs one experiment in a process of its own, and leaves none of the processes behind that it started.
import { fork } from 'node:child_process';
import { join } from 'node:path';
import type { ExperimentResult } from '../../test/chaos/experiment.ts';
import { endSession } from '../test.d/leftovers.ts';

/** What the process of an experiment tells. */
export type WorkerMessage =
  | { readonly kind: 'progress'; readonly line: string }
  | { readonly kind: 'finding'; readonly finding: ExperimentResult }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'stopped' };

/** What the process of an experiment is told to do. */
export interface WorkerJob {
  readonly file: string;
  readonly seed: number;
  readonly long: boolean;
}

/** What came of an experiment. */
export type ExperimentOutcome =
  | { readonly kind: 'finding'; readonly finding: ExperimentResult }
  /** It came to no end: an error of its own, or its process was gone. */
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'stopped'; readonly last: string };

/** So long an experiment that is told to stop may take to put everything away, in ms. */
const SHUTDOWN_TIMEOUT_MS = 20_000;
/** No experiment takes longer than this, in ms. */
const EXPERIMENT_TIMEOUT_MS = 3 * 3_600_000;

/**
 * Runs an experiment.
 * @param stop aborted: it is to end early
 * @param env for its process and all that it starts
 */
export async function runExperiment(
  job: WorkerJob,
  env: NodeJS.ProcessEnv,
  stop: AbortSignal,
  progress: (line: string) => void,
): Promise<ExperimentOutcome> {
  // A session of its own: a Ctrl-C at the terminal reaches the runner alone, and what the experiment started is known.
  const child = fork(join(import.meta.dirname, 'worker.ts'), [JSON.stringify(job)], {
    env,
    detached: true,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  // Those too that the experiment no longer knows of.
  const end = () => child.pid !== undefined && endSession(child.pid);
  process.once('exit', end);
  let outcome: ExperimentOutcome | null = null;
  let last = 'it had just begun';
  child.on('message', (told: WorkerMessage) => {
    if (told.kind === 'progress') {
      last = told.line;
      progress(last);
    } else outcome = told.kind === 'stopped' ? { kind: 'stopped', last } : told;
  });
  const limit = setTimeout(end, EXPERIMENT_TIMEOUT_MS);
  const askToStop = () => {
    child.kill('SIGTERM');
    setTimeout(end, SHUTDOWN_TIMEOUT_MS).unref();
  };
  if (stop.aborted) askToStop();
  else stop.addEventListener('abort', askToStop, { once: true });
  const how = await new Promise<string>((resolve) => {
    child.once('error', ({ message }) => resolve(message));
    child.once('exit', (status, signal) => resolve(signal ?? `status ${status}`));
  });
  clearTimeout(limit);
  stop.removeEventListener('abort', askToStop);
  process.off('exit', end);
  end();
  return outcome ?? (stop.aborted ? { kind: 'stopped', last } : { kind: 'failed', reason: `it ended with ${how}` });
}
