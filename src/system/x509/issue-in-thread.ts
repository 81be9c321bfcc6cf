import { once } from 'node:events';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { IssueLeafResult, SuccessorAuthority } from './certificates.ts';

type Issuing = typeof import('./issuing.ts');

/** What a thread issues, and the arguments of the function that does it. */
export type IssuingJob =
  | { readonly kind: 'leaf'; readonly input: Parameters<Issuing['issueLeaf']> }
  | { readonly kind: 'successor'; readonly input: Parameters<Issuing['createSuccessorAuthority']> };

/**
 * As `issueLeaf` and `createSuccessorAuthority` of issuing.ts, for a hub that serves appliances meanwhile. To load what
 * they need takes a tenth of a second, on a Raspberry Pi half a second, and memory that a hub hardly ever needs again.
 */
export function issueLeafInThread(...input: Parameters<Issuing['issueLeaf']>): Promise<IssueLeafResult> {
  return run({ kind: 'leaf', input });
}

export function createSuccessorInThread(
  ...input: Parameters<Issuing['createSuccessorAuthority']>
): Promise<SuccessorAuthority> {
  return run({ kind: 'successor', input });
}

async function run<Result>(workerData: IssuingJob): Promise<Result> {
  const file = new URL(`issuing-thread${extname(import.meta.filename)}`, import.meta.url);
  const thread = new Worker(file, { workerData, env: {}, execArgv: [] });
  // Rejects with the error of the thread.
  const [result] = await once(thread, 'message');
  return result;
}
