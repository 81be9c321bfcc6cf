import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** A test run, and the session of the processes that it started (unless they began a session of their own). */
interface Run {
  readonly boot: string;
  readonly process: Identity;
  readonly session: Identity;
  /** What it would have deleted at its end. */
  readonly folders: readonly string[];
}

/** Identifies a process: its number alone may have been reused. */
interface Identity {
  readonly pid: number;
  /** In clock ticks since the boot. */
  readonly started: string;
}

/**
 * Records a run's session in `file`, so that a later run can end its processes if this one is killed.
 * @param folders of the run, which that later run deletes
 */
export function rememberSession(file: string, session: number, folders: readonly string[] = []): void {
  const [process_, leader] = [identify(process.pid), identify(session)];
  if (process_ === null || leader === null) return; // there is no /proc, or the process has already ended
  const run: Run = { boot: boot(), process: process_, session: leader, folders };
  writeFileSync(file, JSON.stringify(run));
}

/**
 * Ends the processes that a killed run of this checkout left, and removes folders, namespaces, mounts and cgroups of dead
 * tests.
 */
export function clearLeftovers(file: string): void {
  const run = read(file);
  const isRunning = run?.boot === boot() && identify(run.process.pid)?.started === run.process.started;
  if (run !== null && !isRunning) {
    const leader = identify(run.session.pid);
    const isReused = leader !== null && leader.started !== run.session.started;
    if (run.boot === boot() && !isReused) endSession(run.session.pid);
    for (const folder of run.folders) removeFolder(folder);
  }
  rmSync(file, { force: true });
  for (const folder of [tmpdir(), '/dev/shm', dirname(file)]) {
    for (const [name] of owned(namesIn(folder).join('\n'), /^latchkey-(\d+)[ -].+/gm)) removeFolder(join(folder, name));
  }
  if (process.getuid?.() !== 0) return;
  for (const [name] of owned(output('ip', 'netns', 'list'), /^latchkey-(\d+)-\S+/gm)) {
    for (const pid of output('ip', 'netns', 'pids', name).split('\n')) if (pid !== '') kill(Number(pid));
    output('ip', 'netns', 'del', name);
  }
  const mounts = readFileSync('/proc/self/mounts', 'utf8');
  for (const [, , path = ''] of owned(mounts, /^latchkey-(\d+) (\S+\/latchkey-hub-\S+) /gm))
    output('umount', '--lazy', path);
  // Of machines that tests have booted.
  removeCgroups((names) => owned(names.join('\n'), /^latchkey-test-(\d+)-\d+$/gm).map(([name]) => name));
}

/** Deletes a folder, after it has ended the processes and removed the mounts of containers in it. */
export function removeFolder(folder: string): void {
  const containers: string[] = [];
  for (const pid of processes()) {
    const command = readProc(pid, 'cmdline').split('\0');
    if (!command[0]?.endsWith('/conmon') || !command.some((part) => part.startsWith(`${folder}/`))) continue;
    containers.push(command[command.indexOf('-c') + 1] ?? '');
    // A container runs without its monitor, too.
    for (const child of readProc(pid, `task/${pid}/children`).split(' ')) if (child !== '') kill(Number(child));
    kill(pid);
  }
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n');
  const inFolder = mounts.map((line) => line.split(' ')[1] ?? '').filter((path) => path.startsWith(`${folder}/`));
  for (const path of inFolder.reverse()) output('umount', '--lazy', path);
  rmSync(folder, { recursive: true, force: true });
  if (containers.length > 0) {
    removeCgroups(
      (names) => names.filter((name) => containers.some((id) => name.includes(`libpod-${id}`))),
      'libpod_parent',
    );
  }
}

const CGROUPS = '/sys/fs/cgroup';

/** @param pick those to remove @param parent in each hierarchy */
function removeCgroups(pick: (names: readonly string[]) => readonly string[], parent = ''): void {
  for (const hierarchy of ['', ...namesIn(CGROUPS)]) {
    const folder = join(CGROUPS, hierarchy, parent);
    for (const name of pick(namesIn(folder))) {
      // The kernel needs a moment to release processes that were killed.
      for (let tries = 0; tries < 40 && !removeCgroup(join(folder, name)); tries++) pause(50);
    }
  }
}

/** @returns whether it is gone */
function removeCgroup(path: string): boolean {
  for (const name of namesIn(path)) if (existsSync(join(path, name, 'cgroup.procs'))) removeCgroup(join(path, name));
  try {
    rmdirSync(path);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'EBUSY';
  }
}

function pause(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
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
  return namesIn('/proc').map(Number).filter(Number.isInteger);
}

/** The names in a folder; none if it can't be read. */
function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** A file of a process in /proc; empty if the process has ended. */
function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
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
  const text = readProc(pid, 'stat');
  return text === '' ? null : text.slice(text.lastIndexOf(')') + 2).split(' ');
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
