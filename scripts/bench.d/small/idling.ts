import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { processorTime } from '../program.ts';

/** What a process did while it was left alone. */
export interface Idling {
  /** How often a second one of its threads went on after it had waited. */
  readonly wakeUps: number;
  /** Processor time, that of the programs it has run included, as a part of one core: 0 to 1. */
  readonly busy: number;
}

/** What a process has done so far; times in ms. */
interface Doings {
  readonly at: number;
  readonly processor: number;
  readonly programs: number;
  /** Voluntary context switches by thread. */
  readonly waits: ReadonlyMap<string, number>;
}

/** Looks at processes that nobody asks anything, for so many ms. */
export async function watchIdling(pids: readonly number[], lasting: number): Promise<Idling[]> {
  const before = pids.map(doingsOf);
  await sleep(lasting);
  return pids.map((pid, index) => between(before[index] ?? doingsOf(pid), doingsOf(pid)));
}

function between(before: Doings, after: Doings): Idling {
  const lasted = after.at - before.at;
  const waits = [...after.waits].reduce((sum, [thread, count]) => sum + count - (before.waits.get(thread) ?? 0), 0);
  const busy = after.processor - before.processor + after.programs - before.programs;
  return { wakeUps: (1000 * waits) / lasted, busy: busy / lasted };
}

/** proc(5): `task/TID/status`, `stat`. */
function doingsOf(pid: number): Doings {
  const threads = readdirSync(`/proc/${pid}/task`);
  return {
    at: performance.now(),
    processor: processorTime(pid),
    programs: programTime(pid),
    waits: new Map(threads.map((thread) => [thread, waitsOf(`/proc/${pid}/task/${thread}/status`)])),
  };
}

function waitsOf(file: string): number {
  return Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(readFileSync(file, 'utf8'))?.[1]);
}

/** Of the programs that it has run to their end, in ms, to a hundredth of a second. */
function programTime(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // Behind the program's name, which may have anything in it, from the state (3) on.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return 10 * (Number(fields[16 - 3]) + Number(fields[17 - 3]));
}
