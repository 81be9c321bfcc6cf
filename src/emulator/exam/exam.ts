import { rmSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monotonicNow } from '../../system/clock.ts';
import { startEmulator } from '../emulator.ts';
import { admit, findFlow, type Obstacle } from './admission.ts';
import { killAllClients } from './client-process.ts';
import { Judgement } from './judgement.ts';
import type { Flow, Setup } from './setup.ts';
import { Sitting, type SittingContext } from './sitting.ts';
import { type ExamResult, FLOW_OF, type Situation } from './situation.ts';

/** Situations that run at the same time, and how many do on a machine that is as slow as can be. */
const [MAX_PARALLEL, MIN_PARALLEL] = [10, 3];
/** The programs of an exam alone slow a small machine down that much. */
const OWN_SLOWNESS = 2;
/** No machine counts as slower than this. */
const MAX_SLOWNESS = 10;

/** The redirect URI of programs that may have any, but for its port. */
const REDIRECT_URI = 'http://127.0.0.1/callback';

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
  /** For programs that accept no plain HTTP. Default: false. */
  readonly tls?: boolean | undefined;
  /** An http URL of a loopback host, whose port the exam replaces. Default: {@link REDIRECT_URI}. */
  readonly redirectUri?: string | undefined;
  /** A folder for the output and the requests of the program in each situation. Default: none. */
  readonly log?: string | undefined;
  /** Ends the exam; it then rejects with the reason. */
  readonly signal: AbortSignal;
  /** Called after each situation. */
  readonly onResult?: (result: ExamResult) => void;
}

/** The folders of the exams that run now. */
const folders = new Set<string>();

/** Ends all exams at once, with their programs and folders, for a process that must end now. */
export function abandonExams(): void {
  killAllClients();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
}

/**
 * Runs a client program through situations, several at a time, each with an emulator, a process and a folder of its own.
 * Nothing of it is left when the promise settles.
 * @throws ExamError if the program can't sit an exam
 */
export async function runExam({
  command,
  situations,
  tls = false,
  redirectUri = REDIRECT_URI,
  log,
  signal,
  onResult,
}: ExamOptions): Promise<ExamReport> {
  if (log !== undefined) await mkdir(log, { recursive: true });
  const root = await mkdtemp(join(tmpdir(), 'latchkey-exam-'));
  folders.add(root);
  const failed = new AbortController();
  let isStubborn = false;
  const slowness = new Slowness();
  const contextIn = (name: string): SittingContext => ({
    command,
    folder: join(root, name),
    tls,
    redirectUri,
    signal: AbortSignal.any([signal, failed.signal]),
    // A program that has ignored SIGTERM once will do it again.
    stopTimeout: () => (isStubborn ? 500 : 5000),
    slowness: slowness.factor,
  });
  const begin = async <Result>(
    name: string,
    flow: Flow,
    situation: Setup,
    work: (sitting: Sitting) => Promise<Result>,
  ) => {
    const context = contextIn(name);
    context.signal.throwIfAborted();
    const sitting = await slowness.measure(() => Sitting.begin(situation, flow, context));
    try {
      return await work(sitting);
    } finally {
      await sitting[Symbol.asyncDispose]();
      if (log !== undefined) await sitting.writeLog(join(log, name));
      isStubborn ||= sitting.clients.some(({ ignoredStop }) => ignoredStop);
    }
  };
  const limit = new Limiter(() => {
    const parallel = Math.floor((MAX_PARALLEL * OWN_SLOWNESS) / slowness.factor);
    return Math.min(Math.max(parallel, MIN_PARALLEL), MAX_PARALLEL);
  });
  try {
    await slowness.measure(async () => (await startEmulator()).close());
    const refreshes = await begin('admission', 'refresh', ADMISSION, admit);
    const flows = new Map<Flow, Promise<Obstacle | null>>();
    const whyNot = async (flow: Flow): Promise<Obstacle | null> => {
      if (flow === 'refresh') return refreshes === null ? null : { seen: refreshes };
      const setup: Setup = { ownLogin: true, settings: { deviceInterval: 1 } };
      const known =
        flows.get(flow) ??
        limit.run(() =>
          begin(`flow-${flow}`, flow, setup, async (sitting) => {
            const found = await findFlow(sitting, flow);
            return found && { ...found, seen: sitting.mask(found.seen) };
          }),
        );
      flows.set(flow, known);
      return known;
    };
    const judge = async (situation: Situation): Promise<ExamResult> => {
      const { name, group, right, source } = situation;
      const flow = FLOW_OF[group];
      const obstacle = await whyNot(flow);
      // A mistake that hides all of them is reported once.
      const isFirst = situations.find((one) => FLOW_OF[one.group] === flow) === situation;
      const mistake = isFirst ? obstacle?.mistake : undefined;
      const outcome =
        obstacle === null
          ? await limit.run(() => begin(name, flow, situation, (sitting) => sit(situation, sitting)))
          : ({ verdict: mistake === undefined ? 'not_applicable' : 'failed', seen: obstacle.seen } as const);
      const result = { name, group, ...outcome, right, source, ...mistake };
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
    folders.delete(root);
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

/** How much longer something takes than on an idle machine, by the exam's own work. */
class Slowness {
  /** From 1 to {@link MAX_SLOWNESS}. */
  factor = 1;

  /** Compares the time of a piece of work that waits for nothing with its processor time. */
  async measure<Result>(work: () => Promise<Result>): Promise<Result> {
    const [began, before] = [monotonicNow(), process.cpuUsage()];
    const result = await work();
    const { user, system } = process.cpuUsage(before);
    const measured = (1000 * (monotonicNow() - began)) / (user + system);
    this.factor = Math.min(Math.max((this.factor + measured) / 2, 1), MAX_SLOWNESS);
    return result;
  }
}

/** Runs some pieces of work at a time, in their order. */
class Limiter {
  readonly #limit: () => number;
  #waiting: (() => void)[] = [];
  readonly #running = new Set<Promise<unknown>>();

  constructor(limit: () => number) {
    this.#limit = limit;
  }

  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    while (this.#running.size >= this.#limit()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    const running = work();
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
      const waiting = this.#waiting;
      this.#waiting = [];
      for (const next of waiting) next();
    }
  }

  /** Resolves when no work runs. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) {
      await Promise.allSettled(this.#running);
    }
  }
}
