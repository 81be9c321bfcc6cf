// The thread of issue-in-thread.ts.
import { parentPort, workerData } from 'node:worker_threads';
import type { IssuingJob } from './issue-in-thread.ts';
import { createSuccessorAuthority, issueLeaf } from './issuing.ts';

const job = workerData as IssuingJob;
parentPort?.postMessage(
  job.kind === 'leaf' ? await issueLeaf(...job.input) : await createSuccessorAuthority(...job.input),
);
