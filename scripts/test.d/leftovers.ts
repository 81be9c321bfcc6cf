import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** A test run, and the session of the processes that it started (unless they began a session of their own). */
interface Run {
  readonly boot: string;
  readonly process: Identity;
  readonly session: Identity;
}

/** Identifies a process: its number alone may have been reused. */
interface Identity {
  readonly pid: number;
  /** In clock ticks since the boot. */
  readonly started: string;
}

/** Records a run's session in `file`, so that a later run can end its processes if this one is killed. */
export function rememberSession(file: string, session: number): void {
  const [process_, leader] = [identify(process.pid), identify(session)];
  if (process_ === null || leader === null) return; // there is no /proc, or the process has already ended
  const run: Run = { boot: boot(), process: process_, session: leader };
  writeFileSync(file, JSON.stringify(run));
}

/**
 * Ends the processes that a killed run of this checkout left, and removes folders, namespaces and mounts of dead tests.
 */
export function clearLeftovers(file: string): void {
  const run = read(file);
  if (run !== null && run.boot === boot() && identify(run.process.pid)?.started !== run.process.started) {
    const leader = identify(run.session.pid);
    if (leader === null || leader.started === run.session.started) endSession(run.session.pid);
  }
  rmSync(file, { force: true });
  for (const folder of [tmpdir(), '/dev/shm', dirname(file)]) {
    const names = existsSync(folder) ? readdirSync(folder).join('\n') : '';
    for (const [name] of owned(names, /^latchkey-(\d+) .+/gm))
      rmSync(join(folder, name), { recursive: true, force: true });
  }
  if (process.getuid?.() !== 0) return;
  for (const [name] of owned(output('ip', 'netns', 'list'), /^latchkey-(\d+)-\S+/gm)) {
    for (const pid of output('ip', 'netns', 'pids', name).split('\n')) if (pid !== '') kill(Number(pid));
    output('ip', 'netns', 'del', name);
  }
  const mounts = readFileSync('/proc/self/mounts', 'utf8');
  for (const [, , path = ''] of owned(mounts, /^latchkey-(\d+) (\S+\/latchkey-hub-\S+) /gm))
    output('umount', '--lazy', path);
}

/** Ends all processes of a session. */
export function endSession(session: number): void {
  for (const pid of processes()) if (stat(pid)?.[3] === String(session)) kill(pid);
}

/** The matches of a pattern whose first group is the number of a process that has ended. */
function owned(text: string, pattern: RegExp): RegExpExecArray[] {
  return [...text.matchAll(pattern)].filter(([, pid]) => identify(Number(pid)) === null);
}

function read(file: string): Run | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Run;
  } catch {
    return null;
  }
}

function boot(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8');
  } catch {
    return '';
  }
}

function processes(): number[] {
  try {
    return readdirSync('/proc').map(Number).filter(Number.isInteger);
  } catch {
    return [];
  }
}

/** Null if there is no such process, or if it is a zombie. */
function identify(pid: number): Identity | null {
  const fields = stat(pid);
  if (fields === null || fields[0] === 'Z') return null;
  return { pid, started: fields[19] ?? '' };
}

/** The fields of proc_pid_stat(5), beginning with the third (the state). */
function stat(pid: number): string[] | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch {
    return null;
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has already ended.
  }
}

/** The output of a program, '' if it fails or is missing: a remaining leftover must not prevent a test run. */
function output(program: string, ...args: string[]): string {
  try {
    return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], timeout: 10_000 });
  } catch {
    return '';
  }
}
