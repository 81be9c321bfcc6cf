import { readFileSync } from 'node:fs';

/** Ticks of the processor's accounting in a second (`getconf CLK_TCK`): 100 on every Linux that Node runs on. */
const TICKS = 100;

/** Whether a process runs; one that has ended and that nobody waits for does not. */
export function lives(pid: number): boolean {
  try {
    return !/\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

/** The processor time that a process's main thread has used, in seconds (proc(5), `/proc/pid/task/tid/stat`). */
export function mainThreadCpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/task/${pid}/stat`, 'utf8');
  // The name, in brackets, may hold anything; what follows it begins with the third field.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS;
}
