import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { MAIN, SHARED_CACHE } from '../support/program.ts';
import { type RunningCommand, watchCommand } from './running-command.ts';
import type { SharedProcessCommand } from './shared-process-worker.ts';

/** A process that runs one command at a time. */
interface SharedProcess {
  readonly child: ChildProcess;
  /** Rejects when the process ends. */
  readonly exited: Promise<never>;
}

/** The processes that run no command, those on a terminal apart. */
const idle: Record<'pipes' | 'terminal', SharedProcess[]> = { pipes: [], terminal: [] };

/**
 * Starts a command of the built program in a process that has run other commands, or in a new one if none is idle.
 * Starting a process takes ten times as long as running a command. `ended` rejects if the command ends the process.
 */
export function startInSharedProcess(command: SharedProcessCommand): RunningCommand {
  const kind = command.screen === undefined ? 'pipes' : 'terminal';
  // A late signal may have ended an idle process.
  idle[kind] = idle[kind].filter(({ child }) => child.connected);
  const shared = idle[kind].pop() ?? startProcess(kind);
  const { child, exited } = shared;
  const end = async (marked: Promise<unknown>) => {
    const [[status]] = await Promise.race([Promise.all([once(child, 'message'), marked]), exited]);
    idle[kind].push(shared);
    return { status, signal: null };
  };
  // All output of a terminal comes as standard output.
  const running = watchCommand(child, end, kind === 'terminal' ? ['stdout'] : ['stdout', 'stderr']);
  child.send(command);
  return running;
}

function startProcess(kind: 'pipes' | 'terminal'): SharedProcess {
  const worker = [process.execPath, join(import.meta.dirname, 'shared-process-worker.ts')];
  // `script` leaves the channel for messages open for its child.
  const [program = '', ...args] =
    kind === 'pipes' ? worker : ['/usr/bin/script', '-qefc', `exec '${worker.join("' '")}'`, '/dev/null'];
  const child = spawn(program, args, {
    env: {
      LATCHKEY_TEST_MAIN: MAIN,
      NODE_COMPILE_CACHE: join(SHARED_CACHE, 'latchkey'),
      PATH: process.env['PATH'],
    },
    stdio: ['pipe', 'pipe', 'pipe', 'ipc'],
  });
  const exited = once(child, 'exit').then(([status, signal]) => {
    throw new Error(`the command ended its process (${status ?? signal}): spawn one of its own for it`);
  });
  exited.catch(() => undefined);
  return { child, exited };
}
