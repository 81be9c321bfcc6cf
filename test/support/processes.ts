import { readFileSync } from 'node:fs';

/** Clock ticks per second (`getconf CLK_TCK`): 100 on every Linux that Node runs on. */
const TICKS = 100;

/** Whether a process runs; a zombie does not count. */
export function isRunning(pid: number): boolean {
  try {
    return !/\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

/** Whether a process is stopped (SIGSTOP). */
export function isStopped(pid: number): boolean {
  try {
    return /\) T/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

/** The processor time of a process's main thread, in seconds (proc(5), `/proc/pid/task/tid/stat`). */
export function mainThreadCpuSeconds(pid: number): number {
  const [user, system] = timesIn(`/proc/${pid}/task/${pid}/stat`);
  return user + system;
}

/** The processor time of this process and of all its children, running or exited, in seconds. */
export function cpuSecondsWithChildren(): number {
  const stats = ['/proc/self/stat', ...childrenOf(process.pid).map((pid) => `/proc/${pid}/stat`)];
  return stats.flatMap(timesIn).reduce((sum, seconds) => sum + seconds, 0);
}

/**
 * The children that a process's main thread started; none if the kernel does not list them (proc(5),
 * `/proc/pid/task/tid/children`).
 */
export function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/** The name of a process's program (proc(5), `/proc/pid/comm`); empty if it has ended. */
export function commandName(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trimEnd();
  } catch {
    return '';
  }
}

/** utime, stime, cutime and cstime, in seconds (proc(5), `/proc/pid/stat`). */
function timesIn(file: string): [number, number, number, number] {
  const stat = readFileSync(file, 'utf8');
  // The name, in parentheses, may contain anything; the text after it begins with the third field.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const seconds = (index: number) => Number(fields[index]) / TICKS;
  return [seconds(11), seconds(12), seconds(13), seconds(14)];
}
