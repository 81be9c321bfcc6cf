import { readFileSync } from 'node:fs';

/** Ticks of the processor's accounting in a second (`getconf CLK_TCK`): 100 on every Linux that Node runs on. */
const TICKS = 100;

/** Whether a process runs; one that has ended and that nobody waits for does not. */
export function isRunning(pid: number): boolean {
  try {
    return !/\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

/** The processor time that a process's main thread has used, in seconds (proc(5), `/proc/pid/task/tid/stat`). */
export function mainThreadCpuSeconds(pid: number): number {
  const [user, system] = timesIn(`/proc/${pid}/task/${pid}/stat`);
  return user + system;
}

/** Of this process and of those that it has started, those that have ended and those that run, in seconds. */
export function cpuSecondsWithChildren(): number {
  const stats = ['/proc/self/stat', ...runningChildren().map((pid) => `/proc/${pid}/stat`)];
  return stats.flatMap(timesIn).reduce((sum, seconds) => sum + seconds, 0);
}

/** None where the kernel does not say them (proc(5), `/proc/pid/task/tid/children`). */
function runningChildren(): string[] {
  try {
    return readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').split(' ').filter(Boolean);
  } catch {
    return [];
  }
}

/** utime, stime, cutime and cstime, in seconds (proc(5), `/proc/pid/stat`). */
function timesIn(file: string): [number, number, number, number] {
  const stat = readFileSync(file, 'utf8');
  // The name, in brackets, may hold anything; what follows it begins with the third field.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const seconds = (index: number) => Number(fields[index]) / TICKS;
  return [seconds(11), seconds(12), seconds(13), seconds(14)];
}
