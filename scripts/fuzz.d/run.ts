// Sends the requests of the fuzz, part by part, and watches what becomes of the program.
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
  /** Good flows, which give an attacker something to know. */
  begin(): Promise<FuzzPart>;
  /** Null where that is not judged. */
  memory(): Promise<MemoryUsage | null>;
  /** How it ended by itself, or null while it runs. */
  ended(): string | null;
  /** What it complained about: nothing, if all is well. */
  complaints(): string;
}

/** A part of a run: it begins and ends with good flows, and knows what these and the answers have told. */
export interface FuzzPart extends Omit<FuzzTarget, 'judge'> {
  readonly requests: fc.Arbitrary<FuzzRequest>;
  /** What is wrong with an answer. @param operation as {@link OperationCoverage.count} names it */
  wrong(operation: string, request: FuzzRequest, answer: RawResponse): readonly string[];
  /** What honest ones do while requests are sent, until these are over. @throws Problem */
  meanwhile(over: () => boolean): Promise<void>;
  /**
   * A good flow, and what would spoil the requests of a part.
   * @throws Error where a good client would no longer be served
   */
  end(turn: number, seed: number, send: Send): Promise<void>;
}

/** Sends requests, and judges their answers. @throws Problem */
type Send = (requests: readonly FuzzRequest[]) => Promise<void>;

/** How a run goes. */
export interface FuzzOptions {
  readonly requests: number;
  readonly seed: number;
  /** Of a finding, as fast-check has it: only that is sent, after good flows. */
  readonly path?: string;
  /** Told of progress and of problems. */
  readonly said?: (line: string) => void;
  /** Ends the run before its time. */
  readonly stopped?: () => boolean;
}

/** What a run has counted and found. */
export interface FuzzOutcome {
  sent: number;
  /** How often each status came. */
  readonly statuses: Map<number, number>;
  /** After each part. */
  readonly memory: MemoryUsage[];
  readonly operations: OperationCoverage;
  readonly problems: string[];
}

/** Requests of the largest batch; the middle one has half as many. */
const BATCH = 400;
/** Milliseconds for a part, and for making what is found in it as small as it gets. */
const PART_TIMEOUT_MS = 120_000;
/** Requests of the smallest batch that are told one by one, at most. */
const MAX_REPORTED_REQUESTS = 10;
/** Lines of progress. */
const MAX_PROGRESS_LINES = 20;

/** Sends about so many requests, or until a problem is found. */
export async function fuzz(subject: FuzzSubject, run: FuzzOptions): Promise<FuzzOutcome> {
  const { requests, seed, said = () => {}, stopped = () => false } = run;
  const operations = new OperationCoverage(await subject.description());
  const outcome: FuzzOutcome = { sent: 0, statuses: new Map(), memory: [], operations, problems: [] };
  const began = performance.now();
  let lines = 1;
  for (let turn = 0; turn * REQUESTS_PER_PART < requests && !stopped(); turn += 1) {
    // Each part has a seed of its own, by which it can be repeated alone.
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
      const held = memory === null ? '' : `, ${memoryText(memory)}`;
      said(`${share}  ${sent} requests, ${rate.toFixed(0)}/s${held}; ${statusLine(statuses)}`);
    }
  }
  return outcome;
}

/** @returns what was found, or null */
async function part(
  subject: FuzzSubject,
  turn: number,
  run: FuzzOptions,
  outcome: FuzzOutcome,
): Promise<string | null> {
  const { seed, said = () => {}, stopped = () => false } = run;
  const again = `./scripts/fuzz --target ${subject.name} --seed ${seed}`;
  try {
    const part = await subject.begin();
    let over = false;
    const aside = part
      .meanwhile(() => over)
      .then(
        () => null,
        (error: unknown) => error,
      );
    const found = await search(subject, part, { ...run, said, stopped }, outcome, again).finally(() => {
      over = true;
    });
    const wrong = await aside;
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
    said(`\nproblem: ${what}\n`);
    return `${what}\nagain: ${again} --requests ${REQUESTS_PER_PART}`;
  }
}

/** Sends the batches of a part, and makes what is found as small as it gets. */
async function search(
  subject: FuzzSubject,
  part: FuzzPart,
  { requests, seed, path, said, stopped }: FuzzOptions & Required<Pick<FuzzOptions, 'said' | 'stopped'>>,
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
      if (first === null) said(`\nproblem: ${problem.message}\n`);
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
  const size = `the smallest batch that shows it has ${smallest.length} request${smallest.length === 1 ? '' : 's'}`;
  const all =
    smallest.length > MAX_REPORTED_REQUESTS ? '' : smallest.map((one) => `\n  ${printableRequest(one)}`).join('');
  return `${problem.message}\n${size}${all}\nagain: ${again} --path ${found.counterexamplePath}; with all before it: ${again} --requests ${REQUESTS_PER_PART}`;
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

/** The statuses and how often each came, as one line. */
export function statusLine(statuses: ReadonlyMap<number, number>): string {
  return [...statuses]
    .sort(([a], [b]) => a - b)
    .map(([status, times]) => `${status}: ${times}`)
    .join(', ');
}
