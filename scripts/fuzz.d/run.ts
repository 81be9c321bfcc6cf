// Sends the fuzz requests, part by part, and monitors the program.
import fc from 'fast-check';
import { FuzzProblem, type FuzzTarget, sendBatch } from './batch.ts';
import type { RawResponse } from './exchange.ts';
import { type MemoryUsage, memoryText, REQUESTS_PER_PART } from './memory.ts';
import { OperationCoverage } from './operations.ts';
import { type FuzzRequest, printableRequest } from './requests.ts';

/** The program that is fuzzed. */
export interface FuzzSubject extends AsyncDisposable {
  readonly name: 'emulator' | 'hub';
  /** Its OpenAPI document. */
  description(): Promise<unknown>;
  /** Runs good flows, whose values an attacker then knows. */
  begin(): Promise<FuzzPart>;
  /** Null if its memory is not checked. */
  memory(): Promise<MemoryUsage | null>;
  /** How it ended, or null while it runs. */
  ended(): string | null;
  /** Errors that it logged; '' if there are none. */
  complaints(): string;
}

/** A part of a run. It begins and ends with good flows, and knows values from these and from responses. */
export interface FuzzPart extends Omit<FuzzTarget, 'judge'> {
  readonly requests: fc.Arbitrary<FuzzRequest>;
  /** What is wrong with a response. @param operation as {@link OperationCoverage.count} names it */
  wrong(operation: string, request: FuzzRequest, answer: RawResponse): readonly string[];
  /** Runs regular clients while the fuzz requests are sent, until `over`. @throws FuzzProblem */
  meanwhile(over: () => boolean): Promise<void>;
  /**
   * Runs a good flow, and tests that would disturb the requests of a part.
   * @throws Error if a good client is no longer served
   */
  end(turn: number, seed: number, send: Send): Promise<void>;
}

/** Sends requests, and checks their responses. @throws FuzzProblem */
type Send = (requests: readonly FuzzRequest[]) => Promise<void>;

/** The options of a run. */
export interface FuzzOptions {
  readonly requests: number;
  readonly seed: number;
  /** fast-check's path of a finding: only its batch is sent, after good flows. */
  readonly path?: string;
  /** Prints progress and problems. */
  readonly print?: (line: string) => void;
  /** Whether to end the run early. */
  readonly stopped?: () => boolean;
}

/** The counts and problems of a run. */
export interface FuzzOutcome {
  sent: number;
  /** The number of responses by status. */
  readonly statuses: Map<number, number>;
  /** After each part. */
  readonly memory: MemoryUsage[];
  readonly operations: OperationCoverage;
  readonly problems: string[];
}

/** Requests of the largest batch; the average batch has half as many. */
const BATCH = 400;
/** The timeout for a part, including the minimization of a finding, in ms. */
const PART_TIMEOUT_MS = 120_000;
/** The requests of the smallest batch are printed if there are at most this many. */
const MAX_REPORTED_REQUESTS = 10;
/** Lines of progress. */
const MAX_PROGRESS_LINES = 20;

/** Sends about `requests` requests, or stops at the first problem. */
export async function fuzz(subject: FuzzSubject, run: FuzzOptions): Promise<FuzzOutcome> {
  const { requests, seed, print = () => {}, stopped = () => false } = run;
  const operations = new OperationCoverage(await subject.description());
  const outcome: FuzzOutcome = { sent: 0, statuses: new Map(), memory: [], operations, problems: [] };
  const began = performance.now();
  let lines = 1;
  for (let turn = 0; turn * REQUESTS_PER_PART < requests && !stopped(); turn += 1) {
    // Each part has its own seed, so that it can be repeated alone.
    const partly = {
      ...run,
      seed: (seed + Math.imul(turn, 0x9e3779b1)) & 0x7fffffff,
      requests: Math.min(REQUESTS_PER_PART, requests - turn * REQUESTS_PER_PART),
    };
    const problem = await part(subject, turn, partly, outcome);
    if (problem !== null) outcome.problems.push(problem);
    if (problem !== null || run.path !== undefined) break;
    const memory = await subject.memory();
    if (memory !== null) outcome.memory.push(memory);
    const { sent, statuses } = outcome;
    const done = Math.min(1, ((turn + 1) * REQUESTS_PER_PART) / requests);
    if (done >= lines / MAX_PROGRESS_LINES) {
      lines = Math.floor(done * MAX_PROGRESS_LINES) + 1;
      const rate = (1000 * sent) / (performance.now() - began);
      const share = `${Math.round(100 * done)} %`.padStart(5);
      const memoryPart = memory === null ? '' : `, ${memoryText(memory)}`;
      print(`${share}  ${sent} requests, ${rate.toFixed(0)}/s${memoryPart}; ${statusLine(statuses)}`);
    }
  }
  return outcome;
}

/** Runs one part. @returns a problem, or null */
async function part(
  subject: FuzzSubject,
  turn: number,
  run: FuzzOptions,
  outcome: FuzzOutcome,
): Promise<string | null> {
  const { seed, print = () => {}, stopped = () => false } = run;
  const again = `./scripts/fuzz --target ${subject.name} --seed ${seed}`;
  try {
    const part = await subject.begin();
    let over = false;
    const clients = part
      .meanwhile(() => over)
      .then(
        () => null,
        (error: unknown) => error,
      );
    const found = await search(subject, part, { ...run, print, stopped }, outcome, again).finally(() => {
      over = true;
    });
    const wrong = await clients;
    if (found !== null) return found;
    if (wrong !== null) throw wrong;
    if (run.path === undefined) {
      await part.end(turn, seed, async (requests) => {
        const problem = await sendBatch(requests, recipient(part, outcome));
        if (problem !== null) throw problem;
      });
    }
    return null;
  } catch (error) {
    const what = error instanceof FuzzProblem ? error.message : `the good flow failed\n${String(error)}`;
    print(`\nproblem: ${what}\n`);
    return `${what}\nto repeat: ${again} --requests ${REQUESTS_PER_PART}`;
  }
}

/** Sends the batches of a part, and minimizes the batch of a problem. */
async function search(
  subject: FuzzSubject,
  part: FuzzPart,
  { requests, seed, path, print, stopped }: FuzzOptions & Required<Pick<FuzzOptions, 'print' | 'stopped'>>,
  outcome: FuzzOutcome,
  again: string,
): Promise<string | null> {
  let first: FuzzProblem | null = null;
  const batches = fc.asyncProperty(
    fc.array(part.requests, { minLength: 1, maxLength: BATCH, size: 'max' }),
    async (batch) => {
      if (stopped() || (first !== null && subject.ended() !== null)) return;
      const problem = await sendBatch(batch, recipient(part, outcome));
      outcome.sent += batch.length;
      if (problem === null || (first !== null && problem.kind !== first.kind)) return;
      if (first === null) print(`\nproblem: ${problem.message}\n`);
      first ??= problem;
      throw problem;
    },
  );
  const numRuns = path === undefined ? Math.ceil(requests / (BATCH / 2)) : 1;
  const found = await fc.check(batches, {
    seed,
    numRuns,
    unbiased: true,
    interruptAfterTimeLimit: PART_TIMEOUT_MS,
    ...(path !== undefined && { path }),
  });
  if (!found.failed) return null;
  const problem = found.errorInstance;
  if (!(problem instanceof FuzzProblem)) throw problem;
  const smallest = found.counterexample?.[0] ?? [];
  const size = `the smallest batch that reproduces it has ${smallest.length} request${smallest.length === 1 ? '' : 's'}`;
  const all =
    smallest.length > MAX_REPORTED_REQUESTS ? '' : smallest.map((one) => `\n  ${printableRequest(one)}`).join('');
  return `${problem.message}\n${size}${all}\nto repeat: ${again} --path ${found.counterexamplePath}; with all batches before it: ${again} --requests ${REQUESTS_PER_PART}`;
}

function recipient(part: FuzzPart, outcome: FuzzOutcome): FuzzTarget {
  return {
    ...part,
    judge(request, answer) {
      const { status } = answer;
      outcome.statuses.set(status, (outcome.statuses.get(status) ?? 0) + 1);
      const operation = outcome.operations.count(request, status);
      return part.wrong(operation, request, answer).map((what) => `${operation} ${what}`);
    },
  };
}

/** The number of responses by status, as one line. */
export function statusLine(statuses: ReadonlyMap<number, number>): string {
  return [...statuses]
    .sort(([a], [b]) => a - b)
    .map(([status, times]) => `${status}: ${times}`)
    .join(', ');
}
