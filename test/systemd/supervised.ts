import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { HubProcess } from '../support/hub-process.ts';
import { eventually } from '../support/hub-process.ts';
import { logFile } from '../support/logs.ts';
import { MAIN, SHARED_CACHE } from '../support/program.ts';
import { slowStoreEnv } from '../support/slow-store.ts';

/** How a daemon ended. */
interface ExitResult {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A daemon as systemd runs it: its log goes to the journal, here a file. Disposing of it kills it if it still runs. */
export interface SupervisedDaemon extends AsyncDisposable {
  readonly child: ChildProcess;
  readonly ended: Promise<ExitResult>;
  /** The lines of its log so far. */
  log(): string[];
  /** The events in it, with their fields and their priority in the journal. */
  events(): (Record<string, unknown> & { readonly priority: number })[];
}

/** What the daemon is started with, in addition to its configuration. */
export interface SupervisedOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly args?: readonly string[];
  /** JavaScript that the daemon runs on SIGUSR2. */
  readonly onSignal?: string;
  /** A program with arguments, which executes the daemon's command that follows them. */
  readonly within?: readonly string[];
  /** Makes writes to the store as slow as on a worn SD card. */
  readonly slowStore?: boolean;
}

/**
 * Starts a prepared hub's daemon as its unit does.
 * @param notify the value of `NOTIFY_SOCKET`
 */
export function supervise(hub: HubProcess, notify: string, options: SupervisedOptions = {}): SupervisedDaemon {
  const file = logFile('hub');
  const journal = openSync(file, 'a');
  const { dev, ino } = fstatSync(journal);
  const preload = `--import=data:text/javascript,process.on('SIGUSR2',()=>{${encodeURIComponent(options.onSignal ?? '')}})`;
  const command = [process.execPath, MAIN, 'serve', '--config', join(hub.directory, 'latchkey.toml')];
  const [program = '', ...args] = [...(options.within ?? []), ...command, ...(options.args ?? [])];
  const child = spawn(program, args, {
    env: {
      PATH: process.env['PATH'],
      HOME: hub.directory,
      CACHE_DIRECTORY: SHARED_CACHE,
      NOTIFY_SOCKET: notify,
      JOURNAL_STREAM: `${dev}:${ino}`,
      ...(options.slowStore ? slowStoreEnv(preload) : { NODE_OPTIONS: preload }),
      ...options.env,
    },
    stdio: ['ignore', 'ignore', journal],
  });
  closeSync(journal);
  const log = () =>
    readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '');
  const ended = once(child, 'exit').then(([status, signal]) => ({ status, signal }));
  return {
    child,
    ended,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await ended;
    },
    log,
    events: () =>
      log().flatMap((line) => {
        const [, priority, json] = /^<(\d)>(\{.*)$/.exec(line) ?? [];
        return json === undefined ? [] : [{ priority: Number(priority), ...JSON.parse(json) }];
      }),
  };
}

/** The same, and waits until it is up. */
export async function superviseUntilReady(
  hub: HubProcess,
  notify = '',
  options: SupervisedOptions = {},
): Promise<SupervisedDaemon> {
  const daemon = supervise(hub, notify, options);
  await eventually(async () => daemon.events().some(({ event }) => event === 'hub_started'));
  return daemon;
}
