import { Command } from 'commander';
import type { StatusAnswer } from '../../control/messages.ts';
import { systemTimers } from '../../system/clock.ts';
import { connectHub, isAway } from '../hub-connection.ts';
import { canRedraw, print, printJson } from '../terminal/output.ts';
import { untilSignal } from '../terminal/signals.ts';
import type { StatusDisplay } from './changes.ts';
import { exitStatusOf, statusText } from './text.ts';

/** How often the hub is asked, in ms. */
const POLL_INTERVAL = 1000;
/** How long an answer may take, in ms. */
const ANSWER_TIMEOUT = 5000;

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
      process.exitCode = exitStatusOf(status.conditions);
      if (options.json === true) printJson(status);
      else print(statusText(status));
    });
}

/** Shows how the hub stands until Ctrl-C, which is how it ends and no failure. A hub that goes is waited for. */
async function watch(options: Options, command: Command): Promise<void> {
  const ended = new AbortController();
  void untilSignal().then(() => ended.abort());
  // Before the screen is another one: where there is no hub, that stays to be read.
  let status: StatusAnswer | null = await ask(command);
  using parts = new DisposableStack();
  const display = await displayFor(options, parts);
  for (;;) {
    if (status === null) display.away();
    else display.show(status);
    await systemTimers.sleep(POLL_INTERVAL, ended.signal);
    if (ended.signal.aborted) return;
    status = await ask(command).catch((error: unknown) => {
      if (isAway(error)) return null;
      throw error;
    });
  }
}

/** @throws Failure `hub_stopping` where there is no answer in time */
async function ask(command: Command): Promise<StatusAnswer> {
  await using hub = await connectHub(command);
  const stop = systemTimers.after(ANSWER_TIMEOUT, () => void hub[Symbol.asyncDispose]());
  try {
    return await hub.status();
  } finally {
    stop();
  }
}

/** @param parts what the terminal is to be left by */
async function displayFor({ json }: Options, parts: DisposableStack): Promise<StatusDisplay> {
  if (json !== true && canRedraw(process.stdout)) {
    const { StatusScreen } = await import('./screen.ts');
    return parts.use(new StatusScreen());
  }
  const { ChangeLines, JsonChanges } = await import('./changes.ts');
  return json === true ? new JsonChanges() : new ChangeLines();
}
