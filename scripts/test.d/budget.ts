import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** What a complete run may take, in seconds: wall time and the processor time of all its processes, set-up included. */
export interface Budget {
  readonly wall: number;
  readonly cpu: number;
}

/** On two idle cores of the reference machine. A change that needs more takes something else out of its tier. */
export const BUDGETS: Readonly<Record<'first' | 'all', Budget>> = {
  first: { wall: 5 * 60, cpu: 7 * 60 },
  all: { wall: 15 * 60, cpu: 22 * 60 },
};

/** How far a run may be over its budget before it says so. */
const TOLERANCE = 0.1;

const STARTS = 9;
/** How long a node process takes to start on the reference machine, in seconds of wall and of processor time. */
const REFERENCE_START = { wall: 0.03, cpu: 0.025 };

/** The speed of a machine, in comparison with the idle reference machine. */
export interface MachineSpeed {
  /** The median wall time in which a node process starts, in seconds. */
  readonly start: number;
  /** How many times longer a process takes to start, on the clock: the machine may be slow or busy. */
  readonly wallFactor: number;
  /** How many times more processor time that takes: the machine is slow. */
  readonly cpuFactor: number;
}

/** Measures how fast this machine starts processes now. */
export function measureMachine(): MachineSpeed {
  const cpuBefore = cpuSecondsOfChildren();
  const starts = Array.from({ length: STARTS }, () => {
    const begun = performance.now();
    spawnSync(process.execPath, ['--eval', '']);
    return (performance.now() - begun) / 1000;
  });
  const cpu = (cpuSecondsOfChildren() - cpuBefore) / STARTS;
  const start = starts.toSorted((a, b) => a - b)[Math.floor(STARTS / 2)] ?? REFERENCE_START.wall;
  return { start, wallFactor: start / REFERENCE_START.wall, cpuFactor: cpu / REFERENCE_START.cpu };
}

/** The processor time of this process, of the shell that it replaced, and of all their children that ended, in seconds. */
export function cpuSecondsOfRun(): number {
  return cpuSeconds([11, 12, 13, 14]);
}

/** The processor time of the children that have ended, with theirs, in seconds. */
export function cpuSecondsOfChildren(): number {
  return cpuSeconds([13, 14]);
}

/** @param fields utime, stime, cutime and cstime are 11 to 14, in ticks of 10 ms (proc(5)) */
function cpuSeconds(fields: readonly number[]): number {
  try {
    const stat = readFileSync('/proc/self/stat', 'utf8');
    const values = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields.reduce((sum, field) => sum + Number(values[field]), 0) / 100;
  } catch {
    return 0; // there is no /proc
  }
}

/**
 * Compares the processor time of a run with its budget. Wall time is only shown: it depends on what else the machine
 * does.
 */
export function budgetLine(used: Budget, budget: Budget, cpuFactor: number): string {
  const minutes = (seconds: number) => `${(seconds / 60).toFixed(1)} min`;
  const factor = Math.max(1, cpuFactor);
  const allowed = budget.cpu * factor;
  const took = `The run took ${minutes(used.wall)} and ${minutes(used.cpu)} of processor time`;
  const budgetText = `it may take up to ${minutes(budget.wall)} and ${minutes(budget.cpu)} on two idle cores`;
  const here = factor > 1 ? `, ${minutes(allowed)} of processor time on a machine as slow as this one` : '';
  if (used.cpu <= allowed * (1 + TOLERANCE)) return `${took}; ${budgetText}${here}.`;
  const percent = Math.round((used.cpu / allowed - 1) * 100);
  return `!!! OVER BUDGET by ${percent} %: ${took.charAt(0).toLowerCase()}${took.slice(1)}; ${budgetText}${here}. Make a test cheaper, or move one to test/release.`;
}
