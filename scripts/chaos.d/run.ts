// Runs one experiment in its own process, and ends all processes that it started.
import { fork } from 'node:child_process';
import { join } from 'node:path';
import type { ExperimentResult } from '../../test/chaos/experiment.ts';
import { endSession } from '../test.d/leftovers.ts';

/** A message from the process of an experiment. */
export type WorkerMessage =
  | { readonly kind: 'progress'; readonly line: string }
  | { readonly kind: 'finding'; readonly finding: ExperimentResult }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'stopped' };

/** The argument of an experiment's process. */
export interface WorkerJob {
  readonly file: string;
  readonly seed: number;
  readonly long: boolean;
  readonly minutes?: number | undefined;
}

/** The outcome of an experiment. */
export type ExperimentOutcome =
  | { readonly kind: 'finding'; readonly finding: ExperimentResult }
  /** It did not finish: it threw an error, or its process ended. */
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'stopped'; readonly last: string };

/** How long an experiment may take to clean up when it is stopped, in ms. */
const SHUTDOWN_TIMEOUT_MS = 20_000;
/** An experiment that takes longer is killed, in ms. */
const EXPERIMENT_TIMEOUT_MS = 3 * 3_600_000;

/**
 * Runs an experiment.
 * @param stop ends the experiment early when it is aborted
 * @param env for its process and all processes that it starts
 */
export async function runExperiment(
  job: WorkerJob,
  env: NodeJS.ProcessEnv,
  stop: AbortSignal,
  progress: (line: string) => void,
): Promise<ExperimentOutcome> {
  // In its own session: Ctrl-C reaches only the runner, and all processes of the experiment can be found.
  const child = fork(join(import.meta.dirname, 'worker.ts'), [JSON.stringify(job)], {
    env,
    detached: true,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const end = () => child.pid !== undefined && endSession(child.pid);
  process.once('exit', end);
  let outcome: ExperimentOutcome | null = null;
  let last = 'it had just begun';
  child.on('message', (message: WorkerMessage) => {
    if (message.kind === 'progress') {
      last = message.line;
      progress(last);
    } else outcome = message.kind === 'stopped' ? { kind: 'stopped', last } : message;
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
