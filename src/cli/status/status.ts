import { Command } from 'commander';
import { systemTimers } from '../../system/clock.ts';
import { connectHub } from '../hub-connection.ts';
import { drawsOver, print, printJson } from '../terminal/output.ts';
import { untilSignal } from '../terminal/signals.ts';
import { statusText, tellByStatus } from './text.ts';
import type { StatusDisplay } from './watch.ts';

interface Options {
  readonly watch?: boolean;
  readonly json?: boolean;
}

/** `latchkey status` */
export function statusCommand(): Command {
  return new Command('status')
    .description('show how the hub and each appliance stand')
    .option(
      '--watch',
      'go on showing it until Ctrl-C: redrawn each second on a terminal, elsewhere a line for each change',
    )
    .option('--json', 'print JSON; with --watch one object a line, whenever something has changed')
    .addHelpText('after', '\nExit status: 0; 3 where a person is needed; 1 failed; 2 wrong usage.')
    .action(async (options: Options, command: Command) => {
      if (options.watch === true) return watch(options, command);
      await using hub = await connectHub(command);
      const status = await hub.status();
      tellByStatus(status.notices);
      if (options.json === true) printJson(status);
      else print(statusText(status));
    });
}

/** Ctrl-C is how it ends, and no failure. */
async function watch(options: Options, command: Command): Promise<void> {
  const { watchStatus } = await import('./watch.ts');
  const ended = new AbortController();
  void untilSignal().then(() => ended.abort());
  const connect = () => connectHub(command);
  // Before the screen is another one: where there is no hub, that stays to be read.
  await (await connect())[Symbol.asyncDispose]();
  using parts = new DisposableStack();
  await watchStatus(connect, await displayFor(options, parts), systemTimers, ended.signal);
}

/** @param parts what the terminal is to be left by */
async function displayFor({ json }: Options, parts: DisposableStack): Promise<StatusDisplay> {
  if (json !== true && drawsOver(process.stdout)) {
    const { StatusScreen } = await import('./screen.ts');
    return parts.use(new StatusScreen());
  }
  const { ChangeLines, JsonChanges } = await import('./changes.ts');
  return json === true ? new JsonChanges() : new ChangeLines();
}
