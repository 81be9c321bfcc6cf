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
interface End {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A daemon as systemd runs it: its log goes to the journal, here a file. Disposing of it kills it where it still runs. */
export interface SupervisedDaemon extends AsyncDisposable {
  readonly child: ChildProcess;
  readonly ended: Promise<End>;
  /** The lines of its log so far. */
  log(): string[];
  /** The events in it, with their fields and the priority that the journal sees. */
  events(): (Record<string, unknown> & { readonly priority: number })[];
}

/** What the daemon is started with, beside its configuration. */
export interface SupervisedOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly args?: readonly string[];
  /** JavaScript that it runs at SIGUSR2. */
  readonly onSignal?: string;
  /** A program with its arguments, which becomes the daemon whose command follows them. */
  readonly within?: readonly string[];
  /** The writes of its store are as slow as a worn card's. */
  readonly slowStore?: boolean;
}

/**
 * Starts a prepared hub's daemon as its unit does.
 * @param notify what is in `NOTIFY_SOCKET`
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
