import { readFileSync } from 'node:fs';

/** Ticks of the processor's accounting in a second (`getconf CLK_TCK`): 100 on every Linux that Node runs on. */
const TICKS = 100;

/** The processor time that a process's main thread has used, in seconds (proc(5), `/proc/pid/task/tid/stat`). */
export function mainThreadCpuSeconds(pid: number): number {
  const [user, system] = timesIn(`/proc/${pid}/task/${pid}/stat`);
  return user + system;
}

/** Of this process and of those that it has started and seen end, in seconds. */
export function cpuSecondsWithChildren(): number {
  return timesIn('/proc/self/stat').reduce((sum, seconds) => sum + seconds, 0);
}

/** utime, stime, cutime and cstime, in seconds (proc(5), `/proc/pid/stat`). */
function timesIn(file: string): [number, number, number, number] {
  const stat = readFileSync(file, 'utf8');
  // The name, in brackets, may hold anything; what follows it begins with the third field.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const seconds = (index: number) => Number(fields[index]) / TICKS;
  return [seconds(11), seconds(12), seconds(13), seconds(14)];
}
