import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { admit, findFlow } from './admission.ts';
import { Judgement } from './judgement.ts';
import type { Flow, Setup } from './setup.ts';
import { Sitting, type SittingContext } from './sitting.ts';
import { type ExamResult, FLOW_OF, type Situation } from './situation.ts';

/** Situations that run at the same time. */
const MAX_PARALLEL = 10;

/** A client that does not replace its refresh token can sit the exam, too. */
const ADMISSION: Setup = { settings: { refreshRotation: 'never' } };

/** The report on a client. */
export interface ExamReport {
  /** Its command. */
  readonly client: string;
  readonly passed: number;
  readonly failed: number;
  readonly not_applicable: number;
  /** In the order of the situations. */
  readonly results: readonly ExamResult[];
}

/** The options of {@link runExam}. */
export interface ExamOptions {
  /** The program and its arguments. */
  readonly command: readonly string[];
  readonly situations: readonly Situation[];
  /** Ends the exam; it then rejects with the reason. */
  readonly signal: AbortSignal;
  /** Called after each situation. */
  readonly onResult?: (result: ExamResult) => void;
}

/**
 * Runs a client program through situations, several at a time, each with an emulator, a process and a folder of its own.
 * Nothing of it is left when the promise settles.
 * @throws ExamError if the program can't sit an exam
 */
export async function runExam({ command, situations, signal, onResult }: ExamOptions): Promise<ExamReport> {
  const root = await mkdtemp(join(tmpdir(), 'latchkey-exam-'));
  const failed = new AbortController();
  let isStubborn = false;
  const contextIn = (name: string): SittingContext => ({
    command,
    folder: join(root, name),
    signal: AbortSignal.any([signal, failed.signal]),
    // A program that has ignored SIGTERM once will do it again.
    stopTimeout: () => (isStubborn ? 500 : 5000),
  });
  const begin = async <Result>(
    name: string,
    flow: Flow,
    situation: Setup,
    work: (sitting: Sitting) => Promise<Result>,
  ) => {
    const context = contextIn(name);
    context.signal.throwIfAborted();
    const sitting = await Sitting.begin(situation, flow, context);
    try {
      return await work(sitting);
    } finally {
      await sitting[Symbol.asyncDispose]();
      isStubborn ||= sitting.clients.some(({ ignoredStop }) => ignoredStop);
    }
  };
  const limit = new Limiter(MAX_PARALLEL);
  try {
    const refreshes = await begin('admission', 'refresh', ADMISSION, admit);
    const flows = new Map<Flow, Promise<string | null>>([['refresh', Promise.resolve(refreshes)]]);
    const whyNot = (flow: Flow) => {
      const known =
        flows.get(flow) ??
        limit.run(() => begin(`flow-${flow}`, flow, { ownLogin: true }, (sitting) => findFlow(sitting, flow)));
      flows.set(flow, known);
      return known;
    };
    const judge = async (situation: Situation): Promise<ExamResult> => {
      const { name, group, right, source } = situation;
      const flow = FLOW_OF[group];
      const reason = await whyNot(flow);
      const outcome =
        reason === null
          ? await limit.run(() => begin(name, flow, situation, (sitting) => sit(situation, sitting)))
          : ({ verdict: 'not_applicable', seen: reason } as const);
      const result = { name, group, ...outcome, right, source };
      onResult?.(result);
      return result;
    };
    const results = await Promise.all(situations.map(judge)).catch((error: unknown) => {
      failed.abort(error);
      throw error;
    });
    const count = (verdict: ExamResult['verdict']) => results.filter((one) => one.verdict === verdict).length;
    return {
      client: command.join(' '),
      passed: count('passed'),
      failed: count('failed'),
      not_applicable: count('not_applicable'),
      results,
    };
  } finally {
    failed.abort();
    await limit.idle();
    await rm(root, { recursive: true, force: true });
  }
}

async function sit({ happens }: Situation, sitting: Sitting): Promise<Pick<ExamResult, 'verdict' | 'seen'>> {
  try {
    return { verdict: 'passed', seen: sitting.mask(await happens(sitting)) };
  } catch (error) {
    if (error instanceof Judgement) return { verdict: error.verdict, seen: sitting.mask(error.message) };
    throw error;
  }
}

/** Runs some pieces of work at a time, in their order. */
class Limiter {
  #free: number;
  readonly #waiting: (() => void)[] = [];
  readonly #running = new Set<Promise<unknown>>();

  constructor(limit: number) {
    this.#free = limit;
  }

  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#free === 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#free -= 1;
    const running = work();
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }

  /** Resolves when no work runs. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) {
      await Promise.allSettled(this.#running);
    }
  }
}
